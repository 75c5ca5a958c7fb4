"""Ranks: which share of numbers lies below each edge of a range's parts, and how sure that is.

Two sources, one question: how far a share that might be true is from the totals, in standard
errors (`score`). `analysis.percentiles` inverts it for percentiles and for shares below a number.

Linear: estimates of single parts are added up to each edge. Their errors are independent, or vary
together by what keeps their sum at the number of reports: with the mean weight taken off all
weights w, the variance of the sum is that of w^2 times each part's. The variance is the one that
there would be if the share in question were true (Wilson 1927). Nothing is assumed of the shape.

Of `wave`, whose windows overlap, the totals are whitened by their known covariance. Where least
squares err no more than the best hierarchical law would (HaarHRR), they are added up as above.
Elsewhere the fit may not be below zero: the deviance of the best fit whose share below the edge is
the one in question, over that of the best fit of all, is chi-square with one degree of freedom.
Near edges between lumps of numbers it is larger, since a fit leaks over the edge: a share takes
the quantile of two degrees there; a percentile has the part beside the edge in its interval.
Where the share beyond is small beside the errors, a percentile takes that of up to six.

Sums and least squares may fall from edge to edge: a percentile's interval goes around all edges
that it may be at, by their own estimates. `shares` never fall, and are for estimates alone.

Source: Rust and Burrus 1972; Patil, Kuusela and Hobbs (SIAM/ASA JUQ 2022), intervals from
constrained fits; Batlle, Stark and others 2023, where they fail. HaarHRR: Cormode, Kulkarni and
Srivastava (VLDB 2019).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import inf, log, log2, sqrt, tanh
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from hubbub.analysis.arrays import Floats
from hubbub.analysis.estimators.distribution import chances
from hubbub.analysis.families import Tier, family_for, figures_of
from hubbub.analysis.uncertainty.intervals import reach_of
from hubbub.analysis.value_estimates import ValueEstimates
from hubbub.mechanisms import Totals
from hubbub.mechanisms.wave import SquareWave

Counts = npt.NDArray[np.int64]

_HEAVY: Final = 1e3
# A fit takes as long as their number cubed: a second in all of so many.
_MAX_PARTS: Final = 256
# So many more degrees of freedom a fit has at most, next to an end of all shares. Measured of equal
# numbers: one end of p99 misses in 2.5% at 2.3 to 3.0 errors, and in 1% at 2.6 to 3.6.
_WAYS: Final = 5.0
# Intervals of one answer that are remembered: those of the usual percentiles at some confidences.
_REMEMBERED: Final = 64
# Shares add up to 1, so that along such a direction they move what has an error of 1 by less.
_UNMOVED: Final = 1e-2


class Ranks(Protocol):
    """Shares of the numbers below the edges of a range's parts."""

    @property
    def edges(self) -> Floats:
        """Where the parts begin, and where the last one ends; shape (parts + 1,)."""
        ...

    @property
    def shares(self) -> Floats:
        """The estimated share below each edge, never falling; shape (parts + 1,)."""
        ...

    def score(self, edge: int, share: float) -> float:
        """How far the estimate at an inner edge is above this share, in standard errors."""
        ...

    def between(self, share: float, confidence: float) -> tuple[int, int]:
        """The last edge before all that may have this share below them, the first behind them."""
        ...

    def share_reach(self, confidence: float) -> float:
        """How many standard errors either end of a share's interval is away."""
        ...

    @property
    def size(self) -> int:
        """How many numbers it holds once it was asked, at most about."""
        ...


@dataclass(frozen=True)
class LinearRanks:
    """Ranks from independent estimates of single parts.

    Args:
        figures: of the parts, in order, and perhaps of further values that are no numbers.
        repeats: for the population, largest number of reports from one device; 0 for reporters.
    """

    edges: Floats
    figures: ValueEstimates
    reports: int
    repeats: int

    @cached_property
    def _estimates(self) -> Floats:
        """The estimates, moved alike so that they add up to the reports."""
        estimates = self.figures.estimates
        moved: Floats = estimates - (float(estimates.sum()) - self.reports) / len(estimates)
        return moved

    @cached_property
    def _numbers(self) -> float:
        """How many reports hold a number."""
        return max(float(self._estimates[: len(self.edges) - 1].sum()), 1.0)

    @cached_property
    def _below(self) -> Floats:
        """The estimated count below each edge, which may fall."""
        return np.append(0.0, np.cumsum(self._estimates[: len(self.edges) - 1]))

    @cached_property
    def shares(self) -> Floats:
        """Of those who hold a number."""
        return _rising(self._below / self._numbers)

    def _scores(self, share: float) -> Floats:
        """At each inner edge the numbers below it, less this share, by the error if it is true."""
        parts, figures, numbers = len(self.edges) - 1, self.figures, self._numbers
        counts = np.clip(self._estimates, 0.0, self.reports)
        counts[:parts] += 1 / parts
        # Of each part: its variance without reports, and by how much it grows with them.
        of_parts = np.array([figures.absent**2, figures.growth * counts, figures.bend * counts**2])
        below = np.cumsum(np.vstack([counts, of_parts])[:, :parts], axis=1)
        left, right = below[:, :-1], below[:, -1:] - below[:, :-1]
        moved = (np.arange(1, parts) - share * parts) / len(counts)
        variances = moved**2 * max(float((of_parts.T @ (1, 1, -1))[parts:].sum()), 0.0)
        for side, of_side, weight in ((left, share, 1 - share), (right, 1 - share, -share)):
            scale = of_side * numbers / side[0]
            variance = side[1] + scale * side[2] - scale**2 * side[3]
            variances += (weight - moved) ** 2 * np.maximum(variance, 0.0)
        variances += self.repeats * numbers * share * (1 - share)
        # A report that is nobody's holds any value alike.
        variances += figures.number_variance * moved**2
        return _by_errors(self._below[1:-1] - share * numbers, variances)

    def score(self, edge: int, share: float) -> float:
        """Of the numbers below the edge, less this share of all, by the error if it is true."""
        return float(self._scores(share)[edge - 1])

    def between(self, share: float, confidence: float) -> tuple[int, int]:
        """Around all edges that may have this share, as estimates may fall from edge to edge."""
        return _around(self._scores(share), reach_of(confidence))

    def share_reach(self, confidence: float) -> float:
        """As of any estimate."""
        return reach_of(confidence)

    @property
    def size(self) -> int:
        """Edges, shares, counts and estimates."""
        return 4 * len(self.edges)


@dataclass(frozen=True)
class WaveRanks:
    """Ranks from the reports of `wave`, of one or more tiers over the same parts.

    Args:
        repeats: as in LinearRanks; several tiers always describe the population, since the tier of
            a person is chance.
    """

    tiers: Sequence[tuple[SquareWave, Totals]]
    repeats: int

    @cached_property
    def edges(self) -> Floats:
        """Of the mechanism; where it has very many parts, of as many groups of neighbours."""
        return np.array(self._mechanism.edges())[self._starts]

    @property
    def _mechanism(self) -> SquareWave:
        mechanism, _ = self.tiers[0]
        return mechanism

    @cached_property
    def _starts(self) -> Counts:
        """The first bucket of each part, and how many buckets there are."""
        buckets = self._mechanism.buckets
        parts = min(buckets, _MAX_PARTS)
        return np.arange(parts + 1) * buckets // parts

    def _likely(self, mechanism: SquareWave) -> Floats:
        """The chance of each place of the line, given a part: shape (places, parts)."""
        sums = np.add.reduceat(chances(mechanism), self._starts[:-1], axis=1)
        answer: Floats = sums / np.diff(self._starts)
        return answer

    @cached_property
    def _system(self) -> tuple[Floats, Floats]:
        """Rows and right-hand side whose errors are independent and 1: shape (parts, parts)."""
        tiers = [(self._likely(mechanism), totals) for mechanism, totals in self.tiers]
        even = _stacked([_evenly_weighted(*tier) for tier in tiers])
        pilot, _ = _fit(*even, np.ones((1, len(self.edges) - 1)), np.ones(1))
        repeats = self.repeats or int(len(tiers) > 1)
        return _stacked([_whitened(*tier, pilot, repeats) for tier in tiers])

    @cached_property
    def _squares(self) -> tuple[Floats, Floats]:
        """By least squares the share below each edge, and its standard error."""
        rows, right = self._system
        parts = rows.shape[1]
        # Shares add up to 1: a row that weighs far more than all others.
        heavy = _HEAVY * float(np.abs(rows).max())
        basis, triangle = np.linalg.qr(np.vstack([rows, np.full((1, parts), heavy)]))
        below = np.linalg.solve(triangle.T, np.tri(parts + 1, parts, -1).T).T
        estimates: Floats = below @ (basis.T @ np.append(right, heavy))
        return estimates, np.sqrt((below**2).sum(axis=1))

    @cached_property
    def _haar_error(self) -> float:
        """The standard error of a share below an edge by HaarHRR, with as many reports and parts.

        Of a prefix, one coefficient a level: at the root 1/2, below it 1/12 in the square.
        """
        precision = sum(
            tanh(mechanism.epsilon / 2) ** 2 * totals.reports for mechanism, totals in self.tiers
        )
        levels = log2(len(self.edges) - 1)
        return sqrt(levels * (1 / 4 + (levels - 1) / 12) / precision)

    @cached_property
    def _is_resolved(self) -> bool:
        """Whether least squares err no more than HaarHRR."""
        return float(self._squares[1].max()) <= self._haar_error

    @cached_property
    def _informed(self) -> tuple[Floats, Floats]:
        """The system without the directions in which no shares move the right-hand side."""
        rows, right = self._system
        basis, sizes, directions = np.linalg.svd(rows)
        most = sizes > _UNMOVED
        return sizes[most, None] * directions[most], basis[:, most].T @ right

    @cached_property
    def _best(self) -> tuple[Floats, float]:
        """The best fit that is not below zero, and its deviance."""
        rows, right = self._informed
        return _fit(rows, right, np.ones((1, rows.shape[1])), np.ones(1))

    @cached_property
    def shares(self) -> Floats:
        """Of least squares where they are precise, else of the best fit."""
        if self._is_resolved:
            return _rising(self._squares[0])
        return _rising(np.append(0.0, np.cumsum(self._best[0])))

    def _scores(self, share: float) -> Floats:
        """At each inner edge by least squares, which may fall from edge to edge."""
        estimates, stderrs = self._squares
        return _by_errors(estimates[1:-1] - share, stderrs[1:-1] ** 2)

    def score(self, edge: int, share: float) -> float:
        """By the standard error of least squares, or by the deviance."""
        if self._is_resolved:
            return float(self._scores(share)[edge - 1])
        off = float(self.shares[edge]) - share
        rows, right = self._informed
        sides = np.zeros((2, rows.shape[1]))
        sides[0, :edge], sides[1, edge:] = 1.0, 1.0
        _, deviance = _fit(rows, right, sides, np.array([share, 1 - share]))
        return float(np.copysign(sqrt(max(deviance - self._best[1], 0.0)), off))

    @cached_property
    def _known(self) -> Callable[[float, float], tuple[int, int]]:
        return lru_cache(_REMEMBERED)(self._between)

    def between(self, share: float, confidence: float) -> tuple[int, int]:
        """Around all edges that may have this share; remembered, since it takes some fits."""
        return self._known(share, confidence)

    def _between(self, share: float, confidence: float) -> tuple[int, int]:
        """By least squares, or by the deviance, whose edges are neighbours.

        Where the share beyond is within the error of HaarHRR, the best fit has many ways to be
        better than one with this share, and each of them is a degree of freedom.
        """
        if self._is_resolved:
            return _around(self._scores(share), reach_of(confidence))
        from scipy.special import chdtri  # noqa: PLC0415 as nnls

        near = max(1 - min(share, 1 - share) / self._haar_error, 0.0)
        reach = sqrt(float(chdtri(1 + _WAYS * near, 1 - confidence)))
        parts = len(self.edges) - 1
        part = min(max(int(np.searchsorted(self.shares, share)), 1), parts)
        low = _first(lambda edge: self.score(edge, share) >= -reach, 0, part) - 1
        return low, _first(lambda edge: self.score(edge, share) > reach, part - 1, parts)

    def share_reach(self, confidence: float) -> float:
        """Of two degrees of freedom where a fit may leak over the edge."""
        reach = reach_of(confidence)
        return reach if self._is_resolved else sqrt(-2 * log(1 - confidence))

    @property
    def size(self) -> int:
        """Two matrices of all parts, and some rows."""
        return 2 * len(self.edges) * (len(self.edges) + 4)


def _by_errors(off: Floats, variances: Floats) -> Floats:
    """In standard errors; without any, infinitely many."""
    errors = np.sqrt(variances)
    sure = np.where(off == 0, 0.0, np.copysign(inf, off))
    return np.divide(off, errors, out=sure, where=errors > 0)


def _around(scores: Floats, reach: float) -> tuple[int, int]:
    """The edges before the first score that is not too low, and behind the last not too high."""
    low = np.append(scores >= -reach, True)
    high = np.append(True, scores <= reach)
    return int(np.argmax(low)), len(high) - int(np.argmax(high[::-1]))


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The first edge past `low` that holds, which is `high` at last."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _rising(shares: Floats) -> Floats:
    """The nearest shares that never fall, from 0 to 1: least squares (Barlow and others 1972)."""
    from scipy.optimize import isotonic_regression  # noqa: PLC0415 as nnls

    answer: Floats = np.clip(isotonic_regression(shares).x, 0.0, 1.0)
    answer[0], answer[-1] = 0.0, 1.0
    return answer


def _fit(rows: Floats, right: Floats, sums: Floats, totals: Floats) -> tuple[Floats, float]:
    """Shares >= 0 with these sums that are nearest, and the square of how far they are off."""
    heavy = _HEAVY * float(np.abs(rows).max())
    from scipy.optimize import nnls  # noqa: PLC0415 takes a second to load; few questions need it

    shares, off = nnls(
        np.vstack([rows, heavy * sums]), np.append(right, heavy * totals), maxiter=50 * len(rows[0])
    )
    return shares, float(off) ** 2


def _stacked(tiers: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """Rows of all tiers, as few as there are parts; what no shares explain is left out."""
    rows, right = (np.concatenate(columns) for columns in zip(*tiers, strict=True))
    basis, triangle = np.linalg.qr(rows)
    return triangle, basis.T @ right


def _evenly_weighted(rows: Floats, totals: Totals) -> tuple[Floats, Floats]:
    """A tier's rows and right-hand side, with the weights of numbers that are spread evenly."""
    weights = np.sqrt(totals.reports / rows.mean(axis=1))
    return rows * weights[:, None], np.array(totals.cells) / totals.reports * weights


def _whitened(rows: Floats, totals: Totals, shares: Floats, repeats: int) -> tuple[Floats, Floats]:
    """The same with errors of 1, whose covariance is that of these shares."""
    places = rows @ shares
    within = rows @ (shares[:, None] * rows.T)
    covariance = np.diag(places) - within + repeats * (within - np.outer(places, places))
    # Places add up to all reports, so that nothing depends on what their sum is given.
    covariance += np.full_like(covariance, float(places.mean()))
    factor = np.linalg.cholesky(covariance / totals.reports)
    right = np.array(totals.cells) / totals.reports
    both = np.linalg.solve(factor, np.column_stack([rows, right]))
    return both[:, :-1], both[:, -1]


def ranks_of(
    tiers: Sequence[Tier], edges: Sequence[float], *, repeats: int = 1, population: bool = False
) -> Ranks | None:
    """The ranks of one metric's totals; None without reports, or without parts of a range.

    `edges` are those of listed values that are parts of a range, empty if the mechanism has the
    range; `repeats` is the largest number of reports from one device; `population` selects
    intervals for the population instead of the reporters.
    """
    live_tiers = [tier for tier in tiers if tier[1].reports]
    sampled = repeats if population else 0
    if not live_tiers:
        return None
    mechanism: Any = live_tiers[0][0]
    own = family_for(mechanism)
    if own.is_spread(mechanism):
        return WaveRanks(live_tiers, sampled)  # type: ignore[arg-type]  # of such a mechanism
    edges = edges or own.edges(mechanism)
    if not len(edges):
        return None
    figures = figures_of(own, live_tiers, (), repeats, shape=False)
    reports = sum(totals.reports for _, totals in live_tiers)
    return LinearRanks(np.array(edges, dtype=np.float64), figures, reports, sampled)
