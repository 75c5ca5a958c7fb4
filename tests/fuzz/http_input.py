"""HTTP heads and bodies, raw, into the protocol and the application that the aggregator serves.

Over totals in this process's memory, without a socket: an answer of our own for whatever comes, no
fault in the log, and nothing that waits for ever.
"""

import asyncio
import atexit
import json
import logging
import random
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hubbub.aggregator.access.callers import access_of
from hubbub.aggregator.access.tokens import add_token
from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.releases.release_log import Entry
from hubbub.aggregator.releases.releasing import Releases
from hubbub.aggregator.settings import HttpSettings
from hubbub.aggregator.web.app import HttpServer
from hubbub.conservation import Window
from hubbub.mechanisms import Totals
from hubbub.runtime.http.server import HttpDoor
from tests.conftest import CATALOG
from tests.fuzz.documents import varied
from tests.fuzz.mutate import mutated
from tests.fuzz.target import Faults, Target, scratch
from tests.support.bundles import DAY, make_signed
from tests.support.fakes import MemoryReleaseLog, MemoryStore

EPOCH = 20_000
NOW = (EPOCH + 9) * DAY + 4000.0
BATCH = 100
HANG_SECONDS = 20.0
_STATUS = re.compile(rb"^HTTP/1\.1 (\d{3}) ", re.MULTILINE)
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
# Percent-encoded, and as they are: what a target of a request may hold.
_ODD = [
    b"%00",
    b"%ff",
    b"%ED%A0%80",
    b"%0a",
    b"..%2f",
    b"%",
    b"%zz",
    b"?",
    b"&",
    b"=",
    b"#",
    b"\xff",
    b"\x00",
    b"\r\n",
    b"\n",
    b" ",
    b"\t",
    b"9" * 400,
    b"1e999",
    b"nan",
    b"-1",
    b"0.9999999999999999",
    b"1e-320",
    b"9999-12-31",
    b"4294967295",
    b"2026-02-30",
    b"..",
    b",",
    b"Transfer-Encoding: chunked\r\n",
    b"Content-Length: 5\r\n",
    b"Content-Length: \xb2\r\n",
    b"Host: [::1",
    b"Expect: 100-continue\r\n",
    b"Upgrade: websocket\r\n",
    b"HTTP/1.0",
]


class Pipe(asyncio.Transport):
    """The other end of a connection, in memory."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 4000), "sockname": ("127.0.0.1", 80)})
        self.out = bytearray()
        self.closed = False

    def write(self, data: Any) -> None:
        self.out += data

    def close(self) -> None:
        self.closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def can_write_eof(self) -> bool:
        return False


class StoredText(MemoryReleaseLog):
    """A record that takes what Redis can keep and every reader can read: text."""

    async def spend(self, entry: Entry, allowance: tuple[float, float]) -> tuple[Entry, bool]:
        for text in (entry.by, entry.purpose, entry.metric, entry.query, entry.value):
            text.encode()
            assert not any(ord(character) < 32 for character in text), "control characters are kept"
        return await super().spend(entry, allowance)


class House:
    """Faces over one store in memory: one that asks for tokens, and one that does not."""

    def __init__(self, folder: Path) -> None:
        self.loop = asyncio.new_event_loop()
        atexit.register(self.loop.close)
        released = 'release = { mechanism = "laplace", epsilon = 0.01 }\n'
        budget = "[budget]\nepsilon_per_year = 1e9\npurposes = { p = 1.0 }\n[metrics.theme]\n"
        catalog = CATALOG.replace("[metrics.theme]\n", budget + released)
        signed = make_signed(folder, catalog, start=(EPOCH - 14) * DAY)
        store = MemoryStore()
        query = QueryEngine(signed.bundle, store, clock=lambda: NOW)
        self.loop.run_until_complete(_fill(store, signed.bundle))
        releases = Releases(query.collected, StoredText(), clock=lambda: NOW)
        tokens = folder / "tokens.json"
        add_token(tokens, "fuzz", "publisher", 365, NOW)
        self._doors = []
        for access_tokens in (None, tokens):
            server = HttpServer(
                HttpSettings(listen="127.0.0.1:1", rate=0.0),
                query,
                releases,
                access=access_of(access_tokens, None),
            )
            self._doors.append(server)
        self._faults = Faults()
        logging.getLogger().addHandler(self._faults)
        for name in ("uvicorn", "uvicorn.error"):
            logging.getLogger(name).handlers = []

    def ask(self, raw: bytes, *, tokens: bool = False) -> bytes:
        """What is answered to these bytes on a connection of their own."""
        self._faults.records.clear()
        answer = self.loop.run_until_complete(self._response_bytes(raw, self._doors[tokens]))
        statuses = [int(status) for status in _STATUS.findall(answer)]
        assert not [status for status in statuses if status >= 500 and status != 501], statuses
        assert not self._faults.records, self._faults.records[0][-2000:]
        return answer

    async def _response_bytes(self, raw: bytes, door: HttpDoor) -> bytes:
        tasks, pipe = door._state.tasks, Pipe()
        protocol = door._connection(None, lambda: None)
        protocol.connection_made(pipe)
        with suppress(asyncio.CancelledError):
            for start in range(0, len(raw), 3000):
                if not pipe.closed:
                    protocol.data_received(raw[start : start + 3000])
        # Whoever waits for more of this request hears that there is none.
        for _ in range(3):
            await asyncio.sleep(0)
        if not pipe.closed and _is_half(protocol):
            protocol.connection_lost(None)
        if tasks:
            _, hanging = await asyncio.wait(set(tasks), timeout=HANG_SECONDS)
            if hanging and not pipe.closed:
                protocol.connection_lost(None)
                _, hanging = await asyncio.wait(hanging, timeout=HANG_SECONDS)
            assert not hanging, "a request hangs"
        if protocol.timeout_keep_alive_task:
            protocol.timeout_keep_alive_task.cancel()
        return bytes(pipe.out)


def faces() -> Mapping[str, Target]:
    """Targets by name."""
    house = House(scratch())

    def raw(data: bytes) -> None:
        house.ask(data)
        if data[-1:] < b"\x20":
            house.ask(data, tokens=True)

    def send_request(data: bytes) -> None:
        """data: a request as JSON."""
        try:
            request = _request_bytes(json.loads(data))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return
        house.ask(request)

    return {
        "http_raw": Target([_request_bytes(request) for request in _REQUESTS], raw, _raw),
        "http_asked": Target(
            [json.dumps(request).encode() for request in _REQUESTS], send_request, varied
        ),
    }


async def _fill(store: MemoryStore, bundle: Any) -> None:
    for metric in bundle.streams.values():
        seconds = {"hour": 3600, "day": DAY, "week": 7 * DAY}[metric.epoch]
        epoch = EPOCH * DAY // seconds
        totals = Totals(cells=[BATCH // 2] * metric.randomizer.layout.size, reports=BATCH)
        await store.count(Window(metric.name, epoch), totals)


def _is_half(protocol: Any) -> bool:
    """Whether what came is not a whole request."""
    cycle = protocol.cycle
    return cycle is None or (cycle.more_body and not cycle.response_complete)


_STRINGS = {"candidates": ["a.example", "b.example"]}
_RELEASE = {"metric": "theme", "query": "histogram", "purpose": "p", "by": "me", "epochs": [EPOCH]}
_REQUESTS: list[dict[str, Any]] = [
    {"method": method, "path": path, "query": query, "headers": {}, "body": body}
    for method, path, query, body in (
        ("GET", ["v1", "metrics"], {"first": 0, "number": 2}, None),
        ("GET", ["v1", "metrics", "theme"], {}, None),
        ("GET", ["v1", "metrics", "theme", "estimates"], {"epochs": "all", "order": "rank"}, None),
        ("GET", ["v1", "metrics", "theme", "estimates"], {"confidence": 0.9, "last": "30d"}, None),
        ("GET", ["v1", "metrics", "crashed", "top"], {"epochs": "all", "tier": "0.5"}, None),
        (
            "GET",
            ["v1", "metrics", "theme", "compare"],
            {"epochs": str(EPOCH), "to_epochs": str(EPOCH)},
            None,
        ),
        ("GET", ["v1", "metrics", "theme", "trend"], {"epochs": "all", "value": "dark"}, None),
        ("GET", ["v1", "metrics", "theme", "cross"], {"rows": "a", "columns": "b"}, None),
        ("GET", ["v1", "metrics", "theme", "breakdown"], {"by": "os"}, None),
        ("GET", ["v1", "metrics", "theme", "export"], {"format": "csv", "epochs": "all"}, None),
        ("POST", ["v1", "metrics", "homepage", "estimates"], {"epochs": "all"}, _STRINGS),
        ("POST", ["v1", "metrics", "homepage", "top"], {"epochs": "all", "number": 1}, _STRINGS),
        ("POST", ["v1", "releases"], {}, _RELEASE),
        ("POST", ["v1", "releases"], {}, {**_RELEASE, "query": "count", "value": "dark"}),
        ("GET", ["v1", "releases"], {}, None),
        ("GET", ["v1", "status"], {}, None),
        ("GET", ["v1", "tokens"], {}, None),
        ("GET", ["metrics"], {}, None),
        ("GET", ["static", "overview.html"], {}, None),
        ("GET", ["health"], {}, None),
    )
]


def _request_bytes(request: Any) -> bytes:
    """A request's bytes; its length is that of its body, and text may be any."""
    path = "/" + "/".join(_quoted(part) for part in request["path"])
    query = "&".join(f"{_quoted(k)}={_quoted(v)}" for k, v in request["query"].items())
    headers = {"Host": "127.0.0.1", **request["headers"]}
    body = b""
    if request["body"] is not None:
        content = request["body"]
        body = (content if isinstance(content, str) else json.dumps(content)).encode(
            "utf-8", "replace"
        )
        headers = {"Content-Type": "application/json", "Content-Length": len(body), **headers}
    head = f"{request['method']} {path}{'?' + query if query else ''} HTTP/1.1\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return head.encode("latin-1", "replace") + b"\r\n" + body


def _quoted(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return quote(text.encode("utf-8", "surrogatepass"), safe="")


def _raw(chance: random.Random, examples: Sequence[bytes]) -> bytes:
    """Other bytes; often with something odd in the head, and a length that fits."""
    example = chance.choice(examples)
    if chance.random() < 0.4:
        return mutated(chance, examples)
    head, end, body = example.partition(b"\r\n\r\n")
    for _ in range(chance.choice((1, 1, 3))):
        at = chance.randrange(len(head) + 1)
        head = head[:at] + chance.choice(_ODD) + head[at + chance.randrange(8) :]
    if body and chance.random() < 0.5:
        body = mutated(chance, [body])
        head = _LENGTH.sub(b"Content-Length: %d" % len(body), head)
    again = example if chance.random() < 0.1 else b""
    return head + end + body + again
