"""The distribution of a number from `wave`: unbiased with exact errors, or smooth.

Every place of the report's line is likely for the buckets whose window covers it. `unbiased` solves
that for the buckets by least squares: nothing is assumed, the errors are exact, and they are large
where buckets are finer than the data allow. `smooth` finds the shares that make the totals most
likely, smoothing a little after every step so that noise does not grow teeth: a far nearer picture
of a smooth distribution, and a wrong one of a sharp peak, which it flattens. It is post-processing.

Source: Li et al. (SIGMOD 2020), section 5.5, EMS; docs/decisions/0212-mechanisms-and-families.md.
"""

from math import sqrt
from typing import Final

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.errors import BatchTooSmall
from hubbub.mechanisms import Totals
from hubbub.mechanisms.wave import MAX_WAVE_BUCKETS, SquareWave

_ROUNDS: Final = 5000
# The largest change of a share in a round at which the fixed point is taken as reached.
_CHANGE: Final = 1e-9


def unbiased(mechanism: SquareWave, totals: Totals) -> tuple[Floats, Floats]:
    """Per bucket: how many reports hold a number in it, and the exact standard error; in reports.

    Weighted least squares with the weights of an even distribution: linear in the totals, so
    estimates add up over disjoint totals.

    Raises:
        BatchTooSmall: not a single report.
        ShapeMismatch: totals of another shape than the mechanism's.
    """
    observations = _seen(mechanism, totals)
    estimates: Floats = _inverse(mechanism) @ observations
    return estimates, np.sqrt(spread(mechanism, observations, totals.reports))


def min_stderrs(mechanism: SquareWave, totals: Totals) -> Floats:
    """Per bucket the standard error were there no fewer reports at any place than lies make."""
    least = np.maximum(_seen(mechanism, totals), totals.reports * float(mechanism.window.far))
    answer: Floats = np.sqrt(spread(mechanism, least, totals.reports))
    return answer


def spread(mechanism: SquareWave, observations: Floats, reports: int) -> Floats:
    """Per bucket: the variance of its unbiased estimate, in reports squared.

    observations: how many reports lie at each place of the line, or estimates of that.
    """
    inverse = _inverse(mechanism)
    # Of a report in bucket i: its place's contribution squared, less the square of its mean, 1.
    variances = (inverse**2) @ observations - np.clip(inverse @ observations, 0, reports)
    answer: Floats = np.maximum(variances, 0.0)
    return answer


def placed(mechanism: SquareWave, totals: Totals) -> tuple[float, float, float]:
    """The sum of the numbers' places in the range, its stderr, and how much a report can change it.

    Each place is its bucket's middle. Linear in the totals as `unbiased` is. Raises as `unbiased`.
    """
    observations, inverse = _seen(mechanism, totals), _inverse(mechanism)
    middles = (np.arange(mechanism.buckets) + 0.5) / mechanism.buckets
    worth = middles @ inverse  # what a report at each place of the line says on average
    # Of a report in bucket i: what its place says, squared, less the square of its mean. Estimates
    # below 0 count as they are: cut off, they would make the rest too many.
    variance = float(worth**2 @ observations - middles**2 @ inverse @ observations)
    return float(worth @ observations), sqrt(max(variance, 0.0)), float(np.ptp(worth))


def smooth(mechanism: SquareWave, totals: Totals) -> Floats:
    """Per bucket how many reports, >= 0 and adding up to all; biased towards evenness.

    After every step a bucket gives a part to each neighbour: a quarter of 1,024 buckets, as
    published, and of fewer as much less as makes the same blur over the range.

    Raises:
        BatchTooSmall: not a single report.
        ShapeMismatch: totals of another shape than the mechanism's.
    """
    observations = _seen(mechanism, totals) / totals.reports
    near, far = float(mechanism.window.near), float(mechanism.window.far)
    buckets, width = mechanism.buckets, mechanism.window.width
    give = 0.25 * min(1.0, (buckets / MAX_WAVE_BUCKETS) ** 2)
    stay = np.full(buckets, 1 - 2 * give)
    stay[[0, -1]] += give  # at the ends there is but one neighbour
    shares = np.full(buckets, 1 / buckets)
    # Sums up to each place of the line, beyond whose ends nothing is: in place, since thousands of
    # rounds of a few numbers each cost what they allocate.
    before = np.zeros(buckets + 2 * width - 1)
    until = np.zeros(len(observations) + 1)
    for _ in range(_ROUNDS):
        shares.cumsum(out=before[width : width + buckets])
        before[width + buckets :] = before[width + buckets - 1]
        ratio = observations / (far + (near - far) * (before[width:] - before[:-width]))
        ratio.cumsum(out=until[1:])
        better = shares * (far * until[-1] + (near - far) * (until[width:] - until[:-width]))
        blurred = stay * better
        blurred[1:] += give * better[:-1]
        blurred[:-1] += give * better[1:]
        blurred /= blurred.sum()
        change = np.abs(blurred - shares).max()
        shares = blurred
        if change < _CHANGE:
            break
    return shares * totals.reports


def _seen(mechanism: SquareWave, totals: Totals) -> Floats:
    totals.check(mechanism.layout)
    if not totals.reports:
        raise BatchTooSmall("no report at all: there is nothing to estimate")
    return np.array(totals.cells, dtype=np.float64)


def _inverse(mechanism: SquareWave) -> Floats:
    """From places to buckets: shape (buckets, places)."""
    likely = chances(mechanism)
    weights = 1 / np.sqrt(likely.mean(axis=1))
    basis, triangle = np.linalg.qr(likely * weights[:, None])
    inverse: Floats = np.linalg.solve(triangle, basis.T * weights)
    return inverse


def chances(mechanism: SquareWave) -> Floats:
    """Of a place of the report's line, given a bucket: shape (places, buckets)."""
    places = np.arange(mechanism.layout.size)[:, None] - np.arange(mechanism.buckets)
    covered = (places >= 0) & (places < mechanism.window.width)
    return np.where(covered, float(mechanism.window.near), float(mechanism.window.far))
