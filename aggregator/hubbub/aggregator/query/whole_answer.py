"""The whole answer about a metric: estimates, percentiles, guarantees and notes."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from hubbub.aggregator.query.answer_notes import notes, reports_stderr
from hubbub.aggregator.query.answer_types import Estimated, Shuffled
from hubbub.aggregator.query.estimating import (
    EstimateQuery,
    RangeEstimate,
    ranks_for,
)
from hubbub.aggregator.query.figures import figure_kind
from hubbub.aggregator.query.totals import EpochSelection
from hubbub.analysis.families import family_for
from hubbub.analysis.percentiles import PERCENTILES, percentiles_of, shares_below
from hubbub.catalog import Metric, epoch_start
from hubbub.privacy.amplification import Amplified
from hubbub.privacy.crowd import rests_on

_LATEST: Final = 253_402_300_799


def whole_answer(
    envelope: Mapping[str, Any],
    selection: EpochSelection,
    query: EstimateQuery,
    estimate: RangeEstimate,
) -> Estimated:
    """The answer from totals, without the shuffler's terms; `envelope` has the common fields."""
    metric, answer = selection.metric, estimate.answer
    ranks = None if query.anytime else ranks_for(metric, query, estimate.ranks)
    first, last = selection.epochs[0], selection.epochs[-1]
    lowest, highest = answer.span or (None, None)
    edges: Sequence[float] = metric.edges
    if edges:
        lowest, highest = edges[0], edges[-1]
    elif metric.values is None:
        edges = family_for(metric.randomizer).edges(metric.randomizer)
    return Estimated(
        **envelope,
        description=metric.description,
        since=iso_time(epoch_start(first, metric.epoch)),
        until=iso_time(epoch_start(last + 1, metric.epoch)),
        updated=iso_time(estimate.updated) if estimate.updated else None,
        reports_stderr=reports_stderr(selection) if metric.central else 0.0,
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
        edges=list(edges),
        percentiles=percentiles_of(
            ranks, query.percentiles or (() if query.below else PERCENTILES), answer.confidence
        )
        if ranks
        else [],
        below=shares_below(ranks, query.below, answer.confidence) if ranks else [],
        total=len(answer.values),
        values=list(answer.values),
        promised=shuffled(metric, estimate.promised),
        lowest=lowest,
        highest=highest,
        notes=notes(metric, answer),
        anytime=query.anytime,
        figures=metric.kind if metric.kind and figure_kind(metric) else "",
    )


def shuffled(metric: Metric, guarantee: Amplified) -> Shuffled:
    """A central guarantee with its assumption."""
    return Shuffled(
        epsilon=guarantee.epsilon,
        delta=guarantee.delta,
        reports=guarantee.reports,
        assumption=guarantee.assumption,
        rests_on=rests_on(metric, guarantee),
    )


def iso_time(seconds: float) -> str:
    """ISO 8601 in UTC; capped at the end of year 9999."""
    return datetime.fromtimestamp(min(seconds, _LATEST), UTC).isoformat().replace("+00:00", "Z")
