"""Ranks by `wave` and `haar`, whose indexes are likely for many parts: by least squares or a fit.

The totals are whitened by their known covariance. Least squares are used as sums are for `haar`,
and for `wave` if they are clearly more precise than the best hierarchical law (HaarHRR). Otherwise
the fit must not be negative: the deviance of the best fit with the hypothetical share below the
edge, minus that of the best fit overall, is nearly chi-square with one degree of freedom. A fit
leaks over the edge from the side with more numbers to the other, so that the signed root of the
deviance is one-sided: it is corrected by what the neighbours differ. By `haar` it would also leak
to empty parts far away, which no neighbour shows: its least squares are pooled where they decrease.

Source: Rust and Burrus 1972; Patil, Kuusela and Hobbs (SIAM/ASA JUQ 2022), intervals from
constrained fits; Batlle, Stark and others 2023, where they fail. HaarHRR: Cormode, Kulkarni and
Srivastava (VLDB 2019).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from math import sqrt, tanh
from typing import Final

import numpy as np
import numpy.typing as npt

from hubbub.analysis.arrays import Floats
from hubbub.analysis.estimators.distribution import chances
from hubbub.analysis.ranks.ranks_by_sums import around, by_errors, rising
from hubbub.analysis.uncertainty.intervals import reach_of
from hubbub.mechanisms import Totals
from hubbub.mechanisms.haar import HaarResponse
from hubbub.mechanisms.number_range import IndexInBuckets
from hubbub.mechanisms.wave import SquareWave

Counts = npt.NDArray[np.int64]

_HEAVY: Final = 1e3
# A fit takes time that grows with the cube of the number of parts: a second for this many.
_MAX_PARTS: Final = 256
# Number of cached intervals of one answer: the usual percentiles at some confidences.
_REMEMBERED: Final = 64
# Shares add up to 1, so along such a direction they move a quantity of error 1 by less.
_UNMOVED: Final = 1e-2
# Error of least squares by `wave`, in errors of HaarHRR, up to which they are used. Measured with
# 32 parts: at .96 intervals of a percentile are up to 1.7 times as wide as by HaarHRR, and those of
# the fit .4 to 1.04 times; at .43, 95% intervals of a share by the fit hold in 88% beside spikes.
_PRECISE: Final = 0.85
# Errors by which a fit leaks over an edge if all its neighbours are on one side. Measured at 400
# edges of 11 shapes: 2.5% of scores are beyond 2.3 to 3.6 there, and .1 to 1.2 on the other side.
_LEAK: Final = 1.1
# Least squares' error from which on a fit errs less, since no share is negative, and the power of
# the ratio: 95% quantiles were 1.96 below .04, 1.7 at .16 and 1.58 at .34.
_COARSE: Final = 0.04
_GAIN: Final = 0.1


@dataclass(frozen=True)
class IndexRanks:
    """Ranks from the reports of `wave` or `haar`, of one or more tiers over the same parts.

    As LinearRanks, but several tiers always describe the population: a person's tier is chance.
    """

    tiers: Sequence[tuple[IndexInBuckets, Totals]]
    repeats: int
    least: float

    @cached_property
    def edges(self) -> Floats:
        """Edges of the mechanism's parts, or of groups of neighbours if there are very many."""
        return np.array(self.tiers[0][0].edges())[self._starts]

    @cached_property
    def _starts(self) -> Counts:
        """The first bucket of each part, then the number of buckets."""
        buckets = self.tiers[0][0].buckets
        parts = min(buckets, _MAX_PARTS)
        return np.arange(parts + 1) * buckets // parts

    def _place_probabilities(self, mechanism: IndexInBuckets) -> Floats:
        """Probability of each place of the line, given a part: shape (places, parts)."""
        sums = np.add.reduceat(chances(mechanism), self._starts[:-1], axis=1)
        return sums / np.diff(self._starts)

    def _even(self) -> tuple[Floats, Floats]:
        """The system with the weights of an even distribution, without repeats."""
        shares = np.full(len(self.edges) - 1, 1 / (len(self.edges) - 1))
        tiers = [(self._place_probabilities(mechanism), totals) for mechanism, totals in self.tiers]
        weighted = [_whiten(*tier, shares, 1) for tier in tiers]
        rows, right = (np.concatenate(columns) for columns in zip(*weighted, strict=True))
        return rows, right

    @cached_property
    def _system(self) -> tuple[Floats, Floats]:
        """Linear system with independent errors of variance 1; rows of shape (parts, parts)."""
        tiers = [(self._place_probabilities(mechanism), totals) for mechanism, totals in self.tiers]
        pilot, _ = _fit_shares(*self._even(), np.ones((1, len(self.edges) - 1)), np.ones(1))
        repeats = self.repeats or int(len(tiers) > 1)
        return _stack_rows([_whiten(*tier, pilot, repeats) for tier in tiers])

    @cached_property
    def _linear(self) -> tuple[Floats, Floats]:
        """Share below each edge by least squares, and its weights of independent errors."""
        return _linear_fit(*self._system)

    @cached_property
    def _squares(self) -> tuple[Floats, Floats]:
        """Share below each edge by least squares, and its standard error."""
        estimates, weights = self._linear
        return estimates, _lengths(weights)

    @cached_property
    def _pooled_squares(self) -> tuple[Floats, Floats]:
        """As `_squares`, with the mean of neighbouring edges where the estimates decrease.

        Errors decide which edges are neighbours: half of what the mean saves of an edge's variance
        is not claimed. A mean is biased at its first and its last edge, which have a third of their
        own estimate: otherwise 95% intervals held in 90 to 94% where empty parts follow the part of
        the percentile, with it in 95 to 98%. With half they were up to 1.05 times as wide as by
        HaarHRR, with a third up to 1.04 times.
        """
        from scipy.optimize import isotonic_regression  # noqa: PLC0415 as nnls

        estimates, weights = self._linear
        regression = isotonic_regression(estimates)
        starts, sizes = regression.blocks[:-1], np.diff(regression.blocks)
        means = np.add.reduceat(weights, starts, axis=0) / sizes[:, None]
        pooled, own = np.repeat(_lengths(means), sizes), _lengths(weights)
        ends, shares = np.append(starts, starts + sizes - 1), regression.x.copy()
        shares[ends] = (2 * shares[ends] + estimates[ends]) / 3
        return shares, np.hypot(pooled, np.maximum(own, pooled)) / sqrt(2)

    @cached_property
    def _haar_error(self) -> float:
        """Standard error of a share below an edge by HaarHRR, with as many reports and buckets.

        A prefix needs a coefficient per level, of mean square 1/4 at the root and 1/12 below.
        """
        precision = sum(
            tanh(mechanism.epsilon / 2) ** 2 * totals.reports for mechanism, totals in self.tiers
        )
        levels = (self.tiers[0][0].buckets - 1).bit_length()
        return sqrt(levels * (1 / 4 + (levels - 1) / 12) / precision)

    @cached_property
    def _even_error(self) -> float:
        """Standard error of a share below an edge by least squares, of even numbers."""
        _, weights = _linear_fit(*self._even())
        return sqrt(float((_lengths(weights[1:-1]) ** 2).mean()))

    @property
    def _is_resolved(self) -> bool:
        """Whether least squares of `wave` are more precise than HaarHRR."""
        is_wave = self.tiers[0][0].NAME == SquareWave.NAME
        return is_wave and self._even_error <= _PRECISE * self._haar_error

    @property
    def _is_linear(self) -> bool:
        """Of `haar`, least squares are as wide as HaarHRR by definition."""
        return self._is_resolved or self.tiers[0][0].NAME == HaarResponse.NAME

    @cached_property
    def _informative_system(self) -> tuple[Floats, Floats]:
        """The system without directions along which shares hardly change the right-hand side."""
        rows, right = self._system
        basis, sizes, directions = np.linalg.svd(rows)
        most = sizes > _UNMOVED
        return sizes[most, None] * directions[most], basis[:, most].T @ right

    @cached_property
    def _best_fit(self) -> tuple[Floats, float]:
        """The best non-negative fit, and its deviance."""
        rows, right = self._informative_system
        return _fit_shares(rows, right, np.ones((1, rows.shape[1])), np.ones(1))

    @cached_property
    def shares(self) -> Floats:
        """Shares by least squares where they are precise, otherwise by the best fit."""
        if self._is_linear:
            return rising(self._squares[0])
        return rising(np.append(0.0, np.cumsum(self._best_fit[0])))

    def score(self, edge: int, share: float) -> float:
        """Score from the standard error of least squares, or from the deviance."""
        if self._is_linear:
            estimates, stderrs = self._squares
            return float(by_errors(estimates[edge] - share, stderrs[edge] ** 2))
        return self._deviation(share, edge)

    def _deviation(self, share: float, edge: int) -> float:
        """Score from the deviance of a fit with this share below the edge."""
        off = float(self.shares[edge]) - share
        rows, right = self._informative_system
        sides = np.zeros((2, rows.shape[1]))
        sides[0, :edge], sides[1, edge:] = 1.0, 1.0
        shares, deviance = _fit_shares(rows, right, sides, np.array([share, 1 - share]))
        score = float(np.copysign(sqrt(max(deviance - self._best_fit[1], 0.0)), off))
        return score + _LEAK * _imbalance_at(shares, edge, self._even_error)

    @cached_property
    def between(self) -> Callable[[float, float], tuple[int, int]]:
        """As of LinearRanks; it remembers what it returned, since that takes some fits."""
        return lru_cache(_REMEMBERED)(self._edges_between)

    def _edges_between(self, share: float, confidence: float) -> tuple[int, int]:
        """Edges by least squares, or by the deviance, for which they are adjacent."""
        if self._is_linear:
            estimates, stderrs = self._squares if self._is_resolved else self._pooled_squares
            scores = by_errors(estimates[1:-1] - share, stderrs[1:-1] ** 2)
            return around(scores, reach_of(confidence))
        parts, reach = len(self.edges) - 1, self._fit_reach(confidence)
        part = min(max(int(np.searchsorted(self.shares, share)), 1), parts)
        score = partial(self._deviation, share)
        low = bisect_left(range(1, part), -reach, key=score)
        return low, part + bisect_right(range(part, parts), reach, key=score)

    def share_reach(self, confidence: float) -> float:
        """Number of standard errors, fewer by a fit."""
        return reach_of(confidence) if self._is_linear else self._fit_reach(confidence)

    def _fit_reach(self, confidence: float) -> float:
        return reach_of(confidence) * float(max(self._even_error / _COARSE, 1.0) ** -_GAIN)

    @property
    def size(self) -> int:
        """As of LinearRanks: two matrices of all parts, and some rows."""
        return 2 * len(self.edges) * (len(self.edges) + 4)


def _imbalance_at(shares: Floats, edge: int, error: float) -> float:
    """How much more is left of an edge than right of it, where either is small beside the error.

    It is the mean over 1, 2, 4, ... parts, between -1 and 1.
    """
    parts = len(shares)
    below, widths = np.append(0.0, np.cumsum(shares)), 1 << np.arange(parts.bit_length() - 1)
    left = below[edge] - below[np.maximum(edge - widths, 0)]
    right = below[np.minimum(edge + widths, parts)] - below[edge]
    leans = (left - right) / np.maximum(left + right, 1e-9)
    return float((leans / (1 + np.minimum(left, right) / error)).mean())


def _fit_shares(rows: Floats, right: Floats, sums: Floats, totals: Floats) -> tuple[Floats, float]:
    """The nearest shares >= 0 with these sums, and the squared distance."""
    heavy = _HEAVY * float(np.abs(rows).max())
    from scipy.optimize import nnls  # noqa: PLC0415 takes a second to load; few questions need it

    shares, off = nnls(
        np.vstack([rows, heavy * sums]), np.append(right, heavy * totals), maxiter=50 * len(rows[0])
    )
    return shares, float(off) ** 2


def _linear_fit(rows: Floats, right: Floats) -> tuple[Floats, Floats]:
    """Share below each edge, and its weights of independent errors of variance 1."""
    parts = rows.shape[1]
    # Shares add up to 1: a row that weighs far more than all others.
    heavy = _HEAVY * float(np.abs(rows).max())
    rows = np.vstack([rows, np.full((1, parts), heavy)])
    triangle, right = _stack_rows([(rows, np.append(right, heavy))])
    below = np.tri(parts + 1, parts, -1)
    weights: Floats = np.asarray(np.linalg.solve(triangle.T, below.T).T, dtype=np.float64)
    return weights @ right, weights


def _lengths(weights: Floats) -> Floats:
    """Standard errors, from rows of weights of independent errors of variance 1."""
    stderrs: Floats = np.sqrt((weights**2).sum(axis=1))
    return stderrs


def _stack_rows(tiers: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """Rows of all tiers, reduced to as many as there are parts."""
    columns = np.concatenate([np.column_stack(tier) for tier in tiers])
    # Without the orthogonal matrix, which takes as long as the triangle.
    triangle: Floats = np.asarray(np.linalg.qr(columns, mode="r"))[: columns.shape[1] - 1]
    return triangle[:, :-1], triangle[:, -1]


def _whiten(rows: Floats, totals: Totals, shares: Floats, repeats: int) -> tuple[Floats, Floats]:
    """A tier's rows and right-hand side, with independent errors of 1 if `shares` are true."""
    places, right = rows @ shares, np.array(totals.cells) / totals.reports
    if repeats == 1:
        # Multinomial places: residuals add up to 0, as shares to 1, and are weighted one by one.
        weights = np.sqrt(totals.reports / places)
        return rows * weights[:, None], right * weights
    joint = rows @ (shares[:, None] * rows.T)
    covariance = np.diag(places) - joint + repeats * (joint - np.outer(places, places))
    # Places add up to all reports, so the result does not depend on the sum.
    covariance += np.full_like(covariance, float(places.mean()))
    factor = np.linalg.cholesky(covariance / totals.reports)
    both = np.linalg.solve(factor, np.column_stack([rows, right]))
    return both[:, :-1], both[:, -1]
