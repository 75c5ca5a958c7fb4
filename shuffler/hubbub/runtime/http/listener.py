"""A listener that knows who has connected before there is TLS: silence there costs a file alone.

asyncio makes a connection's TLS with the connection, some 60 to 140 KB, and tells of neither before
the handshake is done. Here TLS begins with its first byte, and whoever sends none counts among the
open connections, and gives way as they do. Before that may come a proxy's PROXY header.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Collection, Coroutine
from ipaddress import ip_network
from typing import Any, Final

from hubbub.runtime.http.connections import OpenConnections, among, network_of
from hubbub.runtime.http.proxy_header import BadProxyHeader, Caller, read_caller

_log: Final = logging.getLogger("hubbub.runtime")

_HEADER_SECONDS: Final = 10.0
# A handshake begins with what the client says: one that is there says it at once.
_SILENT_SECONDS: Final = 5.0
# Where no file is left for another connection, as asyncio has it.
_PAUSE_SECONDS: Final = 1.0

Serve = Callable[[socket.socket, Caller | None, Callable[[], None]], Coroutine[Any, Any, None]]


class _Arriving:
    """A connection of which the first byte, or the rest of the handshake, is still to come."""

    def __init__(self, client: tuple[str, int], connections: OpenConnections) -> None:
        self.client: tuple[str, int] | None = client
        self.address = network_of(client)
        self._connections = connections
        self.task: asyncio.Task[None] | None = None

    @property
    def transport(self) -> "_Arriving":
        """By which it is ended: itself, as long as it has none."""
        return self

    def abort(self) -> None:
        """End it."""
        if self.task:
            self.task.cancel()

    def arrived(self) -> None:
        """It is counted no longer as one that arrives."""
        self._connections.remove(self, self.address)


class Listener:
    """Accepts connections until it is closed.

    proxies: addresses and networks of those that must send a header; nobody else may. serve: gets
    each connection, whom its proxy asks for (None for who is at its other end), and what to call
    once its handshake is done. connections: among which it counts until then, unless it is a
    proxy's, and which count who sends no header (`no_proxy_header`), or nothing (`too_slow`).
    speaks_first: whether a client says something by itself, which is waited for: with TLS.
    """

    def __init__(
        self,
        listening: socket.socket,
        proxies: Collection[str],
        connections: OpenConnections,
        serve: Serve,
        *,
        speaks_first: bool,
    ) -> None:
        self._listening = listening
        self._proxies = [ip_network(proxy) for proxy in proxies]
        self._connections = connections
        self._refusals = connections.refusals
        self._serve = serve
        self._speaks_first = speaks_first
        self._tasks: set[asyncio.Task[None]] = set()
        self._accepting: asyncio.Task[None] | None = None

    def start(self, backlog: int) -> None:
        """Listen, in the running loop. Raises OSError."""
        self._listening.listen(backlog)
        self._accepting = self._begin(self._accept(), self._listening)

    async def serve(self) -> None:
        """Until it is closed; raises what it fails with before, and lets nobody in since."""
        if self._accepting:
            await self._accepting

    def close(self) -> None:
        """Let nobody in, nor those of whom the header or the handshake is still to come."""
        # At once: doors that share an address get what would else wait here, and be cut off.
        asyncio.get_running_loop().remove_reader(self._listening)
        self._listening.close()
        for task in self._tasks:
            task.cancel()

    def _begin(self, work: Coroutine[Any, Any, None], used: socket.socket) -> "asyncio.Task[None]":
        """Work until it is cancelled, which also closes what it used."""

        def ended(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            if task.cancelled():  # maybe before its first step
                used.close()

        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(ended)
        return task

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
            if among(peer, self._proxies):
                self._begin(self._let_in_for_proxy(connection), connection)
            else:
                arriving = _Arriving(peer, self._connections)
                arriving.task = self._begin(self._let_in(connection, arriving), connection)
                arriving.task.add_done_callback(lambda _, arrival=arriving: arrival.arrived())  # type: ignore[misc]  # mypy finds no type for it
                self._connections.add(arriving, arriving.address)

    async def _let_in(self, connection: socket.socket, arriving: _Arriving) -> None:
        if self._speaks_first:
            try:
                async with asyncio.timeout(_SILENT_SECONDS):
                    await _said_something(connection)
            except TimeoutError:
                self._refusals["too_slow"] += 1
                connection.close()
                return
        await self._serve_or_close(connection, None, arriving.arrived)

    async def _let_in_for_proxy(self, connection: socket.socket) -> None:
        try:
            caller = await _caller(connection)
        except (BadProxyHeader, TimeoutError):
            connection.close()
            self._refuse()
        except OSError:  # it has gone
            connection.close()
        else:
            await self._serve_or_close(connection, caller, lambda: None)

    async def _serve_or_close(
        self, connection: socket.socket, caller: Caller | None, arrived: Callable[[], None]
    ) -> None:
        try:
            await self._serve(connection, caller, arrived)
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


async def _said_something(connection: socket.socket) -> None:
    """Wait until the first byte is here, or the other end has gone, and read neither."""
    loop, here = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(connection, here.set)
    try:
        await here.wait()
    finally:
        loop.remove_reader(connection)


async def _caller(connection: socket.socket) -> Caller | None:
    """Whom a proxy asks for. Raises BadProxyHeader, TimeoutError, ConnectionError (it went)."""
    loop = asyncio.get_running_loop()

    async def read(size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = await loop.sock_recv(connection, size - len(data))
            if not part:
                raise ConnectionError
            data += part
        return data

    async with asyncio.timeout(_HEADER_SECONDS):
        return await read_caller(read)
