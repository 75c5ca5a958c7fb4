"""The recipe of docs/add-a-mechanism.md, followed: its example is proven as it stands there."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hubbub.errors import ProofFailed
from hubbub.mechanisms import AnyMechanism
from hubbub.privacy.proofs import PROOFS

RECIPE = Path(__file__).parents[2] / "docs" / "add-a-mechanism.md"


def _example(broken: tuple[str, str] = ("", "")) -> type[AnyMechanism]:
    """The class that the document defines, perhaps with one expression replaced."""
    [code] = re.findall(r"```python\n(.*?)```", RECIPE.read_text("utf-8"), re.DOTALL)
    assert broken[0] in code
    defined: dict[str, Any] = {"__name__": "recipe"}
    exec(compile(code.replace(*broken), str(RECIPE), "exec"), defined)  # noqa: S102 our own document
    example: type[AnyMechanism] = defined["ForcedResponse"]
    return example


@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: proof.__name__)
def test_the_example_keeps_the_contract(proof: Callable[[AnyMechanism], None]) -> None:
    example = _example()
    for small in example.SMALL:
        proof(example(**small))


def test_the_example_broken_fails_it() -> None:
    names_another = (
        "source.below(self.categories))",
        "(value + 1 + source.below(self.categories - 1)) % self.categories)",
    )
    broken = _example(names_another)
    with pytest.raises(ProofFailed):
        _prove(broken(**broken.SMALL[1]))


def _prove(mechanism: AnyMechanism) -> None:
    for proof in PROOFS:
        proof(mechanism)
