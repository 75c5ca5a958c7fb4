"""The mean of numbers, and a number with its interval."""

from dataclasses import dataclass

import numpy as np

from hubbub.analysis.figures import Figures
from hubbub.analysis.intervals import interval
from hubbub.mechanisms import AnyMechanism
from hubbub.mechanisms.buckets import BucketFlips
from hubbub.mechanisms.mean_one_bit import OneBitMean
from hubbub.mechanisms.mean_piecewise import PiecewiseMean
from hubbub.mechanisms.wave import SquareWave

__all__ = ["Mean", "mean_of", "within"]


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
    match mechanism:
        case OneBitMean() | PiecewiseMean():
            place = float(found.estimates[0]), float(found.stderrs[0])
            return _in_unit(mechanism.low, mechanism.high, place, reports, confidence)
        case SquareWave() | BucketFlips():
            low, high = mechanism.edges()[0], mechanism.edges()[-1]
            return found.place and _in_unit(low, high, found.place, reports, confidence)
        case _:
            return None


def _in_unit(
    low: float, high: float, place: tuple[float, float], reports: int, confidence: float
) -> Mean:
    """A sum of places in [low, high] and its standard error, as a mean in the metric's own unit."""
    unit = (high - low) / max(reports, 1)
    return within(low + unit * place[0], unit * place[1], confidence)


def within(value: float, stderr: float, confidence: float) -> Mean:
    """A number with its interval."""
    least, most = interval(np.array([value]), np.array([stderr]), confidence)
    return Mean(float(value), float(stderr), float(least[0]), float(most[0]))
