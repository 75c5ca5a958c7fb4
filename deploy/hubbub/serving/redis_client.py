"""Redis: connected once, checked for its version, and failing as StoreUnavailable."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

import redis.asyncio
from redis.exceptions import RedisError

from hubbub.errors import StoreUnavailable

__all__ = ["awaited", "connect_redis", "store_errors"]

_OLDEST: Final = (6, 2)  # SMISMEMBER
_TIMEOUT_SECONDS: Final = 10.0
# Started together with us, it may be a moment later.
_START_SECONDS: Final = 3.0
_PAUSE_SECONDS: Final = 0.1


async def connect_redis(url: str) -> redis.asyncio.Redis:
    """A client of the server at `url`, which answered within seconds and is new enough.

    Raises:
        StoreUnavailable: it cannot be reached, refuses us, or is older than 6.2.
    """
    try:
        client = redis.asyncio.Redis.from_url(
            url, socket_timeout=_TIMEOUT_SECONDS, socket_connect_timeout=_TIMEOUT_SECONDS
        )
    except ValueError as error:
        raise StoreUnavailable(
            f"the Redis URL is not one: {error}; write redis://HOST:PORT/0"
        ) from None
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            with store_errors(url):
                version = str((await client.info("server"))["redis_version"])
            break
        except StoreUnavailable:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(_PAUSE_SECONDS)
    if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST:
        raise StoreUnavailable(f"Redis at {_shown(url)} is {version}; 6.2 or newer is needed")
    return client


@contextmanager
def store_errors(url: str) -> Iterator[None]:
    """Turns what redis-py raises into StoreUnavailable, with the address, not the password."""
    try:
        yield
    except (RedisError, OSError) as error:
        raise StoreUnavailable(
            f"Redis at {_shown(url)}: {type(error).__name__}: {error}; "
            "start it, or name another with HUBBUB_REDIS_URL"
        ) from error


async def awaited(answer: Any) -> Any:  # noqa: ANN401
    """A command's answer: redis-py types a command as answering at once or later."""
    return await answer


def _shown(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.hostname or parts.path}:{parts.port or 6379}"
