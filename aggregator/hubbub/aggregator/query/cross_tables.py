"""Crossing: two parts of a metric as a table, or by a third, from the totals of some epochs."""

from collections.abc import Mapping

from hubbub.aggregator.query.answers import Crossed
from hubbub.aggregator.query.totals import EpochSelection, TotalsByEpoch
from hubbub.aggregator.store.contract import WindowTotals
from hubbub.analysis import Answer, crossed
from hubbub.catalog import reports_of_one
from hubbub.conservation import Window


def cross_table(
    collected: TotalsByEpoch,
    selection: EpochSelection,
    totals: Mapping[Window, WindowTotals],
    answer: Answer,
    parts: tuple[str, str, str],
) -> Crossed:
    """The table of two parts, the first one's values as rows; one for each value of a third.

    parts: rows, columns, and the third or "". answer: to the same totals.

    Raises:
        BadParameter: the metric has no such parts, or their table is too large.
    """
    metric = selection.metric
    tiers = collected.tiers(metric, totals, selection.epochs)
    repeats = reports_of_one(metric, selection.epochs)
    table = crossed(tiers, metric.values, answer, parts, repeats)
    return Crossed(
        metric=metric.name,
        epochs=list(selection.epochs),
        dates=selection.dates,
        final=all(collected.is_closed(metric, epoch) for epoch in selection.epochs),
        reports=answer.reports,
        confidence=answer.confidence,
        rows=table.rows,
        columns=table.columns,
        parts=list(table.parts),
        by=table.by,
        slices=list(table.slices),
        association=table.association,
        values=list(table.cells),
    )
