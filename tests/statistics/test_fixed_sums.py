"""Noise dummies of a mean: their sum is nearly fixed, and hides a person no less than is said."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import exp, inf, prod

import numpy as np
import pytest

from hubbub.aggregator.query.cache import sum_totals
from hubbub.aggregator.store.contract import WindowTotals
from hubbub.analysis.arrays import Floats
from hubbub.authoring.crowds.accountant import sum_scale
from hubbub.authoring.crowds.crowd_values import (
    noisy_mean,
    planned_number,
    worst_variance,
)
from hubbub.catalog.crowds.crowd import Crowd, noise_of, sum_noise_of
from hubbub.catalog.crowds.gaussian_privacy import mu_of_pure
from hubbub.errors import BadParameter
from hubbub.mechanisms import build
from hubbub.privacy.exact_accountant import ExactAccountant, gaussian_mu
from hubbub.privacy.fewest_dummies import best_noise
from hubbub.privacy.many_epochs import composed_epsilon
from hubbub.privacy.noise_dummies_account import law_of
from hubbub.privacy.shuffled_epoch import ShuffledEpoch
from hubbub.privacy.shuffled_histogram import profile
from hubbub.sealing.dummy_laws import CountNoise, ValueNoise
from tests.support.crowds import crowd_of


def _crowd(noise: ValueNoise) -> ShuffledEpoch:
    return crowd_of(100, noise.values, inf, noise_dummies=noise.each, sum_noise=noise.of_sum)


def _draw_given_numbers(noise: ValueNoise, numbers: Iterable[int]) -> tuple[int, ...]:
    """What `draw` returns if its laws give these numbers in turn."""
    upcoming = iter(numbers)
    return tuple(noise.draw(lambda _: next(upcoming)))


def _outcomes(noise: ValueNoise) -> dict[tuple[int, ...], Fraction]:
    """The exact probability of each list of numbers that `draw` returns."""
    assert noise.of_sum
    laws = [*[noise.each] * noise.values, noise.of_sum]
    outcomes: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for numbers in product(*(range(law.most + 1) for law in laws)):
        chance = prod(
            Fraction(law.weights[number], sum(law.weights))
            for law, number in zip(laws, numbers, strict=True)
        )
        outcomes[_draw_given_numbers(noise, numbers)] += chance
    return outcomes


@pytest.mark.parametrize(
    ("values", "each", "of_sum"),
    [
        (3, CountNoise(3 << 31, 2), CountNoise(5 << 30, 6)),
        (3, CountNoise(2 << 32, 3), CountNoise(3 << 31, 3)),
        (4, CountNoise(3 << 31, 1), CountNoise(9 << 29, 8)),
        # A report moves the sum from one end of its law to the other, and beyond it.
        (3, CountNoise(3 << 31, 1), CountNoise(5 << 30, 1)),
        (4, CountNoise(3 << 31, 1), CountNoise(9 << 29, 1)),
    ],
)
@pytest.mark.parametrize("t", [Fraction(1), Fraction(3, 2), Fraction(4), Fraction(9)])
def test_delta_is_never_below_that_of_all_draws(
    values: int, each: CountNoise, of_sum: CountNoise, t: Fraction
) -> None:
    noise = ValueNoise(each, values, of_sum)
    outcomes = _outcomes(noise)
    claim = profile(_crowd(noise), 1e-15)(float(np.log(float(t))))

    def view_of(value: int) -> dict[tuple[int, ...], Fraction]:
        return {
            tuple(n + (step == value) for step, n in enumerate(numbers)): chance
            for numbers, chance in outcomes.items()
        }

    for a, b in product(range(values), repeat=2):
        of_b = view_of(b)
        excesses = [chance - t * of_b.get(o, 0) for o, chance in view_of(a).items()]
        exact = sum(excess for excess in excesses if excess > 0)
        assert float(exact) <= claim * (1 + 1e-9)


def _views(noise: ValueNoise) -> tuple[Floats, Floats]:
    """Two counts and the sum of all steps, where the person holds the first step, and the last."""
    assert noise.of_sum
    law, sums, moved = law_of(noise.each), law_of(noise.of_sum), np.zeros(noise.values - 1)
    more, fewer = np.append(0.0, law), np.append(law, 0.0)
    first = np.multiply.outer(np.outer(more, fewer), np.append(sums, moved))
    last = np.multiply.outer(np.outer(fewer, more), np.append(moved, sums))
    return first.ravel(), last.ravel()


@pytest.mark.parametrize("central", [0.5, 1.0, 2.0])
def test_the_account_is_that_of_three_secret_numbers_to_one_percent(central: float) -> None:
    """Of two counts and the sum, moved by all steps: by their formulas, on a grid of all three."""
    each, of_sum = noise_of(2 / 0.4 / central, 12), sum_noise_of(4 / 0.6 / central)
    assert each
    noise = ValueNoise(each, 5, of_sum)
    v, w = _views(noise)
    for epsilon in (0.5 * central, central):
        exact = float(np.maximum(v - exp(epsilon) * w, 0).sum())
        claimed = profile(_crowd(noise), 1e-15)(epsilon)
        assert exact <= claimed * (1 + 1e-9)
        assert claimed <= float(np.maximum(v - exp(0.98 * epsilon) * w, 0).sum())


def test_the_number_of_dummies_is_fixed_and_their_sum_is_the_drawn_one() -> None:
    each, of_sum = noise_of(5.05, 147), sum_noise_of(sum_scale(5.05, 64))
    assert each
    assert of_sum
    noise = ValueNoise(each, 65, of_sum)
    drawn: list[int] = []

    def number_of(law: CountNoise) -> int:
        drawn.append(law.draw())
        return drawn[-1]

    for _ in range(300):
        numbers = noise.draw(number_of)
        assert sum(numbers) == noise.expected
        off = sum(step * number for step, number in enumerate(numbers)) - 32 * noise.expected
        assert off == drawn[-1] - of_sum.reach
        assert all(0 <= n <= most for n, most in zip(numbers, noise.most, strict=True))
    assert float(of_sum.delta) < 1e-13


def test_extreme_sums_of_dummies_still_give_valid_numbers_of_dummies() -> None:
    """Of the most unlikely numbers: all that the sum needs lies beyond what may be added."""
    noise = ValueNoise(CountNoise(3 << 31, 40), 64, CountNoise(5 << 30, 4))
    for extreme in (0, noise.each.most):
        numbers = _draw_given_numbers(noise, [*[extreme] * 64, min(extreme, 8)])
        assert all(0 <= n <= most for n, most in zip(numbers, noise.most, strict=True))


def test_two_epochs_together_have_the_loss_of_all_six_numbers() -> None:
    noise = ValueNoise(CountNoise(3 << 31, 26), 5, CountNoise(5 << 30, 70))
    v, w = _views(noise)
    both = (v > 0) & (w > 0)
    losses, places = np.unique(np.round(np.log(v[both] / w[both]), 9), return_inverse=True)
    chances, hidden = np.bincount(places, v[both]), float(v[both].sum())
    two, of_two = np.add.outer(losses, losses), np.multiply.outer(chances, chances)

    def delta(epsilon: float) -> float:
        excess = np.maximum(-np.expm1(epsilon - two), 0)
        return float((excess * of_two).sum()) + 1 - hidden**2

    claimed = composed_epsilon([(_crowd(noise), 2)], 1e-3)
    assert delta(claimed) <= 1e-3 < delta(0.97 * claimed)


@pytest.mark.parametrize(
    ("central", "delta"),
    [
        # The numbers of a fixed sum would need more dummies than there may be.
        pytest.param(0.006, 1e-8, marks=pytest.mark.thorough),
        (1.0, 1e-15),
        (12.0, 1e-12),
    ],
)
def test_a_mean_has_noise_dummies_also_at_the_limits(central: float, delta: float) -> None:
    promise = Crowd(epsilon=central, reports=1000, delta=delta, honest=0.9, max_local_epsilon=16)
    accountant, table = ExactAccountant(), {"mechanism": "auto", "low": 0, "high": 100}
    noisy = noisy_mean(table, promise, accountant, "noise")
    assert noisy.noise
    assert accountant.keeps(noisy, planned_number(table, noisy, accountant).categories, 16)


def test_a_noise_law_with_revealing_ends_is_refused() -> None:
    crowd = crowd_of(100, 129, 16)
    with pytest.raises(BadParameter, match="cannot keep a delta as small as 1e-15; raise delta"):
        best_noise(crowd, 0.3, 1e-15, fixed_sum=True)
    with pytest.raises(BadParameter, match="cannot keep a central epsilon as small as 1 here"):
        best_noise(crowd, 1.0, 1e-8, 30_000)


def test_a_crowd_of_a_fixed_sum_is_compared_with_a_gaussian_also_at_a_large_epsilon() -> None:
    """The ends of the sum's law, by as much as a report moves it, are below what is left out."""
    each, of_sum = noise_of(0.6312, 20), sum_noise_of(sum_scale(0.6312, 64))
    assert each
    crowd = replace(_crowd(ValueNoise(each, 65, of_sum)), epsilon_local=16.0)
    assert gaussian_mu(crowd) < mu_of_pure(8.0)


@pytest.mark.parametrize("share", [1, 0.999, 0.5, 0.1])
def test_the_variance_of_a_partial_epoch_has_the_parts_of_its_sum_and_of_missing_reports(
    share: float,
) -> None:
    """As sums of coins: of the variance of the sum the square of the share, beside coins' own."""
    each, of_sum = noise_of(5.05, 147), sum_noise_of(sum_scale(5.05, 16))
    assert each
    assert of_sum
    noise = ValueNoise(each, 17, of_sum)
    arrived = round(noise.expected * share)
    part = WindowTotals(
        cells=np.zeros(17, np.int64), counted=0, dummies=arrived, batch_reports=0, at=0
    )
    totals = sum_totals([part], 17, dummies=noise.expected, noise=noise)
    places = [step - 8.0 for step in range(17)]
    coins = (1 - share) * sum(p**2 * n for p, n in zip(places, totals.by_cell(), strict=True))
    variance = share**2 * of_sum.variance + coins
    assert 0.98 * variance <= totals.weighted_variance(places) <= 1.02 * variance


@pytest.mark.parametrize(
    ("reports", "local", "curators"),
    [
        pytest.param(100_000, 16, 2, marks=pytest.mark.thorough),
        (3_000, 8, 2.8),
    ],
)
def test_a_mean_is_nearly_as_exact_as_that_of_a_trusted_curator(
    reports: int, local: float, curators: float
) -> None:
    promise = Crowd(epsilon=1.0, reports=reports, delta=1e-8, honest=0.9, max_local_epsilon=local)
    accountant = ExactAccountant()
    table = {"mechanism": "auto", "low": 0, "high": 100}
    for word in ("noise", "auto"):
        noisy = noisy_mean(table, promise, accountant, word)
        planned = planned_number(table, noisy, accountant)
        assert accountant.keeps(noisy, planned.categories, local)
        mechanism = build(planned.mechanism, epsilon=local, low=0, high=100, **planned.parameters)
        assert worst_variance(mechanism, noisy) <= 2 * curators**2
