"""Metrics for Prometheus: a service's terms of the conservation law, its counters, its process."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, Final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from hubbub.accounting.window import Window
from hubbub.errors import HubbubError, ServiceUnavailable
from hubbub.runtime.monitoring.scrape import serve_scrapes
from hubbub.runtime.monitoring.stages import Stages
from hubbub.runtime.tls import TlsFolder, check_plain

__all__ = ["HELP", "Law", "Metrics"]

Law = Mapping[Window, Mapping[str, int]]
"""Per window, a service's terms of the conservation law."""

_CALLERS: Final = ("analyst",)
_ASK_SECONDS: Final = 5.0
# Of a stream's windows the newest; older ones are told by `hubbub status`.
_EPOCHS: Final = 8

HELP: Final[Mapping[str, str]] = {
    "submitted_reports": "Reports that devices submitted: taken, or refused and why",
    "throttled_calls": "Calls and submissions that were refused for a limit or a certificate",
    "batches": "Batches: deliveries of the shuffler, commits of the aggregator",
    "pool_reports": "Reports that the shuffler's Redis holds, pooled or in flight",
    "pool_reports_limit": "Held reports past which every submission is refused",
    "unwritten_reports": "Reports in memory that wait to be written to Redis, not acknowledged yet",
    "batches_under_way": "Batches that this process is sending",
    "redis_memory_ratio": "Part used of the memory that Redis may use; 0 without a limit",
    "peers": "Peers that the limiter remembers",
    "clock_apart_seconds": "How far the clocks of this machine and of Redis are apart",
    "opening_key_days_left": "Days for which there are still opening keys",
    "unreadable_totals": "Entries of the totals' Redis that cannot be read and are left out",
}
"""What each counter and gauge of a service means, by its name without `hubbub_`."""


class Metrics(Collector):
    """What one service tells at `/metrics`. It is asked from a thread; the law from the loop.

    law: asks for the terms. counters: name -> label and counts so far, by label value.
    gauges: name -> the figure now. Names are those of HELP. stages: how long they took.
    """

    def __init__(
        self,
        law: Callable[[], Coroutine[Any, Any, Law]],
        counters: Mapping[str, tuple[str, Mapping[str, int]]],
        gauges: Mapping[str, Callable[[], float]],
        stages: Stages,
    ) -> None:
        self._law = law
        self._counters = counters
        self._gauges = gauges
        self._loop = asyncio.get_running_loop()
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._registry.register(self)
        for histogram in stages.histograms:
            self._registry.register(histogram)

    def serve(self, address: str, tls: TlsFolder | None) -> None:
        """Serve them: with `tls` to who watches, without on this machine alone.

        Raises:
            ServiceUnavailable: the address is taken, or is plain text away from this machine.
        """
        host, _, port = address.rpartition(":")
        if tls is None:
            check_plain(address)
        try:
            serve_scrapes(host.strip("[]"), int(port), self._registry, tls, _CALLERS)
        except (OSError, OverflowError, ValueError) as error:
            raise ServiceUnavailable(
                f"cannot serve metrics on {address}: {error}; choose another --metrics-listen"
            ) from error

    def describe(self) -> Iterator[Metric]:
        """Nothing: so that registering asks for nothing yet."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Every series, as it stands now."""
        terms = GaugeMetricFamily(
            "hubbub_reports",
            "Terms of the law: acknowledged = pooled + in_flight + counted + duplicate + rejected "
            "+ withheld",
            labels=("stream", "epoch", "state"),
        )
        up = GaugeMetricFamily("hubbub_store_up", "Whether Redis answers")
        try:
            law = asyncio.run_coroutine_threadsafe(self._law(), self._loop).result(_ASK_SECONDS)
            up.add_metric((), 1)
        except (HubbubError, TimeoutError):
            law = {}
            up.add_metric((), 0)
        for window in _newest(law):
            for term, number in law[window].items():
                terms.add_metric((window.stream, str(window.epoch), term), number)
        yield terms
        yield up
        for name, (label, counts) in self._counters.items():
            family = CounterMetricFamily(f"hubbub_{name}", HELP[name], labels=(label,))
            for value, count in list(counts.items()):
                family.add_metric((value,), count)
            yield family
        for name, figure in self._gauges.items():
            yield GaugeMetricFamily(f"hubbub_{name}", HELP[name], value=figure())


def _newest(counts: Law) -> list[Window]:
    """Of every stream the newest windows."""
    by_stream: dict[str, list[Window]] = {}
    for window in sorted(counts):
        by_stream.setdefault(window.stream, []).append(window)
    return [window for windows in by_stream.values() for window in windows[-_EPOCHS:]]
