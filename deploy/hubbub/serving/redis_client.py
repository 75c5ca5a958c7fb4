"""Redis: connected once, checked for what it must keep, and failing as StoreUnavailable."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlsplit

import redis.asyncio
from redis.asyncio.client import Pipeline
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import OutOfMemoryError, ReadOnlyError, RedisError

from hubbub.errors import StoreFull, StoreUnavailable

__all__ = ["RedisServer", "awaited", "connect_redis"]

_log: Final = logging.getLogger("hubbub.redis")

_OLDEST: Final = (6, 2)  # of those that the tests run on
_TIMEOUT_SECONDS: Final = 10.0
# Started together with us, it may be a moment later.
_START_SECONDS: Final = 3.0
_PAUSE_SECONDS: Final = 0.1
_REPLICA_MS: Final = 5000


class RedisServer:
    """A server that a service keeps its state in.

    client: for commands and scripts. replicas: how many must have a write before it counts as done.
    """

    def __init__(self, client: redis.asyncio.Redis, url: str, replicas: int = 0) -> None:
        self.client = client
        self._shown = _shown(url)
        self._replicas = replicas

    @asynccontextmanager
    async def errors(self) -> AsyncIterator[None]:
        """Turns what redis-py raises into StoreUnavailable, with the address, not the password."""
        try:
            yield
        except (RedisError, OSError) as error:
            # From inside a script of an older Redis both come as text alone.
            if isinstance(error, OutOfMemoryError) or "OOM command not allowed" in str(error):
                raise StoreFull(
                    f"Redis at {self._shown} is full; raise its maxmemory, or let it drain"
                ) from error
            if isinstance(error, ReadOnlyError) or "READONLY" in str(
                error
            ):  # a replica now: ask anew who is not
                await self.client.connection_pool.disconnect(inuse_connections=False)
            raise StoreUnavailable(
                f"Redis at {self._shown}: {type(error).__name__}: {error}; "
                "start it, or name another with HUBBUB_REDIS_URL"
            ) from error

    async def durable(self, pipe: Pipeline) -> list[Any]:
        """Execute a pipeline; its answers, once as many replicas as asked for have its writes.

        Raises:
            StoreUnavailable: it may have been executed or not; it must bear being executed again.
        """
        if self._replicas:
            pipe.wait(self._replicas, _REPLICA_MS)
        async with self.errors():
            answers = list(await pipe.execute())
        if self._replicas and (reached := int(answers.pop())) < self._replicas:
            raise StoreUnavailable(
                f"Redis at {self._shown}: {reached} of {self._replicas} replicas have the write; "
                "start the others, or ask for fewer with --redis-replicas"
            )
        return answers

    async def close(self) -> None:
        """End every connection."""
        await self.client.aclose()

    async def memory(self) -> float:
        """Which part of the memory that it may use is used; 0 where it has no limit."""
        async with self.errors():
            told = await self.client.info("memory")
        most = int(told.get("maxmemory", 0))
        return int(told["used_memory"]) / most if most else 0.0


async def connect_redis(url: str, replicas: int = 0) -> RedisServer:
    """The server at `url`, which answered within seconds, is new enough and does not evict.

    Raises:
        StoreUnavailable: it cannot be reached, refuses us, is older than 6.2, or would evict keys.
    """
    try:
        client = redis.asyncio.Redis.from_url(
            url,
            socket_timeout=_TIMEOUT_SECONDS,
            socket_connect_timeout=_TIMEOUT_SECONDS,
            # Once more at once, for a connection that went stale: every script of ours bears that.
            # Whoever calls us goes on trying.
            retry=Retry(NoBackoff(), 1),
        )
    except ValueError as error:
        raise StoreUnavailable(
            f"the Redis URL is not one: {error}; write redis://HOST:PORT/0"
        ) from None
    server = RedisServer(client, url, replicas)
    try:
        _check(await _told(server), _shown(url))
    except StoreUnavailable:
        await server.close()
        raise
    return server


async def awaited(answer: Any) -> Any:  # noqa: ANN401
    """A command's answer: redis-py types a command as answering at once or later."""
    return await answer


async def _told(server: RedisServer) -> dict[str, Any]:
    """What the server says of itself, once it is there."""
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            async with server.errors():
                return dict(await server.client.info())
        except StoreUnavailable:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(_PAUSE_SECONDS)


def _check(told: dict[str, Any], shown: str) -> None:
    version = str(told["redis_version"])
    if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST:
        raise StoreUnavailable(f"Redis at {shown} is {version}; 6.2 or newer is needed")
    policy = told.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        raise StoreUnavailable(
            f"Redis at {shown} has maxmemory-policy {policy}: it would forget reports, or that "
            "they were counted; set maxmemory-policy noeviction"
        )
    if not int(told.get("aof_enabled", 0)):
        _log.warning(
            "Redis at %s keeps no append-only file: what it holds is lost when it ends, though it "
            "was acknowledged; set appendonly yes, and appendfsync always or everysec",
            shown,
        )
    elif told.get("aof_last_write_status", "ok") != "ok":
        _log.warning("Redis at %s cannot write its append-only file: see its log", shown)


def _shown(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.hostname or parts.path}:{parts.port or 6379}"
