"""Intervals and detections: how far an estimate may be off, and whether it stands out from zero.

Shares are of those who reported, exactly as unsure as their coins. Whoever compares two epochs, or
draws a line through some, means the people that they are from: others report each time.

The error of an estimate is a sum over its reports whose variance is known as they come. A normal
mixture bounds all such sums at once (Robbins 1970): with a doubt d, after a variance V, at

    sqrt((V + r) (log((V + r) / r) + 2 log(1 / d)))

where r is set beforehand: here what the fewest reports have that are ever told.
Sums of thousands of coins are as good as normal, which every interval here rests on.
"""

from dataclasses import dataclass
from math import log, sqrt
from statistics import NormalDist
from typing import Final, Literal

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from hubbub.analysis.arrays import Floats, Mask
from hubbub.analysis.uncertainty.discoveries import FALSE_DISCOVERY_RATE, critical, p_values
from hubbub.query_results.confidence import MAX_CONFIDENCE, check_confidence

_NORMAL: Final = NormalDist()
# Past so many standard errors above a cut, having been selected says nothing any more; a bound
# further away than the farthest is as good as none.
_NEAR: Final = 5.0
_FARTHEST: Final = 40.0
_HALVINGS: Final = 30
# Each takes most of what is left off an end that its tail has too low.
_ROUNDS: Final = 4
# Of an upper end's doubt, what is left to a marked value's however few are marked. Measured: with a
# quarter 95% of marked strings' intervals hold (tests/statistics/test_decode.py); less is wider.
_LEFT: Final = 1 / 4
# Of a low's doubt over a list, what values may spend that are too far below to be picked among.
_APART: Final = 1 / 10


def interval(estimates: Floats, stderrs: Floats, confidence: float = 0.95) -> tuple[Floats, Floats]:
    """Two-sided intervals at this confidence: lows and highs, in the estimates' unit.

    An estimate adds up thousands of independent reports, so the normal law holds (central limit).
    """
    reach = reach_of(confidence) * stderrs
    return estimates - reach, estimates + reach


@dataclass(frozen=True, slots=True)
class Tail:
    """Where chance goes further than the normal law: what its scores are worth, upwards.

    scores: an estimate of what nobody holds, in its standard errors, rising. worth: the normal
        score that is as unlikely, rising. down: the same downwards, where it goes further than the
        normal law too.
    """

    scores: Floats
    worth: Floats
    down: "Tail | None" = None

    def of(self, scores: Floats) -> Floats:
        """What these scores are worth; past the end as much more as they are more."""
        inside = np.interp(scores, self.scores, self.worth)
        answer: Floats = inside + np.maximum(scores - self.scores[-1], 0.0)
        return np.minimum(answer, scores)

    def excess(self, worth: Floats) -> Floats:
        """How much further the scores are that are worth this much; past the end no more."""
        answer: Floats = np.interp(worth, self.worth, self.scores - self.worth)
        return np.maximum(answer, 0.0)

    def reach(self, worth: Floats, spread: "Floats | float" = 1.0) -> Floats:
        """The scores that are worth this much.

        spread: the standard error of what some hold, in that of what nobody holds, at least 1.
            Skewness falls as the standard error rises, and with it how much further scores go.
        """
        return worth + self.excess(worth) / spread


def ranked(
    estimates: Floats,
    absent: Floats,
    growth: Floats,
    reports: float,
    confidence: float = 0.95,
    *,
    bend: float = 0.0,
    step: float = 0.0,
    tail: Tail | None = None,
    rate: float = FALSE_DISCOVERY_RATE,
) -> tuple[Floats, Floats, Mask]:
    """Lows, highs and detections of a whole list, right also for values picked for their size.

    absent: standard errors of what nobody holds, above 0. growth: how much variance a report adds
        to its own value's estimate; bend: by how much less with each before it. step: what a report
        more makes of it: the upper end is half of that further (Yates 1934). reports: the most that
        any can hold.

    Whoever reads the first rows of a list reads estimates that chance has pushed up. The low of the
    r-th row is that of a confidence r/m as doubtful, so that of the first k, whatever k, as many
    intervals hold the truth as they say (Benjamini and Yekutieli 2005, of lower bounds; an upper
    one is only safer for having been picked). m are the rows that chance may have put there, not
    those too far below (after Zrnic and Fithian 2024). Ends are where the truth's own error, not
    the estimate's, would reach the estimate (Wilson 1927), and within what can be.

    Of what stands out the low is as sure among what passes the same cut (Weinstein, Fithian and
    Benjamini 2013), and one report at least of what stands out at the interval's own doubt too: of
    the truth 0 an interval may spend all of its doubt on its lower end (Weinstein and Yekutieli
    2020). Its upper end is that of a confidence as much more doubtful as few stand out, down to a
    quarter: false marks spend most of the doubt.

    What stands out passes `critical`, by the chance that what nobody holds goes so far.
    """
    plain = reach_of(confidence)
    inside = np.clip(estimates, 0.0, reports)
    scores, spread = estimates / absent, _spread(inside, absent, growth, bend)
    near = pushed_up(np.full_like(estimates, _APART / max(len(estimates), 1)), confidence)
    reach = spread * (near if tail is None else tail.reach(near, spread))
    places = _places(scores, reach)
    if np.ptp(absent) > 0:
        places = np.minimum(places, _places(estimates, absent * reach))
    surely = pushed_up(places, confidence)
    # A mark is against what nobody holds, and judged by the law of that.
    chances = p_values(scores if tail is None else tail.of(scores))
    level = critical(chances, rate)
    detected: Mask = chances <= level
    upwards = np.full_like(estimates, plain)
    if detected.any():
        cut = float(-ndtri(level)) if tail is None else tail.reach(-ndtri(np.array([level])))
        gaps = np.maximum(scores[detected] - cut, 0.0) / spread[detected]
        surely[detected] = np.maximum(surely[detected], _picked(gaps, plain))
        upwards[detected] = pushed_up(max(float(detected.mean()), _LEFT), confidence)
    low = np.clip(_low(inside, (absent, growth, bend), surely, tail), 0.0, reports)
    high = np.clip(_high(inside, (absent, growth, bend), upwards, tail) + step / 2, 0.0, reports)
    # An interval of 95% cannot leave out 0 for a mark of which 20% may be false.
    sure = detected & (chances <= critical(chances, min(rate, 1 - confidence)))
    low[sure] = np.maximum(low[sure], np.minimum(1.0, inside[sure]))
    return low, high, detected


def held_between(
    columns: "tuple[Floats, Floats, Floats]",
    bend: float,
    reports: float,
    *,
    down: "Floats | float",
    up: "Floats | float",
    step: float = 0.0,
    tail: Tail | None = None,
) -> tuple[Floats, Floats]:
    """Of some values (estimates, absent, growth): lows and highs, so many standard errors away.

    Whatever goes in steps, both ends are half of one further.
    """
    estimates, absent, growth = columns
    inside = np.clip(estimates, 0.0, reports)
    far = np.broadcast_to(down, inside.shape)
    low = np.clip(_low(inside, (absent, growth, bend), far, tail) - step / 2, 0.0, reports)
    above = np.broadcast_to(up, inside.shape)
    high = _high(inside, (absent, growth, bend), above, tail)
    return low, np.clip(high + step / 2, 0.0, reports)


def pushed_up(places: "Floats | float", confidence: float = 0.95, *, part: float = 1.0) -> Floats:
    """How many standard errors below its estimate a low lies, by its place in a list, in (0, 1].

    As in `ranked`. part: of the variance of what the list is ordered by, how much is the
        estimate's, in (0, 1]. Only that part of its error is pushed up.
    """
    plain = reach_of(confidence)
    pushed, even = -ndtri(places / 2 * (1 - confidence)), -ndtri(places / 2)
    own, rest = np.sqrt(part), np.sqrt(1 - part) * plain
    answer: Floats = own * even + np.hypot(own * (pushed - even), rest)
    return answer


def _places(estimates: Floats, reach: Floats) -> Floats:
    """The place of each among those that chance may have put there, in (0, 1].

    reach: how far up chance takes each. Values further below than that are not picked among.
    """
    ordered = np.sort(estimates)
    rivals = len(ordered) - np.searchsorted(np.sort(estimates + reach), estimates)
    ranks = len(ordered) - np.searchsorted(ordered, estimates, side="right") + 1
    answer: Floats = ranks / np.maximum(rivals, ranks)
    return answer


def _picked(gaps: Floats, plain: float) -> Floats:
    """How far below its score a bound must lie that is as doubtful among those above the cut.

    gaps: how far above the cut scores are, in their own standard errors.
    """
    reach = np.full_like(gaps, plain)
    near = gaps < _NEAR
    own, doubt = gaps[near], float(log_ndtr(-plain))
    # Of truths so far below, the chance of a score so large, among those that pass the cut.
    few, most = np.full_like(own, plain), np.full_like(own, _FARTHEST)
    for _ in range(_HALVINGS):
        middle = (few + most) / 2
        likely = log_ndtr(-middle) - log_ndtr(own - middle) > doubt
        few, most = np.where(likely, middle, few), np.where(likely, most, middle)
    reach[near] = few
    return reach


def _low(
    estimates: Floats, error: tuple[Floats, Floats, float], worth: Floats, tail: Tail | None
) -> Floats:
    """The least truth whose own chance goes as far up as the estimate.

    error: absent, growth, bend. worth: the normal score that is as doubtful.
    """
    if tail is None:
        return end_of(estimates, *error, -worth)
    # From below: that of what nobody holds goes furthest, so that every round's end is low enough.
    spread, excess = np.ones_like(estimates), tail.excess(worth)
    for _ in range(_ROUNDS):
        low = end_of(estimates, *error, -(worth + excess / spread))
        spread = _spread(np.maximum(low, 0.0), *error)
    return low


def _high(
    estimates: Floats, error: tuple[Floats, Floats, float], worth: Floats, tail: Tail | None
) -> Floats:
    """The largest truth whose own chance goes as far down as the estimate."""
    if tail is None or not tail.down:
        return end_of(estimates, *error, worth)
    # What fewer hold has the longer tail beside its error, so the end is high enough.
    spread, excess = _spread(np.maximum(estimates, 0.0), *error), tail.down.excess(worth)
    return end_of(estimates, *error, worth + excess / spread)


def _spread(counts: Floats, absent: Floats, growth: Floats, bend: float) -> Floats:
    """The standard error of what so many hold, in that of what nobody holds, at least 1."""
    more = np.maximum(growth * counts - bend * counts**2, 0.0)
    answer: Floats = np.sqrt(1 + more / absent**2)
    return answer


def end_of(
    estimates: Floats, absent: Floats, growth: Floats, bend: float, reach: "Floats | float"
) -> Floats:
    """The truth t so many of its own standard errors away, upwards or (below 0) downwards.

    It solves (t - estimate)^2 = reach^2 (absent^2 + growth t - bend t^2).
    """
    square = reach**2
    first, middle = 1 + square * bend, 2 * estimates + square * growth
    inside = 4 * (growth * estimates + first * absent**2 - bend * estimates**2) + square * growth**2
    answer: Floats = (middle + reach * np.sqrt(np.maximum(inside, 0.0))) / (2 * first)
    return answer


def reach_of(confidence: float) -> float:
    """How many standard errors either end of an interval is away. Raises BadParameter."""
    check_confidence(confidence)
    return _NORMAL.inv_cdf((1 + confidence) / 2)


Whose = Literal["reporters", "population"]
REPORTERS: Final[Whose] = "reporters"
POPULATION: Final[Whose] = "population"


def sampled(shares: Floats, people: float) -> Floats:
    """The variance of these shares for having been drawn: s (1 - s) / n.

    shares: in [0, 1], or estimates of that. people: how many reported; where some may have done so
        r times, an r-th of the reports, which is the fewest.

    Of places in [0, 1], the most that a mean at that place can vary (Bhatia and Davis 2000).
    Whoever is in two such draws makes their difference surer than is said.
    """
    inside = np.clip(shares, 0.0, 1.0)
    answer: Floats = inside * (1 - inside) / max(people, 1)
    return answer


# Places of a list whose intervals are told at most a millionth as doubtful.
_PLACES: Final = 1e-6


def anytime_confidence(confidence: float, growths: tuple[float, float], rows: int) -> float:
    """The confidence whose plain interval is as long as one that holds at every look.

    growths: between which V / r is, by now. rows: of the list, whose first of m has an m-th of the
        doubt.

    Raises:
        BadParameter: a confidence that is none.
    """
    reach_of(confidence)
    doubt, least = 1 - confidence, 1.0
    shares = [max(_PLACES, 1 / rows) ** (step / 8) for step in range(9)] if rows > 1 else [1.0]
    for share in shares:
        reach = max(_reach(doubt * share, growth) for growth in growths)
        least = min(least, 2 * float(ndtr(-reach)) / share)
    return min(1 - least, MAX_CONFIDENCE)


def _reach(doubt: float, growth: float) -> float:
    """How many standard errors away; as a function of growth it falls, and then rises."""
    return sqrt((1 + 1 / growth) * (log(1 + growth) + 2 * log(1 / doubt)))
