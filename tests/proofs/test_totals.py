"""What dummies add to the totals of a value, by every number of them that can be drawn."""

from collections import Counter
from itertools import product
from math import isclose
from typing import Any

import pytest

from hubbub.mechanisms import Totals

VALUES = 3
NUMBERS = {0: 0.25, 1: 0.5, 2: 0.25}
"""The chance of each number of dummies that name one value: one on average."""


@pytest.mark.parametrize("evenly", [0, 2])
def test_the_spread_of_dummies_is_the_variance_over_all_of_their_draws(evenly: int) -> None:
    """Of the dummies that name the first value, less its share of all that were drawn."""
    law = Counter[float]()
    for drawn in product(NUMBERS, repeat=VALUES):
        for others in product(range(VALUES), repeat=evenly):
            chance = 1 / VALUES**evenly
            for number in drawn:
                chance *= NUMBERS[number]
            named = drawn[0] + others.count(0)
            law[named - (sum(drawn) + evenly) / VALUES] += chance
    variance = sum(chance * off**2 for off, chance in law.items())
    assert isclose(sum(chance * off for off, chance in law.items()), 0, abs_tol=1e-12)
    totals = Totals(
        cells=[0] * VALUES,
        reports=0,
        dummies=evenly + VALUES,
        value_law=tuple(NUMBERS.values()),
    )
    assert totals.evenly() == evenly
    of_share = totals.weighted_variance([2 / 3, -1 / 3, -1 / 3])
    assert isclose(of_share, variance, rel_tol=1e-12)
    assert isclose(totals.spread(), variance, rel_tol=1e-12)


def test_the_spread_of_dummies_that_hold_any_value_alike_is_that_of_a_multinomial() -> None:
    totals = Totals(cells=[0] * VALUES, reports=0, dummies=6)
    assert totals.evenly() == 6
    assert isclose(totals.spread(), 6 * (1 / VALUES) * (1 - 1 / VALUES), rel_tol=1e-12)


@pytest.mark.parametrize(
    "uncertain",
    [
        {"dummies": 1},
        {"dummies_variance": 0.5},
        {"beside_variance": 0.5},
        {"value_law": (0.5, 0.5)},
    ],
)
def test_totals_have_dummies_also_if_only_their_number_is_uncertain(uncertain: Any) -> None:
    assert not Totals(cells=[0] * VALUES, reports=9).has_dummies
    assert Totals(cells=[0] * VALUES, reports=9, **uncertain).has_dummies
