"""Bodies of strings to look for: what is read as JSON has it, and what is refused at once."""

import asyncio
import json
import threading
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError

from hubbub.aggregator.access.audit_trail import Seen
from hubbub.aggregator.query.cache import Turns
from hubbub.aggregator.web import parameters
from hubbub.aggregator.web.parameters import CandidatesBody, parse
from tests.support.waiting import HANG_SECONDS


@pytest.mark.parametrize(
    "strings", [["a"], ["", "\u00e9", '"', "\\", "\n]", "\U0001f600", "[{,}]"], ["x" * 65_536]]
)
@pytest.mark.parametrize("indent", [None, 2])
def test_strings_are_read_as_json_has_them(strings: list[str], indent: int | None) -> None:
    for ascii_alone in (True, False):
        body = json.dumps({"candidates": strings}, indent=indent, ensure_ascii=ascii_alone)
        assert parse(body.encode()).candidates == strings


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (b"", "body"),
        (b"[]", "body"),
        (b"\xff", "body"),
        (b"{}", "body"),
        (b'{"candidates": []}', "body.candidates"),
        (b'{"candidates": [}', "body.candidates.0"),
        (b'{"candidates": [1]}', "body.candidates.0"),
        (b'{"candidates": ["a", null]}', "body.candidates.1"),
        (b'{"candidates": ["a",]}', "body.candidates.1"),
        (b'{"candidates": ["a" "b"]}', "body.candidates.0"),
        (b'{"candidates": ["a"', "body.candidates.0"),
        (b'{"candidates": ["a', "body.candidates.0"),
        (b'{"candidates": ["\\ud800"]}', "body.candidates.0"),
        (b'{"candidates": ["a"]', "body"),
        (b'{"candidates": ["a"], "more": 1}', "body"),
        (b'{"candidates": ["a"]} {}', "body"),
        (json.dumps({"candidates": ["x" * 65_537]}).encode(), "body.candidates.0"),
        pytest.param(
            json.dumps({"candidates": ["x"] * 1_000_001}).encode(),
            "body.candidates",
            marks=pytest.mark.slow,
        ),
        (b'{"candidates": [' + b"[" * 1_000_000, "body.candidates.0"),
        (b'{"candidates": [' + b"[]," * 349_000 + b'"a"]}', "body.candidates.0"),
    ],
)
def test_a_body_without_a_list_of_texts_has_one_error(body: bytes, where: str) -> None:
    with pytest.raises(RequestValidationError) as refused:
        parse(body)
    [wrong] = refused.value.errors()
    assert ".".join(map(str, wrong["loc"])) == where


async def test_other_requests_are_answered_during_a_large_body(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is read once another request has its answer, and no sooner."""
    begun, go_on = threading.Event(), threading.Event()

    def slow(raw: bytes) -> Any:
        begun.set()
        assert go_on.wait(HANG_SECONDS)
        return parse(raw)

    monkeypatch.setattr(parameters, "parse", slow)
    app = FastAPI()
    app.state.body_turns = Turns()

    @app.post("/strings")
    async def strings(body: CandidatesBody) -> int:
        return len(body.candidates)

    @app.get("/health")
    async def health() -> str:
        return "ok"

    async def with_state(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "state": {"seen": Seen()}}, receive, send)

    transport = httpx2.ASGITransport(app=with_state)
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://test", timeout=HANG_SECONDS
    ) as client:
        large = {"candidates": ["x" * 1000] * 1000}
        reading = asyncio.create_task(client.post("/strings", json=large))
        assert await asyncio.to_thread(begun.wait, HANG_SECONDS)
        assert (await client.get("/health")).json() == "ok"
        go_on.set()
        assert (await reading).json() == 1000
