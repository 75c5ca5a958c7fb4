"""Discoveries: which of many estimates are significant, at a false discovery rate over all."""

from typing import Final

import numpy as np

from hubbub.analysis.arrays import Floats, Mask
from hubbub.errors import BadParameter

FALSE_DISCOVERY_RATE: Final = 0.05
"""Of what stands out from zero, or has changed, the share that does not, at most on average."""

# Standard errors above a cut; wider smooths over a density that rises to the cut.
_NEAR_CUT: Final = 2.0


def discoveries(p_values: Floats, rate: float = FALSE_DISCOVERY_RATE) -> Mask:
    """Which p-values are significant at this false discovery rate, by `critical`."""
    return p_values <= critical(p_values, rate)


def stand_out(p_values: Floats, rate: float = FALSE_DISCOVERY_RATE) -> Mask:
    """Which p-values are significant at this false discovery rate (Benjamini and Hochberg 1995)."""
    check_rate(rate)
    return p_values <= _step_up(p_values, rate)


def check_rate(rate: float) -> None:
    """Raises BadParameter unless the false discovery rate is in (0, 1)."""
    if not 0 < rate < 1:
        raise BadParameter(f"false discovery rate {rate} is outside (0, 1)")


def critical(p_values: Floats, rate: float = FALSE_DISCOVERY_RATE) -> float:
    """Largest significant p-value at this false discovery rate; below 0 if none is.

    Benjamini and Hochberg's procedure (1995), or its adaptive form if that finds more: a first pass
    counts the probable nulls, a second spends the whole rate on those (Benjamini, Krieger and
    Yekutieli 2006, definition 6). The level is at most the rate itself, so that a value that nobody
    holds is significant with at most that probability, beside any number of certain ones.
    """
    check_rate(rate)
    first = _step_up(p_values, rate / (1 + rate))
    nothing = max(int((p_values > first).sum()), 1)
    adaptive = _step_up(p_values, rate / (1 + rate) * len(p_values) / nothing)
    return min(max(_step_up(p_values, rate), adaptive), rate)


def selection_bias(gaps: Floats, stderrs: Floats) -> tuple[float, float]:
    """Upward bias of the sum of estimates that were selected by their cuts, and its variance.

    `gaps` are the distances of selected estimates above their cuts, `stderrs` those of estimates
    whose truth lies at the cut. For a normal estimate x of t, used only above c, the mean of x - t
    is its variance times the density of x at c (Stein 1981). So only the density just above the
    cuts is needed: a boundary kernel, linear over `_NEAR_CUT` standard errors, which adds at most 8
    / `_NEAR_CUT`^2 of each estimate's variance.
    """
    places = gaps / (_NEAR_CUT * stderrs)
    is_near = places < 1
    bias = float((stderrs * (4 - 6 * places))[is_near].sum()) / _NEAR_CUT
    return max(bias, 0.0), 8 / _NEAR_CUT**2 * float((stderrs[is_near] ** 2).sum())


def _step_up(p_values: Floats, rate: float) -> float:
    """Significance level of Benjamini and Hochberg (1995); below 0 if nothing is significant."""
    levels = rate * np.arange(1, len(p_values) + 1) / max(len(p_values), 1)
    passing = np.nonzero(np.sort(p_values) <= levels)[0]
    return float(levels[passing[-1]]) if len(passing) else -1.0
