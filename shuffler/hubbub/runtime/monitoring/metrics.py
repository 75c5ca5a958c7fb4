"""Prometheus metrics of a service: conservation law, counters, process.

The `/metrics` server uses a thread per request: that of prometheus_client performs the TLS
handshake while accepting, so that one silent connection would block it.
"""

import asyncio
import logging
import platform
import ssl
import sys
import threading
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from socket import AF_INET, AF_INET6, SHUT_RDWR, socket
from socketserver import ThreadingTCPServer
from typing import Any, Final

from prometheus_client import CollectorRegistry, MetricsHandler, ProcessCollector
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from hubbub.conservation.window import Window
from hubbub.errors import HubbubError, ServiceUnavailable
from hubbub.runtime.monitoring.declaration import (
    BUILD_INFO,
    CERTIFICATE_DAYS_LEFT,
    REPORTS,
    STORE_UP,
    MetricDeclaration,
)
from hubbub.runtime.monitoring.stages import Stages
from hubbub.runtime.tls import TlsFolder, check_plain, ends, names_of, role_names
from hubbub.runtime.version import VERSION

Law = Mapping[Window, Mapping[str, int]]
"""Per window, a service's terms of the conservation law."""

_CALLERS: Final = ("analyst",)
_ASK_SECONDS: Final = 5.0
_DAY_SECONDS: Final = 86_400
# Number of a stream's newest windows to export; `hubbub status` has older ones.
_EPOCHS: Final = 8


class Metrics(Collector):
    """Collects what a service reports at `/metrics`, in a thread; asks the loop for the law.

    Args:
        law: asks for the terms of the conservation law.
        counters: counts so far, by the value of their one label. gauges: current values.
        date_of: a window's epoch as a readable date.
        certificates: folders whose expiry is reported.
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
        """Serves `/metrics`, with `tls` to analysts' certificates, without on loopback alone.

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
        """Describes nothing, so that registering collects nothing yet."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yields every metric with its current values."""
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
    """The newest windows of each stream."""
    by_stream: dict[str, list[Window]] = {}
    for window in sorted(counts):
        by_stream.setdefault(window.stream, []).append(window)
    return [window for windows in by_stream.values() for window in windows[-_EPOCHS:]]


_log: Final = logging.getLogger("hubbub.runtime")

# From the connection to the end of the answer, including up to 5 for the balance.
_SECONDS: Final = 15.0
# Largest number of connections; above that the oldest is closed.
_CONNECTIONS: Final = 64


def serve_scrapes(
    host: str,
    port: int,
    registry: CollectorRegistry,
    tls: TlsFolder | None,
    callers: Collection[str],
) -> Callable[[], None]:
    """Serves a registry in a thread; returns a function that reloads the certificates.

    `callers` are the roles whose certificates are let in, with `tls`.

    Raises:
        OSError: the address is taken.
        KeysUnusable: the certificates cannot be read; the returned function raises it, too.
    """
    context = None if tls is None else tls.server_context(mutual=True)
    names = names_of(callers)

    class Handler(MetricsHandler):
        def parse_request(self) -> bool:
            # After we end a connection, half a request looks complete.
            return super().parse_request() and server.has(self.client_address)

        def do_GET(self) -> None:  # noqa: N802 named by http.server
            if isinstance(self.connection, ssl.SSLSocket) and names.isdisjoint(
                role_names(self.connection.getpeercert() or {})
            ):
                self.send_error(403, "not for the role of this certificate")
                return
            super().do_GET()

    Handler.registry = registry
    server = _Server(host, port, Handler, context)
    threading.Thread(target=server.serve_forever, name="hubbub-metrics", daemon=True).start()

    def renew() -> None:
        server.context = None if tls is None else tls.server_context(mutual=True)

    return renew


@dataclass(slots=True)
class _Open:
    since: float
    line: socket

    def end(self) -> None:
        """Closes the socket from another thread, which wakes whatever waits on it."""
        with suppress(OSError):  # it has ended by itself
            socket.shutdown(self.line, SHUT_RDWR)


class _Server(ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(
        self, host: str, port: int, handler: type[MetricsHandler], context: ssl.SSLContext | None
    ) -> None:
        self.address_family = AF_INET6 if ":" in host else AF_INET
        self.context = context
        self._handler: Callable[..., object] = handler
        self._open: dict[Any, _Open] = {}  # by the address and port of the peer
        super().__init__((host, port), handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Accepts a connection, and closes the oldest if too many are open."""
        if len(self._open) >= _CONNECTIONS:
            oldest = self._open.pop(next(iter(list(self._open)), None), None)
            if oldest:
                oldest.end()
        self._open[client_address] = _Open(time.monotonic(), request)
        super().process_request(request, client_address)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Serves the connection, in a thread of its own."""
        connection = self._open.get(client_address)
        if connection is None:
            return  # it is closed already
        try:
            if self.context:
                connection.line = self.context.wrap_socket(
                    request, server_side=True, do_handshake_on_connect=False
                )
                connection.line.do_handshake()
            self._handler(connection.line, client_address, self)
        finally:
            self._open.pop(client_address, None)
            connection.line.close()

    def has(self, client_address: Any) -> bool:
        """Whether a connection is still open."""
        return client_address in self._open

    def service_actions(self) -> None:
        """Closes connections that take too long; runs twice a second and after every connection."""
        overdue = time.monotonic() - _SECONDS
        for address, connection in list(self._open.items()):
            if connection.since < overdue:
                self._open.pop(address, None)
                connection.end()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 as its base has it
        """Logs the type of an error of ours; errors of connections are not logged."""
        error = sys.exception()
        if error and not isinstance(error, OSError):
            _log.error("metrics failed: %s", type(error).__name__)
