"""The recipe of docs/contribute/mechanism.md, followed: its example is proven as it stands."""

from collections.abc import Callable

import pytest

from hubbub.errors import ProofFailed
from hubbub.mechanisms import AnyMechanism
from hubbub.privacy.proofs.enumeration import PROOFS
from tests.support.recipe import example


@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: proof.__name__)
def test_the_example_keeps_the_contract(proof: Callable[[AnyMechanism], None]) -> None:
    mechanism = example()
    for small in mechanism.SMALL:
        proof(mechanism(**small))


def test_the_example_broken_fails_it() -> None:
    names_another = (
        "source.below(self.categories))",
        "(value + 1 + source.below(self.categories - 1)) % self.categories)",
    )
    broken = example(names_another)
    with pytest.raises(ProofFailed):
        _prove(broken(**broken.SMALL[1]))


def _prove(mechanism: AnyMechanism) -> None:
    for proof in PROOFS:
        proof(mechanism)
