"""A listener that counts connections before their TLS begins, so a silent one costs only a file.

asyncio allocates a connection's TLS (60 to 140 KB) at once, and reports it only after the
handshake. Here TLS begins with the client's first byte; until then the connection is counted among
the open ones and may be closed like them. A proxy's PROXY header may come first: it is read byte
by byte, since no byte of the TLS or request after it may be taken.

Source: The PROXY protocol, versions 1 & 2, of HAProxy (sections 2.1 and 2.2).
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Collection, Coroutine
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, Final

from hubbub.runtime.http.connections import OpenConnections, among, network_of

_BEGINNING: Final = 12  # bytes that distinguish the versions; no header is shorter
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
    """A connection does not begin with a valid PROXY header."""


async def read_caller(receive: Read) -> Caller | None:
    """Reads the client's address and port from a PROXY header, and no byte beyond it.

    `receive(n)` must return exactly n bytes. Returns None if the proxy asks for itself (a health
    check) or does not know the client.

    Raises:
        BadProxyHeader: the header is missing or invalid.
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
            return _proxied_caller(family, source, port)
        case _:
            raise BadProxyHeader


def _proxied_caller(family: bytes, source: bytes, port: bytes) -> Caller:
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
# A handshake begins with the client's message, which a live client sends at once.
_SILENT_SECONDS: Final = 5.0
# Pause if no file is left for another connection, as in asyncio.
_PAUSE_SECONDS: Final = 1.0

Serve = Callable[[socket.socket, Caller | None, Callable[[], None]], Coroutine[Any, Any, None]]


class _Arriving:
    """A connection before its first byte, or before the end of its handshake."""

    def __init__(self, client: tuple[str, int], connections: OpenConnections) -> None:
        self.client: tuple[str, int] | None = client
        self.address = network_of(client)
        self._connections = connections
        self.task: asyncio.Task[None] | None = None

    @property
    def transport(self) -> "_Arriving":
        """This object itself: there is no transport yet to abort."""
        return self

    def abort(self) -> None:
        """Closes the connection."""
        if self.task:
            self.task.cancel()

    def arrived(self) -> None:
        """Stops counting it as arriving."""
        self._connections.remove(self, self.address)


class Listener:
    """Accepts connections until it is closed.

    Args:
        proxies: networks that must send a PROXY header; nobody else may.
        connections: counts connections until their handshake is done, except a proxy's, and counts
            refusals (`no_proxy_header`, `too_slow`).
        serve: gets a connection, the client named by its proxy or None, and a callback for the end
            of its handshake.
        speaks_first: whether to wait for the client's first byte, as with TLS.
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
        """Begins to listen, in the running loop. Raises OSError."""
        self._listening.listen(backlog)
        self._accepting = self._begin(self._accept(), self._listening)

    async def serve(self) -> None:
        """Runs until the listener is closed; raises the error that ends it before."""
        if self._accepting:
            await self._accepting

    def close(self) -> None:
        """Stops listening, and closes connections whose header or handshake is unfinished."""
        # At once: others on this address then get the connections that would wait here.
        asyncio.get_running_loop().remove_reader(self._listening)
        self._listening.close()
        for task in self._tasks:
            task.cancel()

    def _begin(self, work: Coroutine[Any, Any, None], used: socket.socket) -> "asyncio.Task[None]":
        """Starts a task; if it is cancelled, the socket `used` is closed too."""

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
        except OSError:  # no TLS, or none in time: not our fault
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
    """Waits until the first byte has come or the peer has gone, without reading."""
    loop, here = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(connection, here.set)
    try:
        await here.wait()
    finally:
        loop.remove_reader(connection)


async def _caller(connection: socket.socket) -> Caller | None:
    """The client that a proxy names. Raises BadProxyHeader, TimeoutError, ConnectionError."""
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
