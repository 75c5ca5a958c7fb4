"""Announces work that takes long."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Final

_SOON_SECONDS: Final = 2.0


@contextmanager
def announced_if_long(what: Callable[[], str]) -> Iterator[None]:
    """Says what is being done on standard error if it takes over two seconds; nothing for ""."""

    def announce() -> None:
        if message := what():
            print(message, file=sys.stderr, flush=True)  # noqa: T201 beside the answer

    timer = Timer(_SOON_SECONDS, announce)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
