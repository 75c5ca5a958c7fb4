"""Prometheus metrics of a service: conservation law, counters, process."""

import asyncio
import logging
import platform
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from gzip import compress
from http import HTTPStatus
from itertools import chain
from typing import Any, Final
from urllib.parse import parse_qs

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder, gzip_accepted
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from hubbub.conservation import Window
from hubbub.errors import HubbubError
from hubbub.runtime.http.bodies_and_problems import Answer, Headers, Refused, respond
from hubbub.runtime.http.connection_limit import OpenConnections
from hubbub.runtime.http.server import HttpDoor, Receive, Scope, Send
from hubbub.runtime.http.timed_connection import TimeLimits
from hubbub.runtime.monitoring.metric_declaration import (
    BUILD_INFO,
    CERTIFICATE_DAYS_LEFT,
    REPORTS,
    STORE_UP,
    MetricDeclaration,
)
from hubbub.runtime.monitoring.stages_and_traces import Stages
from hubbub.runtime.tls import TlsFolder, ends, names_of
from hubbub.runtime.version import VERSION

Law = Mapping[Window, Mapping[str, int]]
"""Per window, a service's terms of the conservation law."""

_log: Final = logging.getLogger("hubbub.runtime")

_CALLERS: Final = names_of(["analyst"])
_CONNECTIONS: Final = 64
# From a connection to its request, and for reading the answer: more than Prometheus waits.
_LIMITS: Final = TimeLimits(answer=15.0, idle=15.0)
_ASK_SECONDS: Final = 5.0
_DAY_SECONDS: Final = 86_400
# Number of a stream's newest windows to export; `hubbub status` has older ones.
_EPOCHS: Final = 8


class Metrics(Collector):
    """Collects what a service reports at `/metrics`.

    Args:
        law: asks for the terms of the conservation law; None in a service without reports.
        counters: counts so far, by the value of their one label. gauges: current values.
        date_of: a window's epoch as a readable date.
        certificates: folders whose expiry is reported.
    """

    def __init__(
        self,
        law: Callable[[], Awaitable[Law]] | None,
        counters: Mapping[MetricDeclaration, Mapping[str, int]],
        gauges: Mapping[MetricDeclaration, Callable[[], float]],
        stages: Stages,
        *,
        date_of: Callable[[Window], str | None] = lambda _: None,
        certificates: Iterable[TlsFolder | None] = (),
    ) -> None:
        self._law = law
        self._certificates = tuple(certificates)
        self._date_of = date_of
        self._counters = counters
        self._gauges = gauges
        self._terms: Law = {}
        self._is_up = False
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._registry.register(self)
        for histogram in stages.histograms:
            self._registry.register(histogram)

    def door(self, address: str, tls: TlsFolder | None) -> HttpDoor:
        """The server of `/metrics`: with `tls` for analysts' certificates, without on loopback.

        Raises:
            ServiceUnavailable: the address is plain text away from this machine.
            KeysUnusable: the certificates cannot be read.
        """

        async def app(scope: Scope, _receive: Receive, send: Send) -> None:
            await respond(self._answer(scope, is_open=tls is None), send, _log)

        return HttpDoor(
            address,
            app,
            tls=tls,
            connections=OpenConnections(most=_CONNECTIONS, max_per_address=0),
            limits=_LIMITS,
            mutual=tls is not None,
            option="--metrics-listen",
        )

    async def _answer(self, scope: Scope, *, is_open: bool) -> Answer:
        if not is_open and _CALLERS.isdisjoint(scope["state"]["names"]):
            raise Refused(HTTPStatus.FORBIDDEN, "not for the role of this certificate")
        try:
            async with asyncio.timeout(_ASK_SECONDS):
                self._terms = await self._law() if self._law else {}
            self._is_up = True
        except (HubbubError, TimeoutError):
            self._terms, self._is_up = {}, False
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        encode, kind = choose_encoder(headers.get(b"accept", ""))
        names = parse_qs(scope["query_string"].decode("latin-1")).get("name[]")
        registry: Any = self._registry.restricted_registry(names) if names else self._registry
        body = await asyncio.to_thread(encode, registry)
        # A scraper comes seldom: it would find a connection that is just being closed as idle.
        answer_headers: Headers = ((b"content-type", kind.encode()), (b"connection", b"close"))
        if gzip_accepted(headers.get(b"accept-encoding", "")):
            body = await asyncio.to_thread(compress, body)
            answer_headers += ((b"content-encoding", b"gzip"),)
        return HTTPStatus.OK, answer_headers, body

    def describe(self) -> Iterator[Metric]:
        """Describes nothing, so that registering collects nothing yet."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yields every metric with its current values."""
        terms, law = REPORTS.family(), self._terms
        by_stream: dict[str, list[Window]] = {}
        for window in sorted(law):
            by_stream.setdefault(window.stream, []).append(window)
        for window in chain(*(windows[-_EPOCHS:] for windows in by_stream.values())):
            labels = (window.stream, str(window.epoch), self._date_of(window) or "")
            for term, number in law[window].items():
                terms.add_metric((*labels, term), number)
        yield terms
        yield STORE_UP.family([((), self._is_up)])
        yield BUILD_INFO.family([((VERSION, platform.python_version()), 1)])
        now, end_times = time.time(), ends(self._certificates).items()
        days_left = (((name,), (end - now) / _DAY_SECONDS) for name, end in end_times)
        yield CERTIFICATE_DAYS_LEFT.family(days_left)
        for declared, counts in self._counters.items():
            yield declared.family(((value,), count) for value, count in list(counts.items()))
        for declared, figure in self._gauges.items():
            yield declared.family([((), figure())])
