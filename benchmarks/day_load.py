"""The load of a day: devices that visit the HTTP door, an analyst, strangers who say nothing.

A visit is a fresh TLS 1.3 connection with the reports that a device brings; one that is cut off
comes again with the same reports, as the SDK's does.
"""

import asyncio
import multiprocessing
import os
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.stock import METRIC, Stock, sealed_stock
from hubbub.errors.tls_authorities import trusting
from hubbub.installation.local_run import LocalRun
from hubbub.simulation.load_devices import Times

_PORTION: Final = 40_000  # reports that are sealed at a time, beside everything else
_COMES_BACK_SECONDS: Final = 0.2
_PATIENCE_SECONDS: Final = 300.0
_ALL_OPEN_SECONDS: Final = 5.0


class Supply:
    """Sealed reports, a portion ahead of who sends them: no two are the same."""

    def __init__(self, bundle: Path) -> None:
        self._bundle = bundle
        self._lock = threading.Lock()
        # Not forked from a process of many threads.
        context = multiprocessing.get_context("spawn")
        self._sealing = ProcessPoolExecutor(os.cpu_count(), context)
        self._ahead = ThreadPoolExecutor(1)
        self._stock, self._next = self._sealed_portion(), 0
        self._coming = self._ahead.submit(self._sealed_portion)

    def visit(self, reports: int) -> bytes:
        """What one visit says."""
        with self._lock:
            if self._next + reports > len(self._stock):
                self._stock, self._next = self._coming.result(), 0
                self._coming = self._ahead.submit(self._sealed_portion)
            self._next += reports
            return self._stock.submission(self._next - reports, reports)

    def _sealed_portion(self) -> Stock:
        return sealed_stock(self._bundle, _PORTION, self._sealing)

    def close(self) -> None:
        """No more."""
        self._ahead.shutdown(cancel_futures=True)
        self._sealing.shutdown()


@dataclass
class Observations:
    """What devices and the analyst saw, and what was held at each look.

    failed: visits that were cut off, and came again with the same reports.
    """

    acknowledged: int = 0
    refused: int = 0
    failed: int = 0
    idle: int = 0
    visits: Times = field(default_factory=Times)
    questions: Times = field(default_factory=Times)
    looks: list[dict[str, float]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


def _visit(address: str, trust: ssl.SSLContext, body: bytes) -> bool:
    """One visit: whether its reports were acknowledged, or it is to come back."""
    host, _, port = address.rpartition(":")
    line = socket.create_connection((host, int(port)), timeout=60)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with trust.wrap_socket(line, server_hostname=host) as spoken:
        head = (
            f"POST /v1/reports HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n"
            f"content-type: application/protobuf\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        spoken.sendall(head.encode() + body)
        status = spoken.recv(1 << 16).split(b"\r\n")[0]
    if status and b" 200 " not in status and b" 429 " not in status:
        raise AssertionError(status)
    if not status:
        raise ConnectionError
    return b" 200 " in status


class Load:
    """Devices and an analyst, each until it is over; what they saw."""

    def __init__(
        self, run: LocalRun, supply: Supply, per_visit: int, over: threading.Event
    ) -> None:
        self.seen, self.over = Observations(), over
        self._run, self._supply, self._per_visit = run, supply, per_visit
        self._trust = trusting(run.bundle.roots)

    def visit(self) -> float:
        """One, as often as it takes: how long it was until its reports were acknowledged."""
        body, due = self._supply.visit(self._per_visit), time.perf_counter()
        while not self._acknowledged(body):
            if time.perf_counter() - due > _PATIENCE_SECONDS:
                raise AssertionError(f"a device was not served for {_PATIENCE_SECONDS:.0f} s")
            time.sleep(_COMES_BACK_SECONDS)
        with self.seen.lock:
            self.seen.acknowledged += self._per_visit
        return time.perf_counter() - due

    def _acknowledged(self, body: bytes) -> bool:
        try:
            success = _visit(self._run.http_door, self._trust, body)
        except OSError:
            self._run.check()
            with self.seen.lock:
                self.seen.failed += 1
            return False
        with self.seen.lock:
            self.seen.refused += not success
        return success

    def ask(self) -> float:
        """One question: how long its answer took."""
        url, begun = f"{self._run.endpoints.page}v1/metrics/{METRIC}", time.perf_counter()
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 our own page
                answer.read()
        except urllib.error.HTTPError as error:
            if error.code not in {404, 409}:  # before the first batch there is no answer
                raise
        return time.perf_counter() - begun

    def devices(self) -> None:
        """Visits, one after the other."""
        while not self.over.is_set():
            took = self.visit()
            with self.seen.lock:
                self.seen.visits.add(took)

    def analyst(self) -> None:
        """Questions, twice a second."""
        while not self.over.wait(0.5):
            self.seen.questions.add(self.ask())

    def strangers(self, number: int) -> None:
        """Connections that say nothing, opened again a second after they were ended."""
        asyncio.run(self._strangers(number))

    async def _strangers(self, number: int) -> None:
        host, _, port = self._run.http_door.rpartition(":")

        async def stranger(place: int) -> None:
            await asyncio.sleep(_ALL_OPEN_SECONDS * place / number)
            source = f"127.0.{2 + place // 200}.{1 + place % 200}"  # a limit by address is no help
            while True:
                with suppress(OSError):
                    reader, writer = await asyncio.open_connection(
                        host, int(port), local_addr=(source, 0)
                    )
                    self.seen.idle += 1
                    with suppress(OSError):
                        await reader.read()
                    self.seen.idle -= 1
                    writer.close()
                await asyncio.sleep(1)

        everybody = [asyncio.ensure_future(stranger(place)) for place in range(number)]
        await asyncio.to_thread(self.over.wait)
        for task in everybody:
            task.cancel()
