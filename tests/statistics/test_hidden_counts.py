"""A hidden number of reports, by every outcome: the law that is drawn, what it says, estimates."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise, product
from math import exp, nextafter
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom

from hubbub.aggregator.query.cache import sum_totals
from hubbub.aggregator.store.contract import WindowTotals
from hubbub.analysis.answering import Followed, answer_tiers, joined_shares
from hubbub.analysis.comparisons.change import changes
from hubbub.analysis.families.listed_values import estimates_of
from hubbub.catalog.crowds.crowd import noise_of
from hubbub.mechanisms import Totals, build
from hubbub.mechanisms.probability import exp_at_most
from hubbub.privacy.noisy_count_privacy import together
from hubbub.sealing.dummy_laws import CountNoise

LAWS = [(0.05, 1e-12), (0.1, 1e-8), (0.5, 1e-8), (1.0, 1e-8), (2.0, 1e-6), (8.0, 1e-15)]
FEW = CountNoise(6 << 30, 2)
"""Of 0 to 4 dummies."""
Law = dict[Any, Fraction]


def _totals(
    noise: CountNoise, cells: Sequence[int], reports: int, variance: float | None = None
) -> Totals:
    """With a hidden number of dummies, of this or the usual variance."""
    beside = noise.variance if variance is None else variance
    return Totals(cells=cells, reports=reports, dummies=noise.reach, beside_variance=beside)


def _draw_numbers(
    noise: CountNoise, size: int | tuple[int, int], chance: np.random.Generator, least: int = 0
) -> npt.NDArray[np.int64]:
    """Numbers of dummies, each `least` at least."""
    weights = np.array(noise.weights, dtype=np.float64)
    weights[:least] = 0.0
    return chance.choice(len(weights), size, p=weights / weights.sum())


def _law(noise: CountNoise) -> Law:
    """How likely each number is, by what the draw itself answers on either side of every edge."""
    upto = [0, *accumulate(noise.weights)]
    law: Law = {}
    for low, high in pairwise(upto):
        first, last = noise.draw(_answers(upto[-1], low)), noise.draw(_answers(upto[-1], high - 1))
        assert first == last
        law[first] = Fraction(high - low, upto[-1])
    return law


def _answers(whole: int, drawn: int) -> Callable[[int], int]:
    def below(number: int) -> int:
        assert number == whole, "of all that are as likely"
        return drawn

    return below


def _least_delta(left: Law, right: Law, odds: Fraction) -> Fraction:
    """What the left one has above the right one, that often: the least delta for these odds."""
    return sum(
        (max(chance - odds * right.get(k, Fraction(0)), Fraction(0)) for k, chance in left.items()),
        Fraction(0),
    )


def _shift_law(law: Law, by: int) -> Law:
    return {number + by: chance for number, chance in law.items()}


@pytest.mark.parametrize(("epsilon", "delta"), LAWS)
def test_one_more_report_reveals_no_more_than_promised(epsilon: float, delta: float) -> None:
    """Of every number that may be seen, exactly."""
    noise = CountNoise.least(exp_at_most(epsilon), delta)
    law = _law(noise)
    assert sum(law.values()) == 1
    assert set(law) == set(range(noise.most + 1))
    odds = Fraction(nextafter(exp(epsilon), 0))
    for by in (1, -1):
        assert 0 < _least_delta(law, _shift_law(law, by), odds) <= delta
    assert sum(number * chance for number, chance in law.items()) == noise.reach
    square = sum((number - noise.reach) ** 2 * chance for number, chance in law.items())
    assert noise.variance == pytest.approx(float(square), rel=1e-12)
    if noise.reach > 1:
        smaller = CountNoise(noise.odds, noise.reach - 1)
        assert smaller.delta > delta, "fewer dummies would not do"


@pytest.mark.parametrize("epochs", [1, 2, 3])
@pytest.mark.parametrize("reach", [2, 4])
def test_the_loss_of_several_epochs_is_just_above_that_of_all_outcomes(
    epochs: int, reach: int
) -> None:
    noise = CountNoise(6 << 30, reach)
    law, other = _law(noise), _shift_law(_law(noise), 1)
    joint, moved = Counter[int](), Counter[int]()
    for drawn in product(range(-1, noise.most + 3), repeat=epochs):
        key = sum(count * 1000**place for place, count in enumerate(drawn))
        for into, of in ((joint, law), (moved, other)):
            chance = Fraction(1)
            for count in drawn:
                chance *= of.get(count, Fraction(0))
            into[key] = chance  # type: ignore[assignment]  # exact
    for share in (1.5, 3.0):
        delta = share * epochs * float(noise.delta)
        epsilon = together(noise, epochs, delta)
        true = float(_least_delta(dict(joint), dict(moved), Fraction(exp(epsilon))))  # type: ignore[arg-type]
        assert true <= delta
        if epsilon:
            less = float(_least_delta(dict(joint), dict(moved), Fraction(exp(0.8 * epsilon))))  # type: ignore[arg-type]
            assert less > true
    assert together(noise, 30, 1e-3 + 30 * float(noise.delta)) <= 30 * np.log(
        noise.odds / 2**32
    ) * (1 + 1e-8)


def _views(others: tuple[int, ...], own: int | None, dummies: int, mechanism: Any) -> Law:
    """All that is seen of some people, the one in question among them or not, and some dummies."""
    people = [*others, *([] if own is None else [own])]
    values = mechanism.categories
    views: Law = {}
    for outcome in product(range(values), repeat=len(people) + dummies):
        chance = Fraction(1, values**dummies)
        for person, report in zip(people, outcome, strict=False):
            chance *= mechanism.channel.p if person == report else mechanism.channel.q
        counts = tuple(outcome.count(value) for value in range(values))
        views[counts] = views.get(counts, Fraction(0)) + chance
    return views


def _mixed(views: Iterator[tuple[Fraction, Law]]) -> Law:
    mixed: Law = {}
    for chance, view in views:
        for counts, likelihood in view.items():
            mixed[counts] = mixed.get(counts, Fraction(0)) + chance * likelihood
    return mixed


@pytest.mark.parametrize("own", [0, 1])
@pytest.mark.parametrize("others", [(0, 0, 0), (0, 1, 1)])
def test_reports_and_their_number_reveal_no_more_than_both_epsilons(
    others: tuple[int, ...], own: int
) -> None:
    """Everything that is seen, of a person who reported and of one who did not."""
    mechanism: Any = build("grr", epsilon=1.0, categories=2)
    law = _law(FEW)
    for central in (Fraction(13, 10), Fraction(2)):
        delta = max(
            _least_delta(
                _views(others, a, dummies, mechanism),
                _views(others, b, dummies, mechanism),
                central,
            )
            for a, b in ((0, 1), (1, 0))
            for dummies in law
        )
        present, absent = (
            _mixed((chance, _views(others, who, n, mechanism)) for n, chance in law.items())
            for who in (own, None)
        )
        odds = central * Fraction(FEW.odds, 1 << 32)
        assert _least_delta(present, absent, odds) <= delta + FEW.delta
        assert _least_delta(absent, present, odds) <= delta + FEW.delta
        assert _least_delta(present, absent, Fraction(1)) > delta / 2, "and something is said"


@pytest.mark.parametrize("values", [2, 3])
def test_estimates_beside_a_hidden_number_are_unbiased_and_their_variance_exact(
    values: int,
) -> None:
    """Every outcome of two people, every number of dummies, and all that these say."""
    mechanism: Any = build("grr", epsilon=1.0, categories=values)
    people = (0, 1)
    mean, square, number = np.zeros(values), np.zeros(values), 0.0
    for dummies, likely in _law(FEW).items():
        for outcome in product(range(values), repeat=len(people) + dummies):
            chance = likely * Fraction(1, values**dummies)
            for own, report in zip(people, outcome, strict=False):
                chance *= mechanism.channel.p if own == report else mechanism.channel.q
            cells = [outcome.count(value) for value in range(values)]
            totals = _totals(FEW, cells, len(outcome) - FEW.reach)
            array = estimates_of(mechanism, totals)[0]
            assert np.allclose(array, mechanism.estimate(totals).values)
            mean += float(chance) * array
            square += float(chance) * array**2
            number += float(chance) * totals.reports
    true = np.array([people.count(value) for value in range(values)])
    assert np.allclose(mean, true)
    assert number == pytest.approx(len(people))
    expected = _totals(FEW, [0] * values, len(people))
    more = mechanism.channel.dummies_variances(true.tolist(), expected)
    variances = [mechanism.variance(count, len(people)) for count in true.tolist()]
    assert np.allclose(square - mean**2, np.add(variances, more))


def test_each_of_several_epochs_has_its_own_number_of_dummies() -> None:
    def of(dummies: int) -> WindowTotals:
        return WindowTotals(
            cells=np.array([40, 60]), counted=100 - dummies, batch_reports=0, at=0, dummies=dummies
        )

    whole = sum_totals([of(35), of(35), of(0)], 2, dummies=35, hidden=15.0)
    assert (whole.reports, whole.dummies, whole.beside_variance) == (230, 70, 15.0)
    assert whole.dummies_variance == 0


@pytest.mark.parametrize(
    ("values", "people", "share"),
    [
        (20, 1000, 0.98),
        (3, 500, 0.5),
        pytest.param(3, 1000, 0.98, marks=pytest.mark.thorough),
        pytest.param(100, 1000, 0.9, marks=pytest.mark.thorough),
    ],
)
def test_a_share_of_an_estimated_number_holds(values: int, people: int, share: float) -> None:
    """Of a population whose people are drawn for every run."""
    noise, runs = CountNoise.least(exp_at_most(0.1), 1e-8), 600
    mechanism: Any = build("grr", epsilon=7.0, categories=values)
    p, q = float(mechanism.channel.p), float(mechanism.channel.q)
    chance = np.random.default_rng(6)
    others = (1 - share) / (values - 1)
    chances = [q + share * (p - q), *[q + others * (p - q)] * (values - 1)]
    inside, errors, stderrs = 0, [], []
    for dummies in _draw_numbers(noise, runs, chance).tolist():
        cells = chance.multinomial(dummies, [1 / values] * values)
        cells += chance.multinomial(people, chances)
        reports = people + dummies - noise.reach
        totals = _totals(noise, cells.tolist(), reports)
        [row] = joined_shares([Followed([(mechanism, totals)], [0])])
        inside += row.low <= share <= row.high
        errors.append(row.estimate - share)
        stderrs.append(row.stderr)
    assert binom.cdf(inside, runs, 0.94) > 1e-7
    # The mean of 600 squares is within a third but for one in ten million.
    assert np.mean(np.square(errors)) == pytest.approx(np.mean(np.square(stderrs)), rel=0.33)


@pytest.mark.parametrize(
    ("epsilon", "share"),
    [
        pytest.param(0.1, 1.0, marks=pytest.mark.thorough),
        (0.5, 0.98),
        pytest.param(0.1, 0.98, marks=pytest.mark.thorough),
    ],
)
def test_intervals_of_a_near_unanimous_value_hold_with_a_hidden_number(
    epsilon: float, share: float
) -> None:
    """As many may hold a value as there are people, which half the time is more than is told."""
    noise, people, runs = CountNoise.least(exp_at_most(epsilon), 1e-8), 3000, 400
    mechanism: Any = build("grr", epsilon=5.0, categories=3)
    p, q = float(mechanism.channel.p), float(mechanism.channel.q)
    chance = np.random.default_rng(5)
    holders, inside = round(share * people), 0
    for dummies in _draw_numbers(noise, runs, chance).tolist():
        cells = chance.multinomial(dummies, [1 / 3] * 3)
        cells += chance.multinomial(holders, [p, q, q]) + chance.multinomial(
            people - holders, [q, p, q]
        )
        reports = people + dummies - noise.reach
        totals = _totals(noise, cells.tolist(), reports)
        answer = answer_tiers([(mechanism, totals)], ["a", "b", "c"])
        row = answer.values[0]
        inside += row.low <= holders <= row.high
        assert row.low <= reports
        assert sum(other.consistent or 0 for other in answer.values) == pytest.approx(reports)
    assert binom.cdf(inside, runs, 0.95) > 1e-7


@pytest.mark.parametrize("more", [5, 20, 31, 35, 40, 50, 80])
@pytest.mark.parametrize("epsilon", [0.2, 0.5, 1.0])
def test_the_interval_of_reports_holds_for_epochs_that_barely_left(
    more: int, epsilon: float
) -> None:
    """By every number of dummies with which so many reports leave, exactly."""
    noise = CountNoise.least(exp_at_most(epsilon), 1e-8)
    least = 50 + noise.most
    people = 50 + more
    weight_sum = holds = 0
    for dummies, weight in enumerate(noise.weights):
        above = people + dummies - least
        if above < 0:
            continue
        weight_sum += weight
        error = 1.96 * noise.variance_above(above) ** 0.5
        holds += weight * (abs(dummies - noise.reach) <= error)
    # Of whole numbers an interval holds a little less often than of a line.
    plain = 1.96 * noise.variance**0.5
    always = sum(w for k, w in enumerate(noise.weights) if abs(k - noise.reach) <= plain)
    assert holds / weight_sum >= min(0.94, always / sum(noise.weights))
    assert noise.variance_above(2 * noise.most) == pytest.approx(noise.variance)


def test_intervals_of_an_epoch_that_barely_left_hold_for_a_value_of_nearly_everybody() -> None:
    """31 above the crowd of 50 at epsilon .5, as often as such an epoch leaves at all."""
    noise, people, runs = CountNoise.least(exp_at_most(0.5), 1e-8), 81, 300
    mechanism: Any = build("grr", epsilon=8.0, categories=3)
    chance = np.random.default_rng(8)
    counts, counted, shared = [78, 3, 0], 0, 0
    # With fewer dummies it would not leave.
    for dummies in _draw_numbers(noise, runs, chance, noise.most + 50 - people).tolist():
        cells = chance.multinomial(dummies, [1 / 3] * 3) + np.array(counts)
        reports = people + dummies - noise.reach
        variance = noise.variance_above(people + dummies - noise.most - 50)
        totals = _totals(noise, cells.tolist(), reports, variance)
        first = answer_tiers([(mechanism, totals)], ["a", "b", "c"]).values[0]
        assert first.share_low is not None
        assert first.share_high is not None
        counted += first.low <= counts[0] <= first.high
        shared += first.share_low <= counts[0] / people <= first.share_high
    assert binom.cdf(counted, runs, 0.94) > 1e-7
    assert binom.cdf(shared, runs, 0.94) > 1e-7


@pytest.mark.parametrize(
    ("epsilon", "values", "people", "share", "count_epsilon"),
    [
        (7, 3, 660, 1.0, 0.05),
        pytest.param(8, 8, 660, 0.95, 0.05, marks=pytest.mark.thorough),
        pytest.param(7, 20, 1000, 1.0, 0.1, marks=pytest.mark.thorough),
    ],
)
def test_p_values_of_changes_hold_with_a_hidden_number(
    epsilon: float, values: int, people: int, share: float, count_epsilon: float
) -> None:
    """Of a million pairs of epochs without a change, that which is the thousandth by its size."""
    noise, runs = CountNoise.least(exp_at_most(count_epsilon), 1e-8), 1_000_000
    mechanism: Any = build("grr", epsilon=float(epsilon), categories=values)
    p, q = float(mechanism.channel.p), float(mechanism.channel.q)
    chance = np.random.default_rng(9)
    dummies = _draw_numbers(noise, (2, runs), chance)
    cells = chance.binomial(people, q + share * (p - q), (2, runs))
    cells += chance.binomial(dummies, 1 / values)
    reports = people + dummies - noise.reach
    shares_of = (cells - noise.reach / values - reports * q) / (p - q) / reports
    place = np.argsort(-np.abs(shares_of[1] - shares_of[0]))[runs // 1000]
    answers = []
    for side in range(2):
        first, number = int(cells[side, place]), int(reports[side, place])
        others = (number + noise.reach - first) / (values - 1)
        listed = [first, *[round(others)] * (values - 1)]
        totals = _totals(noise, listed, number)
        answers.append(
            answer_tiers([(mechanism, totals)], [str(number) for number in range(values)])
        )
    # Of a thousand the error is a sixth but for one in a million; a share of a number
    # that is itself far off is not quite as unlikely as its error says.
    assert 0.0007 < changes(*answers)[0].p_value < 0.002


@pytest.mark.parametrize("least", [0, 3, 10, 17, 24])
def test_the_interval_of_a_share_holds_if_its_error_rises_with_it(least: int) -> None:
    """A mark near the cut goes 40 errors down, and of 300 reports 64 are an error's."""
    noise, mechanism = noise_of(4.04, 69), build("grr", epsilon=16.0, categories=5)
    assert noise is not None
    weights = np.array(noise.weights, dtype=np.float64)
    counts = [120, 80, 50, 50 - least, least]
    totals = Totals(
        cells=[count + noise.reach for count in counts],
        reports=300,
        dummies=noise.reach * 5,
        beside_variance=noise.variance * 5,
        value_law=(weights / weights.sum()).tolist(),
    )
    for row in answer_tiers([(mechanism, totals)], list("abcde")).values:
        assert row.share_low is not None
        assert row.share_high is not None
        assert row.share_low <= max(row.share or 0, 0) <= row.share_high, row
