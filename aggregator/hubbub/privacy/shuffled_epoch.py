"""A shuffled epoch: its number of `grr` reports, their lies, and its dummies."""

from dataclasses import dataclass, replace
from math import exp, floor, inf, sqrt
from typing import Final, Self

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from hubbub.analysis.arrays import Floats
from hubbub.analysis.binomials import likely, pmf
from hubbub.errors import BadParameter
from hubbub.mechanisms.probability import MAX_EPSILON
from hubbub.sealing.dummy_laws import CountNoise

MAX_REPORTS: Final = 10**9
MAX_CATEGORIES: Final = 1 << 24
MAX_EACH: Final = 100
DIRECT: Final = 3000
"""So many numbers are convolved as sums, and more by a transform."""
FFT_ERROR: Final = 1e-14
"""What chances that come out of a transform are off by, all together."""
POWER_ERROR: Final = 2**-52
"""The same for a power of a transform, by its exponent; ten times what was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffledEpoch:
    """One epoch of `grr` reports that leaves the shuffler whole.

    It also stands for hashed strings, whose reports show one of `groups` functions, and for codes
    of directions, where `categories` is the number of words divided by that of near words.

    Args:
        reports: all reports, without dummies.
        categories: number of values; of one group if there are several.
        epsilon_local: of one report alone, in nats; infinite if nobody lies.
        honest: share of reports that lie as they should; all others count as known.
        dummies: public number of reports of a random value, added by a trusted party.
        groups: number of groups of which a report shows its own.
        each: dummies of every honest device: the whole part, and one more with the fraction as its
            probability.
        noise_dummies: law of the secret number of dummies of each value.
        sum_noise: law of the sum of the dummies' steps, beside noise dummies of a mean.

    Raises:
        BadParameter: a number out of range.
    """

    reports: int
    categories: float
    epsilon_local: float
    honest: float = 1.0
    dummies: int = 0
    groups: int = 1
    each: float = 0.0
    noise_dummies: CountNoise | None = None
    sum_noise: CountNoise | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.reports, int) and 1 <= self.reports <= MAX_REPORTS):
            raise BadParameter(f"reports {self.reports} is outside [1, {MAX_REPORTS}]")
        if not 2 <= self.categories <= MAX_CATEGORIES:  # noqa: PLR2004 two values at least
            raise BadParameter(f"categories {self.categories} is outside [2, {MAX_CATEGORIES}]")
        if not (0 < self.epsilon_local <= MAX_EPSILON or self.epsilon_local == inf):
            raise BadParameter(
                f"local epsilon {self.epsilon_local} is outside (0, {MAX_EPSILON}]; "
                "where no device randomizes, give inf"
            )
        if not 0 < self.honest <= 1:
            raise BadParameter(f"honest {self.honest} is outside (0, 1]")
        if not (isinstance(self.dummies, int) and 0 <= self.dummies <= MAX_REPORTS):
            raise BadParameter(f"dummies {self.dummies} is outside [0, {MAX_REPORTS}]")
        if not (isinstance(self.groups, int) and 1 <= self.groups <= MAX_CATEGORIES):
            raise BadParameter(f"groups {self.groups} is outside [1, {MAX_CATEGORIES}]")
        if not 0 <= self.each <= MAX_EACH:
            raise BadParameter(f"dummies of each device {self.each} are outside [0, {MAX_EACH}]")
        padded = self.dummies or self.each
        if self.noise_dummies and (padded or self.groups > 1 or self.categories % 1):
            raise BadParameter("noise dummies need listed values, and exclude other dummies")
        if self.groups > 1 and (self.categories == 2 or padded):  # noqa: PLR2004 two values
            raise BadParameter(
                "crowds with hash functions or other groups need three categories or more, and no "
                "dummies"
            )

    @property
    def others(self) -> int:
        """Number of honest reports besides the person's own."""
        return max(floor(self.reports * self.honest * (1 + 1e-12)) - 1, 0)

    @property
    def lie(self) -> float:
        """Probability of naming a given wrong value, rounded down: less noise hides less."""
        if self.epsilon_local == inf:
            return 0.0
        return 1 / (exp(self.epsilon_local) + self.categories - 1) * (1 - 2**-48)

    @property
    def hiding(self) -> float:
        """Probability that another report is noise, and in the person's group."""
        return min(self.categories * self.lie, 1.0) / self.groups

    @property
    def keep(self) -> float:
        """Probability of naming the true value."""
        return 1 - (self.categories - 1) * self.lie

    def stderr(self, share: float) -> float:
        """Standard error, in reports, of the estimate of a value that this share of people holds.

        The estimate is (count - n q - m/d) / (p - q), for n reports and m dummies; n and m are
        known, or only their sum if devices add dummies. For strings, also in several groups, it is
        that of the buckets, before collisions.
        """
        p, q, n = self.keep, self.lie, self.reports
        lies = n * q * (1 - q) + n * share * (p * (1 - p) - q * (1 - q))
        even_share, coin = 1 / self.categories, self.each % 1
        drawn = (self.dummies + n * self.each) * even_share * (1 - even_share)
        unknown = n * coin * (1 - coin) * ((even_share - q) / (1 + self.each)) ** 2
        if self.noise_dummies:  # of the value's own, and of how many reports there are
            drawn = self.noise_dummies.variance * (1 - 2 * q + self.categories * q**2)
        return sqrt(lies + drawn + unknown) / (p - q)

    def certain(self, dummies: int = 0) -> Self:
        """The same with a known number of dummies: those that devices certainly add, and `dummies`.

        `dummies` is the number that devices add by chance.
        """
        dummy_count = floor(self.each) * (self.others + 1)
        return replace(self, dummies=self.dummies + dummy_count + dummies, each=0.0)

    def noise(self, cut: float) -> tuple[Floats, Floats]:
        """Probable numbers of noise reports, from others and dummies, with their probabilities.

        Numbers outside have a probability of at most 2 `cut`.
        """
        numbers = likely(self.others, self.hiding, cut)
        chances = pmf(numbers, self.others, self.hiding)
        first = numbers[0] + self.certain().dummies
        if self.each % 1:
            dummy_counts = likely(self.others + 1, self.each % 1, cut)
            first += dummy_counts[0]
            chances = convolved(chances, pmf(dummy_counts, self.others + 1, self.each % 1))
        return first + np.arange(float(len(chances))), chances


def convolved(first: Floats, other: Floats) -> Floats:
    """Law of the sum of two independent numbers."""
    if min(len(first), len(other)) <= DIRECT:
        return np.convolve(first, other)
    length = len(first) + len(other) - 1
    size = next_fast_len(length, real=True)
    law: Floats = irfft(rfft(first, size) * rfft(other, size), size)[:length]
    return np.maximum(law, 0.0)
