"""Metrics for Prometheus: a service's terms of the conservation law, its counters, its process."""

import asyncio
import platform
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from typing import Any, Final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from hubbub.conservation.window import Window
from hubbub.errors import HubbubError, ServiceUnavailable
from hubbub.runtime.certificates import ends
from hubbub.runtime.monitoring.declaration import (
    BUILD_INFO,
    CERTIFICATE_DAYS_LEFT,
    REPORTS,
    STORE_UP,
    MetricDeclaration,
)
from hubbub.runtime.monitoring.scrape import serve_scrapes
from hubbub.runtime.monitoring.stages import Stages
from hubbub.runtime.tls import TlsFolder, check_plain
from hubbub.runtime.version import VERSION

Law = Mapping[Window, Mapping[str, int]]
"""Per window, a service's terms of the conservation law."""

_CALLERS: Final = ("analyst",)
_ASK_SECONDS: Final = 5.0
_DAY_SECONDS: Final = 86_400
# Of a stream's windows the newest; older ones are told by `hubbub status`.
_EPOCHS: Final = 8


class Metrics(Collector):
    """What one service tells at `/metrics`. It is asked from a thread; the law from the loop.

    law: asks for the terms. counters: the counts so far, by the value of the one label.
    gauges: the figure now. stages: how long they took. date_of: a window's epoch as people say it.
    certificates: folders whose ends are told. renew: reads the certificates of `serve` anew.
    """

    def __init__(
        self,
        law: Callable[[], Coroutine[Any, Any, Law]],
        counters: Mapping[MetricDeclaration, Mapping[str, int]],
        gauges: Mapping[MetricDeclaration, Callable[[], float]],
        stages: Stages,
        *,
        date_of: Callable[[Window], str | None] = lambda _: None,
        certificates: Iterable[TlsFolder | None] = (),
    ) -> None:
        self._law = law
        self._certificates = tuple(certificates)
        self.renew: Callable[[], None] = lambda: None
        self._date_of = date_of
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
            self.renew = serve_scrapes(host.strip("[]"), int(port), self._registry, tls, _CALLERS)
        except (OSError, OverflowError, ValueError) as error:
            raise ServiceUnavailable(
                f"cannot serve metrics on {address}: {error}; choose another --metrics-listen"
            ) from error

    def describe(self) -> Iterator[Metric]:
        """Nothing: so that registering asks for nothing yet."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Every series, as it stands now."""
        terms, up = REPORTS.family(), STORE_UP.family()
        try:
            law = asyncio.run_coroutine_threadsafe(self._law(), self._loop).result(_ASK_SECONDS)
            up.add_metric((), 1)
        except (HubbubError, TimeoutError):
            law = {}
            up.add_metric((), 0)
        for window in _newest(law):
            labels = (window.stream, str(window.epoch), self._date_of(window) or "")
            for term, number in law[window].items():
                terms.add_metric((*labels, term), number)
        yield terms
        yield up
        build = BUILD_INFO.family()
        build.add_metric((VERSION, platform.python_version()), 1)
        yield build
        days = CERTIFICATE_DAYS_LEFT.family()
        now = time.time()
        for name, end in ends(self._certificates).items():
            days.add_metric((name,), (end - now) / _DAY_SECONDS)
        yield days
        for declared, counts in self._counters.items():
            family = declared.family()
            for value, count in list(counts.items()):
                family.add_metric((value,), count)
            yield family
        for declared, figure in self._gauges.items():
            family = declared.family()
            family.add_metric((), figure())
            yield family


def _newest(counts: Law) -> list[Window]:
    """Of every stream the newest windows."""
    by_stream: dict[str, list[Window]] = {}
    for window in sorted(counts):
        by_stream.setdefault(window.stream, []).append(window)
    return [window for windows in by_stream.values() for window in windows[-_EPOCHS:]]
