"""Percentiles before launch: how far off in rank one is, if numbers lie evenly over their parts.

An error of .02 in rank of p95 is an interval from p93 to p97. It is that of the population, by the
band that answers are judged by, at the edge that is nearest to the percentile, over some drawings.
Of more reports than are drawn it falls with the root of their number (central limit).
"""

from collections.abc import Mapping
from math import sqrt
from typing import Any, Final

import numpy as np

from hubbub.analysis import Ranks, ranks_of
from hubbub.analysis.families import draw
from hubbub.analysis.percentiles import check_percentiles, share_end
from hubbub.analysis.uncertainty.intervals import reach_of
from hubbub.errors import BadParameter
from hubbub.mechanisms import build
from hubbub.privacy.metric_draft import MetricDraft

_DRAWINGS: Final = 3
_MAX_DRAWN: Final = 1e8


def rank_error(
    question: MetricDraft,
    name: str,
    parameters: Mapping[str, Any],
    reports: float,
    percentile: float,
) -> float:
    """Half the width, in rank, of the 95% interval of a percentile by so many reports."""
    mechanism, parts = build(name, **parameters), question.size
    edge = min(max(round(percentile / 100 * parts), 1), parts - 1)
    drawn = min(reports, _MAX_DRAWN)
    each = np.diff(np.linspace(0, round(drawn), parts + 1).round().astype(np.int64)).tolist()
    widths = []
    for seed in range(_DRAWINGS):
        totals = draw(mechanism, question.values(), each, np.random.default_rng(seed))
        ranks = ranks_of([(mechanism, totals)], range(parts + 1), population=True)
        widths.append(_width(ranks, edge) if ranks else 1.0)
    return sum(widths) / _DRAWINGS / 2 * sqrt(drawn / reports)


def _width(ranks: Ranks, edge: int) -> float:
    """Between which shares the one below an edge is, in 95 of 100 cases."""
    reach = reach_of(0.95)
    return share_end(ranks, edge, reach, 1.0) - share_end(ranks, edge, reach, 0.0)


def check_rank_goal(percentile: float, within: float | None) -> None:
    """Raises BadParameter for no percentile, or an error that reaches an end of all ranks."""
    check_percentiles([percentile])
    room = min(percentile, 100 - percentile) / 100
    if within is not None and not 0 < within < room:
        raise BadParameter(
            f"within {within:g} is outside (0, {room:g}): the interval of p{percentile:g} would "
            "reach the end of the range"
        )
