"""HTTP connections that do not get on: halves of requests, drops of them, answers nobody reads."""

import asyncio
import logging
import resource
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse

from hubbub.aggregator.web.access import add_token
from hubbub.aggregator.web.guard import Guard
from hubbub.aggregator.web.lines import Line, Lines
from hubbub.aggregator.web.problems import handle_problems
from hubbub.cli.local.ports import free_port
from hubbub.runtime import Limiter
from tests.interfaces.house import house
from tests.support import web
from tests.support.waiting import HANG_SECONDS, eventually_async

LARGE = 30_000_000


@asynccontextmanager
async def _served(
    monkeypatch: pytest.MonkeyPatch, turned_away: Counter[str] | None = None, **limits: Any
) -> AsyncIterator[int]:
    """An application behind our guard and lines, with other limits: its port."""
    for name, value in limits.items():
        monkeypatch.setattr(f"hubbub.aggregator.web.lines.{name}", value)
    app = FastAPI()
    handle_problems(app)

    @app.get("/large")
    async def large() -> PlainTextResponse:
        return PlainTextResponse("x" * LARGE)

    @app.get("/broken")
    async def broken() -> None:
        raise RuntimeError("a secret \ud800 that somebody sent")

    @app.get("/slow")
    async def slow() -> str:
        await asyncio.sleep(2)
        return "done"

    @app.post("/told")
    async def told(request: Request) -> int:
        return len(await request.body())

    port = free_port()
    config = uvicorn.Config(
        Guard(app, None, Limiter(0, 1), pages=()),
        port=port,
        http=partial(Line, Lines(turned_away=turned_away)),  # type: ignore[arg-type]  # as in the face
        log_config=None,
        log_level="critical",
        lifespan="off",
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 uvicorn tells nobody
        await asyncio.sleep(0.01)
    try:
        yield port
    finally:
        server.should_exit = True
        await serving


def _client(port: int) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=HANG_SECONDS)


async def _said(port: int, *parts: bytes, seconds: float = 0.0) -> bytes:
    """All that is answered to these parts, with a pause between them, until the line ends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for part in parts:
            writer.write(part)
            await asyncio.sleep(seconds)
        return await asyncio.wait_for(reader.read(), HANG_SECONDS)
    except ConnectionError:
        return b""
    finally:
        writer.close()


HEAD = b"POST /told HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"


def test_a_request_that_does_not_arrive_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    import h11

    async def body() -> None:
        short = {h11.IDLE: 1.0, h11.SEND_BODY: 2.0}
        turned_away = Counter[str]()
        async with _served(monkeypatch, turned_away, _SECONDS=short) as port:
            said = await asyncio.gather(
                _said(port),
                _said(port, HEAD, *(b"X-%d: 1\r\n" % n for n in range(40)), seconds=0.1),
                _said(port, HEAD + b"\r\n1234"),
                _said(port, HEAD + b"\r\n", *(b"%d" % n for n in range(9)), seconds=0.4),
            )
            assert set(said) == {b""}
        assert turned_away == {"too_slow": 4}
        longer = {h11.IDLE: 4.0, h11.SEND_BODY: HANG_SECONDS}
        async with _served(monkeypatch, _SECONDS=longer) as port:
            whole = await _said(port, HEAD + b"\r\n", b"1234", b"56789", b"", seconds=0.3)
            assert whole.startswith(b"HTTP/1.1 200 OK")
            async with _client(port) as one:
                for _ in range(3):
                    await asyncio.sleep(1.5)
                    answer = await one.post("/told", content=b"abc")
                    assert (answer.status_code, answer.text) == (200, "3"), "one line, kept"
                # Longer than a request may take: it is being answered.
                assert (await one.get("/slow")).text == '"done"'

    asyncio.run(body())


def test_an_answer_that_nobody_reads_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        turned_away = Counter[str]()
        async with _served(monkeypatch, turned_away, _ANSWER_SECONDS=1.0) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
            reader._transport.pause_reading()  # type: ignore[attr-defined]
            await asyncio.sleep(3)
            reader._transport.resume_reading()  # type: ignore[attr-defined]
            got = 0
            try:
                while part := await asyncio.wait_for(reader.read(1 << 20), HANG_SECONDS):
                    got += len(part)
            except ConnectionError:
                pass
            assert got < LARGE
            assert turned_away == {"too_slow": 1}
            writer.close()
        async with _served(monkeypatch, _ANSWER_SECONDS=HANG_SECONDS) as port, _client(port) as one:
            assert len((await one.get("/large")).content) == LARGE

    asyncio.run(body())


@pytest.mark.parametrize("limit", ["_MAX", "_MAX_OF_ADDRESS"])
def test_the_line_that_waits_longest_gives_way(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    async def body() -> None:
        turned_away = Counter[str]()
        async with _served(monkeypatch, turned_away, **{limit: 10}) as port:
            slow = asyncio.create_task(
                _said(port, b"GET /slow HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            )
            await asyncio.sleep(0.3)
            halves = [asyncio.create_task(_said(port, HEAD)) for _ in range(30)]
            async with _client(port) as one:
                assert (await one.post("/told", content=b"abc")).text == "3"
            assert (await slow).endswith(b'"done"'), "what is answered is not ended"

            async def ended() -> bool:
                return sum(half.done() for half in halves) >= 21

            await eventually_async(ended)
            assert turned_away["gave_way"] >= 21
            for half in halves:
                half.cancel()

    asyncio.run(body())


@pytest.mark.parametrize("limit", ["_MAX", "_MAX_OF_ADDRESS"])
def test_answers_that_nobody_reads_give_way_the_longest_unread_first(
    monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """They waited for nobody, and so kept everybody out for as long as an answer may take."""

    async def body() -> None:
        turned_away, number = Counter[str](), 10
        async with _served(monkeypatch, turned_away, **{limit: number}) as port:
            unread = [await _unread(port) for _ in range(3 * number)]
            async with _client(port) as one:
                for _ in range(3):
                    assert (await one.post("/told", content=b"abc")).text == "3"
            assert turned_away == {"gave_way": 2 * number + 1}
            for writer in unread:
                writer.transport.abort()

    asyncio.run(body())


async def _unread(port: int) -> asyncio.StreamWriter:
    """A line whose large answer has begun, and is not read on."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
    writer.write(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await reader.readexactly(1)
    return writer


def test_lines_of_one_network_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has one address of IPv6 has 2**64."""
    monkeypatch.setattr("hubbub.aggregator.web.lines._MAX_OF_ADDRESS", 3)

    class Ended(asyncio.Transport):
        def __init__(self, client: tuple[str, int]) -> None:
            super().__init__({"peername": client})
            self.is_ended = False

        def abort(self) -> None:
            self.is_ended = True

        def is_closing(self) -> bool:
            return self.is_ended

    async def ended(hosts: list[str], *proxies: str) -> list[bool]:
        config = uvicorn.Config(_nothing, lifespan="off", log_config=None)
        config.load()
        lines, made = Lines(proxies), []
        for number, host in enumerate(hosts):
            state = uvicorn.server.ServerState()
            made.append(Ended((host, number)))
            line = Line(lines, config=config, server_state=state, app_state={})
            line.connection_made(made[-1])
        return [one.is_ended for one in made]

    near = [f"2001:db8:1:1:{n:x}::1" for n in range(5)]
    far = [f"2001:db8:1:{n:x}::1" for n in range(5)]
    assert asyncio.run(ended(near)) == [True, True, False, False, False]
    assert not any(asyncio.run(ended(far)))
    assert not any(asyncio.run(ended(near, "2001:db8:1::/48"))), "a proxy's"


async def _nothing(_scope: object, _receive: object, _send: object) -> None: ...


def test_a_fault_is_a_problem_and_its_text_stays_out_of_answer_and_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def body() -> None:
        async with (
            _served(monkeypatch) as port,
            _client(port) as one,
        ):
            answer = await one.get("/broken")
            assert answer.status_code == 500
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.json()["detail"] == "a fault of ours; see our log"

    with caplog.at_level(logging.DEBUG):
        asyncio.run(body())
    assert "GET of HTTP failed: RuntimeError at " in caplog.text
    assert "secret" not in caplog.text
    assert "Traceback" not in caplog.text


def test_thousands_of_halves_of_requests_stop_nobody(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 8192)), hard))
    with house(tmp_path) as running:
        port = int(running.page.rpartition(":")[2].strip("/"))
        halves = []
        for _ in range(2100):
            halves.append(socket.create_connection(("127.0.0.1", port)))
            halves[-1].sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n")
        for path in ("/health", "/v1/metrics"):
            assert web.get(f"{running.page}{path}").status_code == 200
        for one in halves:
            one.close()


@pytest.mark.parametrize("proxy", [False, True])
def test_for_whom_somebody_asks_is_believed_of_named_proxies_alone(
    tmp_path: Path, *, proxy: bool
) -> None:
    tokens = tmp_path / "tokens.json"
    add_token(tokens, "me", "viewer", 1, time.time())
    options = ("--http-tokens", str(tokens), "--http-rate", "0.5")
    named = ("--http-proxy", "127.0.0.0/24") if proxy else ()
    with (
        house(tmp_path / "house", *options, *named) as running,
        httpx2.Client(base_url=running.page, timeout=HANG_SECONDS) as one,
    ):
        codes = [
            one.get(
                "/v1/metrics",
                headers={"authorization": "Bearer wrong", "x-forwarded-for": f"10.0.{n}.1"},
            ).status_code
            for n in range(60)
        ]
        assert set(codes) == ({401} if proxy else {401, 429})


def test_bytes_that_are_no_http_write_no_traceback(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Such as a chunk that is none, behind an answer that was given before it."""
    chunked = b"POST /told HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"

    async def body() -> None:
        async with _served(monkeypatch) as port:
            said = await asyncio.gather(
                _said(port, chunked, b"secret\r\n", seconds=0.5),
                _said(port, chunked + b"secret\r\n"),
                _said(port, b"\x16\x03\x01secret\r\n\r\n"),
                _said(port, HEAD + b"\r\n123456789secret\r\n\r\n"),
                _said(port, b"GET /secret\xff HTTP/1.1\r\nHost: localhost\r\n\r\n"),
            )
            assert said[0].startswith(b"HTTP/1.1 411")

    with caplog.at_level(logging.DEBUG):
        asyncio.run(body())
    assert "secret" not in caplog.text
    assert "Traceback" not in caplog.text
