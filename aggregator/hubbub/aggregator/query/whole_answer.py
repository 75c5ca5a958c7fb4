"""The whole answer to a question of estimates, as every face shows it and Redis keeps it."""

from collections.abc import Mapping
from typing import Any

from hubbub.aggregator.query.answers import Estimated
from hubbub.aggregator.query.estimating import EstimateQuery, RangeEstimate
from hubbub.aggregator.query.notices import reports_stderr
from hubbub.aggregator.query.overview import iso_time, notes, number_range, shuffled
from hubbub.aggregator.query.totals import EpochSelection
from hubbub.analysis import (
    PERCENTILES,
    PercentileShift,
    Ranks,
    percentile_shifts,
    percentiles_of,
    shares_below,
)
from hubbub.catalog import Metric, epoch_start
from hubbub.errors import BadParameter


def whole_answer(
    envelope: Mapping[str, Any],
    selection: EpochSelection,
    query: EstimateQuery,
    estimate: RangeEstimate,
) -> Estimated:
    """All that totals say, but for what the shuffler alone knows. envelope: its common part."""
    metric, answer = selection.metric, estimate.answer
    ranks = None if query.anytime else ranks_for(metric, query, estimate.ranks)
    first, last, ends = selection.epochs[0], selection.epochs[-1], number_range(metric)
    return Estimated(
        **envelope,
        description=metric.description,
        since=iso_time(epoch_start(first, metric.epoch)),
        until=iso_time(epoch_start(last + 1, metric.epoch)),
        updated=iso_time(estimate.updated) if estimate.updated else None,
        reports_stderr=reports_stderr(selection),
        waiting=None,
        withheld=None,
        mechanism=metric.mechanism,
        epsilon=metric.report_loss,
        shuffled=shuffled(metric, estimate.shuffled) if estimate.shuffled else None,
        honest_p_value=estimate.plausibility.p_value,
        findings=list(estimate.plausibility.findings),
        mean=answer.mean,
        others=answer.others,
        fit_p_value=answer.fit_p_value,
        twins=list(answer.twins),
        beginnings=list(answer.beginnings),
        likely=list(answer.likely),
        percentiles=percentiles_of(ranks, query.percentiles or PERCENTILES, answer.confidence)
        if ranks
        else [],
        below=shares_below(ranks, query.below, answer.confidence) if ranks else [],
        total=len(answer.values),
        values=list(answer.values),
        promised=shuffled(metric, estimate.promised),
        lowest=ends[0] if ends else None,
        highest=ends[1] if ends else None,
        notes=notes(metric, answer),
        anytime=query.anytime,
    )


def ranks_for(metric: Metric, query: EstimateQuery, ranks: Ranks | None) -> Ranks | None:
    """What percentiles are read off.

    Raises:
        BadParameter: percentiles are asked of a metric without parts of a range.
    """
    if ranks is None and query.asks_ranks:
        raise BadParameter(
            f'metric "{metric.name}" has no parts of a range, of which percentiles are read; give '
            'a number edges, or mechanism = "wave", or leave percentile and below out'
        )
    return ranks


def shifts_between(
    metric: Metric, query: EstimateQuery, before: RangeEstimate, after: RangeEstimate
) -> list[PercentileShift]:
    """How far percentiles of the population moved from one range of epochs to another."""
    if query.below:
        raise BadParameter("a comparison has no share below a number: leave below out")
    old, new = (ranks_for(metric, query, work.population) for work in (before, after))
    if old is None or new is None:
        return []
    return percentile_shifts(old, new, query.percentiles or PERCENTILES, before.answer.confidence)
