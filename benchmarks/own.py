"""What stages need to run: a hubbub or a Redis of their own, and calls to count."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from hubbub.cli.commands.up import demo_catalog
from hubbub.installation.embedded_redis import EmbeddedRedis
from hubbub.installation.local_run import LocalRun, Ports


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
