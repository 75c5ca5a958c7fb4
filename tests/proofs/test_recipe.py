"""The recipe of docs/contribute/mechanism.md, followed: its example is proven as it stands."""

from collections.abc import Callable

import pytest

from hubbub.errors import ProofFailed
from hubbub.mechanisms import REGISTRY, AnyMechanism, build
from hubbub.privacy.proofs.enumeration import PROOFS
from tests.support.recipe import example


@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: proof.__name__)
def test_the_example_keeps_the_contract(proof: Callable[[AnyMechanism], None]) -> None:
    mechanism = example()
    for small in mechanism.SMALL:
        proof(mechanism(**small))


def test_the_example_is_built_by_its_name_while_the_registry_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mechanism_class = example()
    with monkeypatch.context() as registered:
        registered.setitem(REGISTRY, "example", mechanism_class)
        assert isinstance(build("example", **mechanism_class.SMALL[0]), mechanism_class)
    assert "example" not in REGISTRY


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
