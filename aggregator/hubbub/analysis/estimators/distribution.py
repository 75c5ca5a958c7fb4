"""The distribution of a number from `wave` or `haar`: unbiased with exact errors, or smooth.

A report is an index, more likely for some buckets: for `wave` a place on a line, and those whose
window covers it. `unbiased` solves for the buckets by least squares: it assumes nothing, and its
exact errors are large where buckets are finer than the data allow. `smooth`, for `wave`, maximizes
the likelihood and blurs a little after every step, so that it does not fit noise: it is far nearer
to a smooth distribution, but flattens a sharp peak. It is post-processing.

Source: Li et al. (SIGMOD 2020), section 5.5, EMS; docs/decisions/0212-mechanisms-and-families.md.
"""

from functools import lru_cache
from math import sqrt
from typing import Final

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.errors import BatchTooSmall
from hubbub.mechanisms import Totals
from hubbub.mechanisms.number_range import MAX_FINE_BUCKETS, IndexInBuckets
from hubbub.mechanisms.wave import SquareWave

_ROUNDS: Final = 5000
# Largest change of a share in a round at which the iteration ends.
_CHANGE: Final = 1e-9


def unbiased(mechanism: IndexInBuckets, totals: Totals) -> tuple[Floats, Floats]:
    """Estimated number of reports in each bucket, and the exact standard errors.

    Weighted least squares with the weights of an even distribution: linear in the totals, so
    estimates add up over disjoint totals. Raises as `Family.figures`.
    """
    observations = _cells_of(mechanism, totals)
    estimates: Floats = _inverse(mechanism) @ observations
    return estimates, np.sqrt(bucket_variances(mechanism, observations, totals.reports))


def min_stderrs(mechanism: IndexInBuckets, totals: Totals) -> Floats:
    """Standard errors per bucket, if no index had fewer reports than lies alone put there."""
    lies = totals.reports * chances(mechanism).min(axis=1)
    least = np.maximum(_cells_of(mechanism, totals), lies)
    return np.sqrt(bucket_variances(mechanism, least, totals.reports))


def bucket_variances(mechanism: IndexInBuckets, observations: Floats, reports: int) -> Floats:
    """Variance of each bucket's unbiased estimate, in reports squared.

    `observations` is the number of reports of each index, or its estimate.
    """
    inverse = _inverse(mechanism)
    # Of a report in bucket i: its index's contribution squared, less the square of its mean, 1.
    variances = (inverse**2) @ observations - np.clip(inverse @ observations, 0, reports)
    return np.maximum(variances, 0.0)


def place_sum(mechanism: IndexInBuckets, totals: Totals) -> tuple[float, float, Floats]:
    """Sum of the numbers' places in [0, 1], its standard error, and what a report of an index adds.

    A number's place is its bucket's middle. Linear in the totals; raises as `unbiased`.
    """
    observations, inverse = _cells_of(mechanism, totals), _inverse(mechanism)
    middles = (np.arange(mechanism.buckets) + 0.5) / mechanism.buckets
    worth: Floats = middles @ inverse
    # For a report in bucket i: its index's contribution squared, less the square of the mean.
    # Estimates below 0 are kept, since setting them to 0 would raise the others.
    variance = float(worth**2 @ observations - middles**2 @ inverse @ observations)
    return float(worth @ observations), sqrt(max(variance, 0.0)), worth


def smooth(mechanism: SquareWave, totals: Totals) -> Floats:
    """Smooth estimate of the reports per bucket: >= 0, sum `reports`; biased towards evenness.

    After every step a bucket gives a part to each neighbour: a quarter with 1,024 buckets, as
    published, and with fewer so much less that the blur over the range is the same. Raises as
    `unbiased`.
    """
    observations = _cells_of(mechanism, totals) / totals.reports
    p_near, p_far = float(mechanism.window.near), float(mechanism.window.far)
    buckets, width = mechanism.buckets, mechanism.window.width
    give = 0.25 * min(1.0, (buckets / MAX_FINE_BUCKETS) ** 2)
    stay = np.full(buckets, 1 - 2 * give)
    stay[[0, -1]] += give  # at the ends there is only one neighbour
    shares = np.full(buckets, 1 / buckets)
    # Cumulative sums along the line, in place, since allocation would dominate thousands of short
    # rounds.
    before = np.zeros(buckets + 2 * width - 1)
    until = np.zeros(len(observations) + 1)
    for _ in range(_ROUNDS):
        shares.cumsum(out=before[width : width + buckets])
        before[width + buckets :] = before[width + buckets - 1]
        ratio = observations / (p_far + (p_near - p_far) * (before[width:] - before[:-width]))
        ratio.cumsum(out=until[1:])
        better = shares * (p_far * until[-1] + (p_near - p_far) * (until[width:] - until[:-width]))
        blurred = stay * better
        blurred[1:] += give * better[:-1]
        blurred[:-1] += give * better[1:]
        blurred /= blurred.sum()
        change = np.abs(blurred - shares).max()
        shares = blurred
        if change < _CHANGE:
            break
    return shares * totals.reports


def _cells_of(mechanism: IndexInBuckets, totals: Totals) -> Floats:
    totals.check(mechanism.layout)
    if not totals.reports:
        raise BatchTooSmall("no reports: there is nothing to estimate")
    return np.array(totals.cells, dtype=np.float64)


@lru_cache(maxsize=8)
def _inverse(mechanism: IndexInBuckets) -> Floats:
    """The linear estimator, from indices to buckets: shape (buckets, indices)."""
    likely = chances(mechanism)
    weights = 1 / np.sqrt(likely.mean(axis=1))
    basis, triangle = np.linalg.qr(likely * weights[:, None])
    return np.linalg.solve(triangle, basis.T * weights)


@lru_cache(maxsize=8)
def chances(mechanism: IndexInBuckets) -> Floats:
    """Probability of each index, given a bucket: shape (indices, buckets)."""
    return np.array([mechanism.chances(bucket) for bucket in range(mechanism.buckets)]).T
