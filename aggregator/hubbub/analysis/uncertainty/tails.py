"""Exact laws of counts, where the normal law is too rough: tails of absent values, interval ends.

With few reports, or a large epsilon, a value that nobody holds has only a few supports; a sketch's
collisions with frequent strings affect few functions. Both have a longer upper tail than the normal
law, which matters in a list of many values.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Final

import numpy as np
from scipy.special import bdtrc, expit, logit, ndtri

from hubbub.analysis.arrays import Floats
from hubbub.analysis.binomials import likely, pmf
from hubbub.analysis.uncertainty.intervals import Tail
from hubbub.mechanisms import Totals
from hubbub.mechanisms.pure_protocols import Pure

# So near the mean, a score is the normal law's.
_NEAR: Final = 1e-3
# Scores past this are told from each other by their order alone.
_MAX_SCORE: Final = 40.0
# Ends are so near, in standard errors. Usually that takes four rounds; without lies some more.
_CLOSE: Final = 2e-3
_MAX_ROUNDS: Final = 16
# Measured: ends are then within .008 standard errors, where `scores` are off by more, and within
# 1e-5 for dozens of supports; the chance of a support is further from 0 and 1 than this logit.
_NEWTON_STEPS: Final = 2
_MAX_LOGIT: Final = 25.0
_HALF_LESS_AND_MORE: Final = np.array([-0.5, 0.5])[:, None, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CountLaw:
    """The law of a value's supports, whatever number of reports holds the value.

    If t of n reports hold a value, the number that supports it is a sum of two binomial numbers.
    Its tail is a saddlepoint approximation for whole numbers (the normal score r*): a tail of .025
    is off by less than a tenth of it where the variance is above 1, and by less than .02 of it
    above 10. Source: Barndorff-Nielsen (1986); Daniels (1987), section 6.

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
        """The least and the largest truth whose tails reach the estimates.

        `down` and `up` are the normal scores of the error rates of either end. A truth is in [0,
        reports]; of a sampled law it may be any with which a support is possible, and further away
        by as much as the dummies' error.
        """
        if self.sampled and not self.dummies:
            [low], [high] = equal_chance_ends([self], estimates[None], down, up)
            return low, high
        supports = estimates * (self.p - self.q) + self.reports * self.q
        supports += self.dummies * self.share
        numbers = np.concatenate([supports - 0.5, supports + 0.5])
        worth = np.empty_like(numbers)
        worth[: len(supports)], worth[len(supports) :] = down, np.negative(up)
        # A secant's steps, kept between truths whose tails are too short and too long.
        first, last = 0.0, float(self.reports)
        if self.sampled:
            # The dummies' error is less than their number.
            first -= (self.reports * self.q + self.dummies) / (self.p - self.q)
            last += (self.reports * (1 - self.p) + self.dummies) / (self.p - self.q)
        least, most = np.full_like(numbers, first), np.full_like(numbers, last)
        clipped = np.minimum(np.maximum(estimates, 0.0), self.reports)
        ends = np.concatenate([clipped, clipped])
        step, gaps = -worth * self._stderrs(ends), np.full_like(numbers, np.nan)
        # Half of the rows of a long list have a low end of 0 at once: only others go on.
        answer, places = ends.copy(), np.arange(ends.size)
        for _ in range(_MAX_ROUNDS):
            following = np.minimum(np.maximum(ends + step, first), last)
            is_outside = (following < least) | (following > most)
            following = np.where(is_outside, (least + most) / 2, following)
            moved, ends = following - ends, following
            answer[places] = ends
            stderrs = self._stderrs(ends)
            going = np.abs(moved) > _CLOSE * stderrs
            if not going.any():
                break
            if not going.all():
                places, numbers, worth = places[going], numbers[going], worth[going]
                ends, moved, stderrs = ends[going], moved[going], stderrs[going]
                least, most, gaps = least[going], most[going], gaps[going]
            before, gaps = gaps, self.scores(numbers, ends) - worth
            gaps = np.minimum(np.maximum(gaps, -_MAX_SCORE), _MAX_SCORE)
            least, most = np.where(gaps > 0, ends, least), np.where(gaps > 0, most, ends)
            change = gaps - before
            has_slope = np.abs(change) > _NEAR**2
            step = gaps * np.where(has_slope, -moved / np.where(has_slope, change, 1.0), stderrs)
        return answer[: len(estimates)], answer[len(estimates) :]

    def scores(self, supports: Floats, holders: Floats) -> Floats:
        """Normal scores of more than `supports`, each a half above a whole number.

        `holders` is how many reports hold the value. A sampled law is moved, without a change of
        its shape, to the mean of holders with which a support has no possible chance.
        """
        m, p, n, q = self._binomials(holders)
        if self.sampled:
            mean = self.reports * self.q + holders * (self.p - self.q)
            supports = supports - (mean - m * p)
        x = np.minimum(np.maximum(supports, _NEAR), m + n - _NEAR)
        # The tilt at which x is the mean: the positive root of a quadratic equation.
        odds, other_odds = p / (1 - p), q / (1 - q)
        square = odds * other_odds * (m + n - x)
        line = m * odds + n * other_odds - x * (odds + other_odds)
        total = np.abs(line) + np.sqrt(line**2 + 4 * square * x)
        tilt = np.where(line > 0, 2 * x / total, total / (2 * square))
        growth, other_growth = p * (tilt - 1), q * (tilt - 1)
        variance = m * (p * (1 - p)) / (1 + growth) ** 2
        variance += n * (q * (1 - q)) / (1 + other_growth) ** 2
        exponent = np.log(tilt)
        deviance = exponent * x - m * np.log1p(growth) - n * np.log1p(other_growth)
        score = np.copysign(np.sqrt(np.maximum(2 * deviance, 0.0)), exponent)
        is_far = np.abs(score) > _NEAR
        safe = np.where(is_far, score, 1.0)
        ratio = np.where(is_far, 2 * np.sinh(exponent / 2) * np.sqrt(tilt * variance) / safe, 1.0)
        answer: Floats = score + np.log(ratio) / safe
        answer = np.where(supports <= 0, -np.inf, answer)
        return np.where(supports >= m + n, np.inf, answer)

    def _stderrs(self, holders: Floats) -> Floats:
        p, q, reports = self.p, self.q, self.reports
        if self.sampled:
            chances = self._sampled_chances(holders)
            variance = reports * chances * (1 - chances)
        else:
            variance = holders * (p * (1 - p)) + (reports - holders) * (q * (1 - q))
        variance += self.dummies * self.share * (1 - self.share)
        return np.sqrt(variance) / (p - q)

    def _sampled_chances(self, holders: Floats) -> Floats:
        """Chances of a support, of which none is outside the possible ones."""
        chances = self.q + holders / self.reports * (self.p - self.q)
        return np.clip(chances, _NEAR * self.q, 1 - _NEAR * (1 - self.p))

    def _binomials(
        self, holders: Floats
    ) -> tuple[Floats, "Floats | float", Floats, "Floats | float"]:
        """Numbers and chances of two binomial numbers whose sum supports the value."""
        p: Floats | float
        q: Floats | float
        m, p, n, q = holders, self.p, self.reports - holders, self.q
        if self.sampled:
            p = self._sampled_chances(holders)
            m, n = np.full_like(holders, float(self.reports)), np.zeros_like(holders)
        if self.dummies:
            # The binomial number with the mean and variance of both sums.
            mean = n * q + self.dummies * self.share
            q = (n * q**2 + self.dummies * self.share**2) / mean
            n = mean / q
        return m, p, n, q


def equal_chance_ends(
    laws: Sequence[CountLaw], estimates: Floats, down: "Floats | float", up: "Floats | float"
) -> tuple[Floats, Floats]:
    """As `between` of sampled laws without dummies, at once; shapes (laws, values).

    Every support then has the same chance, so that their number is binomial. The chance at which
    `scores` are these scores is found from Wilson's ends (1927), corrected for skewness, by
    Newton's steps in the logit; the correction of r* hardly adds to the slope.
    """
    # Repeated once here, since numpy takes twice as long where it repeats them in every step.
    columns = np.array([(law.p, law.q, law.reports) for law in laws]).T[..., None]
    p, q, n = columns + np.zeros_like(estimates)
    slope = p - q
    supports, n = estimates * slope + n * q + _HALF_LESS_AND_MORE, np.array([n, n])
    worth = np.empty_like(supports)
    worth[0], worth[1] = down, np.negative(up)
    x = np.minimum(np.maximum(supports, _NEAR), n - _NEAR)
    others, square = n - x, worth**2
    spread = np.sqrt(x * others / n)
    # Less than the number of supports, or of others, which is skewed.
    shift, room = (others - x) / n * (square - 1) / 6, np.minimum(x, others)
    place = x - shift * room / (room + np.abs(shift))
    middle = place + square / 2 - worth * np.sqrt(place * (n - place) / n + square / 4)
    middle /= n + square
    share_logits, logits = logit(x / n), logit(np.minimum(np.maximum(middle, 0.0), 1.0))
    constant = x * share_logits + n * np.log1p(-x / n)
    # At the mean both sides of a ratio would vanish.
    min_gap, twice_spread = _NEAR / spread, 2 * spread
    for _ in range(_NEWTON_STEPS):
        gaps = share_logits - np.minimum(np.maximum(logits, -_MAX_LOGIT), _MAX_LOGIT)
        gaps = np.copysign(np.maximum(np.abs(gaps), min_gap), gaps)
        logits = share_logits - gaps
        odds = np.exp(logits)
        deviance = constant - x * logits + n * np.log1p(odds)
        score = np.copysign(np.sqrt(np.maximum(2 * deviance, _NEAR**2 / 2)), gaps)
        ratio = np.sinh(gaps / 2) * twice_spread / score
        beyond = score + np.log(ratio) / score - worth
        logits = logits + beyond * score / (x - n * odds / (1 + odds))
    chances = expit(logits)
    chances[supports <= 0], chances[supports >= n] = 0.0, 1.0
    low, high = n * ((chances - q) / slope)
    return low, high


def equal_chance_scores(laws: Sequence[CountLaw], estimates: Floats) -> Floats:
    """Normal scores, at least 0, of two counts of supports that have one chance, given their sum.

    The score r* of the hypergeometric law, without a correction for whole numbers: as of mid-p. The
    laws have one p and q; shape (2, values). Source: Pierce and Peters (1992).
    """
    n = np.array([[law.reports] for law in laws], dtype=np.float64)
    supports = n * laws[0].q + estimates * (laws[0].p - laws[0].q)
    # None and all are as improbable as by mid-p, up to a third more.
    supports = np.minimum(np.maximum(supports, 0.25), n - 0.25)
    others, total = n - supports, n.sum(axis=0)
    chances = supports.sum(axis=0) / total
    logits, ends = logit(supports / n), logit(chances)
    deviance = supports * (logits - ends) + n * np.log((others / n) / (1 - chances))
    score = np.sqrt(np.maximum(2 * deviance.sum(axis=0), _NEAR**2))
    spread = np.sqrt((supports * others / n).prod(axis=0) / (total * chances * (1 - chances)))
    apart = np.maximum(np.abs(logits[1] - logits[0]) * spread, _NEAR**2)
    is_far = score > 10 * _NEAR
    answer: Floats = score + np.log(np.where(is_far, apart / score, 1.0)) / score
    return np.maximum(answer, 0.0)


# From this variance on, of the supports of what nobody holds, a normal score of 5 is worth 4.97.
_MANY: Final = 10_000
# Scores past this are told from each other by their order alone.
_FAR: Final = 8.0
_STEPS: Final = 20
# Of the sum of outputs: points of its law, and how many are a standard error; that of what makes it
# smooth; and the excess kurtosis of the sum from which on it counts (at .02 an end is off by .001).
_POINTS: Final = 512
_PER_SCORE: Final = 16
_BLUR: Final = 0.06
_PEAKED: Final = 0.02
# Below it a chance is the transform's own rounding.
_MIN_CHANCE: Final = 1e-12


def pure_tail(channel: Pure, reports: int, totals: Totals | None = None) -> Tail | None:
    """Tail of a value that nobody holds, whose supports are binomial; None if nearly normal.

    With dummies in `totals`, supports are a sum of binomials; with noise dummies, which name a
    value, the lower tail is as long.
    """
    q = float(channel.q)
    if totals and (totals.value_law or totals.dummies):
        return _padded_tail(q, totals)
    mean, variance = reports * q, reports * q * (1 - q)
    if not 0 < variance <= _MANY:
        return None
    deviation = np.sqrt(variance)
    lowest, highest = int(mean), int(mean + (_FAR + 2) * deviation) + 12
    counts = np.arange(lowest, min(highest, reports) + 1, dtype=np.float64)
    # The chance of so many or more.
    worth = np.maximum(-ndtri(bdtrc(counts - 1, reports, q)), -_FAR)
    return _rising_tail(counts - mean, worth, deviation)


def law_of_counts(channel: Pure, totals: Totals) -> CountLaw | None:
    """Law of the supports of a value, if dummies are all known; None if nearly normal."""
    unknown = totals.value_law or totals.dummies_variance or totals.beside_variance
    p, q, share = float(channel.p), float(channel.q), 1 / max(len(totals.cells), 1)
    variance = totals.reports * q * (1 - q) + totals.dummies * share * (1 - share)
    if unknown or not 0 < variance <= _MANY or not (totals.reports and q < p < 1):
        return None
    return CountLaw(p=p, q=q, reports=totals.reports, dummies=totals.dummies, share=share)


def _padded_tail(q: float, totals: Totals) -> Tail | None:
    """Tail of the sum of supports from reports, dummies of any value, and dummies of one value."""
    share = 1 / len(totals.cells)
    law: Floats = np.array(totals.value_law or (1.0,))
    lowest = 0
    mean = float(law @ np.arange(len(law)))
    variance = float(law @ (np.arange(len(law)) - mean) ** 2)
    binomials = (totals.reports, q), (round(totals.evenly()), share)
    variance += sum(trials * chance * (1 - chance) for trials, chance in binomials)
    if not (0 < variance <= _MANY or totals.value_law):
        return None
    for trials, chance in binomials:
        numbers = likely(trials, chance, _MIN_CHANCE**3)
        law, lowest = np.convolve(law, pmf(numbers, trials, chance)), lowest + int(numbers[0])
        mean += trials * chance
    tail = _upper_tail(law, lowest, mean, sqrt(variance))
    return replace(tail, down=tail) if totals.value_law else tail


def _upper_tail(law: Floats, lowest: int, mean: float, deviation: float) -> Tail:
    """Upper tail of a law of counts that begins at `lowest`."""
    counts = lowest + np.arange(float(len(law)))
    upper = np.cumsum(law[::-1])[::-1][counts >= int(mean)]
    counts = counts[counts >= int(mean)]
    worth = -ndtri(np.clip(upper, _MIN_CHANCE**2, 1 - _MIN_CHANCE))
    return _rising_tail(counts - mean, worth, deviation)


def _rising_tail(excess: Floats, worth: Floats, deviation: float) -> Tail:
    """The tail in which counts so far above the mean have these normal scores, where they rise."""
    worth = np.maximum.accumulate(worth)
    mask = np.append(True, np.diff(worth) > 0) & (worth <= _FAR)
    mask[0] = True
    return Tail(excess[mask] / deviation, worth[mask])


def repeated_tail(
    lied: float, show_chance: float, lie: float, devices: int, repeats: int
) -> Tail | None:
    """Tail of a value that nobody holds, if each device reports `repeats` times; None if normal.

    `lied` is the probability that a device's permanent bit is set nevertheless; `show_chance` and
    `lie` are the probabilities that a report supports the value if it is set, and if it is not.
    """
    if not 0 < devices * lied * (1 - lied) <= _MANY:
        return None
    of_device = repeats * (lied * show_chance + (1 - lied) * lie)
    fresh = lied * show_chance * (1 - show_chance) + (1 - lied) * lie * (1 - lie)
    spread = repeats * fresh + lied * (1 - lied) * (repeats * (show_chance - lie)) ** 2
    mean, deviation = devices * of_device, np.sqrt(devices * spread)
    length = 1 << int(2 * (_FAR + 2) * deviation + 20 * repeats + 64).bit_length()
    lowest = int(mean)
    turn = 2j * np.pi * np.fft.rfftfreq(length)
    set_, unset = (
        np.exp(repeats * np.log1p(chance * np.expm1(turn))) for chance in (show_chance, lie)
    )
    law = np.exp(devices * np.log(lied * set_ + (1 - lied) * unset) - turn * (lowest - length // 4))
    chances = np.fft.irfft(law.conj(), length)[length // 4 :]
    upper = np.cumsum(chances[::-1])[::-1]
    counts = lowest + np.arange(float(len(upper)))
    worth = -ndtri(np.clip(upper, _MIN_CHANCE, 1 - _MIN_CHANCE))
    worth = np.where(upper > _MIN_CHANCE, worth, 2 * _FAR)
    return _rising_tail(counts - mean, worth, deviation)


def sum_tail(chances: Floats, outputs: Floats, reports: int) -> Tail | None:
    """Two-sided tail of a sum of random outputs, one per report; None if nearly normal.

    The law is that of one report, convolved by its characteristic function and smoothed a little.
    """
    deviations = outputs - chances @ outputs
    square = float(chances @ deviations**2)
    if not reports or float(chances @ deviations**4) <= _PEAKED * reports * square**2:
        return None
    turn = -2j * np.pi * np.fft.rfftfreq(_POINTS, 1 / _PER_SCORE)
    of_report = np.exp(np.outer(turn, deviations / np.sqrt(reports * square))) @ chances
    law = np.fft.irfft(of_report**reports * np.exp((turn * _BLUR) ** 2 / 2), _POINTS)
    middle = _POINTS // 2
    upper_tail, lower_tail = (
        _upper_tail(np.maximum(side, 0.0), 0, 0.0, _PER_SCORE)
        for side in (law[:middle], np.roll(law[::-1], 1)[:middle])
    )
    return replace(upper_tail, down=lower_tail)


def laplace_tail(part: float, numbers: int) -> Tail | None:
    """Two-sided tail of an error that is partly a sum of Laplace numbers; None if nearly normal.

    `part` of the variance is theirs, in (0, 1]; the rest is normal.
    """
    if 3 * part**2 / numbers <= _PEAKED:
        return None
    turn = 2 * np.pi * np.fft.rfftfreq(_POINTS, 1 / _PER_SCORE)
    of_laplace = (1 + part / numbers * turn**2 / 2) ** -numbers
    law = np.fft.irfft(of_laplace * np.exp(-(1 - part + _BLUR**2) * turn**2 / 2), _POINTS)
    tail = _upper_tail(np.maximum(law[: _POINTS // 2], 0.0), 0, 0.0, _PER_SCORE)
    return replace(tail, down=tail)


def collision_tail(bucket_counts: Floats, deviation: float) -> Tail | None:
    """Tail of a string that nobody holds, in a sketch with these bucket counts.

    `bucket_counts` has a row per function, in any unit: the string has a uniformly random bucket in
    each. `deviation` is the standard error in that unit. The law is a saddlepoint approximation,
    with a relative error of some percent: Barndorff-Nielsen (1986); Lugannani and Rice (1980).
    """
    deviations = bucket_counts - bucket_counts.mean(axis=1, keepdims=True)
    stderr = np.sqrt(np.square(deviations).mean(axis=1).sum())
    widest = np.abs(deviations).max()
    if not stderr > 0:
        return None
    scores, worth = [0.0], [0.0]
    # From a score of about .3 to the far end, by equal steps of the logarithm.
    for tilt in np.geomspace(0.3 / stderr, max(60.0 / widest, 9.0 / stderr), _STEPS).tolist():
        weight = np.exp(tilt * (deviations - deviations.max(axis=1, keepdims=True)))
        sums = weight.sum(axis=1)
        mean = (weight * deviations).sum(axis=1) / sums
        mean_square = (weight * deviations**2).sum(axis=1) / sums
        log = (np.log(sums / deviations.shape[1]) + tilt * deviations.max(axis=1)).sum()
        place, spread = mean.sum(), (mean_square - mean**2).sum()
        deep = 2 * (tilt * place - log)
        if not (deep > 0 and spread > 0):
            break
        root = np.sqrt(deep)
        score = place / deviation
        next_worth = root + np.log(tilt * np.sqrt(spread) / root) / root
        if not (score > scores[-1] and next_worth > worth[-1]):
            continue
        scores.append(score)
        worth.append(next_worth)
        if next_worth > _FAR:
            break
    return Tail(np.array(scores), np.array(worth))
