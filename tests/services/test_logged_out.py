"""Logging out ends a session, and every copy of its cookie, at every aggregator of a Redis."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from hubbub.aggregator.access.access_file import read_access
from hubbub.aggregator.access.callers import SESSION, Access, access_of
from hubbub.aggregator.access.sessions import (
    EndedSessions,
    Session,
    Sessions,
)
from hubbub.errors import ServiceUnavailable, StoreUnavailable
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.redis.command_sender import MemoryServer, RedisServer

ISSUER = "http://127.0.0.1:9"


async def _redis(url: str, body: Callable[[EndedSessions, RedisServer], Awaitable[None]]) -> None:
    server = await connect_redis(url)
    try:
        await body(EndedSessions(server, time.time), server)
    finally:
        await server.close()


@pytest.mark.parametrize("backend", ["memory", "redis"])
def test_an_ended_session_stays_ended_until_it_would_expire(redis_url: str, backend: str) -> None:
    async def body(ended: EndedSessions, server: RedisServer | None = None) -> None:
        until = int(time.time()) + 100
        assert not await ended.has(f"{backend} mine")
        for _ in range(2):
            await ended.end(f"{backend} mine", until)
            assert await ended.has(f"{backend} mine")
        assert not await ended.has(f"{backend} another")
        if server:
            keys = [key.decode() for key in await server.ask("KEYS", "aggregator:ended:*")]
            assert keys
            assert not [key for key in keys if "mine" in key], "a session's name is in no key"
            for key in keys:
                assert 100 < await server.ask("TTL", key) <= 3700

    asyncio.run(
        _redis(redis_url, body)
        if backend == "redis"
        else body(EndedSessions(MemoryServer(), time.time))
    )


def _sealed(folder: Path, *ids: str) -> list[str]:
    """Cookies of sessions of these names, which the access file of a folder accepts."""
    key, until = Fernet.generate_key(), int(time.time()) + 3600
    (folder / "session.keys").write_bytes(key)
    (folder / "access.toml").write_text(
        f'origin = "https://hubbub.example.org"\n[oidc]\nissuer = {json.dumps(ISSUER)}\n'
        'client = "hubbub"\nsession_keys = "session.keys"\n[groups.all]\nmetrics = ["*"]\n'
    )
    session = Session(
        id="",
        issuer=ISSUER,
        client="hubbub",
        subject="7",
        name="ana",
        groups=("all",),
        until=until,
    )
    sealing = Sessions([key], time.time)
    return [sealing.seal(replace(session, id=f"{name}-{until}")) for name in ids]


def _access(folder: Path, ended: EndedSessions) -> Access:
    return access_of(None, read_access(folder / "access.toml"), ended)


async def test_a_logout_at_one_aggregator_ends_the_session_at_all(
    redis_url: str, tmp_path: Path
) -> None:
    cookies = _sealed(tmp_path, "one", "other")
    servers = [await connect_redis(redis_url) for _ in range(2)]
    first, second = (_access(tmp_path, EndedSessions(server, time.time)) for server in servers)

    async def is_known(access: Access, cookie: str) -> bool:
        return await access.caller("", f"{SESSION}={cookie}") is not None

    for access in (first, second):
        assert [await is_known(access, cookie) for cookie in cookies] == [True, True]
    assert first.login
    with suppress(ServiceUnavailable):  # the provider is away; it is ended all the same
        await first.login.end(cookies[0])
    for access in (first, second):
        assert [await is_known(access, cookie) for cookie in cookies] == [False, True]
    # Another file of access changes nothing, nor does an aggregator that starts now.
    second.use(read_access(tmp_path / "access.toml"))
    third = _access(tmp_path, EndedSessions(servers[0], time.time))
    for access in (second, third):
        assert [await is_known(access, cookie) for cookie in cookies] == [False, True]
    for server in servers:
        await server.close()


def test_nobody_is_let_in_while_ended_sessions_cannot_be_read(tmp_path: Path) -> None:
    class Away(EndedSessions):
        async def has(self, session: str) -> bool:
            del session
            raise StoreUnavailable("it is away")

    cookie = f"{SESSION}={_sealed(tmp_path, 'a')[0]}"
    with pytest.raises(StoreUnavailable):
        asyncio.run(_access(tmp_path, Away(MemoryServer(), time.time)).caller("", cookie))
