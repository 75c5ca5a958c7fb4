"""A number with its interval: a mean in the metric's own unit, or a count of reports."""

from dataclasses import dataclass

import numpy as np

from hubbub.analysis.intervals import interval

__all__ = ["Mean", "mean_of", "within"]


@dataclass(frozen=True, slots=True)
class Mean:
    """One number with its interval: a mean in the metric's own unit, or a count of reports."""

    estimate: float
    stderr: float
    low: float
    high: float


def mean_of(
    place: tuple[float, float], ends: tuple[float, float], reports: int, confidence: float
) -> Mean:
    """The mean of numbers between these ends.

    place: the sum of their places, 0 at low and 1 at high, and its standard error.
    """
    unit = (ends[1] - ends[0]) / max(reports, 1)
    return within(ends[0] + unit * place[0], unit * place[1], confidence, ends)


def within(value: float, stderr: float, confidence: float, ends: tuple[float, float]) -> Mean:
    """A number with its interval, whose own ends are among what can be."""
    inside = np.clip(np.array([value]), *ends)
    least, most = interval(inside, np.array([stderr]), confidence)
    low, high = np.clip([least[0], most[0]], *ends).tolist()
    return Mean(float(value), float(stderr), low, high)
