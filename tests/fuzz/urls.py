"""Redis URLs, as an operator may mistype them: refused in words, and nothing is dialled."""

import asyncio
import atexit
from collections.abc import Mapping
from unittest import mock

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as Unreachable

from hubbub.errors import BadParameter, StoreUnavailable
from hubbub.runtime.redis.client import connect_redis
from tests.fuzz.target import Target

_URLS = (
    b"redis://:password@127.0.0.1:6379/0",
    b"rediss://user:pass%20word@[::1]:6380/1?ssl_cert_reqs=none&socket_timeout=3",
    b"redis://127.0.0.1:7000,127.0.0.1:7001/0",
    b"redis://127.0.0.1:6379/0?ssl_ca_certs=ca.pem&socket_keepalive=1",
    b"unix:///run/redis.sock?db=1&health_check_interval=5",
)


async def _unreachable(*_: object, **__: object) -> None:
    raise Unreachable("nothing is dialled here")


def urls() -> Mapping[str, Target]:
    """Targets by name."""
    loop = asyncio.new_event_loop()
    atexit.register(loop.close)

    async def refused(url: str) -> str | None:
        try:
            server = await connect_redis(url, start_seconds=0.0)
        except (StoreUnavailable, BadParameter) as error:
            return str(error)
        await server.close()
        return None

    def tried(data: bytes) -> None:
        url = data.decode("utf-8", "surrogateescape")
        with mock.patch.object(AbstractConnection, "connect", _unreachable):
            error_text = loop.run_until_complete(refused(url))
        assert error_text is not None, "connected to nothing"
        assert "\n" not in error_text, "an error of more than one line"

    return {"redis_url": Target(_URLS, tried)}
