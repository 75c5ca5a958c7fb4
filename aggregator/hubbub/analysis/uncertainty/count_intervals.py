"""Interval ends of a pure mechanism's estimates, by the law of the reports that support a value.

If t of n reports hold a value, the number that supports it is a sum of two binomial numbers. Its
tail is a saddlepoint approximation for whole numbers (the normal score r*): a tail of .025 is off
by less than a tenth of it where the variance is above 1, and by less than .02 of it above 10.

Source: Barndorff-Nielsen (1986); Daniels (1987), section 6.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from hubbub.analysis.arrays import Floats

# So near the mean, a score is the normal law's.
_NEAR: Final = 1e-3
# Scores past this are told from each other by their order alone.
_FAR: Final = 40.0
# Ends are so near, in standard errors. Usually that takes four rounds; without lies some more.
_CLOSE: Final = 2e-3
_MAX_ROUNDS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class CountLaw:
    """The law of a value's supports, whatever number of reports holds the value.

    Args:
        p, q: chances that a report supports its own value, and another; both inside (0, 1).
        dummies, share: number of dummies beside the reports, and the chance that a dummy supports
            the value.
        sampled: the truth is the population's: every report holds the value by chance.
    """

    p: float
    q: float
    reports: int
    dummies: int = 0
    share: float = 0.0
    sampled: bool = False

    def between(
        self, estimates: Floats, down: "Floats | float", up: "Floats | float"
    ) -> tuple[Floats, Floats]:
        """The least and the largest truth whose tails reach the estimates, in [0, reports].

        `down` and `up` are the normal scores of the error rates of either end.
        """
        supports = estimates * (self.p - self.q) + self.reports * self.q
        supports += self.dummies * self.share
        numbers = np.concatenate([supports - 0.5, supports + 0.5])
        worth = np.empty_like(numbers)
        worth[: len(supports)], worth[len(supports) :] = down, np.negative(up)
        # A secant's steps, kept between truths whose tails are too short and too long.
        least, most = np.zeros_like(numbers), np.full_like(numbers, float(self.reports))
        ends = np.clip(np.tile(estimates, 2), least, most)
        step, gaps = -worth * self._stderrs(ends), np.full_like(numbers, np.nan)
        # Half of the rows of a long list have a low end of 0 at once: only others go on.
        answer, places = ends.copy(), np.arange(ends.size)
        for _ in range(_MAX_ROUNDS):
            following = np.clip(ends + step, 0.0, self.reports)
            is_outside = (following < least) | (following > most)
            following = np.where(is_outside, (least + most) / 2, following)
            moved, ends = following - ends, following
            answer[places] = ends
            stderrs = self._stderrs(ends)
            going = np.abs(moved) > _CLOSE * stderrs
            if not going.any():
                break
            places, numbers, worth = places[going], numbers[going], worth[going]
            ends, moved, stderrs = ends[going], moved[going], stderrs[going]
            least, most, gaps = least[going], most[going], gaps[going]
            before, gaps = gaps, np.clip(self.scores(numbers, ends) - worth, -_FAR, _FAR)
            least, most = np.where(gaps > 0, ends, least), np.where(gaps > 0, most, ends)
            change = gaps - before
            has_slope = np.abs(change) > _NEAR**2
            step = gaps * np.where(has_slope, -moved / np.where(has_slope, change, 1.0), stderrs)
        return answer[: len(estimates)], answer[len(estimates) :]

    def scores(self, supports: Floats, holders: Floats) -> Floats:
        """Normal scores of more than `supports`, each a half above a whole number.

        `holders` is how many reports hold the value.
        """
        m, p, n, q = self._binomials(holders)
        x = np.clip(supports, _NEAR, m + n - _NEAR)
        # The tilt at which x is the mean: the positive root of a quadratic equation.
        odds, other_odds = p / (1 - p), q / (1 - q)
        square = odds * other_odds * (m + n - x)
        line = m * odds + n * other_odds - x * (odds + other_odds)
        root = np.sqrt(line**2 + 4 * square * x)
        tilt = np.where(line > 0, 2 * x / (np.abs(line) + root), (root - line) / (2 * square))
        tilted = p * tilt / (1 - p + p * tilt)
        other_up = q * tilt / (1 - q + q * tilt)
        variance = m * tilted * (1 - tilted) + n * other_up * (1 - other_up)
        exponent = np.log(tilt)
        deviance = exponent * x - m * np.log1p(p * (tilt - 1))
        deviance -= n * np.log1p(q * (tilt - 1))
        score = np.sign(exponent) * np.sqrt(np.maximum(2 * deviance, 0.0))
        is_far = np.abs(score) > _NEAR
        safe = np.where(is_far, score, 1.0)
        ratio = np.where(is_far, 2 * np.sinh(exponent / 2) * np.sqrt(variance) / safe, 1.0)
        answer: Floats = score + np.log(ratio) / safe
        answer = np.where(supports <= 0, -np.inf, answer)
        return np.where(supports >= m + n, np.inf, answer)

    def _stderrs(self, holders: Floats) -> Floats:
        m, p, n, q = self._binomials(holders)
        return np.sqrt(m * p * (1 - p) + n * q * (1 - q)) / (self.p - self.q)

    def _binomials(self, holders: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Numbers and chances of two binomial numbers whose sum supports the value."""
        m, p = holders, np.full_like(holders, self.p)
        n, q = self.reports - holders, np.full_like(holders, self.q)
        if self.sampled:
            p = self.q + holders / self.reports * (self.p - self.q)
            m, n = np.full_like(holders, float(self.reports)), np.zeros_like(holders)
        if self.dummies:
            # The binomial number with the mean and variance of both sums.
            mean = n * q + self.dummies * self.share
            q = (n * q**2 + self.dummies * self.share**2) / mean
            n = mean / q
        return m, p, n, q
