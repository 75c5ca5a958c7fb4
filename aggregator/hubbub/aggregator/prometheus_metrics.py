"""Prometheus metrics of the aggregator, besides those of every service."""

from typing import Final

from hubbub.runtime.monitoring.metric_declaration import MetricDeclaration

BATCHES: Final = MetricDeclaration(
    "hubbub_batches_total",
    "Batches: applied, already_applied, or why they wait: window_full, clocks_differ",
    ("outcome",),
)
OPENING_KEY_DAYS_LEFT: Final = MetricDeclaration(
    "hubbub_opening_key_days_left", "Days for which there are still opening keys"
)
UNREADABLE_TOTALS: Final = MetricDeclaration(
    "hubbub_unreadable_totals", "Entries of the totals' Redis that cannot be read and are left out"
)
