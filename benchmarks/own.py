"""What stages need to run: a hubbub or a Redis of their own, and calls to count."""

import asyncio
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from hubbub.cli.embedded_redis import EmbeddedRedis
from hubbub.cli.local_run import LocalRun, Ports
from hubbub.cli.up import demo_catalog
from hubbub.serving import connect_redis
from hubbub.shuffler.pool import Pool

__all__ = ["close_epochs", "counted", "own_hubbub", "own_redis", "times"]


@contextmanager
def own_hubbub() -> Iterator[LocalRun]:
    """The demo's catalog, served from a temporary folder."""
    with (
        tempfile.TemporaryDirectory() as home,
        LocalRun(Path(home), demo_catalog(), Ports.free()) as run,
    ):
        yield run


@contextmanager
def own_redis() -> Iterator[str]:
    """The URL of a server in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        server = EmbeddedRedis(Path(folder))
        try:
            yield server.url
        finally:
            server.stop()


def close_epochs(redis_url: str) -> None:
    """End every epoch now: what is pooled goes out whole."""

    async def close() -> None:
        server = await connect_redis(redis_url)
        await Pool(server).close_windows()
        await server.close()

    # In a thread of its own: whoever asks may have a loop that runs.
    thread = threading.Thread(target=asyncio.run, args=(close(),))
    thread.start()
    thread.join()


def times(number: int, call: Callable[..., object], *arguments: object) -> int:
    """Call so many times; how many times that was."""
    work = partial(call, *arguments)
    for _ in range(number):
        work()
    return number


def counted(number: int, call: Callable[[], object]) -> int:
    """Call once, for so many things done."""
    call()
    return number
