"""The shuffler's doors: what one report costs its processor, on a fresh and on a kept connection.

A device is one report on a fresh connection of TLS 1.3. Sixteen are on their way at once, as many
as there are in a busy second; what the shuffler does meanwhile beside them counts as theirs.
"""

import itertools
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from benchmarks.measure import ROUNDS, Row
from benchmarks.own import own_hubbub
from benchmarks.stock import METRIC, Stock, sealed_stock
from hubbub.client import SealedReport, transport_to
from hubbub.client.transport.http_connection import REPORTS_PATH, REPORTS_TYPE
from hubbub.errors.tls_authorities import trusting
from hubbub.installation.child_process import free_port
from hubbub.installation.local_run import LocalRun
from hubbub.wire.v1.report_pb2 import SealedReport as Message
from hubbub.wire.v1.services_pb2 import SubmitRequest

_AT_ONCE: Final = 16
_FRESH: Final = 20  # of each, a round
_CALLS_PER_CONNECTION: Final = 40
_WAIT_SECONDS: Final = 30.0
_Request = TypeVar("_Request")
_Post = Callable[[str, str, bytes], bytes]
_Close = Callable[[], object]
_Line = tuple[Callable[[_Request], object], _Close]


def door() -> Iterator[Row]:
    """Of HTTP beside its bare server, and of gRPC."""
    with own_hubbub() as run, _bare_server(run.home / "tls") as (bare_pid, bare_address):
        reports = sealed(run, costs=3)
        pid = pid_of(run.http_door)
        roots = run.bundle.roots or ""
        hello = _connection_costs(bare_pid, lambda: dial_http(bare_address, roots), reports)
        http = _connection_costs(pid, lambda: dial_http(run.http_door, roots), reports)
        grpc = _connection_costs(pid, lambda: dial_grpc(run), reports)
    for place, (kind, most) in enumerate((("fresh", 800), ("kept", 250))):
        yield Row(
            f"door of HTTP, a report on a {kind} connection",
            f"{http[place]:,.0f} us",
            f"its server's hello {hello[place]:,.0f} us",
            http[place] / hello[place],
            f"<= {most} us" + (", <= 1.5" if kind == "fresh" else ""),
        )
        yield Row(
            f"door of gRPC, a report on a {kind} connection",
            f"{grpc[place]:,.0f} us",
            f"that of HTTP {http[place]:,.0f} us",
            grpc[place] / http[place],
            "what a device costs",
        )


def _connection_costs(
    pid: int, dial: Callable[[], _Line[_Request]], requests: Iterator[_Request]
) -> tuple[float, float]:
    [fresh], [reuse_cost] = cost([pid], dial, requests)
    return fresh, reuse_cost


def cost(
    pids: Sequence[int], dial: Callable[[], _Line[_Request]], requests: Iterator[_Request]
) -> tuple[list[float], list[float]]:
    """Microseconds of each process for a report on a connection of its own, and on a kept one.

    requests: what is sent, made before the clock runs. The round is taken that cost the least.
    """

    def fresh(mine: list[_Request]) -> None:
        for request in mine:
            send, close = dial()
            send(request)
            close()

    def reused_connection(mine: list[_Request]) -> None:
        for request in mine:
            lines[id(mine)][0](request)

    rounds = []
    with ThreadPoolExecutor(_AT_ONCE) as devices:
        for _ in range(ROUNDS):
            round_: list[list[float]] = []
            for work, number in ((fresh, _FRESH), (reused_connection, _CALLS_PER_CONNECTION)):
                parts = [list(itertools.islice(requests, number)) for _ in range(_AT_ONCE)]
                lines = {id(part): dial() for part in parts} if work is reused_connection else {}
                for part in parts:
                    if lines:
                        lines[id(part)][0](part.pop())
                before = [_processor_us(pid) for pid in pids]
                list(devices.map(work, parts))
                sent = sum(map(len, parts))
                after = [_processor_us(pid) for pid in pids]
                round_.append([(b - a) / sent for a, b in zip(before, after, strict=True)])
                for _, close in lines.values():
                    close()
            rounds.append(round_)
    return min((fresh for fresh, _ in rounds), key=sum), min(
        (reuse_cost for _, reuse_cost in rounds), key=sum
    )


def dial_http(address: str, roots: str) -> _Line[SealedReport]:
    """A device at the door of HTTP."""
    post, close = dial_posts(address, roots)

    def send(report: SealedReport) -> None:
        message = Message(
            stream=report.stream, epoch=report.epoch, key_id=report.key_id, sealed=report.sealed
        )
        post(REPORTS_PATH, REPORTS_TYPE, SubmitRequest(reports=[message]).SerializeToString())

    return send, close


def dial_posts(address: str, roots: str) -> tuple[_Post, _Close]:
    """What posts (path, type, body) and gives the body of an answer of 200; and what hangs up.

    By hand: what is measured is the other end, which the client should not hold up.
    """
    host, _, port = address.rpartition(":")
    trust = trusting(roots)
    line = trust.wrap_socket(socket.create_connection((host, int(port))), server_hostname=host)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    reader = line.makefile("rb")

    def post(path: str, kind: str, body: bytes) -> bytes:
        head = (
            f"POST {path} HTTP/1.1\r\nhost: {address}\r\n"
            f"content-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        line.sendall(head.encode() + body)
        status = reader.readline()
        length = 0
        for field in iter(reader.readline, b"\r\n"):
            if field.startswith(b"content-length:"):
                length = int(field.partition(b":")[2])
        answer = reader.read(length)
        if not status.startswith(b"HTTP/1.1 200 "):
            raise AssertionError(status)
        return answer

    def close() -> None:
        reader.close()
        line.close()

    return post, close


def dial_grpc(run: LocalRun) -> _Line[SealedReport]:
    way = transport_to(run.bundle.shuffler, roots=run.bundle.roots, transport="grpc")
    return (lambda report: way.submit([report], _WAIT_SECONDS)), way.close


def sealed(run: LocalRun, *, costs: int) -> Iterator[SealedReport]:
    """As many as so many costs ask for, no two the same."""
    number = costs * ROUNDS * _AT_ONCE * (_FRESH + _CALLS_PER_CONNECTION)
    stock: Stock = sealed_stock(run.bundle_path, number)
    for report in stock.reports(0, number):
        yield SealedReport(stream=METRIC, epoch=stock.epoch, key_id=stock.key_id, sealed=report)


@contextmanager
def _bare_server(tls: Path) -> Iterator[tuple[int, str]]:
    address = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "benchmarks.bare_door", address.rpartition(":")[2], str(tls)]
    with subprocess.Popen(command) as server:
        try:
            yield pid_of(address), address
        finally:
            server.terminate()


def pid_of(address: str) -> int:
    """Who listens there, once somebody does."""
    port = int(address.rpartition(":")[2])
    until = time.monotonic() + _WAIT_SECONDS
    while time.monotonic() < until:
        lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        inodes = [line[9] for line in lines if line[1].endswith(f":{port:04X}") and line[3] == "0A"]
        for link in Path("/proc").glob("[0-9]*/fd/*") if inodes else ():
            try:
                if str(link.readlink()) == f"socket:[{inodes[0]}]":
                    return int(link.parts[2])
            except OSError:
                continue
        time.sleep(0.1)
    raise AssertionError(f"nobody listens at {address}")


def _processor_us(pid: int) -> float:
    """Of all threads of a process, since it began."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1000
