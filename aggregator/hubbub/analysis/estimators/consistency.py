"""Post-processing: makes estimates look like a histogram. Separate steps, never the default.

Raw estimates are unbiased: some are below zero, and they do not add up to the reports, but they can
be added over days, shards and groups of values. Post-processing costs no privacy and lowers the
error of the whole histogram, but every single value is biased afterwards:

- `norm_sub`, `simplex`, `within_ends`: rare values come out too high on average (a
  negative estimate becomes 0, a positive one stays), frequent ones too low.
- `base_cut`: values below the cut become 0, so rare values are lost; the others are kept as
  they are, and are too high on average because they were selected.

Sums of biased values over many days keep the bias: first add up, then post-process.
Source: Wang, Lopuhaa-Zwakenberg, Li, Skoric, Li (NDSS 2020), sections 4 and 5.
"""

from math import isfinite
from statistics import NormalDist
from typing import Final

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.errors import BadParameter

_TRIES: Final = 100
_ROUNDING: Final = 1e-12


def norm_sub(estimates: Floats, reports: float) -> Floats:
    """The histogram (>= 0, with sum `reports`) nearest to the estimates.

    It is the Euclidean projection on the simplex: the same amount is subtracted from all estimates,
    and negative results become zero.
    """
    return simplex(estimates, np.ones_like(estimates), reports)


def simplex(estimates: Floats, variances: Floats, reports: float) -> Floats:
    """The histogram nearest to the estimates, by least squares weighted with their precision.

    It is the most likely histogram under normal errors: a value gives up lambda times its variance,
    until the rest adds up to `reports`. `variances` are above 0, in any unit; if all are equal,
    this is `norm_sub`. Raises BadParameter for shapes that differ, nothing to process, or numbers
    that no histogram fits.
    """
    if not (estimates.ndim == 1 and len(estimates) and estimates.shape == variances.shape):
        raise BadParameter("estimates and variances must be two lists of one length, not empty")
    if not (isfinite(reports) and reports >= 0 and np.isfinite(estimates).all()):
        raise BadParameter("estimates must be finite, and reports a number not below 0")
    if not (np.isfinite(variances).all() and (variances > 0).all()):
        raise BadParameter("variances must be finite and above 0")
    # A value falls to zero when lambda reaches estimate / variance: those with the most stay.
    order = np.argsort(-(estimates / variances), kind="stable")
    excess = np.cumsum(estimates[order]) - reports
    shift = excess / np.cumsum(variances[order])
    stays = estimates[order] - shift * variances[order] > 0
    last = int(np.nonzero(stays)[0][-1]) if stays.any() else 0
    answer: Floats = np.maximum(estimates - shift[last] * variances, 0.0)
    return answer


def within_ends(
    estimates: Floats, variances: Floats, ends: tuple[Floats, Floats], reports: float
) -> Floats:
    """As `simplex`, with each value inside its interval; `ends` are the lower and upper ends.

    If no histogram lies inside all intervals, all lower or all upper ends.
    """
    low, high = ends
    fewest, most = low.sum(), high.sum()
    if fewest >= reports:
        return low
    if most <= reports:
        return high
    # Values lose a multiple of their variance: too little at `least`, too much at `last`.
    least = float(((estimates - high) / variances).min())
    last = float(((estimates - low) / variances).max())
    excess, shortfall = most - reports, fewest - reports
    for _ in range(_TRIES):
        # Regula falsi (Illinois): halves the weight of an end that stays.
        shift = last - shortfall * (last - least) / (shortfall - excess)
        answer: Floats = np.clip(estimates - shift * variances, low, high)
        surplus = answer.sum() - reports
        if abs(surplus) <= _ROUNDING * reports:
            break
        if surplus > 0:
            least, excess, shortfall = shift, surplus, shortfall / 2
        else:
            last, shortfall, excess = shift, surplus, excess / 2
    return answer


def base_cut(estimates: Floats, absent_stderr: float, false_alarm: float = 0.05) -> Floats:
    """Estimates that are significantly above 0, and 0 for the others.

    `absent_stderr` is the standard error, in reports, of a value that nobody holds; `false_alarm`
    the probability, in (0, 1), that any such value is kept (Bonferroni).
    """
    if not (0 < false_alarm < 1 and absent_stderr >= 0):
        raise BadParameter(f"false_alarm {false_alarm} is outside (0, 1), or absent_stderr below 0")
    cut = NormalDist().inv_cdf(1 - false_alarm / max(len(estimates), 1)) * absent_stderr
    return np.where(estimates >= cut, estimates, 0.0)
