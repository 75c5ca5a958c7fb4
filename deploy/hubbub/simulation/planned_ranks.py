"""Percentiles before launch: how far off in rank one is, if numbers lie evenly over their parts.

An error of .02 in rank of p95 is an interval from p93 to p97. It is that of the population, by the
band that answers are judged by, at the edge that is nearest to the percentile.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from hubbub.analysis import Ranks
from hubbub.analysis.estimators.distribution import chances
from hubbub.analysis.families import ValueEstimates, family_for
from hubbub.analysis.percentiles import check_percentiles, share_end
from hubbub.analysis.ranks import LinearRanks, WaveRanks
from hubbub.analysis.uncertainty.intervals import reach_of
from hubbub.errors import BadParameter
from hubbub.mechanisms import Totals, build
from hubbub.privacy.metric_draft import MetricDraft

_DRAWINGS: Final = 3


def rank_error(
    question: MetricDraft,
    name: str,
    parameters: Mapping[str, Any],
    reports: float,
    percentile: float,
) -> float:
    """Half the width, in rank, of the 95% interval of a percentile by so many reports."""
    edge = min(max(round(percentile / 100 * question.size), 1), question.size - 1)
    reach = reach_of(0.95)
    widths = [
        share_end(ranks, edge, reach, 1.0) - share_end(ranks, edge, reach, 0.0)
        for ranks in _ranks(question, name, parameters, reports)
    ]
    return sum(widths) / len(widths) / 2


def check_rank_goal(percentile: float, within: float | None) -> None:
    """Raises BadParameter for no percentile, or an error that reaches an end of all ranks."""
    check_percentiles([percentile])
    room = min(percentile, 100 - percentile) / 100
    if within is not None and not 0 < within < room:
        raise BadParameter(
            f"within {within:g} is outside (0, {room:g}): the interval of p{percentile:g} would "
            "reach the end of the range"
        )


def _ranks(
    question: MetricDraft, name: str, parameters: Mapping[str, Any], reports: float
) -> Iterator[Ranks]:
    """Ranks of as many reports as are expected in every cell; of `wave`, of some drawings.

    Its fits may not be below zero, which narrows an interval by chance alone.
    """
    mechanism: Any = build(name, **parameters)
    alike = np.full(question.size, 1 / question.size)
    if family_for(mechanism).is_spread(mechanism):
        number, likely = round(reports), chances(mechanism) @ alike
        for seed in range(_DRAWINGS):
            cells = np.random.default_rng(seed).multinomial(number, likely / likely.sum())
            yield WaveRanks([(mechanism, Totals(cells=cells.tolist(), reports=number))], 1)
        return
    errors = family_for(mechanism).expected(mechanism, question.values(), alike, reports)
    absent, counts = errors.absent * reports, alike * reports
    figures = ValueEstimates(
        estimates=counts,
        stderrs=errors.stderrs * reports,
        absent=absent,
        growth=((errors.stderrs * reports) ** 2 - absent**2) / counts,
    )
    yield LinearRanks(np.arange(question.size + 1.0), figures, round(reports), 1)
