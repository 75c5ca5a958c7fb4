"""Numbers: their ends and ranges, their mean, and a number with its interval."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hubbub.analysis.figures import Figures
from hubbub.analysis.intervals import interval
from hubbub.mechanisms import AnyMechanism
from hubbub.mechanisms.buckets import BucketFlips
from hubbub.mechanisms.mean_one_bit import OneBitMean
from hubbub.mechanisms.mean_piecewise import PiecewiseMean
from hubbub.mechanisms.wave import SquareWave

__all__ = ["Mean", "mean_of", "range_labels", "span", "within"]


@dataclass(frozen=True, slots=True)
class Mean:
    """One number with its interval: a mean in the metric's own unit, or a count of reports."""

    estimate: float
    stderr: float
    low: float
    high: float


def mean_of(
    mechanism: AnyMechanism, found: Figures, reports: int, confidence: float
) -> Mean | None:
    """The mean of numbers, from their figures; None where no numbers are asked for."""
    ends = span(mechanism)
    place = found.place
    if isinstance(mechanism, OneBitMean | PiecewiseMean):
        place = float(found.estimates[0]), float(found.stderrs[0])
    if ends is None or place is None:
        return None
    # A sum of places in [low, high] and its standard error, in the metric's own unit.
    unit = (ends[1] - ends[0]) / max(reports, 1)
    return within(ends[0] + unit * place[0], unit * place[1], confidence, ends)


def span(mechanism: AnyMechanism) -> tuple[float, float] | None:
    """Between which ends its numbers lie; None where no numbers are asked for."""
    match mechanism:
        case OneBitMean() | PiecewiseMean():
            return mechanism.low, mechanism.high
        case SquareWave() | BucketFlips():
            return mechanism.edges()[0], mechanism.edges()[-1]
        case _:
            return None


def range_labels(mechanism: BucketFlips | SquareWave) -> list[str]:
    """[0, 10), [10, 20), ..., the last one with its end."""
    edges = [f"{edge:.6g}" for edge in mechanism.edges()]
    labels = [f"[{low}, {high})" for low, high in pairwise(edges)]
    labels[-1] = labels[-1][:-1] + "]"
    return labels


def within(value: float, stderr: float, confidence: float, ends: tuple[float, float]) -> Mean:
    """A number with its interval, whose own ends are among what can be."""
    inside = np.clip(np.array([value]), *ends)
    least, most = interval(inside, np.array([stderr]), confidence)
    low, high = np.clip([least[0], most[0]], *ends).tolist()
    return Mean(float(value), float(stderr), low, high)
