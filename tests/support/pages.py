"""The aggregator's page over totals in memory, in this process: a test may change what it runs."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx2
import numpy as np

from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.releases.releasing import Releases
from hubbub.aggregator.settings import HttpSettings
from hubbub.aggregator.web.app import HttpServer
from hubbub.analysis.families import draw
from hubbub.conservation import Window
from hubbub.installation.child_process import free_port
from tests.support import web
from tests.support.bundles import DAY, Signed, make_signed
from tests.support.fakes import MemoryReleaseLog, MemoryStore
from tests.support.waiting import HANG_SECONDS, eventually

EPOCH = 20_000
"""The epoch that is meant, two days before the page's now."""

UNLIMITED = HttpSettings(rate=0.0)
Opened = Callable[[str, QueryEngine], dict[str, Any]]


def _epochs(
    epoch_counts: Mapping[int, int] | Sequence[Mapping[int, int]],
) -> list[tuple[int, int, Mapping[int, int]]]:
    """How many epochs, the place of each, and who holds what in it."""
    every = [epoch_counts] if isinstance(epoch_counts, Mapping) else list(epoch_counts)
    return [(len(every), place, truth) for place, truth in enumerate(every)]


@contextmanager
def page_of(
    folder: Path,
    catalog: str,
    stream_counts: Mapping[str, Mapping[int, int] | Sequence[Mapping[int, int]]],
    *,
    seed: int = 1,
    earlier: Mapping[str, int] = MappingProxyType({}),
    opened: Opened = lambda _address, _query: {},
    settings: HttpSettings = UNLIMITED,
) -> Iterator[str]:
    """A page's address until the end of the block.

    stream_counts: per metric, who holds each value; or a list of that, an epoch each, of which the
        last is the one that is meant. earlier: of some metrics, by how many their epoch is.
    opened: more arguments of its server, such as who may ask.
    """
    signed = make_signed(folder, catalog, start=(EPOCH - 14) * DAY)
    chance = np.random.default_rng(seed)
    now = (EPOCH + 2) * DAY + 4000.0

    async def fill(store: MemoryStore) -> None:
        every = [
            (name, days - place - 1, truth)
            for name, epoch_counts in stream_counts.items()
            for days, place, truth in _epochs(epoch_counts)
        ]
        for name, before, truth in every:
            drawn = draw(
                signed.bundle.metric(name).randomizer, list(truth), list(truth.values()), chance
            )
            await store.count(Window(name, EPOCH - before - earlier.get(name, 0)), drawn)

    with page_over(signed, fill, now, opened, settings) as address:
        yield address


@contextmanager
def page_over(
    signed: Signed,
    fill: Callable[[MemoryStore], Awaitable[None]],
    now: float,
    opened: Opened = lambda _address, _query: {},
    settings: HttpSettings = UNLIMITED,
) -> Iterator[str]:
    """The address, until the end of the block, of a page over totals that `fill` has filled."""
    store = MemoryStore()
    query = QueryEngine(signed.bundle, store, clock=lambda: now)
    releases = Releases(query.collected, MemoryReleaseLog(), clock=lambda: now)
    address = f"127.0.0.1:{free_port()}"
    server = HttpServer(
        replace(settings, listen=address),
        query,
        releases,
        **opened(f"http://{address}", query),
    )

    stop = threading.Event()

    async def serve() -> None:
        await fill(store)
        await server.start()
        await asyncio.to_thread(stop.wait)
        await server.stop(HANG_SECONDS)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    try:
        eventually(
            lambda: web.get(f"http://{address}/health").status_code == 200,
            although=(httpx2.TransportError,),
        )
        yield f"http://{address}"
    finally:
        stop.set()
        thread.join(HANG_SECONDS)
        assert not thread.is_alive(), "the page does not stop"
