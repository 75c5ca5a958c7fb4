"""How long the paths of a report and of a question are: a feature must not add to all of them."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import fastapi.applications
import httpx2
import pydantic
import pytest

from benchmarks.paths import path_lengths
from hubbub.aggregator.access.callers import Access
from hubbub.aggregator.settings import HttpSettings
from hubbub.aggregator.web.app import make_app
from hubbub.client.reentry_and_forks import _hook_in
from hubbub.runtime.rpc.rate_limiter import Limiter
from tests.support.waiting import HANG_SECONDS

# Calls, functions and files: a little above what they were when they were last shortened. In one
# report of twelve a draw takes a call more.
MOST = {
    "report()": (45, 37, 12),
    "flush() of 3 reports": (775, 216, 34),
    "GET /v1/metrics/theme/estimates": (1110, 120, 28),
}


@pytest.mark.slow
def test_no_path_grows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Where an app has run, this user's folder among temporary files makes a flush longer.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    lengths = list(path_lengths())
    assert _hook_in.cache_info().currsize == 1, "else forks are followed twice"
    with capsys.disabled():
        for length in lengths:
            print(f"\n{length}")  # noqa: T201 shows its figures
    assert {length.path for length in lengths} == MOST.keys()
    for length in lengths:
        for number, most in zip(
            (length.calls, length.functions, length.files), MOST[length.path], strict=True
        ):
            assert number <= most, length


def test_the_first_question_builds_no_route_and_no_document(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Meanwhile the event loop would count no batch, for half a second."""
    nothing: Any = None
    app = make_app(nothing, nothing, Access(), Limiter(0, 1), HttpSettings())
    built: list[object] = []
    monkeypatch.setattr(pydantic.TypeAdapter, "__init__", lambda *call, **_: built.append(call))
    monkeypatch.setattr(fastapi.applications, "get_openapi", lambda **call: built.append(call))

    async def get(path: str) -> int:
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, timeout=HANG_SECONDS) as client:
            return (await client.get(f"http://127.0.0.1{path}")).status_code

    assert asyncio.run(get("/v1/columns")) == 200
    assert asyncio.run(get("/v1/columns?first=1")) == 400, "no parameter of this path"
    assert not built
