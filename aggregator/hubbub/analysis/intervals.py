"""Intervals and detections: how far an estimate may be off, and whether it stands out from zero."""

from math import erfc, sqrt
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

from hubbub.errors import BadParameter

__all__ = [
    "LEAST_CONFIDENCE",
    "MOST_CONFIDENCE",
    "Floats",
    "Mask",
    "critical",
    "discoveries",
    "interval",
    "p_values",
    "selected",
    "selected_interval",
]

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

LEAST_CONFIDENCE: Final = 1e-6
MOST_CONFIDENCE: Final = 1 - 1e-9
"""Past it a float's own steps would be what the interval is made of; at 1 it has no end."""

_NORMAL: Final = NormalDist()
# Of a table of intervals, in standard errors: its reach above the cut, and its step. Past the
# reach, having been selected no longer says anything: the interval is the plain one.
_REACH: Final = 8.0
_STEP: Final = 0.02
# A level of 1 would have no score; all p-values that are found are below this one.
_ALL: Final = 1 - 1e-9


def interval(estimates: Floats, stderrs: Floats, confidence: float = 0.95) -> tuple[Floats, Floats]:
    """Two-sided intervals at this confidence: lows and highs, in the estimates' unit.

    An estimate adds up thousands of independent reports, so the normal law holds (central limit).
    """
    reach = _reach(confidence) * stderrs
    return estimates - reach, estimates + reach


def p_values(scores: Floats) -> Floats:
    """Of scores (in standard errors), for zero against above zero: one-sided, normal."""
    return np.array([erfc(score / sqrt(2)) / 2 for score in scores.tolist()])


def discoveries(p_values: Floats, rate: float = 0.05) -> Mask:
    """Which of these stand out at this false discovery rate, in (0, 1), over all that are given."""
    found: Mask = p_values <= critical(p_values, rate)
    return found


def critical(p_values: Floats, rate: float = 0.05) -> float:
    """The level up to which p-values stand out at this false discovery rate; below 0 if none does.

    Benjamini and Hochberg's procedure in its adaptive form: a first pass tells how many are
    surely nothing, the second spends the whole rate on those (Benjamini, Krieger and Yekutieli
    2006, definition 6).
    """
    if not 0 < rate < 1:
        raise BadParameter(f"false discovery rate {rate} is outside (0, 1)")
    first = _step_up(p_values, rate / (1 + rate))
    nothing = int((p_values > first).sum())
    if nothing in {0, len(p_values)}:
        return first
    return _step_up(p_values, rate / (1 + rate) * len(p_values) / nothing)


def selected_interval(
    scores: Floats, cut: float, confidence: float = 0.95
) -> tuple[Floats, Floats]:
    """Intervals for what is not below zero and is shown only because its score is above `cut`.

    scores: estimates in standard errors, all >= cut. Answers lows and highs in the same unit.

    Whoever looks only at what stood out sees estimates that chance has pushed up. These intervals
    hold the truth as often as they say among the selected: they turn the shortest acceptance
    regions of the normal law above `cut` (Weinstein, Fithian and Benjamini 2013, section 3).
    """
    plain = _reach(confidence)
    truths = np.arange(0, max(cut, 0) + _REACH, _STEP)
    lowest, highest = np.empty_like(truths), np.empty_like(truths)
    for i, truth in enumerate(truths.tolist()):
        selected = _NORMAL.cdf(truth - cut)
        reach = _NORMAL.inv_cdf((1 + confidence * selected) / 2)
        if truth - reach >= cut:
            lowest[i], highest[i] = truth - reach, truth + reach
        else:
            above = max((1 - confidence) * selected, 1e-300)
            lowest[i], highest[i] = cut, truth - _NORMAL.inv_cdf(above)
    edge = int(np.count_nonzero(lowest <= cut)) - 1  # the largest truth seen right at the cut
    lows = np.interp(scores, highest, truths)
    highs = np.interp(scores, lowest[edge:], truths[edge:])
    far = scores > lowest[-1]
    return np.where(far, scores - plain, lows), np.where(far, scores + plain, highs)


def selected(
    estimates: Floats, stderrs: Floats, p_values: Floats, level: float, confidence: float
) -> tuple[Floats, Floats]:
    """Lows and highs: of what stands out at this level corrected for it, of the rest plain."""
    low, high = interval(estimates, stderrs, confidence)
    found = p_values <= level
    if found.any():
        own, cut = stderrs[found], -_NORMAL.inv_cdf(level)
        lows, highs = selected_interval(np.maximum(estimates[found] / own, cut), cut, confidence)
        low[found], high[found] = lows * own, highs * own
    return low, high


def _reach(confidence: float) -> float:
    if not LEAST_CONFIDENCE <= confidence <= MOST_CONFIDENCE:
        raise BadParameter(
            f"confidence {confidence} is outside [{LEAST_CONFIDENCE:g}, {MOST_CONFIDENCE!r}]"
        )
    return _NORMAL.inv_cdf((1 + confidence) / 2)


def _step_up(p_values: Floats, rate: float) -> float:
    """Benjamini and Hochberg (1995)."""
    levels = rate * np.arange(1, len(p_values) + 1) / max(len(p_values), 1)
    below = np.nonzero(np.sort(p_values) <= levels)[0]
    return min(float(levels[below[-1]]), _ALL) if len(below) else -1.0
