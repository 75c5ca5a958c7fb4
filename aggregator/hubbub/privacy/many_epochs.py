"""Many epochs: what whole shuffled epochs say together of one person who reports in each.

The distribution of an epoch's privacy loss follows from the histogram's own sum, term by term, and
distributions of several epochs convolve (Google's dp-accounting). Losses are rounded up to a grid,
blocks of T count as their least, and what is left out counts as if it told everything: all of it is
an upper bound, also where the values of every epoch differ, and are chosen by what came before.
Of two values the two counts are accounted for as if both were seen, which is above the truth.

Source: Koskela, Jaelkoe, Honkela (AISTATS 2020), for the convolution; see hubbub.privacy.histogram.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import inf, sqrt
from typing import Final

import numpy as np
from dp_accounting.pld import privacy_loss_distribution
from scipy.stats import binom

from hubbub.errors import BadParameter
from hubbub.privacy.histogram import Crowd, central_epsilon, likely

__all__ = ["composed_epsilon"]

_MAX_TIMES: Final = 100_000
# Of delta: what may be left out of all epochs together.
_LEFT_OUT: Final = 1e-3
# Blocks of T are so wide, beside T; half of that is the noise that is given away, on average.
_WIDTH: Final = 5e-3
# Of the loss of one epoch: rounding up costs half a step of the grid in each.
_GRID: Final = 400


def composed_epsilon(epochs: Sequence[tuple[Crowd, int]], delta: float) -> float:
    """The epsilon at `delta` of everything that one person says in crowds, each so many times.

    Infinite where a crowd hides nothing. Never above the sum of the local epsilons.

    Raises:
        BadParameter: no epoch, or a number out of range.
    """
    if not epochs:
        raise BadParameter("no epoch to compose: give one crowd at least")
    if not 0 < delta < 1:
        raise BadParameter(f"delta {delta} is outside (0, 1)")
    for _, times in epochs:
        if not (isinstance(times, int) and 1 <= times <= _MAX_TIMES):
            raise BadParameter(f"times {times} is outside [1, {_MAX_TIMES}]")
    alone = sum(crowd.epsilon_local * times for crowd, times in epochs)
    number = sum(times for _, times in epochs)
    if number == 1:
        return central_epsilon(epochs[0][0], delta)
    one = [central_epsilon(crowd, delta / number) for crowd, _ in epochs]
    if inf in one:
        return alone
    # The smallest loss decides how fine the grid is: many of it add up as its root.
    grid = min(one) / _GRID / sqrt(max(number / 100, 1))
    whole = None
    for crowd, times in epochs:
        each = _losses(crowd, grid, delta * _LEFT_OUT / number)
        each = each.self_compose(times) if times > 1 else each
        whole = each if whole is None else whole.compose(each)
    assert whole is not None  # noqa: S101 there is an epoch
    return min(float(whole.get_epsilon_for_delta(delta)), alone)


@lru_cache(maxsize=64)
def _losses(
    crowd: Crowd, grid: float, left_out: float
) -> privacy_loss_distribution.PrivacyLossDistribution:
    """The distribution of one epoch's loss, in steps of the grid, rounded up."""
    d, q, truth = crowd.categories, crowd.lie, 1 - crowd.categories * crowd.lie
    chance, cut = min(d * q, 1.0), left_out / 4
    noise = likely(crowd.others, chance, cut)
    fine = max(1, int(noise[0] * _WIDTH))
    starts = np.arange(0, len(noise), fine)
    weights = np.add.reduceat(binom.pmf(noise, crowd.others, chance), starts)
    losses: dict[int, float] = {}
    for lowest, weight in zip(noise[starts].tolist(), weights.tolist(), strict=True):
        total = lowest + 1 + crowd.dummies
        both = np.append(spread := likely(int(total) - 1, 2 / d, cut), spread[-1] + 1)[:, None]
        reach = len(likely(int(both[-1, 0]), 0.5, cut)) // 2 + 1
        x = np.floor(both / 2) + np.arange(-reach, reach + 1)[None, :]
        # As likely as if all were drawn evenly, times how much likelier v makes it.
        even = binom.pmf(both, total, 2 / d) * binom.pmf(x, both, 0.5)
        for_v, for_w = truth * x + q * total, truth * (both - x) + q * total
        seen = (even > 0) & (for_v > 0) & (for_w > 0)  # else it tells everything
        steps = np.ceil(np.log(for_v[seen] / for_w[seen]) / grid).astype(np.int64)
        told = np.bincount(steps - steps.min(), (weight * d / total * even * for_v)[seen])
        for place in np.flatnonzero(told).tolist():
            step = place + int(steps.min())
            losses[step] = losses.get(step, 0.0) + float(told[place])
    return privacy_loss_distribution.PrivacyLossDistribution.create_from_rounded_probability(
        losses, max(0.0, 1 - sum(losses.values())), grid, pessimistic_estimate=True
    )
