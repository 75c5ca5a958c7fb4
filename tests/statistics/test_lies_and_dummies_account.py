"""Lies beside noise dummies: never below what enumeration and an attack find, and little above."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import comb, exp, inf, log, sqrt

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import gammaln
from scipy.stats import binom

from hubbub.analysis.arrays import Floats
from hubbub.catalog.crowds.crowd import noise_of
from hubbub.privacy import third_means_account, third_values_account
from hubbub.privacy.few_lies_account import FewLies
from hubbub.privacy.lies_and_dummies_account import NoisyLies
from hubbub.privacy.noise_dummies_account import law_of
from hubbub.privacy.shuffled_epoch import ShuffledEpoch
from hubbub.privacy.shuffled_histogram import central_epsilon
from hubbub.privacy.third_means_account import ThirdMeans
from hubbub.privacy.third_values_account import (
    AllCounts,
    ThirdValues,
    poisson,
    shifted_chances,
)
from hubbub.sealing.dummy_laws import CountNoise
from tests.support.crowds import crowd_of, noise_chances, views_with_any_others


def _of_all_counts(law: Floats, values: int, most: int) -> Floats:
    """For each number of even reports the chances of all counts of the values, one by one."""
    size = len(law) + most
    counts: Floats = np.ones(())
    for _ in range(values):
        counts = np.multiply.outer(counts, np.append(law, np.zeros(most)))
    rows = [counts.ravel()]
    for _ in range(most):
        counts = np.mean([np.roll(counts, 1, axis=value) for value in range(values)], axis=0)
        rows.append(counts.ravel())
    assert counts.shape == (size,) * values
    return np.array(rows)


@pytest.mark.parametrize(
    ("values", "theta", "law"),
    [(2, 0.7, (1.5, 6)), (2, 3.0, (0.8, 4)), (3, 1.2, (1.5, 5)), (4, 0.6, (1.0, 3))],
)
def test_the_bound_for_third_values_is_at_least_the_exact_gain(
    values: int, theta: float, law: tuple[float, int]
) -> None:
    """Whatever is to be told apart: the mean of the best guess, over all counts, is as large."""
    most, generator = 7, np.random.default_rng(1)
    exact, numbers = _of_all_counts(noise_chances(*law), values, most), np.arange(most + 1.0)
    of_coins = ThirdValues.of(noise_chances(*law), values, theta, 30, 60)
    of_all = AllCounts.of(noise_chances(*law), values, theta, most=30, size=most + 1, rare=1e-12)
    assert of_all is not None
    likely = poisson(numbers, values * theta)
    for third, above in ((of_coins, 9.0), (of_all, 1.03)):
        views = third.views(numbers)
        assert views.mean.sum(axis=0) == pytest.approx(1, rel=1e-6)
        gains = []
        for _ in range(200):
            even = generator.dirichlet(np.ones(most + 1)) * generator.choice([-1, 1], most + 1)
            gains += [
                (views.gains(prior[None]).sum(), np.maximum(prior @ exact, 0).sum())
                for prior in (even, even * likely)
            ]
        assert all(best >= truth * (1 - 1e-9) for best, truth in gains)
        best, truth = np.sum(gains[1::2], axis=0)
        assert best <= above * truth
        # It hides something, or it would be of no use.
        prior = np.array([1, -1] * ((most + 1) // 2)) / (most + 1)
        assert views.gains(prior[None]).sum() < 0.7 * np.maximum(prior, 0).sum()


def _gain_of_one(weights: list[int], values: int, none: int, one: int) -> Fraction:
    """Over all counts of the values, what is above 0 of their chances' weighted sum.

    `none` is the weight of 0 reports on all values together, and `one` that of 1; a value has 0, 1
    or 2 dummies, of these `weights`.
    """
    low, middle, high = weights
    all_weights = Fraction(sum(weights))
    gain = max(one, 0) * high * all_weights ** (values - 1)  # a count of 3 shows it
    for twos in range(values + 1):
        for ones in range(values - twos + 1):
            zeros = values - twos - ones
            chance = Fraction(low) ** zeros * Fraction(middle) ** ones * Fraction(high) ** twos
            reports = (Fraction(ones * low, middle) + Fraction(twos * middle, high)) / values
            ways = comb(values, twos) * comb(values - twos, ones)
            gain += ways * chance * max(none + one * reports, Fraction(0))
    return gain / all_weights**values


@pytest.mark.parametrize(("none", "one"), [(3, -1), (1, -3), (-1, 20)])
def test_rare_coins_hide_no_more_than_all_counts(
    none: int, one: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """V is above 0 for as few as 40 values, since each L is given away with a chance of 5e-4."""
    monkeypatch.setattr(third_values_account, "FFT_ERROR", 5e-4)
    noise, values = CountNoise(30 << 32, 1), 40
    weights = [weight // noise.weights[0] for weight in noise.weights]
    exact = float(_gain_of_one(weights, values, none, one))
    third = ThirdValues.of(law_of(noise), values, 0.03, 8, 20)
    assert len(third.rare_law) > 1
    bound = float(third.views(np.arange(2.0)).gains(np.array([[none, one]], dtype=float)).sum())
    assert exact <= bound <= 1.1 * exact


@pytest.mark.parametrize(
    ("values", "theta", "law"), [(4094, 0.0668, (0.3907, 12)), (2650, 0.03, (0.73, 17))]
)
def test_rare_and_other_coins_add_up_to_all_reports(
    values: int, theta: float, law: tuple[float, int]
) -> None:
    """The law of C, V and W together is that of a Poisson number; no chance of C is below 0."""
    third = ThirdValues.of(noise_chances(*law), values, theta, 14, 140)
    assert len(third.rare_law) > 40
    mean = round(values * theta)
    sums = third.views(np.arange(mean - 10.0, mean + 10.0)).mean.sum(axis=0)
    assert sums == pytest.approx(1, abs=1e-9)


def test_mean_reports_hide_no_more_than_all_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """All counts of 3 values, and 5 or 6 reports, are enumerated in whole numbers.

    Where one report less is likelier, the mean is nearly as large as proven, and no larger.
    """
    for name, number in (("_MAX_KAPPA", inf), ("_MAX_SPREAD", 0.5), ("_STEPS", 500)):
        monkeypatch.setattr(third_means_account, name, number)
    noise, values, reports = CountNoise(2 << 32, 5), 3, 6
    law, k, totals = law_of(noise), np.arange(reports + 5.0), np.array([float(reports)])
    moves, chances, above = shifted_chances(law, len(k)), [], []
    for counts in product(range(len(law) + reports), repeat=values):
        ways = [1] + [0] * reports
        for count in counts:
            of_one = [
                noise.weights[count - k] if 0 <= count - k <= noise.most else 0
                for k in range(reports + 1)
            ]
            ways = [
                sum(comb(n, k) * of_one[k] * ways[n - k] for k in range(n + 1))
                for n in range(reports + 1)
            ]
        chances.append((ways[-1], values * ways[-2]))
        if ways[-1] and max(counts) <= noise.most:
            theta = chances[-1][1] / ways[-1] * reports / values
            psi = moves[list(counts)] * poisson(k, theta)
            most = third_means_account._mean_above(totals, theta * 1.5)[0]
            above.append(float((psi @ k / psi.sum(axis=1)).sum()) - reports - most)
    assert -0.4 < max(above) < 0
    all_ways = sum(noise.weights) ** values * values**reports
    means = ThirdMeans.of(law, values, len(k) - 1, totals, 2)
    assert means is not None
    views = means.views(np.arange(reports, reports - 2.0, -1))
    for odds in (Fraction(4, 5), Fraction(1), Fraction(6, 5), Fraction(7, 5)):
        exact = float(
            sum(max(fewer - odds * all_, Fraction(0)) for all_, fewer in chances) / all_ways
        )
        bound = float(views.gains(np.array([[-float(odds), 1.0]])).sum())
        assert exact <= bound <= exact + 0.4


@pytest.mark.parametrize(
    ("m", "d", "keep", "odds", "reach"),
    [(4, 3, 3, 2, 5), (6, 3, 4, 4, 3), (5, 3, 8, 2, 2), (3, 4, 3, 3, 3), (3, 4, 2, 2, 4)],
)
@pytest.mark.parametrize("t", [Fraction(21, 20), Fraction(5, 4), Fraction(7, 4)])
def test_delta_is_not_below_that_of_all_counts_for_any_others(  # noqa: PLR0917 a row
    m: int, d: int, keep: int, odds: int, reach: int, t: Fraction
) -> None:
    """In fractions. Of three values, where all counts are summed, epsilon is nearly that of t."""
    noise, worst = CountNoise(odds << 32, reach), Fraction(0)
    weights = np.array([weight // noise.weights[0] for weight in noise.weights], dtype=object)
    for v, w in views_with_any_others(m, d, keep, 1, weights):
        for first, other in ((v, w), (w, v)):
            excess = t.denominator * first - t.numerator * other
            worst = max(worst, Fraction(excess[excess > 0].sum(), t.denominator))
    exact, central = float(worst / (weights.sum() ** d * (keep + d - 1) ** (m + 1))), log(t)
    crowd = crowd_of(m + 1, d, log(keep), noise_dummies=noise)
    account = NoisyLies.of(crowd, law_of(noise), exact / 10)
    assert account is not None
    upper = account.delta(central, 0.0)
    for target in (exact, sqrt(exact * upper), upper * (1 - 1e-9)):
        assert exact * (1 - 1e-9) <= account.delta(central, target) <= upper
    few_lies = FewLies.of(crowd, exact)
    assert bool(few_lies) == (d == 3)
    assert not few_lies or central <= few_lies.epsilon(exact, 0.0, log(keep)) <= central + 0.003


def _known_lies_delta(
    m: int, d: int, truth: Fraction, weights: npt.NDArray[np.int64], t: int
) -> float:
    """Delta over all counts, in whole numbers, if it is known which of the m others lied.

    `truth` is the probability that a report is not drawn evenly, `weights` are those of a value's
    dummies from 0 on, and t is exp(central epsilon).
    """
    counts, scale = np.ones((), dtype=np.int64), int(weights.sum()) ** d * truth.denominator
    for _ in range(d):
        counts = np.multiply.outer(counts, np.append(weights, np.zeros(m + 1, dtype=np.int64)))
    delta = Fraction(0)
    for even in range(m + 1):
        rolls = [np.roll(counts, 1, axis=value) for value in range(d)]
        counts, scale = np.sum(rolls, axis=0), scale * d
        excess = truth.numerator * d * (rolls[0] - t * rolls[1])
        excess -= (truth.denominator - truth.numerator) * (t - 1) * counts
        chance = comb(m, even) * truth ** (m - even) * (1 - truth) ** even
        delta += chance * Fraction(int(excess[excess > 0].sum()), scale)
    return float(delta)


@pytest.mark.parametrize(
    ("m", "d", "truth", "odds", "reach", "t"),
    [
        (3, 4, Fraction(2, 3), 6, 2, 2),
        (4, 4, Fraction(1, 2), 2, 2, 2),
        (5, 4, Fraction(1, 4), 3, 1, 2),
        (4, 5, Fraction(2, 3), 3, 2, 3),
        (3, 6, Fraction(1, 2), 4, 1, 2),
    ],
)
@pytest.mark.parametrize("has_all_counts", [True, False])
def test_delta_is_not_below_that_of_all_counts_and_known_lies(  # noqa: PLR0917 a row
    m: int,
    d: int,
    truth: Fraction,
    odds: int,
    reach: int,
    t: int,
    has_all_counts: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whether third values' counts are summed or bounded; and both are below L given away."""
    noise = CountNoise(odds << 32, reach)
    exact = _known_lies_delta(m, d, truth, np.array(noise.weights) // noise.weights[0], t)
    local = log(1 + d * truth / (1 - truth))
    crowd = crowd_of(m + 1, d, local, noise_dummies=noise)
    if not has_all_counts:
        monkeypatch.setattr(AllCounts, "of", lambda *_, **__: None)
    account = NoisyLies.of(crowd, law_of(noise), exact / 10)
    assert account is not None
    assert exact <= account.delta(log(t), exact) < account.delta(log(t), 0.0)


def _attacked(crowd: ShuffledEpoch, law: Floats, delta: float) -> float:
    """Epsilon for somebody who knows that all others hold one third value.

    Who sees both counts, and the number of reports on third values: from the count of the held one
    and, for each other, the mean of its reports given its count.
    """
    m, q, d = crowd.others, crowd.lie, int(crowd.categories)
    reports = np.arange(int(m * q + 9 * sqrt(m * q) + 15))
    counts = np.zeros((len(reports), len(reports) + len(law)))
    chances = np.exp(reports * np.log(m * q) - m * q - gammaln(reports + 1))
    for number in reports:
        counts[number, number : number + len(law)] = chances[number] * law
    means = np.round(reports @ counts / np.maximum(counts.sum(axis=0), 1e-300)).astype(int)
    wrong = np.zeros(2 * len(reports))
    np.add.at(wrong, means - reports[:, None] + len(reports), counts)
    noise = law
    for _ in range(d - 3):
        noise = np.convolve(noise, wrong)
        noise = noise[np.flatnonzero(noise > 1e-15)[0] : np.flatnonzero(noise > 1e-15)[-1] + 1]
    lies = np.arange(int(2 * m * q + 9 * sqrt(2 * m * q) + 12))
    size = len(lies) + len(law)
    by_lies, views = np.zeros((len(lies), size**2)), np.zeros((len(lies), len(lies) + len(noise)))
    for s, chance in zip(lies, binom.pmf(lies, m, 2 * q), strict=True):
        on_v, on_w = np.zeros((size, s + 1)), np.zeros((s + 1, size))
        for x, half in enumerate(binom.pmf(np.arange(s + 1), s, 0.5)):
            on_v[x : x + len(law), x] = chance * half * law
            on_w[x, s - x : s - x + len(law)] = law
        by_lies[s] = (on_v @ on_w).ravel()
        views[s, s : s + len(noise)] = noise
    both = (by_lies.T @ views).reshape(size, size, -1)
    up, side = np.roll(both, 1, axis=0), np.roll(both, 1, axis=1)
    neither = (d - 2) * q * both
    first, other = crowd.keep * up + q * side + neither, q * up + crowd.keep * side + neither
    mask = first > other
    first, other = first[mask], other[mask]
    low, high = 0.0, 20.0
    while high - low > 1e-5 * high:
        middle = (low + high) / 2
        over = float(np.maximum(first - exp(middle) * other, 0).sum())
        low, high = (low, middle) if over <= delta else (middle, high)
    return high


@pytest.mark.parametrize(
    ("reports", "values", "local", "law", "delta", "above"),
    [
        pytest.param(30_000, 3, 8.0, (1.5, 10), 1e-3, 1.02, marks=pytest.mark.thorough),
        pytest.param(30_000, 4, 8.0, (1.5, 10), 1e-3, 1.03, marks=pytest.mark.thorough),
        (30_000, 16, 8.0, (1.33, 9), 1e-3, 1.02),
        pytest.param(3000, 16, 8.0, (0.65, 10), 1e-6, 1.02, marks=pytest.mark.thorough),
    ],
)
def test_epsilon_is_little_above_an_attack(  # noqa: PLR0917 a row
    reports: int, values: int, local: float, law: tuple[float, int], delta: float, above: float
) -> None:
    """All of the third term is hidden from the attacker; one who sees a part is no worse."""
    crowd = crowd_of(reports, values, local, noise_dummies=noise_of(*law))
    exact = _attacked(crowd, noise_chances(*law), delta)
    epsilon = central_epsilon(crowd, delta)
    assert exact * (1 - 1e-4) <= epsilon <= above * exact
    assert epsilon < central_epsilon(replace(crowd, epsilon_local=inf), delta)


@pytest.mark.parametrize(
    ("reports", "values", "local", "law", "delta", "exact"),
    [
        (20, 8, 3.0, (1.543, 14), 1e-4, 0.945),
        pytest.param(20, 64, 3.0, (0.8373, 12), 1e-6, 0.76, marks=pytest.mark.thorough),
        (2, 4096, 5.0, (0.2979, 6), 1e-8, 0.9102),
        pytest.param(34, 2088, 5.73, (0.4811, 14), 2e-12, 0.9359, marks=pytest.mark.thorough),
        (300, 4096, 6.0, (0.3889, 11), 1e-12, 0.954),
        pytest.param(5, 4096, 5.0, (0.2865, 5), 1e-6, 0.9187, marks=pytest.mark.thorough),
        (12, 542, 5.0, (0.9957, 20), 3.2e-9, 0.5303),
        pytest.param(8, 572, 5.0, (0.6415, 17), 7.8e-12, 0.9833, marks=pytest.mark.thorough),
        pytest.param(300, 64, 4.0, (1.026, 19), 1e-8, 0.9606, marks=pytest.mark.thorough),
        pytest.param(497, 1283, 6.68, (0.8863, 19), 1e-9, 0.9459, marks=pytest.mark.thorough),
        pytest.param(40, 8, 3.0, (1.479, 13), 1e-4, 0.956, marks=pytest.mark.thorough),
        pytest.param(40, 16, 3.0, (1.352, 19), 1e-6, 0.895, marks=pytest.mark.thorough),
    ],
)
def test_epsilon_of_few_reports_on_many_values_is_at_most_3_percent_above_the_exact_one(  # noqa: PLR0917 a row
    reports: int, values: int, local: float, law: tuple[float, int], delta: float, exact: float
) -> None:
    """That of all counts, where all others hold one third value, which were drawn 150 times.

    Of 300 reports and of 4,096 values that of an attack: the sum of what each count shows of its
    reports.
    """
    crowd = crowd_of(reports, values, local, noise_dummies=noise_of(*law))
    assert exact * 0.99 < central_epsilon(crowd, delta) <= 1.03 * exact
