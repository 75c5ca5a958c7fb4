"""Overview: the metrics there are, what is held of each, and what one person's report reveals."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from hubbub.aggregator.query.answers import Epoch, MetricDetail, MetricLine, Shuffled
from hubbub.aggregator.query.report_counts import Terms, upstream_reports
from hubbub.aggregator.query.totals import EpochSelection, TotalsByEpoch
from hubbub.analysis.families import family_for
from hubbub.catalog import epoch_start, facts, metric_name_of
from hubbub.privacy.amplification import Amplified
from hubbub.privacy.card import max_posterior, metric_card

__all__ = ["detail", "iso_time", "line", "shown_epochs", "shuffled"]

_SHOWN_EPOCHS: Final = 60
_LATEST: Final = 253_402_300_799


async def line(
    collected: TotalsByEpoch, selection: EpochSelection, terms: Terms | None
) -> MetricLine:
    """A metric with all that is held of it; of the epochs the newest 60."""
    metric = selection.metric
    # All that waits, in epochs of which nothing is counted yet too.
    everything = {w.epoch for w in terms or {} if metric_name_of(w.stream) == metric.base_name}
    waiting, withheld = upstream_reports(
        EpochSelection(metric, tuple(everything.union(selection.epochs)), selection.counted), terms
    )
    updated = await collected.updated(selection.only(selection.epochs[-2:]))
    return MetricLine(
        name=metric.name,
        description=metric.description,
        owner=metric.owner,
        expires=metric.expires.isoformat(),
        mechanism=metric.mechanism,
        kind=family_for(metric.randomizer).KIND,
        epsilon=metric.report_loss,
        tiers=list(metric.tiers),
        epoch_length=metric.epoch,
        min_batch=metric.min_batch,
        total_values=None if metric.values is None else len(metric.values),
        reports=selection.reports,
        waiting=waiting,
        withheld=withheld,
        updated=iso_time(updated) if updated else None,
        epochs=shown_epochs(collected, selection, selection.epochs[-_SHOWN_EPOCHS:]),
        facts=facts(metric),
    )


async def detail(
    collected: TotalsByEpoch, selection: EpochSelection, terms: Terms | None
) -> MetricDetail:
    """The same with the privacy card's line."""
    card = await asyncio.to_thread(metric_card, selection.metric)
    return MetricDetail(
        metric=await line(collected, selection, terms),
        per_report=card.per_report,
        reports_per_epoch=card.reports_per_epoch,
        per_epoch=card.per_epoch,
        unchanged=card.unchanged,
        lifetime_epsilon=card.lifetime_epsilon,
        max_posterior=max_posterior(card.per_report),
        sentence=card.sentence,
        shuffled=shuffled(card.shuffled),
    )


def shown_epochs(
    collected: TotalsByEpoch, selection: EpochSelection, epochs: Sequence[int]
) -> list[Epoch]:
    """Epochs with what they hold."""
    metric, reports = selection.metric, selection.by_epoch()
    return [
        Epoch(
            epoch=epoch,
            begins=iso_time(epoch_start(epoch, metric.epoch)),
            reports=reports[epoch],
            closed=collected.is_closed(metric, epoch),
        )
        for epoch in epochs
    ]


def shuffled(found: Amplified) -> Shuffled:
    """A central guarantee with what it rests on."""
    return Shuffled(found.epsilon, found.delta, found.reports, found.assumption)


def iso_time(seconds: float) -> str:
    """ISO 8601 in UTC; past the last year that it has, the end of that."""
    return datetime.fromtimestamp(min(seconds, _LATEST), UTC).isoformat().replace("+00:00", "Z")
