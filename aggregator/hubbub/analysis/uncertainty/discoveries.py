"""Discoveries: which of many estimates stand out, at a rate of false ones over all of them."""

from typing import Final

import numpy as np
from scipy.special import ndtr

from hubbub.analysis.arrays import Floats, Mask
from hubbub.errors import BadParameter

FALSE_DISCOVERY_RATE: Final = 0.05
"""Of what stands out from zero, or has changed, the share that does not, at most on average."""

# Standard errors above a cut; wider smooths over a density that rises to the cut.
_NEAR_CUT: Final = 2.0


def p_values(scores: Floats) -> Floats:
    """Of scores (in standard errors), for zero against above zero: one-sided, normal."""
    answer: Floats = ndtr(-scores)
    return answer


def discoveries(p_values: Floats, rate: float = FALSE_DISCOVERY_RATE) -> Mask:
    """Which of these stand out at this false discovery rate, in (0, 1), over all that are given."""
    mask: Mask = p_values <= critical(p_values, rate)
    return mask


def stand_out(p_values: Floats, rate: float = FALSE_DISCOVERY_RATE) -> Mask:
    """Which of these stand out at this false discovery rate (Benjamini and Hochberg 1995)."""
    check_rate(rate)
    mask: Mask = p_values <= _step_up(p_values, rate)
    return mask


def check_rate(rate: float) -> None:
    """A false discovery rate must be in (0, 1). Raises BadParameter."""
    if not 0 < rate < 1:
        raise BadParameter(f"false discovery rate {rate} is outside (0, 1)")


def critical(p_values: Floats, rate: float = FALSE_DISCOVERY_RATE) -> float:
    """The level up to which p-values stand out at this false discovery rate; below 0 if none does.

    Benjamini and Hochberg's procedure (1995), or its adaptive form where that finds more: a first
    pass counts what is probably nothing, the second spends the whole rate on those (Benjamini,
    Krieger and Yekutieli 2006, definition 6). The level never passes the rate itself, so that a
    value that nobody holds stands out with that chance at most, beside however many sure ones.
    """
    check_rate(rate)
    first = _step_up(p_values, rate / (1 + rate))
    nothing = max(int((p_values > first).sum()), 1)
    adaptive = _step_up(p_values, rate / (1 + rate) * len(p_values) / nothing)
    return min(max(_step_up(p_values, rate), adaptive), rate)


def selection_bias(gaps: Floats, stderrs: Floats) -> tuple[float, float]:
    """How much too high the sum of estimates is that were selected by their cuts; its variance.

    Args:
        gaps: how far above its cut each selected estimate is.
        stderrs: of an estimate whose truth lies at the cut.

    Of a normal estimate x of t, used only above c, the mean of x - t is its variance times the
    density of x at c (Stein 1981). So the sum over all estimates, selected or not, needs only how
    densely they lie just above the cuts: a boundary kernel, linear over `_NEAR_CUT` standard
    errors, whose variance with that of the estimates is at most 8 / `_NEAR_CUT`^2 more each.
    """
    places = gaps / (_NEAR_CUT * stderrs)
    near = places < 1
    bias = float((stderrs * (4 - 6 * places))[near].sum()) / _NEAR_CUT
    return max(bias, 0.0), 8 / _NEAR_CUT**2 * float((stderrs[near] ** 2).sum())


def _step_up(p_values: Floats, rate: float) -> float:
    """Benjamini and Hochberg (1995)."""
    levels = rate * np.arange(1, len(p_values) + 1) / max(len(p_values), 1)
    below = np.nonzero(np.sort(p_values) <= levels)[0]
    return float(levels[below[-1]]) if len(below) else -1.0
