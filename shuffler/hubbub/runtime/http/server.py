"""An HTTP server, started, renewed and stopped like the gRPC servers.

asyncio allocates a connection's TLS (60 to 140 KB) at once, and reports it only after the
handshake. Here TLS begins with the client's first byte; until then the connection costs only a
file, is counted among the open ones, and may be closed like them.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Collection, Coroutine, MutableMapping
from ipaddress import ip_network
from typing import Any, Final

from uvicorn.config import Config
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.server import ServerState

from hubbub.errors import ServiceUnavailable
from hubbub.runtime.http.connection_limit import OpenConnections, among
from hubbub.runtime.http.proxy_header import BadProxyHeader, Caller, caller_named_by
from hubbub.runtime.http.timed_connection import OF_DEVICES, TimedConnection, TimeLimits
from hubbub.runtime.rpc.rate_limiter import network_of
from hubbub.runtime.tls import TlsFolder, check_plain

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_log: Final = logging.getLogger("hubbub.runtime")

# A handshake begins with the client's message, which a live client sends at once.
_SILENT_SECONDS: Final = 5.0
_HANDSHAKE_SECONDS: Final = 5.0
# Pause if no file is left for another connection, as in asyncio.
_PAUSE_SECONDS: Final = 1.0
_IDLE_SECONDS: Final = 60
_BACKLOG: Final = 2048
# Receive buffer of a connection. It is read at once, and TLS keeps it twice: with Linux's default
# (128 KiB and more), 200 connections cost 125 MiB beside the bodies that are counted.
_UNREAD_BYTES: Final = 16 << 10
# A longer body is given to the connection in pieces, of which each waits until the last is read:
# TLS takes any length at once, keeps it, and tells nobody.
_PIECE_BYTES: Final = 64 << 10


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
        self._connections.remove(self)


class HttpDoor:
    """Serves an ASGI application on an address.

    Args:
        tls: folder of its certificate; None for plain text, on loopback alone.
        connections: counts and limits its connections; X-Forwarded-For of its proxies is believed.
        header_proxies: networks that must begin every connection with a PROXY header.
        limits: how long a connection may take for what.
        shared: whether other processes of this machine may listen on the same address.
        mutual: whether callers must show a certificate; `scope["state"]["names"]` are its names.
        option: the option that sets the address, for error messages.

    Raises:
        ServiceUnavailable: plain text away from this machine.
        KeysUnusable: the certificates cannot be read.
    """

    def __init__(
        self,
        address: str,
        app: App,
        *,
        tls: TlsFolder | None,
        connections: OpenConnections,
        limits: TimeLimits = OF_DEVICES,
        header_proxies: tuple[str, ...] = (),
        shared: bool = False,
        mutual: bool = False,
        option: str = "",
    ) -> None:
        if tls is None:
            check_plain(address)
        self._address = address
        self._tls = tls
        self._mutual = mutual
        self._context = _context(tls, mutual=mutual) if tls else None
        self._remedy = f"choose another {option}".strip()
        self.connections = connections
        self._limits = limits
        self._header_proxies = [ip_network(proxy) for proxy in header_proxies]
        self._shared = shared
        proxies = list(map(str, connections.proxies))
        believing: Any = ProxyHeadersMiddleware(app, proxies) if proxies else app  # type: ignore[arg-type]  # its own names for these types
        self._config = Config(
            _send_in_pieces(believing),
            ws="none",
            proxy_headers=False,
            log_config=None,
            # uvicorn's log only concerns strangers, whose failures we count.
            log_level="critical",
            access_log=False,
            server_header=False,
            date_header=False,
            lifespan="off",
            timeout_keep_alive=_IDLE_SECONDS,
        )
        self._config.load()
        self._state = ServerState()
        self._listening: socket.socket | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._accepting: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begins to listen. Raises ServiceUnavailable if the address is taken or not ours."""
        try:
            listening = _listening(self._address, shared=self._shared)
            listening.listen(_BACKLOG)
        except (OSError, OverflowError, ValueError) as error:
            raise ServiceUnavailable(
                f"cannot listen on {self._address}: it is in use, or not an address of this "
                f"machine; {self._remedy}"
            ) from error
        self._listening = listening
        self._accepting = self._begin(self._accept(listening), listening)

    async def serve(self) -> None:
        """Runs until it is stopped; raises the error that ends it before."""
        if self._accepting:
            await self._accepting

    async def stop(self, grace_seconds: float) -> None:
        """Stops listening; requests under way have `grace_seconds` to finish.

        Connections whose header or handshake is unfinished are closed.
        """
        if self._listening:
            # At once: others on this address then get the connections that would wait here.
            asyncio.get_running_loop().remove_reader(self._listening)
            self._listening.close()
        for task in self._tasks:
            task.cancel()
        connections: set[Any] = self._state.connections
        for connection in list(connections):
            connection.shutdown()
        if self._state.tasks:
            await asyncio.wait(self._state.tasks, timeout=grace_seconds)
        await asyncio.sleep(0)  # answers are written
        for connection in list(connections):
            if not connection.transport.is_closing():
                connection.transport.abort()

    def renew(self) -> None:
        """Loads the folder's certificates anew, for new connections. Raises KeysUnusable."""
        if self._tls:
            self._context = _context(self._tls, mutual=self._mutual)

    def _connection(
        self, forwarded_for: Caller | None, arrived: Callable[[], None]
    ) -> TimedConnection:
        options = {"config": self._config, "server_state": self._state, "app_state": {}}
        return TimedConnection(self.connections, self._limits, forwarded_for, arrived, **options)

    def _begin(self, work: Coroutine[Any, Any, None], used: socket.socket) -> "asyncio.Task[None]":
        """Starts a task; if it is cancelled, the socket `used` is closed too."""

        def close_if_cancelled(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            if task.cancelled():  # maybe before its first step
                used.close()

        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(close_if_cancelled)
        return task

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, peer = await loop.sock_accept(listening)
            except ConnectionAbortedError:
                continue
            except OSError:
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            connection.setblocking(False)  # noqa: FBT003 as the standard library has it
            if among(peer, self._header_proxies):
                self._begin(self._let_in_for_proxy(connection), connection)
            else:
                arriving = _Arriving(peer, self.connections)
                arriving.task = self._begin(self._let_in(connection, arriving), connection)
                arriving.task.add_done_callback(lambda _, arrival=arriving: arrival.arrived())  # type: ignore[misc]  # mypy finds no type for it
                self.connections.add(arriving)

    async def _let_in(self, connection: socket.socket, arriving: _Arriving) -> None:
        if self._context:
            loop, ready = asyncio.get_running_loop(), asyncio.Event()
            loop.add_reader(connection, ready.set)
            try:
                async with asyncio.timeout(_SILENT_SECONDS):
                    await (
                        ready.wait()
                    )  # for the first byte, which TLS reads, or until the peer has gone
            except TimeoutError:
                self.connections.refusals["too_slow"] += 1
                connection.close()
                return
            finally:
                loop.remove_reader(connection)
        await self._serve(connection, None, arriving.arrived)

    async def _let_in_for_proxy(self, connection: socket.socket) -> None:
        try:
            caller = await caller_named_by(connection)
        except (BadProxyHeader, TimeoutError):
            connection.close()
            if not self.connections.refusals["no_proxy_header"]:
                _log.error(
                    "a proxy of --http-proxy does not begin with a PROXY header: have it send one "
                    "(send-proxy-v2 in HAProxy), or drop --http-proxy-protocol; its connections "
                    "are refused until it does"
                )
            self.connections.refusals["no_proxy_header"] += 1
        except OSError:  # it has gone
            connection.close()
        else:
            await self._serve(connection, caller, lambda: None)

    async def _serve(
        self, connection: socket.socket, caller: Caller | None, arrived: Callable[[], None]
    ) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: self._connection(caller, arrived),
                connection,
                ssl=self._context,
                ssl_handshake_timeout=_HANDSHAKE_SECONDS if self._context else None,
            )
        except OSError:  # no TLS, or none in time: not our fault
            connection.close()


def public_door(
    listen: str, app: App, *, tls: TlsFolder | None, proxies: Collection[str]
) -> HttpDoor:
    """The server of a service that any device may call and that stores no report."""
    connections = OpenConnections(proxies, most=4096, max_per_address=64)
    return HttpDoor(listen, app, tls=tls, connections=connections)


def _send_in_pieces(app: App) -> App:
    """Returns an application that sends the long bodies of `app` in pieces."""

    async def sending(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_pieces(message: Message) -> None:
            remaining = memoryview(message.get("body", b""))
            while len(remaining) > _PIECE_BYTES:
                piece, remaining = bytes(remaining[:_PIECE_BYTES]), remaining[_PIECE_BYTES:]
                await send({"type": message["type"], "body": piece, "more_body": True})
            await send({**message, "body": bytes(remaining)} if "body" in message else message)

        await app(scope, receive, send_pieces)

    return sending


def _context(tls: TlsFolder, *, mutual: bool) -> ssl.SSLContext:
    context = tls.server_context(mutual=mutual)
    # PRIVACY: a ticket that a device presents again links its visits, even from other addresses;
    # before TLS 1.3 there are also sessions, which Python cannot disable.
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0
    context.set_alpn_protocols(["http/1.1"])
    return context


def _listening(address: str, *, shared: bool) -> socket.socket:
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only on the connections of a socket that names its protocol.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _UNREAD_BYTES)
        if shared:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening.bind((host, int(port)))
        listening.setblocking(False)  # noqa: FBT003 as the standard library has it
    except BaseException:
        listening.close()
        raise
    return listening
