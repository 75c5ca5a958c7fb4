"""What the aggregator tells Prometheus: of itself, and of estimates."""

from typing import Final

from hubbub.query_results import COLUMNS
from hubbub.runtime import MetricDeclaration

BATCHES: Final = MetricDeclaration(
    "hubbub_batches_total",
    "counter",
    "Batches: applied, already_applied, or why they wait: window_full, clocks_differ",
    ("outcome",),
)
OPENING_KEY_DAYS_LEFT: Final = MetricDeclaration(
    "hubbub_opening_key_days_left", "gauge", "Days for which there are still opening keys"
)
UNREADABLE_TOTALS: Final = MetricDeclaration(
    "hubbub_unreadable_totals",
    "gauge",
    "Entries of the totals' Redis that cannot be read and are left out",
)
DECLARED: Final = (BATCHES, OPENING_KEY_DAYS_LEFT, UNREADABLE_TOTALS)
"""At --metrics-listen, beside what every service tells."""

METRIC_REPORTS: Final = MetricDeclaration(
    "hubbub_metric_reports", "gauge", "Reports counted of a metric, over all epochs", ("metric",)
)
METRIC_INFO: Final = MetricDeclaration(
    "hubbub_metric_info",
    "gauge",
    "1, for every metric: what its estimates are of, and of numbers what they are measured in",
    ("metric", "kind", "unit"),
)
METRIC_WAITING_REPORTS: Final = MetricDeclaration(
    "hubbub_metric_waiting_reports",
    "gauge",
    "Reports that the shuffler holds; in development alone",
    ("metric",),
)
EPOCH: Final = MetricDeclaration(
    "hubbub_estimate_epoch",
    "gauge",
    "The epoch that estimates are of, and its date",
    ("metric", "date"),
)
EPOCH_REPORTS: Final = MetricDeclaration(
    "hubbub_estimate_epoch_reports", "gauge", "Reports of that epoch", ("metric",)
)
ALERT: Final = MetricDeclaration(
    "hubbub_alert",
    "gauge",
    "Whether the newest epoch that takes no more reports is one that the catalog's alert is for",
    ("metric", "when", "date"),
)
HONEST_P_VALUE: Final = MetricDeclaration(
    "hubbub_estimate_honest_p_value",
    "gauge",
    "Upper bound on the chance that honest reports lie so far off",
    ("metric",),
)
HTTP_REQUESTS: Final = MetricDeclaration(
    "hubbub_http_requests_total",
    "counter",
    "Requests over HTTP that were answered, by status",
    ("code",),
)


def estimate_columns() -> dict[str, MetricDeclaration]:
    """Those of a value: of every field of an estimate that is a gauge, as it is called there."""
    return {
        field: MetricDeclaration(
            f"hubbub_{field}" if field == "estimate" else f"hubbub_estimate_{field}",
            "gauge",
            column.meaning,
            ("metric", "value"),
        )
        for column in COLUMNS["estimates"]
        if column.gauge
        for field in column.fields
    }


PERCENTILES: Final = {
    field: MetricDeclaration(name, "gauge", meaning, ("metric", "percentile"))
    for field, name, meaning in (
        ("estimate", "hubbub_percentile", "Percentile of a number in parts, in its own unit"),
        ("low", "hubbub_percentile_low", "Lower end of the percentile's interval"),
        ("high", "hubbub_percentile_high", "Upper end of the percentile's interval"),
    )
}
"""Those of a percentile, by field."""

ESTIMATES: Final = (
    METRIC_INFO,
    METRIC_REPORTS,
    METRIC_WAITING_REPORTS,
    EPOCH,
    EPOCH_REPORTS,
    HONEST_P_VALUE,
    ALERT,
    *estimate_columns().values(),
    *PERCENTILES.values(),
    HTTP_REQUESTS,
)
"""At /metrics of --http-listen."""
