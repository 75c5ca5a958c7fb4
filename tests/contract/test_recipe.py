"""The recipe of docs/add-a-mechanism.md, followed: its example is proven as it stands there."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub.analysis import answer, maximal_gain, plausibility, shares
from hubbub.analysis.families import family_for
from hubbub.catalog import Release
from hubbub.errors import ProofFailed
from hubbub.mechanisms import AnyMechanism, KeyedBits, tally
from hubbub.privacy.draws import draw
from hubbub.privacy.proofs import PROOFS
from hubbub.privacy.releases import release

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


def test_the_example_is_answered_planned_checked_attacked_and_released_as_its_family_is() -> None:
    """Nothing but its own file knows of it: 5,000 people, each figure within 6 standard errors."""
    mechanism = _example()(epsilon=2.0, categories=4)  # type: ignore[call-arg]
    held, names = [3000, 1500, 500, 0], ["a", "b", "c", "d"]
    coins, chance = KeyedBits(b"recipe".ljust(32)), np.random.default_rng(1)
    payloads = [mechanism.randomize(value, coins) for value in np.repeat(range(4), held).tolist()]
    totals = tally(mechanism.layout, payloads)
    found = answer(mechanism, totals, names)
    for one, true in zip(found.values, held, strict=True):
        assert abs(one.estimate - true) <= 6 * one.stderr
    [point] = shares([(mechanism, totals)], [0])
    assert point.low < 0.6 < point.high
    assert plausibility(mechanism, totals).findings == ()
    assert maximal_gain(mechanism, [3]).gain(0.01) > 0.01
    errors = family_for(mechanism).expected(mechanism, range(4), np.array(held) / 5000, 5000)
    said = [one.stderr / 5000 for one in found.values]
    assert errors.stderrs == pytest.approx(said, rel=0.1)
    drawn = draw(mechanism, range(4), held, chance)
    assert drawn.reports == 5000
    policy = Release("laplace", 1.0)
    released = release([(mechanism, totals)], names, "histogram", "", policy=policy, reports_each=1)
    assert [one.value for one in released] == names


def _prove(mechanism: AnyMechanism) -> None:
    for proof in PROOFS:
        proof(mechanism)
