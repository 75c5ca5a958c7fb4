"""A listener behind proxies that begin every connection with a PROXY header."""

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Callable, Collection, Coroutine
from ipaddress import ip_network
from typing import Any, Final

from hubbub.runtime.http.connections import among
from hubbub.runtime.http.proxy_header import BadProxyHeader, Caller, read_caller

__all__ = ["ProxiedListener"]

_log: Final = logging.getLogger("hubbub.runtime")

_HEADER_SECONDS: Final = 10.0
# Where no file is left for another connection, as asyncio has it.
_PAUSE_SECONDS: Final = 1.0

Serve = Callable[[socket.socket, Caller | None], Coroutine[Any, Any, None]]


class ProxiedListener:
    """Accepts connections until it is closed.

    proxies: addresses and networks of those that must send a header; nobody else may. serve: gets
    each connection, and whom its proxy asks for; None for who is at its other end. refusals:
    counts those without the header (`no_proxy_header`).
    """

    def __init__(
        self,
        listening: socket.socket,
        proxies: Collection[str],
        refusals: Counter[str],
        serve: Serve,
    ) -> None:
        self._listening = listening
        self._proxies = [ip_network(proxy) for proxy in proxies]
        self._refusals = refusals
        self._serve = serve
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, backlog: int) -> None:
        """Listen, in the running loop. Raises OSError."""
        self._listening.listen(backlog)
        self._begin(self._accept(), self._listening)

    def close(self) -> None:
        """Let nobody in, nor those of whom the header or the handshake is still to come."""
        for task in self._tasks:
            task.cancel()

    def _begin(self, work: Coroutine[Any, Any, None], used: socket.socket) -> None:
        """Work until it is cancelled, which also closes what it used."""

        def ended(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            if task.cancelled():  # maybe before its first step
                used.close()

        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(ended)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, peer = await loop.sock_accept(self._listening)
            except ConnectionAbortedError:
                continue
            except OSError:
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            connection.setblocking(False)  # noqa: FBT003 as the standard library has it
            must_say = among(peer, self._proxies)
            self._begin(self._let_in(connection, must_say=must_say), connection)

    async def _let_in(self, connection: socket.socket, *, must_say: bool) -> None:
        try:
            caller = await _caller(connection) if must_say else None
        except (BadProxyHeader, TimeoutError):
            connection.close()
            self._refuse()
            return
        except OSError:  # it has gone
            connection.close()
            return
        try:
            await self._serve(connection, caller)
        except OSError:  # no TLS, or none in time: a stranger's doing
            connection.close()

    def _refuse(self) -> None:
        if not self._refusals["no_proxy_header"]:
            _log.error(
                "a proxy of --http-proxy does not begin with a PROXY header: have it send one "
                "(send-proxy-v2 in HAProxy), or drop --http-proxy-protocol; its connections are "
                "refused until it does"
            )
        self._refusals["no_proxy_header"] += 1


async def _caller(connection: socket.socket) -> Caller | None:
    """Whom a proxy asks for. Raises BadProxyHeader, TimeoutError, ConnectionError (it went)."""
    loop = asyncio.get_running_loop()

    async def read(size: int) -> bytes:
        found = b""
        while len(found) < size:
            part = await loop.sock_recv(connection, size - len(found))
            if not part:
                raise ConnectionError
            found += part
        return found

    async with asyncio.timeout(_HEADER_SECONDS):
        return await read_caller(read)
