"""Figures of a device's own past: their covariance, their intervals, and what plans say of them."""

from itertools import product
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom

from hubbub.analysis.families import draw
from hubbub.analysis.families.joint_errors import Joint, coin_variances
from hubbub.analysis.funnels_retention_and_rates import Figure, conversions, count_of, rate_of
from hubbub.analysis.uncertainty.intervals import fieller
from hubbub.mechanisms import AnyMechanism, BitVector, Subset, Totals, build
from hubbub.privacy.metric_draft import MetricDraft
from hubbub.privacy.planner import ratio_error, row

SIZE = 4
MECHANISMS: list[tuple[str, dict[str, Any]]] = [
    ("grr", {}),
    ("unary.oue", {}),
    ("subset", {}),
    ("hadamard", {}),
    ("projective", {}),
    ("long.grr", {"permanent_epsilon": 3.0}),
    ("long.unary", {"permanent_epsilon": 3.0}),
]


def _counted(mechanism: AnyMechanism, cells: list[int], mask: npt.NDArray[np.bool_]) -> Figure:
    """How many devices have the wanted values."""
    joint = Joint([(mechanism, Totals(cells=cells, reports=sum(cells)))], 1)
    return count_of(joint, mask).figure(
        "", below="", dates="", reports=joint.reports, confidence=0.95
    )


def _payloads(layout: Any) -> list[dict[int, int]]:
    """Every payload, by the cells that it adds to."""
    if isinstance(layout, BitVector | Subset):
        rows = product((0, 1), repeat=layout.size)
        every = [{cell: 1 for cell, bit in enumerate(bits) if bit} for bits in rows]
        return [
            cells for cells in every if not isinstance(layout, Subset) or len(cells) == layout.ones
        ]
    return [{cell: 1} for cell in range(layout.size)]


@pytest.mark.parametrize(("name", "parameters"), MECHANISMS, ids=[name for name, _ in MECHANISMS])
def test_variances_of_a_ratio_are_those_of_the_enumerated_law(
    name: str, parameters: dict[str, Any]
) -> None:
    mechanism: Any = build(name, epsilon=1.0, categories=SIZE, **parameters)
    payloads = _payloads(mechanism.layout)
    above, below = np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.0, 1.0, 1.0, 1.0])
    centred = above - above.mean(), below - below.mean()
    coin_law = coin_variances(mechanism, 1, *centred)
    cells = [
        [payload.get(cell, 0) for cell in range(mechanism.layout.size)] for payload in payloads
    ]
    ones = [mechanism.estimate(Totals(cells=row, reports=1)) for row in cells]
    estimates = np.array([one.values for one in ones])
    for value, ratio in product(range(SIZE), (0.0, 0.4, 1.0)):
        chances = np.array([float(mechanism.likelihood(value, payload)) for payload in payloads])
        if isinstance(mechanism.layout, BitVector):  # up to what is alike for all values
            q = float(mechanism.channel.q)
            chances *= np.prod(np.where(np.array(cells), q, 1 - q), axis=1)
        chances /= chances.sum()
        sums = estimates @ (centred[0] - ratio * centred[1])
        exact = chances @ sums**2 - (chances @ sums) ** 2
        assert coin_law[:, value] @ (1, ratio, ratio**2) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("counted", [[0, 0, 1], [0, 1, 1]])
@pytest.mark.parametrize(("epsilon", "people"), [(4.0, 60), (6.0, 60), (8.0, 250), (10.0, 1000)])
def test_numbers_of_few_devices_that_hardly_lie_hold_by_the_exact_law(
    epsilon: float, people: int, counted: list[int]
) -> None:
    """Lies are then few whole numbers, which the normal law alone leaves out in 4 to 19%."""
    mechanism, mask = build("grr", epsilon=epsilon, categories=3), np.array(counted) > 0
    other = float(mechanism.channel.q) * sum(counted)  # type: ignore[attr-defined]
    own = 1 - float(mechanism.channel.q) * (3 - sum(counted))  # type: ignore[attr-defined]
    for true in (0, 1, people // 4, people // 2, people):
        law = np.convolve(
            binom.pmf(range(true + 1), true, own),
            binom.pmf(range(people - true + 1), people - true, other),
        )
        holds = 0.0
        for number in np.flatnonzero(law > 1e-6).tolist():
            figure = _counted(mechanism, [people - number, 0, number], mask)
            assert figure.high is not None
            holds += float(law[number]) * (figure.low <= true <= figure.high)
        assert holds >= 0.945, true


def test_the_number_of_all_devices_is_known() -> None:
    grr = build("grr", epsilon=1.0, categories=3)
    figure = _counted(grr, [9, 8, 7], np.ones(3, dtype=bool))
    assert (figure.low, figure.high) == (24, 24)


def test_an_estimate_outside_the_range_has_the_interval_of_the_nearest_end() -> None:
    """By its own Fieller's equation every ratio could be rejected: an interval without width."""
    variances = np.repeat(np.array([[100.0], [0.0], [100.0]]), 4, axis=1)
    numerators, denominators = np.array([-90.0, 0.0, 300.0, 390.0]), np.full(4, 300.0)
    _, low, high = fieller(numerators, denominators, variances, variances[2], reach=1.96)
    assert (low[0], high[0]) == (low[1], high[1])
    assert (low[3], high[3]) == (low[2], high[2])
    assert np.all(high - low > 0.05)


def test_an_interval_of_a_ratio_solves_fiellers_equation_or_is_the_whole_range() -> None:
    numerators, denominators = np.array([20.0, 20.0, 3.0, -1.0]), np.array([80.0, 80.0, 1.0, -2.0])
    variances = np.tile(np.array([[9.0], [-4.0], [16.0]]), 4)
    found = fieller(numerators, denominators, variances, variances[2], reach=1.96, most=inf)
    estimates, low, high = found
    for end in (low[0], high[0]):
        square = 9.0 - 4.0 * end + 16.0 * end**2
        assert (20 - 80 * end) ** 2 == pytest.approx(1.96**2 * square)
    assert estimates[0] == 0.25
    assert low[2:].tolist() == [0.0, 0.0]
    assert np.isinf(high[2:]).all()
    assert np.isnan(estimates[3])
    shares = fieller(numerators, denominators, variances, variances[2], reach=1.96)
    assert shares[2].tolist() == [pytest.approx(high[0]), pytest.approx(high[0]), 1.0, 1.0]


def test_a_note_names_too_few_devices_in_the_denominator() -> None:
    chance = np.random.default_rng(3)
    grr = build("grr", epsilon=0.5, categories=3)
    totals = draw(grr, range(3), [300, 0, 0], chance)
    first, second, whole = conversions(
        Joint([(grr, totals)], 1), ["visit", "cart", "paid"], 1, "", 0.95
    )
    assert (second.low, second.high, second.stderr) == (0.0, 1.0, None)
    assert first.stderr
    sentence = (
        "the number of devices that reached cart is not clearly above 0: any share is possible"
    )
    assert second.note == sentence
    assert (first.note, whole.note) == ("", "")
    codes = build("vector.codes", epsilon=0.5, dimensions=2, words=8, books=16, max_length=30.0)
    few = draw(codes, [(0.0, 1.0)], [300], chance)
    rate = rate_of([(codes, few)], 1).figure(
        "crashed per started", below="started", dates="", reports=300, confidence=0.95
    )
    assert (rate.low, rate.high, rate.stderr) == (0.0, None, None)
    assert rate.note == "the number of started is not clearly above 0: no upper end is known"


def test_a_plan_of_a_ratio_has_the_error_that_its_figure_has() -> None:
    question = MetricDraft(kind="values", size=3)
    planned = row(question, "grr", {"epsilon": 1.0, "categories": 3}, 10_000)
    grr: Any = build("grr", epsilon=1.0, categories=3)
    # Cells as they are on average: without chance.
    mean = [
        float(grr.channel.q) * 10_000 + grr.channel.gap * holders for holders in (6000, 3000, 1000)
    ]
    totals = Totals(cells=[round(cell) for cell in mean], reports=10_000)
    figures = conversions(Joint([(grr, totals)], 1), ["visit", "cart", "paid"], 1, "", 0.95)
    for figure, ratio in zip(figures[1:], ((0.1, 0.4), (0.1, 1.0)), strict=True):
        error = ratio_error(question, planned, ratio, is_apart=False)
        assert error == pytest.approx(figure.stderr, rel=0.02)


def test_errors_of_shared_books_are_larger_across_the_mean_than_along_it() -> None:
    """12 pools of 64 books: numerators err by .0088, denominators by .0061, means to (.23, .68).

    Sampling moves the ratio of variances, 2.1, by a tenth; their mean for both axes has .93.
    """
    vectors, chance = [(0.0, 0.5), (0.3, 0.5), (0.6, 0.7), (0.0, 1.0)], np.random.default_rng(5)
    variances = []
    for pool in range(12):
        shape = {"dimensions": 2, "words": 64, "books": 64, "max_length": 1.5}
        codes = build("vector.codes", epsilon=3.51, seed=str(pool), **shape)
        totals = draw(codes, vectors, [18_750] * 4, chance)
        variances.append(rate_of([(codes, totals)], 1).variance[[0, 2]])
    numerators, denominators = np.sum(variances, axis=0)
    assert numerators / denominators > 1.45
