"""A listener that knows who has connected before there is TLS: silence there costs a file alone.

asyncio makes a connection's TLS with the connection, some 60 to 140 KB, and tells of neither before
the handshake is done. Here TLS begins with its first byte, and whoever sends none counts among the
open connections, and gives way as they do. Before that may come a proxy's PROXY header.

The PROXY header is read byte for byte, since what follows it is TLS, or a request, of which
nothing may be taken.

Source: The PROXY protocol, versions 1 & 2, of HAProxy (sections 2.1 and 2.2).
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Collection, Coroutine
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, Final

from hubbub.runtime.http.connections import OpenConnections, among, network_of

_BEGINNING: Final = 12  # bytes, by which the versions are told apart; no header is shorter
_VERSION_1: Final = b"PROXY "
_LONGEST_1: Final = 107
_VERSION_2: Final = b"\r\n\r\n\x00\r\nQUIT\n"
# The standard allows 64 KiB; HAProxy, Envoy and the clouds' balancers add some hundred bytes.
_LONGEST_2: Final = 4096
_LOCAL: Final = 0x20
_PROXY: Final = 0x21
_UNSPECIFIED: Final = 0x00
_TCP4: Final = 0x11
_TCP6: Final = 0x21
_PORT: Final = 65_535

Caller = tuple[str, int]
Read = Callable[[int], Awaitable[bytes]]


class BadProxyHeader(Exception):
    """What a connection begins with is no PROXY header, or one that nobody may send."""


async def read_caller(receive: Read) -> Caller | None:
    """The address and port that a connection's header names, and not a byte past the header.

    None: the proxy asks for itself (a health check), or does not know. receive: exactly so many
    bytes.

    Raises:
        BadProxyHeader: something else came.
    """
    beginning = await receive(_BEGINNING)
    if beginning == _VERSION_2:
        return await _version_2(receive)
    if beginning.startswith(_VERSION_1):
        return await _version_1(receive, beginning)
    raise BadProxyHeader


async def _version_1(receive: Read, line: bytes) -> Caller | None:
    while not line.endswith(b"\r\n"):
        if len(line) >= _LONGEST_1:
            raise BadProxyHeader
        line += await receive(1)
    match line[:-2].split(b" "):
        case [_, b"UNKNOWN", *_]:
            return None
        case [_, b"TCP4" | b"TCP6" as family, source, _, port, _]:
            return _told(family, source, port)
        case _:
            raise BadProxyHeader


def _told(family: bytes, source: bytes, port: bytes) -> Caller:
    try:
        address, number = ip_address(source.decode("ascii")), int(port)
    except ValueError as error:
        raise BadProxyHeader from error
    if f"TCP{address.version}".encode() != family or not 0 <= number <= _PORT:
        raise BadProxyHeader
    return str(address), number


async def _version_2(receive: Read) -> Caller | None:
    command, family, *length = await receive(4)
    size = int.from_bytes(length, "big")
    if command not in {_LOCAL, _PROXY} or size > _LONGEST_2:
        raise BadProxyHeader
    body = await receive(size) if size else b""
    if command == _LOCAL or family == _UNSPECIFIED:
        return None
    if family == _TCP4 and size >= 12:  # noqa: PLR2004 two addresses and two ports
        return str(IPv4Address(body[:4])), int.from_bytes(body[8:10], "big")
    if family == _TCP6 and size >= 36:  # noqa: PLR2004 the same
        return str(IPv6Address(body[:16])), int.from_bytes(body[32:34], "big")
    raise BadProxyHeader


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
