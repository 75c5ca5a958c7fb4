"""Error of percentiles by `wave` and `haar`: that of the shares of numbers below nearby edges.

It is for evenly spread numbers, by the likelihood's curvature. An answer uses that no share is
negative; here, a share is normal about the even one beforehand.
"""

from collections.abc import Callable, Mapping, Sequence
from math import ceil, cos, floor, pi, sin, sqrt
from typing import Any, Final

from hubbub.mechanisms.haar import HaarResponse
from hubbub.mechanisms.wave import SquareWave

USUAL_PERCENTILES: Final = (50.0, 90.0, 95.0)
"""What `auto` weighs if a metric names no percentiles."""

# Standard deviation of a share beforehand, in even shares. With 4 or 5, the mechanism of the
# smaller error has the narrower intervals, or those up to 1.07 times as wide, in 34 of 36 cases:
# p50 to p99, 16 and 64 buckets, epsilon .5 to 4, 1,000 to 10,000 reports; with 6 to 9 in 32 or 33.
_SPREAD: Final = 5
_MIN_REACH: Final = 0.1


def rank_error(mechanism: Any, reports: int, percentiles: Sequence[float]) -> float:
    """Error of the percentiles, as a share of all reports: the root mean square.

    Each has that of the edges which its interval may end at: those within two errors, or within a
    tenth, since numbers are not quite even.
    """
    variances = RANK_VARIANCES[mechanism.NAME](mechanism, reports)
    last, means = len(variances), []
    reach = max(2 * sqrt(sum(variances) / last), _MIN_REACH)
    for percentile in percentiles:
        low, high = (percentile / 100 + side * reach for side in (-1, 1))
        first = min(max(ceil(low * (last + 1)), 1), last)
        near = variances[first - 1 : max(floor(high * (last + 1)), first)]
        means.append(sum(near) / len(near))
    return sqrt(sum(means) / len(means))


def _haar_variances(haar: HaarResponse, reports: int) -> list[float]:
    """A share below an edge needs one Haar coefficient of each level, and these are independent.

    An edge at i of an interval's s parts needs the coefficient min(i, s - i) / sqrt(s) times.
    """
    curvature = reports * float(2 * haar.keep.exact - 1) ** 2 / haar.levels
    sizes = [2 << level for level in range(haar.levels)]
    prior_curvature = _prior_curvature(haar.buckets)
    return [
        sum(
            min(edge % size, -edge % size) ** 2 / size / (curvature * size + prior_curvature)
            for size in sizes
        )
        for edge in range(1, haar.buckets)
    ]


def _wave_variances(wave: SquareWave, reports: int) -> list[float]:
    """By the spectrum of the window, as if the range were reflected at its ends.

    A frequency that the window does not show is seen at the ends of the range, where it is cut: the
    curvature is a mean over neighbouring frequencies (Hann's window).
    """
    width, buckets = wave.window.width, wave.buckets
    halves = [pi * place / buckets / 2 for place in range(1, buckets + 1)]
    squares = [float(width**2)] + [(sin(width * half) / sin(half)) ** 2 for half in halves]
    curvature = reports * float(wave.window.near - wave.window.far) ** 2 * wave.layout.size
    prior_curvature, weights = _prior_curvature(buckets), list[float]()
    for place, half in enumerate(halves[:-1]):
        mean_square = (squares[place] + 2 * squares[place + 1] + squares[place + 2]) / 4
        total_curvature = curvature * mean_square + prior_curvature
        weights.append(1 / (4 * buckets * sin(half) ** 2) / total_curvature)
    ripples = [1 - cos(2 * pi * place / buckets) for place in range(buckets)]
    return [
        sum(
            weight * ripples[frequency * edge % buckets]
            for frequency, weight in enumerate(weights, start=1)
        )
        for edge in range(1, buckets)
    ]


def _prior_curvature(buckets: int) -> float:
    return (buckets / _SPREAD) ** 2


RANK_VARIANCES: Final[Mapping[str, Callable[[Any, int], list[float]]]] = {
    HaarResponse.NAME: _haar_variances,
    SquareWave.NAME: _wave_variances,
}
"""By name: squared errors of the shares below a mechanism's inner edges, of so many reports."""
