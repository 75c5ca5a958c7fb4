"""All parts of a crowd in one value, with noise dummies: the errors of every table that it answers.

Parts of 7, 16, 14 and 2 values, 100,000 reports, central epsilon 1.
"""

from functools import cache
from itertools import chain, combinations, product
from math import exp, prod, sqrt
from typing import Final

import numpy as np
import numpy.typing as npt
import pytest

from hubbub.analysis.answering import answer
from hubbub.analysis.arrays import Floats
from hubbub.analysis.comparisons.cross_tables import crossed
from hubbub.analysis.comparisons.table_covariance import Summed, table_covariance
from hubbub.analysis.families import draw, family_for
from hubbub.authoring.crowds.crowd_values import cell_variance
from hubbub.catalog import Crowd
from hubbub.catalog.crowds.crowd import noise_of
from hubbub.mechanisms import KeyedBits, Totals
from hubbub.mechanisms.even_lies import even_lies
from hubbub.mechanisms.pairs_of_parts import PairedParts
from hubbub.mechanisms.part_and_cell_names import listed_parts
from hubbub.privacy.exact_accountant import ExactAccountant
from hubbub.privacy.noise_dummies_account import law_of
from hubbub.privacy.shuffled_histogram import profile
from hubbub.sealing.dummy_laws import CountNoise
from tests.support.crowds import crowd_of

SIZES: Final = (7, 16, 14, 2)
REPORTS: Final = 100_000
TABLES: Final = [*chain(combinations(range(4), 2), combinations(range(4), 3))]


@cache
def _law() -> CountNoise:
    noise = noise_of(2.02, 61)
    assert noise is not None
    return noise


def _with_dummies(reports: Totals, named: npt.NDArray[np.int64]) -> Totals:
    """As the query of an epoch that has left whole reads them."""
    noise = _law()
    cells, mean = np.array(reports.cells) + named, noise.reach * len(named)
    return Totals(
        cells=cells.tolist(),
        reports=int(cells.sum()) - mean,
        dummies=mean,
        beside_variance=noise.variance * len(named),
        value_law=law_of(noise).tolist(),
    )


def _people() -> npt.NDArray[np.int64]:
    """People per value: some values are frequent, and the parts go together."""
    chance = np.random.default_rng(1)
    return chance.multinomial(REPORTS, chance.dirichlet(np.full(prod(SIZES), 0.3)))


def _sums(cells: Floats, table: tuple[int, ...]) -> Floats:
    others = tuple(part for part in range(4) if part not in table)
    sums: Floats = cells.reshape(SIZES).sum(axis=others)
    return sums.reshape(-1)


@cache
def _planned(mechanism: PairedParts, table: tuple[int, ...]) -> Floats:
    """Planned variances of the cells of a table."""
    shares = (_sums(_people().astype(float), table) / REPORTS).tolist()
    noise = _law().variance
    return np.array([cell_variance(mechanism, table, share, REPORTS, noise) for share in shares])


def _squared_errors(mechanism: PairedParts, totals: Totals) -> list[Floats]:
    """Of every table: each cell's squared error over its planned variance."""
    off = family_for(mechanism).figures(mechanism, totals, ()).estimates - _people()
    return [_sums(off, table) ** 2 / _planned(mechanism, table) for table in TABLES]


def _check(squares: Floats, table: tuple[int, ...]) -> None:
    """Six errors of a mean of squares: sums of k numbers of Laplace have a kurtosis of 3 + 3/k."""
    summed = prod(SIZES) / prod(SIZES[part] for part in table)
    assert squares.mean() == pytest.approx(1, abs=6 * sqrt((2 + 3 / summed) / squares.size))


def test_an_epoch_of_real_reports_has_the_planned_error() -> None:
    mechanism, coins = PairedParts(16.0, SIZES, 4), KeyedBits(b"joint tables".ljust(32))
    cells = np.zeros(mechanism.layout.size, dtype=np.int64)
    for value, number in enumerate(_people().tolist()):
        for _ in range(number):
            cells[int.from_bytes(mechanism.randomize(value, coins), "little")] += 1
    named = np.array([_law().draw(coins.below) for _ in range(len(cells))])
    totals = _with_dummies(Totals(cells=cells.tolist(), reports=REPORTS), named)
    for table, squares in zip(TABLES, _squared_errors(mechanism, totals), strict=True):
        _check(squares, table)


@pytest.mark.thorough
@pytest.mark.parametrize("local", [12.0, 16.0])
def test_forty_epochs_are_as_near_as_planned(local: float) -> None:
    mechanism, chance = PairedParts(local, SIZES, 4), np.random.default_rng(2)
    every = []
    for _ in range(40):
        totals = draw(mechanism, range(prod(SIZES)), _people().tolist(), chance)
        named = chance.choice(_law().most + 1, mechanism.points, p=law_of(_law()))
        every.append(_squared_errors(mechanism, _with_dummies(totals, named)))
    for table, squares in zip(TABLES, zip(*every, strict=True), strict=True):
        _check(np.array(squares), table)


def test_the_largest_tables_are_below_the_errors_that_were_asked_for() -> None:
    """A cell that nobody holds, at local epsilon 16: 47 and 29 with tables of two and of three."""
    promise = Crowd(epsilon=1.0, reports=REPORTS, delta=1e-8, honest=0.9, max_local_epsilon=16.0)
    joint = PairedParts(16.0, SIZES, 4)
    noise = ExactAccountant().padded(promise, joint.points, "noise").noise
    assert noise is not None

    def error(table: tuple[int, ...]) -> float:
        return sqrt(cell_variance(joint, table, 0.0, REPORTS, noise.variance))

    two, three = TABLES[:6], TABLES[6:]
    assert [round(error(table), 1) for table in two] == [15.0, 16.0, 42.4, 10.6, 28.0, 30.0]
    assert [round(error(table), 1) for table in three] == [4.0, 10.6, 11.3, 7.5]


def test_the_covariance_of_a_table_is_that_of_the_drawn() -> None:
    """1,000 drawings of people, coins and dummies along 20 directions: six errors of a variance."""
    mechanism, chance = PairedParts(6.0, (2, 3, 2), 3), np.random.default_rng(3)
    assert mechanism.names_one_cell
    shares = np.array([8, 2, 1, 4, 6, 3, 1, 9, 2, 2, 5, 7]) / 50
    people, drawn = 3000, []
    for _ in range(1000):
        counts = chance.multinomial(people, shares).tolist()
        totals = _with_dummies(
            draw(mechanism, range(12), counts, chance),
            chance.choice(_law().most + 1, mechanism.points, p=law_of(_law())),
        )
        figures = family_for(mechanism).figures(mechanism, totals, ())
        drawn.append(figures.estimates.reshape(6, 2).sum(axis=1) / totals.reports)
    table = Summed(shares, np.arange(12).reshape(6, 2))
    covariance = table_covariance([(mechanism, totals)], [1.0], [table], 1) / people**2
    sampled = np.cov(np.array(drawn).T)
    for direction in chance.normal(size=(20, 6)):
        assert direction @ sampled @ direction == pytest.approx(
            direction @ covariance @ direction, rel=6 * sqrt(3.5 / 1000)
        )


@pytest.mark.thorough
def test_independent_parts_are_recognized_as_often_as_stated() -> None:
    """300 epochs: p below .05 in 3 to 44 of them, but for a chance of one in a million."""
    mechanism, chance = PairedParts(8.0, (3, 4, 2, 2), 4), np.random.default_rng(4)
    assert mechanism.names_one_cell
    shares = np.multiply.outer([0.5, 0.3, 0.2], np.full(16, 1 / 16)).reshape(-1)
    values = listed_parts({"a": "xyz", "b": "wxyz", "c": "xy", "d": "xy"})
    below = 0
    for _ in range(300):
        counts = chance.multinomial(5000, shares).tolist()
        totals = _with_dummies(
            draw(mechanism, range(48), counts, chance),
            chance.choice(_law().most + 1, mechanism.points, p=law_of(_law())),
        )
        reply = answer(mechanism, totals, values)
        table = crossed([(mechanism, totals)], values, reply, ("a", "b"))
        below += table.association.p_value < 0.05
    assert 3 <= below <= 44


def _outcomes(
    mechanism: PairedParts, values: tuple[int, ...], noise: CountNoise
) -> dict[tuple[int, ...], float]:
    """Probability of every vector of counts, of these reports and of all dummies."""
    points, chances = mechanism.points, {(0,) * mechanism.points: 1.0}
    steps = [
        [(point, 1, float(mechanism.likelihood(value, {point: 1}))) for point in range(points)]
        for value in values
    ]
    law = law_of(noise).tolist()
    steps += [[(point, n, p) for n, p in enumerate(law)] for point in range(points)]
    for step in steps:
        after: dict[tuple[int, ...], float] = {}
        for counts, chance in chances.items():
            for point, more, p in step:
                key = (*counts[:point], counts[point] + more, *counts[point + 1 :])
                after[key] = after.get(key, 0.0) + chance * p
        chances = after
    return chances


def test_the_account_is_never_below_all_outcomes_of_the_mechanism() -> None:
    """Two parts of two values, whatever one other device holds, in both directions."""
    mechanism, noise = PairedParts(2.0, (2, 2)), noise_of(1.0, 3)
    assert mechanism.names_one_cell
    assert noise is not None
    lies = even_lies(mechanism, mechanism.privacy_loss())
    crowd = crowd_of(2, lies.categories, lies.epsilon, noise_dummies=noise)
    delta, worst = profile(crowd, 1e-12), dict.fromkeys((0.2, 0.5, 1.0), 0.0)
    for other in range(4):
        pair = [_outcomes(mechanism, (value, other), noise) for value in (0, 1)]
        for epsilon, (ahead, behind) in product(worst, (pair, pair[::-1])):
            exact = sum(
                max(ahead.get(counts, 0.0) - exp(epsilon) * behind.get(counts, 0.0), 0.0)
                for counts in ahead.keys() | behind.keys()
            )
            worst[epsilon] = max(worst[epsilon], exact)
    for epsilon, exact in worst.items():
        assert 0.8 * delta(epsilon) < exact <= delta(epsilon)
