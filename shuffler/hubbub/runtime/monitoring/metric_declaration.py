"""Declarations of Prometheus metrics, and the metrics that every service has."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily


@dataclass(frozen=True, slots=True)
class MetricDeclaration:
    """One Prometheus metric: name, help text, and names of its labels.

    Prometheus wants the name of a counter, and of no other metric, to end in _total.
    """

    name: str
    meaning: str
    labels: tuple[str, ...] = ()
    is_histogram: bool = False

    @property
    def kind(self) -> Literal["counter", "gauge", "histogram"]:
        """What it measures, as its text for Prometheus names it."""
        if self.is_histogram:
            return "histogram"
        return "counter" if self.name.endswith("_total") else "gauge"

    def family(
        self, samples: Iterable[tuple[Sequence[str], float]] = ()
    ) -> GaugeMetricFamily | CounterMetricFamily:
        """A metric family of it with these samples: values of the labels, and the figure."""
        family_of = CounterMetricFamily if self.kind == "counter" else GaugeMetricFamily
        family = family_of(self.name, self.meaning, labels=self.labels)
        for labels, figure in samples:
            family.add_metric(labels, figure)
        return family


REPORTS: Final = MetricDeclaration(
    "hubbub_reports",
    "Terms of the conservation law, as hubbub status prints them: acknowledged + dummies = "
    "pooled + in_flight + counted + duplicate + rejected + fillers + withheld; of every stream "
    "the newest eight epochs, of which hubbub status has all. Processes that "
    "share a Redis each tell all of it: take one, or the largest",
    ("stream", "epoch", "date", "state"),
)
STORE_UP: Final = MetricDeclaration("hubbub_store_up", "Whether Redis answers: 1, or 0")
STAGE_SECONDS: Final = MetricDeclaration(
    "hubbub_stage_seconds",
    "How long a stage took: add, cut and deliver of the shuffler; batch, and of it open, fold and "
    "commit, of the aggregator, and answer where one had to be worked out",
    ("stage",),
    is_histogram=True,
)
BATCH_REPORTS: Final = MetricDeclaration(
    "hubbub_batch_reports", "Reports in a batch", is_histogram=True
)
THROTTLED_CALLS: Final = MetricDeclaration(
    "hubbub_throttled_calls_total",
    "Calls and requests that were refused. For reasons of ours: no_room, stream_full, store_full, "
    "store_away, calls_at_once. Of callers, also over HTTP: peer_limit, peer_calls, too_slow, "
    "gave_way; watch asks for health without an end; role is a certificate of the wrong role; "
    "no_forwarded_for is a proxy that does not say for whom it asks, no_proxy_header one whose "
    "connection does not begin with the PROXY header it was to send",
    ("reason",),
)
REDIS_MEMORY_RATIO: Final = MetricDeclaration(
    "hubbub_redis_memory_ratio", "Part used of the memory that Redis may use; 0 without a limit"
)
CLOCK_APART_SECONDS: Final = MetricDeclaration(
    "hubbub_clock_apart_seconds", "Difference between the clocks of this machine and of Redis"
)
BUILD_INFO: Final = MetricDeclaration(
    "hubbub_build_info", "1; labels: version of this process, and of Python", ("version", "python")
)
CERTIFICATE_DAYS_LEFT: Final = MetricDeclaration(
    "hubbub_certificate_days_left",
    "Days until a certificate in the service's folders ends: its own (ROLE.pem), or the first of "
    "the authorities (ca.pem); none without TLS",
    ("file",),
)
RELOADS: Final = MetricDeclaration(
    "hubbub_reloads_total",
    "How often changed files were taken into use, or refused, after which the old went on",
    ("outcome",),
)
