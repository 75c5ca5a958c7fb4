"""HTTP connections that do not get on: halves of requests, drops of them, answers nobody reads."""

import asyncio
import logging
import math
import resource
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse

from hubbub.aggregator.access.callers import Access, access_of
from hubbub.aggregator.access.tokens import add_token
from hubbub.aggregator.settings import HttpSettings
from hubbub.aggregator.web.app import _LIMITS
from hubbub.aggregator.web.guard import Guard
from hubbub.aggregator.web.problems import handle_problems
from hubbub.installation.child_process import free_port
from hubbub.runtime.http.connection_limit import OpenConnections
from hubbub.runtime.http.server import HttpDoor
from hubbub.runtime.http.timed_connection import TimedConnection
from hubbub.runtime.rpc.rate_limiter import Limiter
from tests.interfaces.running_aggregator import SMALL, house
from tests.support import web
from tests.support.clocks import MovedLoop, pass_time
from tests.support.pages import page_of
from tests.support.waiting import HANG_SECONDS, eventually_async

pytestmark = pytest.mark.thorough

LARGE = 30_000_000


class Face:
    """A port, and what happens behind it.

    came: once for every connection, every part of a request, and every answer that waits for its
    reader. begun: something slow; it ends when it may.
    """

    def __init__(self) -> None:
        self.port = free_port()
        self.refusals = Counter[str]()
        self.came = asyncio.Semaphore(0)
        self.begun, self.may_end = asyncio.Event(), asyncio.Event()


class Watched(TimedConnection):
    """A line that tells its face what came."""

    came: asyncio.Semaphore

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as its base has it
        super().connection_made(transport)
        self.came.release()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.came.release()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.came.release()


@asynccontextmanager
async def _served(monkeypatch: pytest.MonkeyPatch, **limits: Any) -> AsyncIterator[Face]:
    """An application behind our guard and connections, with other limits."""
    answer = limits.pop("answer", None)
    for name, value in limits.items():
        monkeypatch.setattr(f"hubbub.runtime.http.connection_limit.{name}", value)
    face, app = Face(), FastAPI()
    handle_problems(app)

    @app.get("/large")
    async def large() -> PlainTextResponse:
        return PlainTextResponse("x" * LARGE)

    @app.get("/broken")
    async def broken() -> None:
        raise RuntimeError("a secret \ud800 that somebody sent")

    @app.get("/slow")
    async def slow() -> str:
        face.begun.set()
        await face.may_end.wait()
        return "done"

    @app.post("/told")
    async def body_size(request: Request) -> int:
        return len(await request.body())

    monkeypatch.setattr(Watched, "came", face.came, raising=False)
    monkeypatch.setattr("hubbub.runtime.http.server.TimedConnection", Watched)
    server = HttpDoor(
        f"127.0.0.1:{face.port}",
        Guard(app=app, access=Access(), limiter=Limiter(0, 1), pages=()),
        tls=None,
        connections=OpenConnections(refusals=face.refusals, answers_bytes=math.inf),
        limits=replace(_LIMITS, answer=answer) if answer else _LIMITS,
    )
    await server.start()
    try:
        yield face
    finally:
        await server.stop(HANG_SECONDS)


def _client(face: Face) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=f"http://127.0.0.1:{face.port}", timeout=HANG_SECONDS)


async def _response_bytes(face: Face, *parts: bytes, seconds: float = 0.0) -> bytes:
    """All that is answered to these parts, until the line ends.

    seconds: that pass after each part is there, and after the connection is.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", face.port)
    try:
        for part in (b"", *parts):
            writer.write(part)
            if seconds and not face.refusals:
                await face.came.acquire()
                await pass_time(seconds)
        return await asyncio.wait_for(reader.read(), HANG_SECONDS)
    except ConnectionError:
        return b""
    finally:
        writer.close()


HEAD = b"POST /told HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
SLOW = b"GET /slow HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


@pytest.mark.loop(factory=MovedLoop)
@pytest.mark.parametrize(
    ("parts", "seconds"),
    [
        ([], 10.5),
        ([HEAD, *(b"X-%d: 1\r\n" % n for n in range(9))], 1.5),
        ([HEAD + b"\r\n1234", b"5"], 40.0),
        ([HEAD + b"\r\n", *(b"%d" % n for n in range(8))], 9.0),
    ],
)
async def test_a_request_that_does_not_arrive_is_ended(
    monkeypatch: pytest.MonkeyPatch, parts: list[bytes], seconds: float
) -> None:
    """Its head has 10 seconds, its body 60, however often some of it comes."""

    async with _served(monkeypatch) as face:
        assert await _response_bytes(face, *parts, seconds=seconds) == b""
        assert face.refusals == {"too_slow": 1}


@pytest.mark.loop(factory=MovedLoop)
async def test_a_request_that_gets_on_is_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    async with _served(monkeypatch) as face:
        slowly = HEAD.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)
        whole = await _response_bytes(face, slowly + b"\r\n", b"1234", b"5678", b"9", seconds=9.0)
        assert whole.startswith(b"HTTP/1.1 200 OK")
    async with _served(monkeypatch) as face, _client(face) as client:
        for _ in range(4):
            answer = await client.post("/told", content=b"abc")
            assert (answer.status_code, answer.text) == (200, "3"), "one line, kept"
            await pass_time(4)
        # Longer than a request may take: it is being answered.
        slow = asyncio.create_task(client.get("/slow"))
        await face.begun.wait()
        await pass_time(100)
        face.may_end.set()
        assert (await slow).text == '"done"'
        assert not face.refusals


@pytest.mark.loop(factory=MovedLoop)
@pytest.mark.parametrize(
    ("limits", "passes"),
    # The second after what the server has for somebody who reads slowly.
    [({"answer": 4.0}, [4.5]), ({}, [299.0, 2.0])],
)
async def test_an_answer_that_nobody_reads_is_ended(
    monkeypatch: pytest.MonkeyPatch, limits: dict[str, float], passes: list[float]
) -> None:
    async with _served(monkeypatch, **limits) as face:
        reader, writer = await asyncio.open_connection("127.0.0.1", face.port)
        writer.write(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        for _ in ("connection", "request", "answer that waits"):
            await face.came.acquire()
        for seconds in passes:
            assert not face.refusals
            await pass_time(seconds)
        reader._transport.resume_reading()  # type: ignore[attr-defined]
        got = 0
        try:
            while part := await asyncio.wait_for(reader.read(1 << 20), HANG_SECONDS):
                got += len(part)
        except ConnectionError:
            pass
        assert got < LARGE
        assert face.refusals == {"too_slow": 1}
        writer.close()
    async with _served(monkeypatch, **limits) as face, _client(face) as client:
        assert len((await client.get("/large")).content) == LARGE


async def test_an_answer_is_sent_without_waiting_for_an_acknowledged_header(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a kept connection each answer else comes 40 ms late: Nagle's algorithm holds its body."""
    undelayed: list[bool] = []

    class Noting(Watched):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as its base has it
            super().connection_made(transport)
            sock = transport.get_extra_info("socket")
            undelayed.append(bool(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)))

    async with _served(monkeypatch) as face, _client(face) as client:
        monkeypatch.setattr("hubbub.runtime.http.server.TimedConnection", Noting)
        assert (await client.post("/told", content=b"abc")).text == "3"
    assert undelayed == [True]


@pytest.mark.parametrize("limit", ["_MAX", "_MAX_PER_ADDRESS"])
async def test_the_connection_that_waits_longest_gives_way(
    monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    async with _served(monkeypatch, **{limit: 10}) as face:
        slow = asyncio.create_task(_response_bytes(face, SLOW))
        await face.begun.wait()
        halves = [asyncio.create_task(_response_bytes(face, HEAD)) for _ in range(30)]
        async with _client(face) as client:
            assert (await client.post("/told", content=b"abc")).text == "3"
        face.may_end.set()
        assert (await slow).endswith(b'"done"'), "what is answered is not ended"

        async def ended() -> bool:
            return sum(half.done() for half in halves) >= 21

        await eventually_async(ended)
        assert face.refusals["gave_way"] >= 21
        for half in halves:
            half.cancel()


@pytest.mark.parametrize("limit", ["_MAX", "_MAX_PER_ADDRESS"])
async def test_unread_answers_are_dropped_with_the_longest_unread_first(
    monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """They waited for nobody, and so kept everybody out for as long as an answer may take."""

    number = 10
    async with _served(monkeypatch, **{limit: number}) as face:
        unread = [await _unread(face.port) for _ in range(3 * number)]
        async with _client(face) as client:
            for _ in range(3):
                assert (await client.post("/told", content=b"abc")).text == "3"
        assert face.refusals == {"gave_way": 2 * number + 1}
        for writer in unread:
            writer.transport.abort()


async def _unread(port: int) -> asyncio.StreamWriter:
    """A line whose large answer has begun, and is not read on."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
    writer.write(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await reader.readexactly(1)
    return writer


def test_connections_of_one_network_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has one address of IPv6 has 2**64."""
    monkeypatch.setattr("hubbub.runtime.http.connection_limit._MAX_PER_ADDRESS", 3)

    class Ended(asyncio.Transport):
        def __init__(self, client: tuple[str, int]) -> None:
            super().__init__({"peername": client})
            self.is_ended = False

        def abort(self) -> None:
            self.is_ended = True

        def is_closing(self) -> bool:
            return self.is_ended

        def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
            """Nothing is written."""

    async def ended(hosts: list[str], *proxies: str) -> list[bool]:
        config = uvicorn.Config(_nothing, lifespan="off", log_config=None)
        config.load()
        lines, transports = OpenConnections(proxies), []
        for number, host in enumerate(hosts):
            state = uvicorn.server.ServerState()
            transports.append(Ended((host, number)))
            line = TimedConnection(
                lines, _LIMITS, None, lambda: None, config=config, server_state=state, app_state={}
            )
            line.connection_made(transports[-1])
        return [transport.is_ended for transport in transports]

    near = [f"2001:db8:1:1:{n:x}::1" for n in range(5)]
    far = [f"2001:db8:1:{n:x}00::1" for n in range(5)]
    assert asyncio.run(ended(near)) == [True, True, False, False, False]
    assert not any(asyncio.run(ended(far)))
    assert not any(asyncio.run(ended(near, "2001:db8:1::/48"))), "a proxy's"


def test_a_slow_reader_is_not_dropped_for_addresses_that_read_nothing() -> None:
    """Eight addresses that ask again and again, for as much as the slow reader reads."""

    class Line:
        def __init__(self, host: str) -> None:
            self.address, self.is_ended = host, False
            self.client: tuple[str, int] | None = (host, 1)
            self.transport = self

        def abort(self) -> None:
            self.is_ended = True

    def is_ended_after(hostile: list[str], *proxies: str) -> bool:
        lines = OpenConnections(proxies, answers_bytes=20)
        slow = Line("10.0.0.1")
        for line in (slow, *map(Line, hostile)):
            lines.add(line)
            lines.keep_unread(line, 1)
        return slow.is_ended

    eight = [f"192.0.2.{number}" for number in range(8)]
    assert not is_ended_after(10 * eight)
    assert is_ended_after([f"192.0.2.{number}" for number in range(80)]), "as all others"
    some = [*9 * ["10.0.0.1"], *3 * eight]
    assert is_ended_after(some), "its address has most"
    assert not is_ended_after(some, "10.0.0.1"), "a proxy of ten people"


async def _nothing(_scope: object, _receive: object, _send: object) -> None: ...


async def test_a_fault_is_a_problem_and_its_text_stays_out_of_answer_and_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with _served(monkeypatch) as face, _client(face) as client:
        answer = await client.get("/broken")
        assert answer.status_code == 500
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["detail"] == "a fault of ours; see our log"
    assert "GET of HTTP failed: RuntimeError at " in caplog.text
    assert "secret" not in caplog.text
    assert "Traceback" not in caplog.text


def test_thousands_of_halves_of_requests_stop_nobody(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 8192)), hard))
    with house(tmp_path, catalog=SMALL) as running:
        port = int(running.page.rpartition(":")[2].strip("/"))
        halves = []
        for _ in range(2100):
            halves.append(socket.create_connection(("127.0.0.1", port)))
            halves[-1].sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n")
        for path in ("/health", "/v1/metrics"):
            assert web.get(f"{running.page}{path}").status_code == 200
        for halve in halves:
            halve.close()


@pytest.mark.parametrize("proxy", [False, True])
def test_only_named_proxies_may_forward_a_callers_address(tmp_path: Path, *, proxy: bool) -> None:
    tokens = tmp_path / "tokens.json"
    add_token(tokens, "me", "viewer", 1, time.time())
    settings = HttpSettings(rate=0.5, proxies=("127.0.0.0/24",) if proxy else ())
    access = {"access": access_of(tokens, None)}
    with (
        page_of(tmp_path, SMALL, {}, opened=lambda *_: access, settings=settings) as address,
        httpx2.Client(base_url=address, timeout=HANG_SECONDS) as client,
    ):
        codes = [
            client.get(
                "/v1/metrics",
                headers={"authorization": "Bearer wrong", "x-forwarded-for": f"10.0.{n}.1"},
            ).status_code
            for n in range(60)
        ]
        assert set(codes) == ({401} if proxy else {401, 429})


async def test_bytes_that_are_no_http_write_no_traceback(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Such as a chunk that is none, behind an answer that was given before it."""
    chunked = b"POST /told HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    caplog.set_level(logging.DEBUG)
    async with _served(monkeypatch) as face:
        results = await asyncio.gather(
            _response_bytes(face, chunked + b"secret\r\n"),
            _response_bytes(face, b"\x16\x03\x01secret\r\n\r\n"),
            _response_bytes(face, HEAD + b"\r\n123456789secret\r\n\r\n"),
            _response_bytes(face, b"GET /secret\xff HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        )
        assert len(results) == 4
        reader, writer = await asyncio.open_connection("127.0.0.1", face.port)
        writer.write(chunked)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 411")
        writer.write(b"secret\r\n")
        await asyncio.wait_for(reader.read(), HANG_SECONDS)
        writer.close()
    assert "secret" not in caplog.text
    assert "Traceback" not in caplog.text
