"""Shuffle amplification: how a shuffled batch improves one report's own guarantee.

The victim's report among n - 1 others is no easier to recognise than in the following game. With
e = exp(epsilon), v the total variation between the payloads of two values, and r = v / (e - 1):

    the victim is heads with probability e r, tails with r, else (h = 1 - (e + 1) r) neither
    each other is heads with probability r, tails with r, neither with h / e; otherwise it shows
        its value, which hides nobody

and the observer sees the numbers of heads, tails, neither. (Where two values' payload laws differ,
an other looks like either with at least r; where they agree, like both with at least 1/e of it.)
With v as large as epsilon allows, (e-1)/(e+1), there is no `neither`, and this is the clones of
Feldman et al. For smaller v the published reduction leaves the others' share of `neither` open;
then the rest of the view may reveal it, and a shuffle of five reports breaks the bound (decision
0210).

Given s, the number of heads and tails, and B, the number of others that do not show their value,
the victim's coin has odds p for its own side, and the probability that the number of heads favours
one side by more than t = exp(central epsilon) : 1 has a closed form in binomial tails. Its sum is
delta. Both directions are equal by symmetry. All rounding is upwards: blocks of neighbouring s and
B count as their worst (another coin, or another possible coin, only hides), omitted tails count in
full, and delta is raised by more than the floating-point error.

Sources: Feldman, McMillan, Talwar, Stronger Privacy Amplification by Shuffling (SODA 2023), theorem
3.2; with v, after Wang et al., Privacy Amplification via Shuffling: Unified, Simplified, and
Tightened (2023), corrected as above; closed form: Feldman, McMillan, Talwar, Hiding Among the
Clones (FOCS 2021), theorem 3.1.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import exp, expm1, inf, log, log1p, sqrt
from typing import Final

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.binomials import binomial_tail, likely, likely_ends, pmf
from hubbub.errors import BadParameter
from hubbub.mechanisms.probability import MAX_EPSILON

ASSUMPTION: Final = (
    "if the shuffler is honest and does not collude with the observer; other reports of the batch "
    "count unless they are the adversary's"
)
DELTA: Final = 1e-8
"""The delta that central figures are shown with, where nobody asked for another."""

_MAX_REPORTS: Final = 10**9
MIN_DELTA: Final = 1e-15
# Part of delta spent on tails that are not summed.
_TAILS: Final = 1e-4
# Blocks of coins in sight; with a total variation, blocks of members and of coins in each. More
# are no nearer to the truth by a thousandth.
_BLOCKS: Final = 1500
_MEMBERS: Final = 24
_PER_MEMBERS: Final = 300
# Binomial chances come out right to 1e-8 for a thousand million coins; differences lose two digits.
_FLOAT_ERROR: Final = 1e-5
# Relative tolerance of the search for the central epsilon, which ends above it.
_CLOSE: Final = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class Amplified:
    """The central guarantee of one report in a shuffled batch.

    Args:
        epsilon: central, in nats; never above `epsilon_local`.
        reports: size of the batch, with this report.
        method: "numerical", "closed form", "whole epoch", or "none" if the crowd adds nothing.
        closed_form: the published bound; infinite where it does not hold.
        assumption: what the guarantee requires.
    """

    epsilon: float
    delta: float
    reports: int
    epsilon_local: float
    total_variation: float
    method: str
    closed_form: float
    assumption: str = ASSUMPTION


@lru_cache(maxsize=4096)
def amplified(
    epsilon: float, reports: int, delta: float = DELTA, total_variation: float | None = None
) -> Amplified:
    """Smallest proven central epsilon of one report among `reports`, at `delta`.

    `total_variation` is that of two values' payloads, or an upper bound; None means what epsilon
    alone allows. Raises BadParameter for a number out of range.
    """
    if not 0 < epsilon <= MAX_EPSILON:
        raise BadParameter(f"epsilon {epsilon} is outside (0, {MAX_EPSILON}]")
    if not (isinstance(reports, int) and 1 <= reports <= _MAX_REPORTS):
        raise BadParameter(f"reports {reports} is outside [1, {_MAX_REPORTS}]")
    if not MIN_DELTA <= delta < 1:
        raise BadParameter(f"delta {delta} is outside [{MIN_DELTA}, 1)")
    most = expm1(epsilon) / (exp(epsilon) + 1)
    distance = most if total_variation is None else total_variation
    if not 0 < distance <= 1:
        raise BadParameter(f"total variation {distance} is outside (0, 1]")
    variation = min(distance, most)
    formula = closed_form(epsilon, reports, delta)
    # By epsilon alone, and by the total variation if that is smaller.
    numerical = epsilon
    for value in [most] if variation >= most * (1 - 1e-9) else [most, variation]:
        crowd = _Crowd.of(epsilon, reports, value, delta)
        numerical = min(numerical, _search(crowd, epsilon, delta))
    best = min(numerical, formula, epsilon)
    method = "none" if best == epsilon else "numerical" if best == numerical else "closed form"
    return Amplified(
        epsilon=best,
        delta=delta,
        reports=reports,
        epsilon_local=epsilon,
        total_variation=variation,
        method=method,
        closed_form=formula,
    )


def closed_form(epsilon: float, reports: int, delta: float) -> float:
    """Published bound on the central epsilon; infinite where it does not hold."""
    if not exp(epsilon) + 1 <= reports / (8 * log(2 / delta)):
        return inf
    e = exp(epsilon)
    root = 4 * sqrt(2 * log(4 / delta)) / sqrt((e + 1) * reports)
    return log(1 + (e - 1) * (root + 4 / reports))


def sampled(epsilon: float, sampling: float) -> float:
    """Epsilon if the person takes part with probability q: ln(1 + q (e^epsilon - 1))."""
    return log1p(sampling * expm1(epsilon))


def _search(crowd: "_Crowd", epsilon: float, delta: float) -> float:
    """Smallest epsilon whose delta is at most `delta`, found from above to within _CLOSE."""
    low, high = 0.0, epsilon
    if crowd.delta((1 - _CLOSE) * high) > delta:  # so small a crowd adds nothing
        return epsilon
    while high - low > _CLOSE * high and high > 1e-12:  # noqa: PLR2004 nothing, to any eye
        # Central epsilons of large crowds are thousandths of the local one: halve the exponent.
        middle = sqrt(low * high) if low else high / 16
        if crowd.delta(middle) <= delta:
            high = middle
        else:
            low = middle
    return high


@dataclass(frozen=True, slots=True)
class _Crowd:
    """The game in blocks: the fewest visible coins of each block, and the worst odds in it.

    Arrays have shape (blocks,); `left_out` is the probability of everything outside the blocks.
    """

    coins: Floats
    odds: Floats
    weights: Floats
    left_out: float

    @classmethod
    def of(cls, epsilon: float, reports: int, variation: float, delta: float) -> "_Crowd":
        odds, others, cut = exp(epsilon), reports - 1, delta * _TAILS
        side = min(variation / (odds - 1), 1 / (odds + 1))  # r
        neither = max(0.0, 1 - side * (odds + 1)) if variation < (odds - 1) / (odds + 1) else 0.0
        hidden = 2 * side + neither / odds
        members = likely(others, hidden, cut)
        # Within a block all count as the lowest: a thousandth below the others at most, if that
        # fits.
        fine = 2 + 1000 * len(members) // max(int(members[0]), 1)
        fine = min(fine, _MEMBERS if neither else _BLOCKS)
        starts = np.arange(0, len(members), -(-len(members) // fine))
        block_laws = np.add.reduceat(pmf(members, others, hidden), starts)
        lowest, chance = members[starts], 2 * side / hidden
        if not neither:  # every other that hides is a coin
            return cls(lowest + 1, np.full_like(lowest, odds), block_laws, 2 * cut)
        coin_ranges = zip(*likely_ends(lowest, chance, cut), strict=True)
        blocks = []
        for low, ends, block_chance in zip(lowest.tolist(), coin_ranges, block_laws, strict=True):
            coins, odds_ratios, weights = _coins(low, ends, chance, neither, odds)
            blocks.append((coins, odds_ratios, weights * block_chance))
        coins, odds_ratios, weights = map(np.concatenate, zip(*blocks, strict=True))
        return cls(coins, odds_ratios, weights, 2 * cut)

    def delta(self, central: float) -> float:
        """Hockey-stick divergence between heads and tails at exp(central), rounded up."""
        t, p, s = exp(central), self.odds, self.coins
        with np.errstate(divide="ignore", invalid="ignore"):
            # Heads tell more than t : 1 from this many on.
            edge = np.floor(s * (t * p - 1) / ((p - 1) * (1 + t))) + 1
        telling = (p > t) & (edge <= s)
        s, p, edge = s[telling], p[telling], edge[telling]
        at_edge = pmf(edge - 1, s - 1, 0.5)
        upper_tail = binomial_tail(edge - 1, s - 1, 0.5)
        chances = ((p - t) * at_edge - (1 + p) * expm1(central) * upper_tail) / (1 + p)
        # What rounding may hide is added before anything is left out as negative.
        error = _FLOAT_ERROR * np.abs(chances) + 1e-11 * at_edge
        total = float((self.weights[telling] * (np.maximum(chances, 0) + error)).sum())
        return total + self.left_out


def _coins(
    members: float, ends: tuple[float, float], chance: float, neither: float, odds: float
) -> tuple[Floats, Floats, Floats]:
    """Visible coins, odds and weights in blocks, given the number of others that hide.

    Each member is a coin with this chance, so that their number is likely between the ends; the
    victim is none with probability `neither`.
    """
    numbers = np.arange(ends[0], ends[1] + 2)
    coin = pmf(numbers - 1, members, chance) * (1 - neither)
    joint_law = coin + pmf(numbers, members, chance) * neither
    # A coin, or with the chance that it is none a fair one: odds nearer to even.
    bias = (
        (odds - 1)
        / (2 * (odds + 1))
        * np.divide(coin, joint_law, out=np.zeros_like(joint_law), where=joint_law > 0)
    )
    starts = np.arange(0, len(numbers), -(-len(numbers) // _PER_MEMBERS))
    # Fewer coins hide less, and the odds grow with how many there are: take each end's worst.
    worst = np.minimum(np.maximum.reduceat(bias, starts) * (1 + 1e-9), 0.5 - 1e-12)
    coins = np.maximum(numbers[starts], 1).astype(np.float64)
    return (
        coins,
        np.minimum((0.5 + worst) / (0.5 - worst), odds),
        np.add.reduceat(joint_law, starts),
    )
