"""Refuses calls so that the caller knows whether and when to try again."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

import grpc
import grpc.aio

from hubbub.runtime.messages import hint_seconds

_MARK: Final = ("hubbub-refused", "for-good")

Context = grpc.aio.ServicerContext[Any, Any]
Trailers = Callable[[], Sequence[tuple[str, str | bytes]]]
"""What goes along with a refusal for now, the same for everybody."""


async def come_back(
    context: Context, wait_seconds: float, why: str, trailers: Trailers = tuple
) -> NoReturn:
    """Refuses a call for now: RESOURCE_EXHAUSTED, with a hint when to try again.

    The hint is drawn from [`wait_seconds`, 2 `wait_seconds`], so that refused callers do not all
    come back at once. `trailers` is further trailing metadata.
    """
    hint = round(1000 * hint_seconds(wait_seconds)) + 1
    await context.abort(
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        why,
        (("grpc-retry-pushback-ms", str(hint)), *trailers()),
    )
    raise AssertionError("abort does not return")


async def refuse(context: Context, why: str) -> NoReturn:
    """Refuses a call for good: INVALID_ARGUMENT, with a mark that no proxy would add.

    A caller that finds the mark need never send the same bytes again.
    """
    await context.abort(grpc.StatusCode.INVALID_ARGUMENT, why, (_MARK,))
    raise AssertionError("abort does not return")
