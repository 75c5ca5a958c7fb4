"""Prometheus metrics of the shuffler alone."""

from typing import Final

from hubbub.runtime.monitoring.metric_declaration import MetricDeclaration

SUBMITTED_REPORTS: Final = MetricDeclaration(
    "hubbub_submitted_reports_total",
    "Reports that devices submitted: taken, or the reason for which they were refused",
    ("outcome",),
)
BATCHES: Final = MetricDeclaration(
    "hubbub_batches_total", "Batches delivered, and tried in vain (delivery_failed)", ("outcome",)
)
POOL_REPORTS: Final = MetricDeclaration(
    "hubbub_pool_reports", "Reports that the shuffler's Redis holds, pooled or in flight"
)
POOL_REPORTS_LIMIT: Final = MetricDeclaration(
    "hubbub_pool_reports_limit", "Held reports past which every submission is refused: --max-pool"
)
UNWRITTEN_REPORTS: Final = MetricDeclaration(
    "hubbub_unwritten_reports",
    "Reports in memory that wait to be written to Redis, not acknowledged yet",
)
BATCHES_UNDER_WAY: Final = MetricDeclaration(
    "hubbub_batches_under_way", "Batches that this process is sending"
)
GRPC_CONNECTIONS: Final = MetricDeclaration(
    "hubbub_grpc_connections",
    "Open connections of the devices' gRPC port, as Linux tells; NaN elsewhere",
)
GRPC_CONNECTIONS_LIMIT: Final = MetricDeclaration(
    "hubbub_grpc_connections_limit",
    "Past so many gRPC closes new connections of the devices' port, and counts none of them",
)
PEERS: Final = MetricDeclaration("hubbub_peers", "Peers that the limiter remembers")
