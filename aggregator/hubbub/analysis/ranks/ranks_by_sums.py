"""Ranks by sums of the estimates of single parts, up to each edge.

Estimates are shifted so that they add up to the reports: the mean weight is subtracted from all
weights w. The variance of a sum is that of w^2 times each part's, less the covariance with another
part. It is computed as if the hypothetical share were true (Wilson 1927). Nothing is assumed of the
distribution's shape.
"""

from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.uncertainty.intervals import reach_of
from hubbub.analysis.value_estimates import ValueEstimates


@dataclass(frozen=True, kw_only=True)
class LinearRanks:
    """Ranks from independent estimates of single parts.

    Args:
        edges: of the parts, ascending, with both ends; shape (parts + 1,).
        figures: of the parts, in order, and perhaps of further values that are no numbers.
        repeats: for the population, largest number of reports from one device; 0 for reporters.
        least: smallest number that exists.
    """

    edges: Floats
    figures: ValueEstimates
    reports: int
    repeats: int
    least: float

    @cached_property
    def _estimates(self) -> Floats:
        """The estimates, shifted by a constant so that they add up to the reports."""
        estimates = self.figures.estimates
        return estimates - (float(estimates.sum()) - self.reports) / len(estimates)

    @cached_property
    def _numbers(self) -> float:
        """Estimated number of reports that contain a number."""
        return max(float(self._estimates[: len(self.edges) - 1].sum()), 1.0)

    @cached_property
    def _below(self) -> Floats:
        """Estimated count below each edge, which may decrease."""
        return np.append(0.0, np.cumsum(self._estimates[: len(self.edges) - 1]))

    @cached_property
    def shares(self) -> Floats:
        """Share below each edge among the reports that contain a number, never decreasing."""
        return rising(self._below / self._numbers)

    @cached_property
    def _variances(self) -> tuple[Floats, Floats, float]:
        """Sums left and right of each inner edge, and the variance of values that are no numbers.

        Rows of each side, shape (4, parts - 1): count, absent variance, growth, curvature.
        """
        parts, figures = len(self.edges) - 1, self.figures
        counts = np.clip(self._estimates, 0.0, self.reports)
        counts[:parts] += 1 / parts
        # For each part: its variance without reports, and its growth with them.
        of_parts = np.array(
            [figures.absent**2, figures.growth * counts, figures.curvature * counts**2]
        )
        below = np.cumsum(np.vstack([counts, of_parts])[:, :parts], axis=1)
        left, right = below[:, :-1], below[:, -1:] - below[:, :-1]
        return left, right, max(float((of_parts.T @ (1, 1, -1))[parts:].sum()), 0.0)

    def _scores(self, share: float) -> Floats:
        """At each inner edge, the count below it minus `share`, in errors if `share` is true."""
        parts, figures, numbers = len(self.edges) - 1, self.figures, self._numbers
        left, right, others = self._variances
        moved = (np.arange(1, parts) - share * parts) / len(self._estimates)
        variances = moved**2 * others
        for side, of_side, weight in ((left, share, 1 - share), (right, 1 - share, -share)):
            scale = of_side * numbers / side[0]
            variance = side[1] + scale * side[2] - scale**2 * side[3]
            variances += (weight - moved) ** 2 * np.maximum(variance, 0.0)
        variances += self.repeats * numbers * share * (1 - share)
        # A dummy has any value with equal probability.
        variances += figures.number_variance * moved**2
        off = self._below[1:-1] - share * numbers
        if not self.repeats:  # a number of reporters is whole (Yates 1934)
            off = np.copysign(np.maximum(np.abs(off) - figures.step / 2, 0.0), off)
        return by_errors(off, variances)

    def score(self, edge: int, share: float) -> float:
        """Distance of the estimate at an inner edge above this share, in errors if it is true."""
        return float(self._scores(share)[edge - 1])

    def between(self, share: float, confidence: float) -> tuple[int, int]:
        """Places of the edges around all edges that may have this share below them."""
        return around(self._scores(share), reach_of(confidence))

    def share_reach(self, confidence: float) -> float:
        """Number of standard errors to either end of a share's interval."""
        return reach_of(confidence)

    @property
    def size(self) -> int:
        """Approximate number of floats that the object caches."""
        return 12 * len(self.edges)


def by_errors(off: Floats, variances: Floats) -> Floats:
    """Deviations divided by their standard errors; infinite where the error is 0."""
    errors = np.sqrt(variances)
    sure = np.where(off == 0, 0.0, np.copysign(inf, off))
    return np.divide(off, errors, out=sure, where=errors > 0)


def around(scores: Floats, reach: float) -> tuple[int, int]:
    """Places of the edges around all scores within `reach`, one edge further on both sides."""
    low = np.append(scores >= -reach, True)
    high = np.append(True, scores <= reach)
    return int(np.argmax(low)), len(high) - int(np.argmax(high[::-1]))


def rising(shares: Floats) -> Floats:
    """The nearest shares that never decrease, by least squares (Barlow and others 1972)."""
    from scipy.optimize import isotonic_regression  # noqa: PLC0415 as nnls

    answer: Floats = np.clip(isotonic_regression(shares).x, 0.0, 1.0)
    answer[0], answer[-1] = 0.0, 1.0
    return answer
