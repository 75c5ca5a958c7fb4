"""Intervals and detections: how far an estimate may be off, and whether it stands out from zero."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
from scipy.special import log_ndtr, ndtri

from hubbub.analysis.arrays import Floats, Mask
from hubbub.analysis.uncertainty.discoveries import FALSE_DISCOVERY_RATE, check_rate, paid_by
from hubbub.errors import BadParameter

MIN_CONFIDENCE: Final = 1e-6
MAX_CONFIDENCE: Final = 1 - 1e-9
"""Past it a float's own steps would be what the interval is made of; at 1 it has no end."""

_NORMAL: Final = NormalDist()
# Past so many standard errors above a cut, having been selected says nothing any more; a bound
# further away than the farthest is as good as none.
_NEAR: Final = 6.0
_FARTHEST: Final = 40.0
_HALVINGS: Final = 30


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
        score that is as unlikely, rising.
    """

    scores: Floats
    worth: Floats

    def of(self, scores: Floats) -> Floats:
        """What these scores are worth; past the end as much more as they are more."""
        inside = np.interp(scores, self.scores, self.worth)
        answer: Floats = inside + np.maximum(scores - self.scores[-1], 0.0)
        return np.minimum(answer, scores)

    def reach(self, worth: Floats) -> Floats:
        """The scores that are worth this much; past the end as much more as is asked."""
        inside = np.interp(worth, self.worth, self.scores)
        answer: Floats = inside + np.maximum(worth - self.worth[-1], 0.0)
        return np.maximum(answer, worth)


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
    r-th of m rows is that of a confidence r/m as doubtful, so that of the first k, whatever k, as
    many intervals hold the truth as they say (Benjamini and Yekutieli 2005, of lower bounds; an
    upper one is only safer for having been picked). Ends are where the truth's own error, not the
    estimate's, would reach the estimate (Wilson 1927), and within what can be.

    Of what stands out the low is as sure among what passes the same cut (Weinstein, Fithian and
    Benjamini 2013), and one report at least.

    What stands out are the first rows, as long as no low would be 0: their false discovery rate is
    half of `rate` at most (Benjamini and Hochberg 1995, by steps down: Sarkar 2002; and `paid_by`),
    and of what nobody holds each stands out once in 40 at most, whatever stands beside it.
    """
    plain = reach_of(confidence)
    check_rate(rate)
    order = np.argsort(-estimates / absent, kind="stable")
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(1, len(order) + 1)
    if np.ptp(absent) > 0:
        by_size = np.argsort(-estimates, kind="stable")
        places[by_size] = np.minimum(places[by_size], np.arange(1, len(order) + 1))
    doubt = places / max(len(order), 1)
    surely = pushed_up(doubt, confidence)
    if tail is not None:
        surely = tail.reach(surely)
    standing = pushed_up(paid_by(places), 1 - rate)
    standing = np.maximum(surely, standing if tail is None else tail.reach(standing))
    scores = estimates / absent
    detected = np.empty(len(order), dtype=np.bool_)
    detected[order] = np.logical_and.accumulate((scores > standing)[order])
    if detected.any():
        cut = float(standing[detected].min())
        picked = _picked(scores[detected], cut, (1 - confidence) / 2, tail)
        surely = surely.copy()
        surely[detected] = np.maximum(surely[detected], picked)
    inside = np.clip(estimates, 0.0, reports)
    low = np.clip(end_of(inside, absent, growth, bend, -surely), 0.0, reports)
    high = np.clip(end_of(inside, absent, growth, bend, plain) + step / 2, 0.0, reports)
    low[detected] = np.maximum(low[detected], np.minimum(1.0, inside[detected]))
    return low, high, detected


def held_between(
    found: "tuple[Floats, Floats, Floats]",
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
    estimates, absent, growth = found
    inside = np.clip(estimates, 0.0, reports)
    far = down if tail is None else tail.reach(np.broadcast_to(down, inside.shape))
    low = np.clip(end_of(inside, absent, growth, bend, -far) - step / 2, 0.0, reports)
    return low, np.clip(end_of(inside, absent, growth, bend, up) + step / 2, 0.0, reports)


def pushed_up(places: Floats, confidence: float = 0.95) -> Floats:
    """How many standard errors below its estimate a low lies, by its place in a list, in (0, 1].

    As in `ranked`.
    """
    reach_of(confidence)
    answer: Floats = -ndtri(places / 2 * (1 - confidence))
    return answer


def _picked(scores: Floats, cut: float, doubt: float, tail: Tail | None) -> Floats:
    """How far below its score a bound must lie that is as doubtful among those above the cut."""
    worth = scores if tail is None else tail.of(scores)
    least = cut if tail is None else float(tail.of(np.array([cut]))[0])
    reach = np.full_like(worth, -ndtri(doubt))
    near = worth < least + _NEAR
    own = worth[near]
    # Of truths so far below, the chance of a score so large, among those that pass the cut.
    few, most = np.full_like(own, -ndtri(doubt)), np.full_like(own, _FARTHEST)
    for _ in range(_HALVINGS):
        middle = (few + most) / 2
        likely = log_ndtr(-middle) - log_ndtr(own - middle - least) > np.log(doubt)
        few, most = np.where(likely, middle, few), np.where(likely, most, middle)
    reach[near] = few
    answer: Floats = reach * np.maximum(scores / np.maximum(worth, 1e-9), 1.0)
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


def check_confidence(confidence: float) -> None:
    """Raises BadParameter for what is no chance that an interval can have."""
    if not MIN_CONFIDENCE <= confidence <= MAX_CONFIDENCE:
        percent = confidence / 100 if 1 < confidence < 100 else 0.95  # noqa: PLR2004 percent
        raise BadParameter(
            f"confidence {confidence} is outside [{MIN_CONFIDENCE:g}, {MAX_CONFIDENCE!r}]; "
            f"{100 * percent:g}% is {percent:g}"
        )


def reach_of(confidence: float) -> float:
    """How many standard errors either end of an interval is away. Raises BadParameter."""
    check_confidence(confidence)
    return _NORMAL.inv_cdf((1 + confidence) / 2)
