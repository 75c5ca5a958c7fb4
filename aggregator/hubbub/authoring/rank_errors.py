"""Error of percentiles by `wave` and `haar`: that of the share of numbers below an edge.

It is the root mean square over all edges, for evenly spread numbers, by the likelihood's curvature.
An answer uses that no share is negative; here, a share is normal about the even one beforehand.
"""

from collections.abc import Callable, Mapping
from math import pi, sin, sqrt
from typing import Any, Final

from hubbub.mechanisms.haar import HaarResponse
from hubbub.mechanisms.wave import SquareWave

# Standard deviation of a share beforehand, in even shares. With 5 to 8, the mechanism of the
# smaller error has the narrower intervals in `hubbub plan` in 27 of 27 settings: 16, 64 and 128
# buckets, epsilon .5 to 4, 1,000 to 1,000,000 reports. With 4, and with 12, it has wider ones in 2.
_SPREAD: Final = 6


def _haar_error(haar: HaarResponse, reports: int) -> float:
    """A share below an edge needs one Haar coefficient of each level, and these are independent.

    An edge at i of an interval's s parts needs the coefficient min(i, s - i) / sqrt(s) times, of
    mean square (s^2 + 2) / 12 s over i.
    """
    curvature = reports * float(2 * haar.keep.exact - 1) ** 2 / haar.levels
    sizes = (2 << level for level in range(haar.levels))
    prior_curvature = _prior_curvature(haar.buckets)
    return sqrt(sum((s * s + 2) / (12 * s) / (curvature * s + prior_curvature) for s in sizes))


def _wave_error(wave: SquareWave, reports: int) -> float:
    """By the spectrum of the window, as if the range were reflected at its ends.

    A frequency that the window does not show is seen at the ends of the range, where it is cut: the
    curvature is a mean over neighbouring frequencies (Hann's window).
    """
    width, buckets = wave.window.width, wave.buckets
    halves = [pi * place / buckets / 2 for place in range(1, buckets + 1)]
    squares = [float(width**2)] + [(sin(width * half) / sin(half)) ** 2 for half in halves]
    curvature = reports * float(wave.window.near - wave.window.far) ** 2 * wave.layout.size
    prior_curvature, variance = _prior_curvature(buckets), 0.0
    for place, half in enumerate(halves[:-1]):
        mean_square = (squares[place] + 2 * squares[place + 1] + squares[place + 2]) / 4
        variance += 1 / (4 * buckets * sin(half) ** 2) / (curvature * mean_square + prior_curvature)
    return sqrt(variance)


def _prior_curvature(buckets: int) -> float:
    return (buckets / _SPREAD) ** 2


RANK_ERRORS: Final[Mapping[str, Callable[[Any, int], float]]] = {
    HaarResponse.NAME: _haar_error,
    SquareWave.NAME: _wave_error,
}
"""By name: the error of so many reports of a mechanism, as a share of all reports."""
