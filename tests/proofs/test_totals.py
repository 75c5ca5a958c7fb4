"""What dummies add to the totals of a value, by every number of them that can be drawn."""

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import product
from math import isclose, prod
from statistics import fmean, pvariance
from typing import Any

import pytest

from hubbub.mechanisms import Totals, build
from hubbub.mechanisms.mean_one_bit import OneBitMean
from hubbub.mechanisms.mean_piecewise import PiecewiseMean
from hubbub.mechanisms.number_range import dummies_variance
from hubbub.sealing.dummy_laws import CountNoise, ValueNoise

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


def _in_turn(numbers: Iterable[int]) -> Callable[[CountNoise], int]:
    upcoming = iter(numbers)
    return lambda _: next(upcoming)


def test_dummies_of_a_fixed_sum_have_the_moments_of_all_that_can_be_drawn() -> None:
    each, of_sum, values = CountNoise(3 << 31, 1), CountNoise(5 << 30, 2), 4
    noise = ValueNoise(each, values, of_sum)
    laws = [*[each] * values, of_sum]
    drawn: list[tuple[float, list[int]]] = []
    for numbers in product(*(range(law.most + 1) for law in laws)):
        chances = (law.weights[n] / sum(law.weights) for n, law in zip(numbers, laws, strict=True))
        drawn.append((prod(chances), noise.draw(_in_turn(numbers))))
    totals = Totals(
        cells=[0] * values,
        reports=0,
        dummies=noise.expected,
        value_law=[weight / sum(each.weights) for weight in each.weights],
        sum_variance=of_sum.variance,
        sums=1,
        at_ends=2 * noise.ends,
    )
    assert {sum(numbers) for _, numbers in drawn} == {totals.dummies}
    assert isclose(totals.evenly(), 0, abs_tol=1e-12)
    rising = [step - 1.5 for step in range(values)]
    sums = [
        (chance, sum(w * n for w, n in zip(rising, numbers, strict=True)))
        for chance, numbers in drawn
    ]
    assert isclose(sum(chance * total for chance, total in sums), 0, abs_tol=1e-12)
    variance = sum(chance * total**2 for chance, total in sums)
    assert isclose(totals.weighted_variance(rising), variance, rel_tol=1e-9)
    for step, expected in enumerate(totals.by_cell()):
        mean = sum(chance * numbers[step] for chance, numbers in drawn)
        assert abs(mean - expected) <= 1, "the one dummy between the ends"
        own = sum(chance * (numbers[step] - mean) ** 2 for chance, numbers in drawn)
        assert own <= totals.spread() + of_sum.variance / (values - 1) ** 2 + 1


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


@pytest.mark.parametrize(
    ("name", "steps"), [("mean.one_bit", {}), ("mean.piecewise", {"steps": 5})]
)
def test_dummies_of_a_mean_move_it_by_nothing_and_widen_it_by_their_spread(
    name: str, steps: dict[str, int]
) -> None:
    """Over all draws of two dummies, each equally likely in any cell, beside one report."""
    mechanism = build(name, epsilon=4.0, low=0.0, high=1.0, **steps)
    assert isinstance(mechanism, OneBitMean | PiecewiseMean)
    size = mechanism.layout.size
    alone = Totals(cells=[1] + [0] * (size - 1), reports=1)
    estimates, added = [], set()
    for draw in product(range(size), repeat=2):
        cells = [alone.cells[cell] + draw.count(cell) for cell in range(size)]
        totals = Totals(cells=cells, reports=1, dummies=2)
        estimates.append(mechanism.estimate(totals).values[0])
        added.add(round(dummies_variance(mechanism.contributions, totals, 0.5), 9))
    assert fmean(estimates) == pytest.approx(mechanism.estimate(alone).values[0])
    assert [*added] == [pytest.approx(pvariance(estimates))]
