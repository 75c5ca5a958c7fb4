"""Overview: all metrics, their reports, and what one person's report reveals."""

import asyncio
from collections.abc import Sequence
from typing import Final

from hubbub.aggregator.query.answer_types import Epoch, MetricDetail, MetricLine
from hubbub.aggregator.query.candidates import looks_for_strings
from hubbub.aggregator.query.conservation_law import (
    Terms,
    until_first_batch,
    upstream_reports,
    withheld_sentence,
)
from hubbub.aggregator.query.estimating import number_range, one_look, stated_epsilon
from hubbub.aggregator.query.funnel_and_retention_totals import figure_kind
from hubbub.aggregator.query.metric_answer import iso_time, notice_of, shuffled
from hubbub.aggregator.query.totals import EpochSelection, TotalsByEpoch
from hubbub.analysis.families import family_for
from hubbub.catalog import epoch_start
from hubbub.errors.message_words import NOTICES
from hubbub.fields.rules import metric_name_of
from hubbub.privacy.card import facts, max_posterior, metric_card

_SHOWN_EPOCHS: Final = 60


async def line(
    collected: TotalsByEpoch,
    selection: EpochSelection,
    terms: Terms | None,
) -> MetricLine:
    """A metric with its reports and newest 60 epochs; `terms` are the shuffler's, if known."""
    metric = selection.metric
    # All waiting reports, also in epochs without counted reports.
    everything = {w.epoch for w in terms or {} if metric_name_of(w.stream) == metric.base_name}
    everything.update(selection.epochs)
    waiting, withheld = upstream_reports(metric, everything, terms)
    first_batch = until_first_batch(
        metric, terms, collected.reserve, has_left=bool(selection.counted)
    )
    family = None if metric.model else family_for(metric.randomizer)
    lowest, highest = number_range(metric) or (None, None)
    updated = await collected.updated(selection.pick(selection.epochs[-2:]))
    return MetricLine(
        name=metric.name,
        description=metric.description,
        owner=metric.owner,
        expires=metric.expires.isoformat(),
        mechanism=metric.mechanism,
        kind=family.KIND if family else "model",
        epsilon=stated_epsilon(metric),
        tiers=list(metric.tiers),
        epoch_length=metric.epoch,
        min_batch=metric.fewest,
        total_values=None if metric.values is None else len(metric.values),
        candidates=len(metric.candidates) if looks_for_strings(metric) else None,
        reports=selection.reports,
        waiting=waiting,
        withheld=withheld,
        updated=iso_time(updated) if updated else None,
        epochs=shown_epochs(collected, selection, selection.epochs[-_SHOWN_EPOCHS:]),
        facts=facts(metric),
        unit=metric.unit,
        lowest=lowest,
        highest=highest,
        until_first_batch="; ".join(
            filter(None, (withheld_sentence(metric, everything, terms), first_batch))
        ),
        notice=notice_of(selection) if metric.central else NOTICES[metric.development],
        parts=list(metric.parts),
        public=list(metric.breakdown),
        experiment=metric.experiment.name if metric.experiment else "",
        one_look=one_look(metric),
        discover=metric.discover,
        ways=family_for(metric.randomizer).ways(metric.randomizer),
        figures=metric.kind if figure_kind(metric) else "",
    )


async def detail(
    collected: TotalsByEpoch,
    selection: EpochSelection,
    terms: Terms | None,
) -> MetricDetail:
    """The metric with the figures of its privacy card."""
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
        shuffled=shuffled(selection.metric, card.shuffled),
        alert="",
        alert_raised=False,
    )


def shown_epochs(
    collected: TotalsByEpoch, selection: EpochSelection, epochs: Sequence[int]
) -> list[Epoch]:
    """Epochs with their numbers of reports."""
    metric, reports = selection.metric, selection.by_epoch()
    return [
        Epoch(
            epoch=epoch,
            date=selection.date(epoch),
            begins=iso_time(epoch_start(epoch, metric.epoch)),
            reports=reports[epoch],
            closed=collected.is_closed(metric, epoch),
        )
        for epoch in epochs
    ]
