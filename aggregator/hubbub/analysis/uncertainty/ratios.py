"""Intervals of ratios whose numerator and denominator are both estimates (Fieller 1954).

A ratio is in the interval if numerator - ratio * denominator is within so many standard errors of
0, each ratio by the error that there would be if it were the true one. Where the denominator itself
is within so many of 0 no ratio can be ruled out: the interval is all that is possible.
"""

from typing import Final

import numpy as np
from numpy.polynomial.polynomial import polyval

from hubbub.analysis.arrays import Floats, Mask, bisected

_HALVINGS: Final = 48


def fieller(
    numerators: Floats,
    denominators: Floats,
    variances: Floats,
    denominator_variances: Floats,
    *,
    reach: Floats | float,
    most: float | None = 1.0,
) -> tuple[Floats, Floats, Floats]:
    """Of some ratios the estimates, and the ends of their intervals inside [0, most].

    Estimates may be outside [0, most]; only where the denominator is within reach of 0 they are
    moved inside, since they could then be any number.

    Args:
        numerators: estimates; shape (ratios,).
        denominators: as `numerators`.
        variances: that of numerator - ratio * denominator if the ratio is the true one, as the
            coefficients of a polynomial in it, the constant first; shape (coefficients, ratios).
        denominator_variances: shape (ratios,).
        reach: how many standard errors away the ends are.
        most: the largest possible ratio; None if any is possible.

    Returns:
        Estimates, lows and highs. An end without bound is infinite; the estimate of a denominator
        that is not above 0 is NaN.
    """
    clear = denominators > reach * np.sqrt(denominator_variances)
    safe = np.where(denominators > 0, denominators, 1.0)
    estimates = numerators / safe
    nearest = np.clip(estimates, 0.0, most)
    # The interval of an estimate outside [0, most] is that of the nearest end: by its own, all
    # ratios could be rejected, and the interval would have no width.
    centres = nearest * safe
    highest = np.full_like(estimates, np.inf if most is None else most)
    if most is None:
        # By the triangle inequality no ratio above this one is within reach.
        numerator_end = np.maximum(numerators, 0.0) + reach * np.sqrt(np.maximum(variances[0], 0.0))
        denominator_end = denominators - reach * np.sqrt(denominator_variances)
        highest = np.where(clear, numerator_end / np.where(clear, denominator_end, 1.0), np.inf)

    def is_inside(ratios: Floats) -> Mask:
        variance = np.maximum(polyval(ratios, variances, tensor=False), 0.0)
        return (centres - ratios * denominators) ** 2 <= reach**2 * variance

    def end(farthest: Floats) -> Floats:
        inner, _ = bisected(nearest, farthest, is_inside, _HALVINGS)
        return np.where(is_inside(farthest), farthest, inner)

    finite = np.where(clear, highest, 0.0)
    low = np.where(clear, end(np.zeros_like(estimates)), 0.0)
    high = np.where(clear, end(finite), np.inf if most is None else most)
    estimates = np.where(clear, estimates, nearest)
    return np.where(denominators > 0, estimates, np.nan), low, high
