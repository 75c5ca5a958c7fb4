"""Refusal: how a call is turned away so that its caller knows when to try again."""

import secrets
from typing import Any, Final, NoReturn

import grpc
import grpc.aio

__all__ = ["come_back"]

_random: Final = secrets.SystemRandom()


async def come_back(
    context: grpc.aio.ServicerContext[Any, Any], wait_seconds: float, why: str
) -> NoReturn:
    """Refuse a call for now: RESOURCE_EXHAUSTED, with a hint when to try again.

    The hint is drawn from [wait, 2 wait], so that those who were refused do not come at once.
    """
    hint = round(1000 * wait_seconds * _random.uniform(1, 2)) + 1
    await context.abort(
        grpc.StatusCode.RESOURCE_EXHAUSTED, why, (("grpc-retry-pushback-ms", str(hint)),)
    )
    raise AssertionError("abort does not return")
