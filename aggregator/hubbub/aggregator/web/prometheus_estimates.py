"""Estimates for Prometheus, with the bounds of their intervals; and counts of requests.

For every metric: the most frequent values in the newest epoch that has a minimum batch.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from prometheus_client import generate_latest
from prometheus_client.metrics_core import Metric as Series
from prometheus_client.registry import Collector

from hubbub.aggregator.query import Page, QueryEngine
from hubbub.aggregator.query.alert_verdicts import AlertVerdict, newest_verdict
from hubbub.aggregator.query.answer_types import Estimated, MetricLine
from hubbub.aggregator.query.epoch_range import EpochRange
from hubbub.aggregator.query.estimating import EstimateQuery
from hubbub.errors import BatchTooSmall, TotalsUnreadable
from hubbub.query_results.answer_table import COLUMNS
from hubbub.runtime.monitoring.metric_declaration import MetricDeclaration

_MAX_VALUES: Final = 50
_LONGEST: Final = 200  # longest label

METRIC_REPORTS: Final = MetricDeclaration(
    "hubbub_metric_reports", "Reports counted of a metric, over all epochs", ("metric",)
)
METRIC_INFO: Final = MetricDeclaration(
    "hubbub_metric_info",
    "1 for every metric; labels: what its estimates describe, and the unit of numbers",
    ("metric", "kind", "unit"),
)
METRIC_WAITING_REPORTS: Final = MetricDeclaration(
    "hubbub_metric_waiting_reports",
    "Reports that the shuffler holds; only in development",
    ("metric",),
)
EPOCH: Final = MetricDeclaration(
    "hubbub_estimate_epoch", "The epoch that estimates are of, and its date", ("metric", "date")
)
EPOCH_REPORTS: Final = MetricDeclaration(
    "hubbub_estimate_epoch_reports", "Reports of that epoch", ("metric",)
)
ALERT: Final = MetricDeclaration(
    "hubbub_alert",
    "Whether the catalog's alert is raised for the newest closed epoch",
    ("metric", "when", "date"),
)
HONEST_P_VALUE: Final = MetricDeclaration(
    "hubbub_estimate_honest_p_value",
    "Upper bound on the chance of totals so far off from honest reports",
    ("metric",),
)
HTTP_REQUESTS: Final = MetricDeclaration(
    "hubbub_http_requests_total", "Requests over HTTP that were answered, by status", ("code",)
)


def estimate_columns() -> dict[str, MetricDeclaration]:
    """Gauges of a value, by field of an estimate."""
    return {
        field: MetricDeclaration(
            f"hubbub_{field}" if field == "estimate" else f"hubbub_estimate_{field}",
            column.meaning,
            ("metric", "value"),
        )
        for column in COLUMNS["estimates"]
        if column.gauge
        for field in column.fields
    }


PERCENTILES: Final = {
    field: MetricDeclaration(name, meaning, ("metric", "percentile"))
    for field, name, meaning in (
        ("estimate", "hubbub_percentile", "Percentile of a number with buckets, in its own unit"),
        ("low", "hubbub_percentile_low", "Lower end of the percentile's interval"),
        ("high", "hubbub_percentile_high", "Upper end of the percentile's interval"),
    )
}
"""Those of a percentile, by field."""


async def exposition(query: QueryEngine, requests: Mapping[int, int]) -> bytes:
    """Returns the text for Prometheus; `requests` counts answered requests by status."""
    lines = [(line, await _newest_estimates(query, line)) for line in await query.metrics()]
    metrics = query.collected.bundle.metrics.values()
    verdicts = [await newest_verdict(query, metric) for metric in metrics]
    return generate_latest(_Estimates(lines, list(filter(None, verdicts)), requests))


async def _newest_estimates(query: QueryEngine, line: MetricLine) -> Estimated | None:
    """Returns estimates of the newest epoch with enough reports; None for unlisted strings."""
    large = [epoch.epoch for epoch in line.epochs if epoch.reports >= line.min_batch]
    metric = query.collected.bundle.metrics[line.name]
    if not large or metric.model or (line.kind == "strings" and not metric.candidates):
        return None
    newest_query = EstimateQuery(range=EpochRange(epochs=str(large[-1])))
    with suppress(BatchTooSmall, TotalsUnreadable):  # deleted meanwhile, or unreadable
        return await query.estimate(line.name, newest_query, Page(0, _MAX_VALUES, "rank"))
    return None


@dataclass(frozen=True, slots=True)
class _Estimates(Collector):
    lines: Sequence[tuple[MetricLine, Estimated | None]]
    verdicts: Sequence[AlertVerdict]
    requests: Mapping[int, int]

    def collect(self) -> Iterator[Series]:
        """Returns the series of the queried estimates."""
        report_counts, waiting = METRIC_REPORTS.family(), METRIC_WAITING_REPORTS.family()
        epoch, epoch_reports = EPOCH.family(), EPOCH_REPORTS.family()
        info = METRIC_INFO.family()
        p_values = HONEST_P_VALUE.family()
        columns = {field: declared.family() for field, declared in estimate_columns().items()}
        for line, estimate in self.lines:
            info.add_metric([line.name, line.kind, line.unit], 1)
            report_counts.add_metric([line.name], line.reports)
            if line.waiting is not None:
                waiting.add_metric([line.name], line.waiting)
            if estimate is None:
                continue
            epoch.add_metric([line.name, estimate.dates], estimate.epochs[-1])
            epoch_reports.add_metric([line.name], estimate.reports)
            p_values.add_metric([line.name], estimate.honest_p_value)
            for value in estimate.values:
                for name, family in columns.items():
                    if (figure := getattr(value, name)) is not None:
                        family.add_metric([line.name, value.value[:_LONGEST]], figure)
        yield from self._percentiles()
        yield from (info, report_counts, waiting, epoch, epoch_reports, p_values, *columns.values())
        alerts = ALERT.family()
        for verdict in self.verdicts:
            alerts.add_metric(
                [verdict.metric, verdict.when[:_LONGEST], verdict.date], int(verdict.fired)
            )
        yield alerts
        answered = HTTP_REQUESTS.family()
        for status, number in sorted(self.requests.items()):
            answered.add_metric([str(status)], number)
        yield answered

    def _percentiles(self) -> Iterator[Series]:
        families = {field: declared.family() for field, declared in PERCENTILES.items()}
        for line, estimate in self.lines:
            for row in estimate.percentiles if estimate else ():
                for field, family in families.items():
                    family.add_metric([line.name, f"{row.percentile:g}"], getattr(row, field))
        yield from families.values()
