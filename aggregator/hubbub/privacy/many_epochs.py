"""Many epochs: what whole shuffled epochs reveal together of one person who reports in each.

The distribution of an epoch's privacy loss follows from the histogram's own sum, term by term, and
distributions of several epochs are convolved (Google's dp-accounting). Losses are rounded up to a
grid, blocks of T count as their least, and what is left out counts as revealing everything: the
result is an upper bound, also if the values of every epoch differ, and depend on earlier epochs.
With two values there is one count, and its loss depends on how many others hold each: the largest
delta over all these cases, at every epsilon of a grid, gives a distribution that dominates all. So
it does of noise dummies, with lies; without lies all losses are on the grid.

Source: Koskela, Jaelkoe, Honkela (AISTATS 2020), for the convolution; Doroshenko, Ghazi, Kamath,
Kumar, Manurangsi, "Connect the Dots" (PoPETs 2022), for the distribution of a dominating profile;
see hubbub.privacy.shuffled_histogram.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, reduce
from math import exp, inf, log, sqrt
from typing import TYPE_CHECKING, Final

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.binomials import laws, likely, likely_ends, pmf
from hubbub.catalog.crowds.gaussian_privacy import epsilon_of_mu, mu_within
from hubbub.errors import BadParameter
from hubbub.privacy.amplification import MIN_DELTA
from hubbub.privacy.noise_dummies_account import sum_losses
from hubbub.privacy.shuffled_epoch import POWER_ERROR, ShuffledEpoch
from hubbub.privacy.shuffled_histogram import central_epsilon, keeps, largest_local, profile

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

MAX_TIMES: Final = 100_000
"""How often one person reports at the most, of what is composed here."""
# Part of delta that may be left out in all epochs together.
_LEFT_OUT: Final = 1e-3
# Blocks of T are so wide, beside T; half of that is the noise that is given away, on average.
_WIDTH: Final = 5e-3
# Grid steps in the loss of one epoch; rounding up costs half a step in each epoch.
_GRID: Final = 400
# Where the search for a local epsilon ends: by itself, and by what it lets be told.
_CLOSE: Final = 0.002
_NEAR: Final = 1e-3
_FLAT: Final = 0.05
# Steps of the grid in the loss of a count with noise dummies, beside the noise of their sum; and
# otherwise, for lies. Of how many such losses the profile is computed, with lies and without; and
# how much more is left out.
_FINER: Final = 16
_FINE: Final = 4
_LOSSES: Final = (16, 3)
_MORE: Final = 20


def composed_epsilon(epochs: Sequence[tuple[ShuffledEpoch, int]], delta: float) -> float:
    """Epsilon at `delta` of all of a person's reports, in crowds with their numbers of epochs.

    Infinite if a crowd hides nothing. Never above the sum of the local epsilons. Raises
    BadParameter for no epoch, or a number out of range.
    """
    if not epochs:
        raise BadParameter("no epoch to compose: give at least one crowd")
    if not 0 < delta < 1:
        raise BadParameter(f"delta {delta} is outside (0, 1)")
    for _, times in epochs:
        if not (isinstance(times, int) and 1 <= times <= MAX_TIMES):
            raise BadParameter(f"times {times} is outside [1, {MAX_TIMES}]")
    simple_sum = sum(crowd.epsilon_local * times for crowd, times in epochs)
    number = sum(times for _, times in epochs)
    if number == 1:
        return central_epsilon(epochs[0][0], delta)
    if len(epochs) > 1:  # whose grid is too fine for profiles of lies beside noise dummies
        epochs = [
            (replace(crowd, epsilon_local=inf) if crowd.noise_dummies else crowd, times)
            for crowd, times in epochs
        ]
    share = max(delta / number, MIN_DELTA)
    noise = epochs[0][0].noise_dummies if len(epochs) == 1 else None
    if noise:
        grid = 1 / noise.scale / (_FINER if epochs[0][0].sum_noise else _FINE)
    else:
        epsilons = [central_epsilon(crowd, share) for crowd, _ in epochs]
        if inf in epsilons:
            return simple_sum
        # The smallest loss decides how fine the grid is: many of it add up as its root.
        grid = min(epsilons) / _GRID / sqrt(max(number / 100, 1))
    left_out = delta * _LEFT_OUT
    loss_laws = (
        _losses(crowd, grid, left_out / number).self_compose(times, min(1e-15, left_out))
        for crowd, times in epochs
    )
    composed = reduce(lambda law, other: law.compose(other), loss_laws)
    rounded_delta = max(delta - number * POWER_ERROR, 0.0)
    epsilon = min(float(composed.get_epsilon_for_delta(rounded_delta)), simple_sum)
    # Deltas add up, too; beside noise dummies each epsilon takes long.
    if share * number <= delta and not (noise and not keeps(epochs[0][0], epsilon / number, share)):
        sums = (central_epsilon(crowd, share) * times for crowd, times in epochs)
        epsilon = min(epsilon, sum(sums))
    return epsilon


@lru_cache(maxsize=256)
def largest_local_together(
    crowd: ShuffledEpoch, epochs: int, central: float, delta: float
) -> float:
    """Largest local epsilon, up to the crowd's, with which epochs together reveal up to `central`.

    Up to .002 less, or a thousandth of `central`. `central` / `epochs` always keeps the promise.
    Raises BadParameter for a number out of range.
    """

    def together(local: float) -> float:
        return composed_epsilon([(replace(crowd, epsilon_local=local), epochs)], delta)

    most = crowd.epsilon_local
    low, high = min(central / epochs, most), most
    if low == most or together(most) <= central:
        return most
    # Treats crowds as Gaussians, whose squared mu add up, to get the epsilon of one.
    one_epoch = epsilon_of_mu(mu_within(central, delta) / sqrt(epochs), delta)
    epsilon = largest_local(replace(crowd, noise_dummies=None), one_epoch, delta)
    slope, before = 0.5, None  # of the logarithm of what is told, by the local epsilon
    while high - low > _CLOSE:
        epsilon = epsilon if low < epsilon < high else (low + high) / 2
        error = log(together(epsilon) / central)
        if error > 0:
            high = epsilon
        else:
            low = epsilon
            if error > -_NEAR:
                break
        if before is not None and epsilon != before[0]:
            slope = max((error - before[1]) / (epsilon - before[0]), _FLAT)
        before = epsilon, error
        epsilon -= (error + _NEAR / 2) / slope
    return low


@lru_cache(maxsize=64)
def _losses(crowd: ShuffledEpoch, grid: float, left_out: float) -> "PrivacyLossDistribution":
    """Distribution of one epoch's loss, in steps of the grid, rounded up."""
    if crowd.sum_noise:
        without = replace(crowd, sum_noise=None, epsilon_local=inf)
        # Of a secret sum, which a report moves by this many steps at most.
        *finite, (_, impossible) = sum_losses(crowd.sum_noise, int(crowd.categories) - 1)
        losses, chances = np.array(finite).T
        return _losses_of_profile(without, grid, left_out).compose(
            _rounded_law(np.ceil(losses / grid), chances, impossible, grid)
        )
    if crowd.noise_dummies or crowd.categories == 2:  # noqa: PLR2004 two values
        return _losses_of_profile(crowd, grid, left_out)
    d, q, truth = crowd.categories, crowd.lie, 1 - crowd.categories * crowd.lie
    cut = left_out / 4
    noise, chances = crowd.noise(cut)
    fine = max(1, int(noise[0] * _WIDTH))
    starts = np.arange(0, len(noise), fine)
    weights = np.add.reduceat(chances, starts)
    totals = noise[starts] + 1
    lows, highs = likely_ends(totals, 2 / d, cut)
    # How reports on both values are split does not depend on how many more there are.
    first = lows.min()
    numbers = np.arange(first, highs.max() + 1)[:, None]
    reach = len(likely(int(numbers[-1, 0]), 0.5, cut)) // 2 + 1
    splits = np.floor(numbers / 2) + np.arange(-reach, reach + 1)[None, :]
    halves = pmf(splits, numbers, 0.5)
    if not q:  # then a value without reports reveals the other one
        halves[(splits <= 0) | (splits >= numbers)] = 0.0
    all_steps, all_masses = list[Floats](), list[Floats]()
    laws_of_both = laws(totals.astype(np.int64).tolist(), 2 / d, cut)
    for total, weight, low, law in zip(totals, weights, lows, laws_of_both, strict=True):
        rows = slice(int(low - first), int(low - first) + len(law))
        # The probability under uniform draws, times the factor by which v changes it.
        even = law[:, None] * halves[rows]
        mask = even > cut / even.size
        for_v = truth * splits[rows][mask] + q * total
        for_w = truth * (numbers - splits)[rows][mask] + q * total
        steps = np.ceil(np.log(for_v / for_w) / grid)
        all_steps.append(np.arange(steps.min(), steps.max() + 1))
        all_masses.append(_sums_by_step(steps, weight * d / total * even[mask] * for_v))
    steps, masses = np.concatenate(all_steps), np.concatenate(all_masses)
    return _rounded_law(steps, masses, max(0.0, 1 - float(masses.sum())), grid)


def _sums_by_step(steps: Floats, chances: Floats) -> Floats:
    """Sum of the probabilities at each step from the lowest to the highest."""
    return np.bincount((steps - steps.min()).astype(np.int64), chances).astype(np.float64)


def _rounded_law(
    steps: Floats, chances: Floats, impossible: float, grid: float
) -> "PrivacyLossDistribution":
    """Distribution of these losses, in steps of the grid, and of an infinite loss."""
    from dp_accounting.pld import privacy_loss_distribution  # noqa: PLC0415 a second, and 50 MB

    masses = enumerate(_sums_by_step(steps, chances).tolist(), start=int(steps.min()))
    chance_by_step = {step: chance for step, chance in masses if chance}
    return privacy_loss_distribution.PrivacyLossDistribution.create_from_rounded_probability(
        chance_by_step, impossible, grid, pessimistic_estimate=True
    )


def _losses_of_profile(
    crowd: ShuffledEpoch, grid: float, left_out: float
) -> "PrivacyLossDistribution":
    """The same by the profile: the larger of both directions, hence symmetric."""
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution  # noqa: PLC0415 as above

    delta = profile(crowd, left_out)
    deltas = [min(1.0, delta(0.0))]
    reach, least = crowd.epsilon_local, left_out
    if noise := crowd.noise_dummies:
        reach, least = min(reach, _LOSSES[not crowd.lie] / noise.scale), _MORE * left_out
    while deltas[-1] > least and len(deltas) * grid <= reach:
        deltas.append(min(deltas[-1], delta(len(deltas) * grid)))
    steps = np.arange(1 - len(deltas), len(deltas))
    # delta(-e) = 1 - exp(-e) + exp(-e) delta(e), of the other order.
    reverse_deltas = [1 - exp(-k * grid) * (1 - deltas[k]) for k in range(len(deltas) - 1, 0, -1)]
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots(
        grid, steps, np.array(reverse_deltas + deltas)
    )
    return privacy_loss_distribution.PrivacyLossDistribution(pmf)
