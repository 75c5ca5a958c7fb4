"""The whole answer to a question of estimates, as every face shows it and Redis keeps it."""

from collections.abc import Mapping
from typing import Any

from hubbub.aggregator.query.answers import Estimated
from hubbub.aggregator.query.estimating import EstimateQuery, RangeEstimate
from hubbub.aggregator.query.notices import reports_stderr
from hubbub.aggregator.query.overview import iso_time, notes, number_range, shuffled
from hubbub.aggregator.query.totals import EpochSelection
from hubbub.catalog import epoch_start


def whole_answer(
    envelope: Mapping[str, Any],
    selection: EpochSelection,
    query: EstimateQuery,
    estimate: RangeEstimate,
) -> Estimated:
    """All that totals say, but for what the shuffler alone knows. envelope: its common part."""
    metric, answer = selection.metric, estimate.answer
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
        total=len(answer.values),
        values=list(answer.values),
        promised=shuffled(metric, estimate.promised),
        lowest=ends[0] if ends else None,
        highest=ends[1] if ends else None,
        notes=notes(metric, answer),
        anytime=query.anytime,
    )
