"""Answers that follow from estimates: the most frequent values, crossed parts, changes, figures."""

import asyncio
from dataclasses import replace
from functools import partial

from hubbub.aggregator.query.answer_types import Compared, Crossed, TopList
from hubbub.aggregator.query.breakdowns import Part, notes_of_arms, parts_by
from hubbub.aggregator.query.engine import QueryEngine
from hubbub.aggregator.query.epoch_range import NEWEST, EpochRange
from hubbub.aggregator.query.estimating import (
    WHOLE,
    EstimateQuery,
    Page,
    RangeEstimate,
    percentiles_for,
    ranks_for,
)
from hubbub.aggregator.query.funnel_and_retention_totals import Figured, FigureSources, meant_query
from hubbub.aggregator.query.metric_answer import (
    notes_of_figures,
    notes_of_levels,
    notes_of_outside,
    notes_of_places,
)
from hubbub.aggregator.query.totals import EpochSelection
from hubbub.analysis.answering import to_shared_values
from hubbub.analysis.comparisons import order_confidence
from hubbub.analysis.comparisons.change import changes
from hubbub.analysis.comparisons.cross_tables import Cross, crossed
from hubbub.analysis.families import family_for
from hubbub.analysis.funnels_retention_and_rates import Figure
from hubbub.analysis.percentiles import PercentileShift, percentile_shifts
from hubbub.catalog import UNLISTED, Metric, epoch_at, reports_of_one
from hubbub.errors import BadParameter, BatchTooSmall
from hubbub.errors.message_words import several


async def top(engine: QueryEngine, name: str, query: EstimateQuery, number: int) -> TopList:
    """The most frequent values, and the confidence in their order."""
    query, selection, answer = await engine.find_answer(name, query)
    streams = {window.stream for window, count in selection.counted.items() if count.reports}
    mechanisms = [engine.collected.bundle.streams[stream].randomizer for stream in streams]
    correlation = max(family_for(mechanism).correlation(mechanism) for mechanism in mechanisms)
    make = partial(asyncio.to_thread, order_confidence.top, answer, number, correlation)
    best = await engine.cached(
        ("top", query, number), selection, make, lambda best: len(best.values)
    )
    shares = [row.value.share or 0.0 for row in best.values]
    return TopList(
        **engine.envelope(query, answer.kind, selection),
        set_confidence=best.set_confidence,
        order_confidence=best.order_confidence,
        values=list(best.values),
        notes=[
            *notes_of_levels(answer, shares, answer.reports),
            *notes_of_places([row.value for row in best.values]),
        ],
    )


async def cross(
    engine: QueryEngine, name: str, query: EstimateQuery, parts: tuple[str, str, str]
) -> Crossed:
    """Two parts as a table, with the first part's values as rows; a table per value of a third.

    `parts` are rows, columns and the third; "" is the first free part, or no third part.
    """
    query, selection, answer = await engine.find_answer(name, query)

    async def make() -> Cross:
        selected, metric = await engine.collected.read(selection), selection.metric
        repeats = reports_of_one(metric, selection.epochs)
        return await asyncio.to_thread(
            crossed, selected.tiers(), metric.values, answer, parts, repeats
        )

    table = await engine.cached(
        ("cross", query, parts), selection, make, lambda table: len(table.cells)
    )
    return Crossed(
        **engine.envelope(query, answer.kind, selection),
        rows=table.rows,
        columns=table.columns,
        parts=list(table.parts),
        by=table.by,
        slices=list(table.slices),
        association=table.association,
        values=list(table.cells),
    )


async def compare(
    engine: QueryEngine, name: str, query: EstimateQuery, after: EpochRange, page: Page = WHOLE
) -> Compared:
    """The change between the range of `query` and `after`, from the earlier to the later one.

    Raises TooFewEpochs without an epoch to compare with, BatchTooSmall if a range has too few
    reports.
    """
    query = await engine.resolved(name, query)
    *holdings, why = await engine.collected.pair(name, query.range, after)
    earlier_epochs, later_epochs = (holding.epochs for holding in holdings)
    if shared := set(earlier_epochs) & set(later_epochs):
        remedy = "add --to, or over HTTP to_epochs" if after == NEWEST else "choose others"
        raise BadParameter(
            f"both ranges contain {holdings[0].date(min(shared))}: their errors would not be "
            f"independent; {remedy}"
        )
    swapped_notes = []
    if earlier_epochs and later_epochs and earlier_epochs[0] > later_epochs[-1]:
        holdings.reverse()
        dates = holdings[0].dates
        swapped_notes = [f"the range that was named second, {dates}, is earlier, so it comes first"]
    works = []
    for place, holding in zip(("before", "after"), holdings, strict=True):
        try:
            works.append(await engine.work(holding, query))
        except BatchTooSmall as error:
            raise BatchTooSmall(f"the range {place}: {error}") from error
    old, new = [work.answer for work in works]
    value_changes = changes(*to_shared_values(old, new))
    shifts = await asyncio.to_thread(_shifts_between, holdings[0].metric, query, *works)
    values, total = page.of(value_changes, "p_value")
    bounds = [(row.difference, row.low, row.high) for row in value_changes]
    return Compared(
        **engine.envelope(query, old.kind, *holdings),
        before_epochs=list(holdings[0].epochs),
        after_epochs=list(holdings[1].epochs),
        before_dates=holdings[0].dates,
        after_dates=holdings[1].dates,
        before_reports=old.reports,
        after_reports=new.reports,
        total=total,
        values=values,
        chosen=why,
        percentiles=shifts,
        notes=[
            *swapped_notes,
            *notes_of_outside(bounds, "A difference", old.reports + new.reports),
        ],
    )


async def figures(
    engine: QueryEngine, name: str, query: EstimateQuery, by: str = "", *, by_cohort: bool = False
) -> Figured:
    """Conversions of a funnel, a rate, numbers of actives, or shares that come back.

    There are rows for each value of the public field `by`; "" for all devices together; with
    `by_cohort`, for each first week. Raises TooFewEpochs if no device can have come back yet.
    """
    bundle = engine.collected.bundle
    metric = bundle.metric(name)
    query, kind = meant_query(metric, await engine.resolved(name, query), by_cohort=by_cohort)
    selection = await engine.collected.find(name, query.range)
    parts = parts_by(bundle, selection, by) if by else [Part("", selection, None)]
    answered = [part for part in parts if part.is_answered or not by]
    if not answered:
        await engine.collected.read(selection)  # raises BatchTooSmall where all parts are too few

    values = [
        replace(figure, part=part.name)
        for part in answered
        for figure in await figures_of(engine, part.own, query.confidence, by_cohort=by_cohort)
    ]
    unanswered = [
        f"{part.name}: {several(part.own.reports, 'report')}, below the minimum batch of "
        f"{metric.fewest:,}"
        for part in parts
        if part not in answered and (part.own.reports or part.name != UNLISTED)
    ]
    return Figured(
        **engine.envelope(query, metric.kind, selection),
        whose=kind.whose,
        by=by,
        values=values,
        notes=[
            *notes_of_arms(metric, by, parts),
            *notes_of_figures(values, selection.reports),
            *unanswered,
        ],
    )


async def figures_of(
    engine: QueryEngine, selection: EpochSelection, confidence: float, *, by_cohort: bool = False
) -> list[Figure]:
    """The figures of these epochs, conversions and weeks in their order, the newest first."""
    metric, collected = selection.metric, engine.collected

    async def make() -> list[Figure]:
        selected = await collected.read(selection)
        sources = FigureSources(
            collected=collected, selected=selected, confidence=confidence, by_cohort=by_cohort
        )
        return await asyncio.to_thread(sources.figures)

    running = epoch_at(collected.now(), metric.epoch)
    closed = sum(collected.is_closed(metric, epoch) for epoch in selection.epochs)
    return await engine.cached(("figures", confidence, by_cohort, running, closed), selection, make)


def _shifts_between(
    metric: Metric, query: EstimateQuery, before: RangeEstimate, after: RangeEstimate
) -> list[PercentileShift]:
    """Shifts of the population's percentiles between two ranges of epochs."""
    if query.below:
        raise BadParameter('a comparison has no share below a number: leave "below" out')
    old, new = (ranks_for(metric, query, work.population) for work in (before, after))
    if old is None or new is None:
        return []
    return percentile_shifts(old, new, percentiles_for(metric, query), before.answer.confidence)
