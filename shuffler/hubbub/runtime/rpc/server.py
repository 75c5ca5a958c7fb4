"""A gRPC server with health checks, and a channel, set up the same way everywhere."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from math import nan
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health

from hubbub.errors import ServiceUnavailable
from hubbub.errors.address_checks import proxy_options
from hubbub.runtime.rpc.call_checks import Admit, Calls, Spoiled, Strict
from hubbub.runtime.rpc.connection_ends import end_floods
from hubbub.runtime.rpc.grpc_callers import Trailers
from hubbub.runtime.tls import TlsFolder, check_plain
from hubbub.wire.v1.stubs_and_handlers import add_service

# Linux' own list, of this network alone: local and remote address, then the state; 01 is open.
_LISTS: Final = (Path("/proc/self/net/tcp"), Path("/proc/self/net/tcp6"))
_OPEN: Final = rb"^ *\d+: [0-9A-F]+:%04X [0-9A-F]+:[0-9A-F]{4} 01 "
# Several batches of the largest payloads; Submit limits devices to much less.
LARGEST_MESSAGE_BYTES: Final = 64 << 20
# Default; a device ends its call after the same time.
_ARRIVE_SECONDS: Final = 10.0
_CALLS_OF_CONNECTION: Final = 100
_HANDSHAKE_SECONDS: Final = 5.0
_SETTINGS_SECONDS: Final = 3.0
# An idle connection ends after this time, and sooner if connections are limited: an attacker who
# wants to keep others out then needs enough handshakes a second to fill a processor anyway.
_IDLE_SECONDS: Final = 60.0
_IDLE_OF_LIMITED_SECONDS: Final = 5.0
# What a call may send before its message is read: most submissions. gRPC's own is up to 16 MiB.
_UNREAD_BYTES: Final = 16 << 10
# A read of a connection is at most so large, where gRPC's own is up to 4 MiB, and takes so many
# heads of calls. At most twice so many calls wait for us to look at them; gRPC refuses others.
_READ_BYTES: Final = 16 << 10
_HEADS_AT_ONCE: Final = 2
_UNSEEN_CALLS: Final = 128
# A closing connection ends with its calls, at the latest after this time.
_LEAVE_SECONDS: Final = 90.0
_ALWAYS: Final[tuple[tuple[str, int], ...]] = (
    # A second service on a taken port must fail, not share its callers.
    ("grpc.so_reuseport", 0),
    ("grpc.max_concurrent_streams", _CALLS_OF_CONNECTION),
    ("grpc.http2.lookahead_bytes", _UNREAD_BYTES),
    ("grpc.experimental.tcp_max_read_chunk_size", _READ_BYTES),
    # Heads without end (CONTINUATION) took 460 MiB from one connection without it, now 47.
    ("grpc.experimental.tcp_max_read_buffer_size", _READ_BYTES),
    ("grpc.http2.max_requests_per_read", _HEADS_AT_ONCE),
    ("grpc.server.max_pending_requests", _UNSEEN_CALLS),
    ("grpc.server.max_pending_requests_hard_limit", 2 * _UNSEEN_CALLS),
    ("grpc.http2.bdp_probe", 0),  # it would enlarge the window of every call
    ("grpc.server_handshake_timeout_ms", round(1000 * _HANDSHAKE_SECONDS)),
    # A head may have 16 MiB until its caller acknowledges our settings, then 16 KiB. No option
    # lowers the former, so `end_floods` ends connections.
    ("grpc.http2.settings_timeout", round(1000 * _SETTINGS_SECONDS)),
)


class Server:
    """One listening address with its services and gRPC's health service.

    Args:
        services: objects with the methods of each service, by its name on the wire.
        tls: the server's certificates; None for plain text, on loopback alone.
        callers: roles whose certificates, of the same authority, are let in; None for anyone.
        admit: decides whether a caller may call now, before a call is read.
        connection_seconds: age after which callers must reconnect once their calls are done, so
            that they find new servers behind the same name, and those who read no answer are
            dropped.
        largest_message_bytes: limit of one message; if it is large, few are read at once.
        max_fields: limit of one message's fields, as in `read_message`; None for none.
        arrive_seconds: limit from a call's headers to the end of its message.
        calls_of_peer: limit of arriving and of open calls of one address; 0 for none.
        connections: limit of open connections, past which new ones are closed; None for none.
        refusals: counts the refused calls, by reason.
        spoiled: is told of calls whose message was read and is invalid.
        trailers: metadata that goes along with every refusal for now.

    Raises:
        ServiceUnavailable: the address is taken, or is plain text away from this machine.
    """

    def __init__(
        self,
        address: str,
        services: Mapping[str, Any],
        *,
        tls: TlsFolder | None,
        callers: Collection[str] | None,
        largest_message_bytes: int = LARGEST_MESSAGE_BYTES,
        max_fields: int | None = None,
        admit: Admit | None = None,
        connection_seconds: float | None = None,
        arrive_seconds: float | None = None,
        calls_of_peer: int = 0,
        connections: int | None = None,
        refusals: Counter[str] | None = None,
        spoiled: Spoiled | None = None,
        trailers: Trailers = tuple,
    ) -> None:
        self.calls = Calls(
            arrive_seconds=arrive_seconds or _ARRIVE_SECONDS,
            of_peer=calls_of_peer,
            largest_message_bytes=largest_message_bytes,
            refusals=Counter() if refusals is None else refusals,
            trailers=trailers,
        )
        roles = callers if tls else None
        strict = Strict(self.calls, admit, roles, spoiled, max_fields=max_fields)
        self._server = grpc.aio.server(
            interceptors=[strict],
            options=[
                ("grpc.max_receive_message_length", largest_message_bytes),
                *_ALWAYS,
                *_limits(connections, connection_seconds),
            ],
        )
        for name, methods in services.items():
            add_service(name, methods, self._server)
        self._health = health.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        self._mutual = callers is not None
        self._renewed: grpc.ServerCertificateConfiguration | None = None
        if tls is None:
            check_plain(address)
        try:
            if tls is None:
                self._port = self._server.add_insecure_port(address)
            else:
                self._port = self._server.add_secure_port(address, self._credentials(tls))
        except RuntimeError as error:
            raise ServiceUnavailable(
                f"cannot listen on {address}: it is in use, or not an address of this machine; "
                "stop what listens there, or choose another address"
            ) from error

    def renew(self, tls: TlsFolder) -> None:
        """Uses the folder's certificates for new connections. Raises KeysUnusable."""
        self._renewed = tls.server_configuration(mutual=self._mutual)

    def connections(self) -> float:
        """Number of open connections, also in handshake; NaN if the system does not tell."""
        tables = [path.read_bytes() for path in _LISTS if path.exists()]
        open_now = re.compile(_OPEN % self._port, re.MULTILINE)
        return sum(len(open_now.findall(table)) for table in tables) if tables else nan

    def _credentials(self, tls: TlsFolder) -> grpc.ServerCredentials:
        """Credentials that gRPC asks at each handshake for newer certificates; None keeps them."""

        def renewed() -> grpc.ServerCertificateConfiguration | None:
            renewal, self._renewed = self._renewed, None
            return renewal

        configuration = tls.server_configuration(mutual=self._mutual)
        return grpc.dynamic_ssl_server_credentials(
            configuration,
            renewed,  # type: ignore[arg-type]  # gRPC uses None for "no newer ones"
            require_client_authentication=self._mutual,
        )

    async def start(self) -> None:
        """Begins to listen, and tells health checks."""
        await self._server.start()
        await self._health.set("", health_pb2.HealthCheckResponse.SERVING)

    async def serve(self) -> None:
        """Runs until the server is stopped."""
        await self._server.wait_for_termination()

    async def end_floods(self) -> None:
        """Ends connections that sent much, while memory grows fast; see `connection_ends`."""
        await end_floods(self._port, self.calls)

    async def stop(self, grace_seconds: float) -> None:
        """Tells health checks, takes no new calls, and finishes those under way."""
        await self._health.enter_graceful_shutdown()
        await self._server.stop(grace_seconds)


def _limits(connections: int | None, seconds: float | None) -> Iterator[tuple[str, int]]:
    idle_seconds = _IDLE_SECONDS
    if connections is not None:
        idle_seconds = _IDLE_OF_LIMITED_SECONDS
        yield "grpc.max_allowed_incoming_connections", connections
    yield "grpc.max_connection_idle_ms", round(1000 * idle_seconds)
    if seconds:
        yield "grpc.max_connection_age_ms", round(1000 * seconds)
        yield "grpc.max_connection_age_grace_ms", round(1000 * _LEAVE_SECONDS)


def channel(address: str, role: str, *, tls: TlsFolder | None) -> grpc.aio.Channel:
    """A channel to a service, which must prove its role; without TLS on this machine alone.

    Raises ServiceUnavailable for plain text away from this machine.
    """
    options = [
        *proxy_options(address),
        ("grpc.max_send_message_length", LARGEST_MESSAGE_BYTES),
        ("grpc.max_receive_message_length", LARGEST_MESSAGE_BYTES),
        # A peer that restarts is back within a second; waiting longer only delays.
        ("grpc.max_reconnect_backoff_ms", 1000),
        # A name may have several addresses, which are called in turn.
        ("grpc.service_config", '{"loadBalancingConfig": [{"round_robin": {}}]}'),
    ]
    if tls is None:
        check_plain(address)
        return grpc.aio.insecure_channel(address, options=options)
    return grpc.aio.secure_channel(address, tls.channel_credentials(role), options=options)
