"""Intervals and detections: how far an estimate may be off, and whether it stands out from zero."""

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from hubbub.errors import BadParameter

__all__ = ["discoveries", "interval"]

_NORMAL = NormalDist()


def interval(estimate: float, stderr: float, confidence: float = 0.95) -> tuple[float, float]:
    """The two-sided interval at this confidence, in (0, 1), in the estimate's own unit.

    An estimate adds up thousands of independent reports, so the normal law holds (central limit).
    """
    if not 0 < confidence < 1:
        raise BadParameter(f"confidence {confidence} is outside (0, 1)")
    reach = _NORMAL.inv_cdf((1 + confidence) / 2) * stderr
    return estimate - reach, estimate + reach


def discoveries(
    estimates: Sequence[float], stderrs: Sequence[float], rate: float = 0.05
) -> npt.NDArray[np.bool_]:
    """Which values stand out from zero at this false discovery rate, over all values given.

    stderrs: of each estimate if its value were absent, in the estimates' unit.
    Benjamini and Hochberg (1995), one-sided normal p-values.
    """
    pairs = zip(estimates, stderrs, strict=True)
    p_values = np.array([_NORMAL.cdf(-e / s) if s > 0 else float(e <= 0) for e, s in pairs])
    ordered = np.sort(p_values)
    below = np.nonzero(ordered <= rate * np.arange(1, len(ordered) + 1) / max(len(ordered), 1))[0]
    if not len(below):
        return np.zeros(len(p_values), dtype=np.bool_)
    found: npt.NDArray[np.bool_] = p_values <= ordered[below[-1]]
    return found
