"""How long three paths are: calls, functions and files of hubbub."""

import asyncio
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Final

import httpx2

from hubbub.aggregator.access.callers import Access
from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.releases.releasing import Releases
from hubbub.aggregator.settings import HttpSettings
from hubbub.aggregator.web.app import make_app
from hubbub.bundles import Bundle
from hubbub.catalog import EPOCH_SECONDS, epoch_at
from hubbub.client import Client, FolderState
from hubbub.client.testing import FakeShuffler
from hubbub.conservation import Window
from hubbub.mechanisms import Totals
from hubbub.runtime.rpc.rate_limiter import Limiter
from hubbub.signing.testing import make_bundle
from tests.support.fakes import MemoryReleaseLog, MemoryStore

HEADER: Final = ("path", "calls", "functions", "files")
_METRIC: Final = "theme"
_METHODS_OF_DATACLASSES: Final = ("_SharedMethods.", "_Initializer.")  # of hubbub.fields.frozen
_REPORTS: Final = 3
_SECONDS: Final = 60.0
_ROOTS: Final = [str(folder) for folder in Path(__file__).parents[1].glob("*/hubbub")]
_CATALOG: Final = f"""
shuffler = "127.0.0.1:1"
[metrics.{_METRIC}]
description = "Reported by every device"
owner = "bench@example.org"
expires = 2099-06-30
epoch = "day"
mechanism = "unary.oue"
epsilon = 1.0
values = ["light", "dark", "system"]
min_batch = 20
limits = {{ reports_per_epoch = 10, lifetime_epsilon = 1e6 }}
"""


@dataclass(frozen=True, slots=True)
class PathLength:
    """What one path runs of hubbub, in all its threads; without generated code."""

    path: str
    calls: int
    functions: int
    files: int


def paths() -> Iterator[tuple[str, ...]]:
    """Cells of the table, under HEADER."""
    for path_length in path_lengths():
        yield (
            path_length.path,
            f"{path_length.calls:,}",
            f"{path_length.functions:,}",
            f"{path_length.files:,}",
        )


def path_lengths() -> Iterator[PathLength]:
    """`report()`, `flush()` of three reports, and the first `GET` of a metric's estimates."""
    with TemporaryDirectory() as name:
        catalog = Path(name) / "metrics.toml"
        catalog.write_text(_CATALOG)
        bundle = make_bundle(catalog).bundle
        state = FolderState(Path(name) / "device")
        client = Client(bundle, state, FakeShuffler(), hold_seconds=None)
        client.report(_METRIC, "dark")
        client.flush(_SECONDS)
        yield _measured("report()", lambda: client.report(_METRIC, "dark"))
        for _ in range(_REPORTS - 1):
            client.report(_METRIC, "dark")
        yield _measured(f"flush() of {_REPORTS} reports", lambda: client.flush(_SECONDS))
        client.close()
    with asyncio.Runner() as runner:
        yield _first_question(runner, bundle)


def _measured(path: str, work: Callable[[], object]) -> PathLength:
    calls: Counter[CodeType] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and _is_ours(frame.f_code):
            calls[frame.f_code] += 1

    threading.setprofile(count)
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    files = {code.co_filename for code in calls}
    return PathLength(path, calls.total(), len(calls), len(files))


def _is_ours(code: CodeType) -> bool:
    """Whether hubbub has written it, apart from what stands for generated methods."""
    file = code.co_filename
    is_hubbub = any(file.startswith(f"{root}/") for root in _ROOTS) and "_pb2" not in file
    return is_hubbub and not code.co_qualname.startswith(_METHODS_OF_DATACLASSES)


def _first_question(runner: asyncio.Runner, bundle: Bundle) -> PathLength:
    """The first question of a process whose store holds one epoch of the metric."""
    now, store = time.time() + 2 * EPOCH_SECONDS["day"], MemoryStore()
    epoch = epoch_at(now, "day") - 2
    runner.run(store.count(Window(_METRIC, epoch), Totals(cells=[45, 32, 27], reports=100)))
    query = QueryEngine(bundle, store, clock=lambda: now)
    releases = Releases(query.collected, MemoryReleaseLog(), clock=lambda: now)
    app = make_app(query, releases, Access(), Limiter(0, 0), HttpSettings())
    path = f"/v1/metrics/{_METRIC}/estimates"

    async def get() -> int:
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return (await client.get(path)).status_code

    # Else it would be as long as what ran before it left to compute. The client's caches stay: it
    # registers the hooks of forks once, and would keep its locks if they were called twice.
    for name, module in list(sys.modules.items()):
        is_cleared = name.startswith("hubbub.") and not name.startswith("hubbub.client")
        for function in vars(module).values() if is_cleared else ():
            if hasattr(function, "cache_clear"):
                function.cache_clear()
    answered: list[int] = []
    length = _measured(f"GET {path}", lambda: answered.append(runner.run(get())))
    if answered != [200]:
        raise AssertionError(f"GET {path}: status {answered}")
    return length
