"""Prometheus metrics of the relay alone."""

from typing import Final

from hubbub.runtime.monitoring.declaration import MetricDeclaration

RELAYED_REQUESTS: Final = MetricDeclaration(
    "hubbub_relayed_requests_total",
    "counter",
    "Requests that came to the relay: passed, or what became of them",
    ("outcome",),
)
