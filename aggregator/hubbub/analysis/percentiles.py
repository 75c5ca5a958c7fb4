"""Percentiles of numbers reported in parts, and shares below a number, with intervals.

The interval of percentile p begins at the last edge that is surely at or below it, and ends at the
first edge that is surely at or above it, each with half of the error rate: it inverts a band of the
distribution function, edge by edge (`ranks`), and includes the estimate's part. It contains whole
parts, since no report shows where in its part a number lies. The estimate, and a share below a
number inside a part, are interpolated as if numbers were spread evenly there. An end of the range
may stand for all numbers beyond it: `reaches` shows where an interval ends there, because of them
or of too few reports.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isclose, isfinite, sqrt
from typing import Final, Literal

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.ranks import Ranks
from hubbub.analysis.uncertainty.limit_search import crossing
from hubbub.errors import BadParameter

PERCENTILES: Final = (10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0)
"""What is answered where neither the query nor the metric names any."""

Reaches = Literal["", "low", "high", "both"]

MAX_PERCENTILES: Final = 100
# Of the end of a share's interval.
_PRECISION: Final = 1e-7


@dataclass(frozen=True, slots=True, kw_only=True)
class Percentile:
    """The number below which this percentage of the numbers lies, in the metric's unit.

    `low` and `high` are edges of buckets. `reaches` are the ends of the range among them, beyond
    which the percentile may lie: more reports are needed, or a wider range.
    """

    percentile: float
    estimate: float
    low: float
    high: float
    reaches: Reaches = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareBelow:
    """The share of the numbers that lie below a number in the metric's unit."""

    below: float
    share: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PercentileShift:
    """One percentile before and after, in the metric's unit, and its shift for the population.

    `moved` is whether the interval excludes 0. `reaches` are ends of the range at which either
    percentile's interval ends; the difference is then unbounded.
    """

    percentile: float
    before: float
    after: float
    difference: float
    low: float
    high: float
    moved: bool
    reaches: Reaches = ""


def check_percentiles(percentiles: Sequence[float]) -> tuple[float, ...]:
    """Distinct percentiles, ascending. Raises BadParameter if one is outside (0, 100), or many."""
    for percentile in percentiles:
        if not 0 < percentile < 100:  # noqa: PLR2004 percent
            raise BadParameter(
                f"percentile {percentile:g} is outside (0, 100); 50 is the median, and the least "
                "and the largest number cannot be estimated"
            )
    if len(percentiles) > MAX_PERCENTILES:
        raise BadParameter(f"{len(percentiles)} percentiles: ask for {MAX_PERCENTILES} at most")
    return tuple(sorted(set(percentiles)))


def percentiles_of(
    ranks: Ranks, percentiles: Sequence[float], confidence: float
) -> list[Percentile]:
    """Each percentile with its interval."""
    parts, rows = len(ranks.edges) - 1, []
    for percentile in percentiles:
        share = percentile / 100
        part = _part_with(ranks, share)
        share_below, share_above = ranks.shares[part - 1 : part + 1].tolist()
        fraction = (
            (share - share_below) / (share_above - share_below)
            if share_above > share_below
            else 0.5
        )
        start, end = ranks.edges[part - 1 : part + 1].tolist()
        low, high = ranks.between(share, confidence)
        # The estimate uses all edges together, so it may lie outside the parts of single edges.
        low, high = min(low, part - 1), max(high, part)
        ends = low == 0 and ranks.edges[0] > ranks.least, high == parts
        rows.append(
            Percentile(
                percentile=percentile,
                estimate=start + min(max(fraction, 0.0), 1.0) * (end - start),
                low=float(ranks.edges[low]),
                high=float(ranks.edges[high]),
                reaches="both" if all(ends) else "low" if ends[0] else "high" if ends[1] else "",
            )
        )
    return rows


def _part_with(ranks: Ranks, share: float) -> int:
    """Place of the edge up to which the part with this share of the numbers below it extends."""
    return min(max(int(np.searchsorted(ranks.shares, share)), 1), len(ranks.edges) - 1)


def divided_ends(ranks: Ranks, row: Percentile) -> tuple[Floats, Floats]:
    """Lows and highs of a percentile, if it has none, half and all of a difference's variance.

    Each end is an edge, since no report shows where in a part the percentile lies. Shares below
    the edges of an interval have nearly the same error.
    """
    share, shares, edges = row.percentile / 100, ranks.shares, ranks.edges
    part = _part_with(ranks, share)
    low, high = np.searchsorted(edges, [row.low, row.high])
    furthest = share + (shares[[low, high]] - share) / sqrt(2)
    low_between = min(int(np.searchsorted(shares, furthest[0], side="right")), part) - 1
    high_between = max(int(np.searchsorted(shares, furthest[1])), part)
    return edges[[part - 1, low_between, low]], edges[[part, high_between, high]]


def max_difference(lows: Floats, highs: Floats) -> float:
    """How far one percentile may be above another, from `divided_ends` of both.

    Both errors together are as improbable as an end of either (profile likelihood). Whole parts are
    added, not combined as errors are: in each, all numbers may be at one end.
    """
    return float((highs - lows[::-1]).max())


def percentile_shifts(
    before: Ranks, after: Ranks, percentiles: Sequence[float], confidence: float
) -> list[PercentileShift]:
    """Shift of each percentile, with an interval from those of both sides."""
    sides = [percentiles_of(ranks, percentiles, confidence) for ranks in (before, after)]
    shifts = []
    for old, new in zip(*sides, strict=True):
        old_lows, old_highs = divided_ends(before, old)
        new_lows, new_highs = divided_ends(after, new)
        low, high = -max_difference(new_lows, old_highs), max_difference(old_lows, new_highs)
        ends = {old.reaches, new.reaches} - {""}
        shifts.append(
            PercentileShift(
                percentile=old.percentile,
                before=old.estimate,
                after=new.estimate,
                difference=new.estimate - old.estimate,
                low=low,
                high=high,
                moved=low > 0 or high < 0,
                reaches="both" if len(ends) > 1 else next(iter(ends), ""),
            )
        )
    return shifts


def shares_below(ranks: Ranks, bounds: Sequence[float], confidence: float) -> list[ShareBelow]:
    """Share of the numbers below each bound. Raises BadParameter for a bound outside the range."""
    low, high = float(ranks.edges[0]), float(ranks.edges[-1])
    for bound in bounds:
        if not (isfinite(bound) and low < bound < high):
            raise BadParameter(
                f"below {bound:g} is outside ({low:g}, {high:g}), the metric's range; ask for a "
                "number inside it"
            )
    edges, reach = ranks.edges, ranks.share_reach(confidence)
    rows = []
    for bound in bounds:
        edge_below = edge_above = int(np.argmin(np.abs(edges - bound)))
        if not isclose(float(edges[edge_below]), bound, abs_tol=1e-9 * (high - low)):
            edge_above = int(np.searchsorted(edges, bound))
            edge_below = edge_above - 1
        rows.append(
            ShareBelow(
                below=bound,
                share=float(np.interp(bound, edges, ranks.shares)),
                low=share_end(ranks, edge_below, reach, 0.0),
                high=share_end(ranks, edge_above, reach, 1.0),
            )
        )
    return rows


def share_end(
    ranks: Ranks, edge: int, reach: float, farthest: float, precision: float = _PRECISION
) -> float:
    """The share that is `reach` errors from the estimate, towards `farthest`, which is 0 or 1."""
    inner, outer = float(ranks.shares[edge]), farthest
    if edge in (0, len(ranks.edges) - 1):
        return inner
    towards = 1.0 if outer < inner else -1.0
    return crossing(
        lambda share: towards * ranks.score(edge, share) - reach, inner, outer, precision
    )[1]
