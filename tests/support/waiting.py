"""The one way in which tests wait: until something is so, and as long as only a hang would last.

No test asserts how fast anything is, nor fails because a machine is slow. What must be given a
limit is given HANG_SECONDS: no single wait takes a tenth of it on a quiet machine of two cores.
Where no limit must be given (a program that ends, a thread that is joined) none is: the runner's
own, in pyproject.toml, ends what hangs there.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from inspect import isawaitable
from typing import Any, Final, TypeVar

HANG_SECONDS: Final = 900.0
# Between two looks: a look may cost services as much as what they are waited for.
_SHORTEST_SECONDS: Final = 0.05
_LONGEST_SECONDS: Final = 0.5

Found = TypeVar("Found")


def eventually(
    look: Callable[[], Found],
    detail: Callable[[], object] = lambda: "",
    *,
    although: tuple[type[Exception], ...] = (),
) -> Found:
    """The first answer of `look` that is true.

    detail: what to say if there never is one. although: errors that mean "not yet".
    """
    for pause_seconds in _pauses():
        with suppress(*although):
            if result := look():
                return result
        time.sleep(pause_seconds)
    raise AssertionError(f"it never became so: {detail()}")


async def eventually_async(
    look: Callable[[], object],
    detail: Callable[[], object] = lambda: "",
    *,
    although: tuple[type[Exception], ...] = (),
) -> Any:
    """As `eventually`, while the loop goes on; `look` may be a coroutine."""
    for pause_seconds in _pauses():
        with suppress(*although):
            result = look()
            if result := await result if isawaitable(result) else result:
                return result
        await asyncio.sleep(pause_seconds)
    raise AssertionError(f"it never became so: {detail()}")


def _pauses() -> Iterator[float]:
    """How long to pause after each look until it hangs: a tenth of the time since the first."""
    begin = time.monotonic()
    yield _SHORTEST_SECONDS
    while (waited := time.monotonic() - begin) < HANG_SECONDS:
        yield min(max(waited / 10, _SHORTEST_SECONDS), _LONGEST_SECONDS)
