"""Chooses the transport for an address by its scheme; opens it at the first use, not across forks.

Each protocol's module is imported when it is dialled, by a literal import statement: tools that
freeze an app into one file (PyInstaller) find only those.
"""

import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from hubbub.client.settings import TRANSPORTS
from hubbub.client.transport.contract import SealedReport, Submitted, Transport, TryAgain
from hubbub.errors import BadParameter
from hubbub.errors.address_checks import relay_place, shuffler_parts
from hubbub.errors.message_words import install_with, is_installed

_LEAVE_SECONDS: Final = 0.5
# An import that is under way should end before a fork: a child would wait for it forever.
_CALLS_SECONDS: Final = 2.0
_SECONDS_UNTIL_FORK_RETRY: Final = 60.0
_REMEDY: Final = (
    "gRPC was in use before the fork: another process sends them; or start the client after the "
    "fork, or give the shuffler as https://HOST:PORT"
)
# Connections of a parent process: freeing one here could call its library in an invalid state.
_parents: Final[list[Transport]] = []


class LazyTransport:
    """A transport with one connection at a time.

    `dial` opens it, at the first submit; it raises TryAgain once it is closed. `bears_forks` is
    whether a child process may connect after its parent did.
    """

    def __init__(self, dial: Callable[[], Transport], *, bears_forks: bool) -> None:
        self._dial, self._bears_forks = dial, bears_forks
        self._connection: Transport | None = None
        self._lock = threading.Lock()
        self._calls = self._closings = 0
        self._idle = threading.Condition(self._lock)
        self._barred = self._broken = self._used = False

    def submit(self, reports: Sequence[SealedReport], timeout_seconds: float) -> Submitted:
        if not timeout_seconds > 0:  # a library may try all the same: gRPC does
            raise TryAgain("deadline_exceeded")
        with self._lock:
            if self._barred:
                raise TryAgain("forking", _LEAVE_SECONDS)
            if self._broken:
                raise TryAgain("forking", _SECONDS_UNTIL_FORK_RETRY, cause=_REMEDY)
            self._calls += 1
            self._used = True
        try:
            return self._dialled_transport().submit(reports, timeout_seconds)
        finally:
            with self._idle:
                self._calls -= 1
                self._idle.notify_all()

    def close(self) -> None:
        """As the Transport protocol defines; calls on the connection end with TryAgain."""
        with self._lock:
            self._closings += 1
            connection, self._connection = self._connection, None
        if connection:
            connection.close()

    def before_fork(self) -> None:
        """Ends every call before a fork, so that the protocol's library can follow it."""
        with self._lock:
            self._barred = True
        self.close()
        with self._idle:
            self._idle.wait_for(lambda: not self._calls, _CALLS_SECONDS)

    def after_fork_in_parent(self) -> None:
        """Continues in the parent after a fork."""
        with self._lock:
            self._barred = False

    def after_fork_in_child(self) -> None:
        """Starts a child without connection, which may connect if the protocol allows.

        gRPC that was used before a fork may hang after it (observed once in some hundred forks,
        with all channels closed). So the child never uses it: its reports are sent by its parent,
        by another process of the app, or at the next start.
        """
        if self._connection:  # if Python's fork hooks did not run
            _parents.append(self._connection)
        self._broken = self._used and not self._bears_forks
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._connection, self._calls, self._barred = None, 0, False

    def _dialled_transport(self) -> Transport:
        with self._lock:
            if self._barred:
                raise TryAgain("forking", _LEAVE_SECONDS)
            if self._connection is not None:
                return self._connection
            closings = self._closings
        # Not under the lock, which a fork takes: dialling imports a library, and so may wait for
        # locks of other modules (logging has one) that the forking thread has taken already.
        dialled = self._dial()
        with self._lock:
            if self._connection is None and self._closings == closings:
                self._connection = dialled
            connection = self._connection
        if connection is not dialled:
            dialled.close()
        if connection is None:
            raise TryAgain("connection_closed")
        return connection


def _grpc(place: str, roots: str | None, *, insecure: bool) -> Transport:
    # gRPC reads it as it is loaded. Without it, it writes into the app's standard error whenever a
    # handshake fails or a server ends an idle connection.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    from hubbub.client.transport.grpc_connection import GrpcConnection  # noqa: PLC0415 as above

    return GrpcConnection(place, roots, insecure=insecure)


def _http(place: str, roots: str | None, *, insecure: bool) -> Transport:
    from hubbub.client.transport.http_connection import HttpConnection  # noqa: PLC0415 as above

    return HttpConnection(place, roots, insecure=insecure)


def transport_to(
    address: str, *, roots: str | None, insecure: bool = False, transport: str | None = None
) -> Transport:
    """Returns a transport to a shuffler, over TLS, or unencrypted to this machine only.

    The transport uses a proxy that the environment names (https_proxy, no_proxy).

    Args:
        address: HOST:PORT, as in bundles; https://HOST:PORT for HTTP; http://HOST:PORT is
            unencrypted, to this machine only.
        roots: PEM of the trusted certificate authorities; None for the system's.
        insecure: unencrypted, to this machine only.
        transport: "grpc" or "http", for an address without a scheme; None for gRPC if grpcio is
            installed, else HTTP.

    Raises:
        BadParameter: insecure to another machine; an invalid address; or an unsupported scheme.
    """
    scheme, place = shuffler_parts(address, insecure=insecure)
    if not scheme and transport not in {None, *TRANSPORTS}:
        raise BadParameter(f"transport {transport!a} is not one of {', '.join(TRANSPORTS)}")
    insecure = insecure or scheme == "http"
    if transport is None:
        transport = "grpc" if is_installed("grpc") else "http"
    over_grpc = not scheme and transport == "grpc"
    dial = partial(_grpc if over_grpc else _http, place, roots, insecure=insecure)
    return LazyTransport(dial, bears_forks=not over_grpc)


def relay_to(relay: str, *, gateway: bytes, shuffler: str, roots: str | None) -> Transport:
    """Returns a transport through an Oblivious HTTP relay, which sees senders but no content.

    Args:
        relay: https://HOST:PORT, and the path for requests.
        gateway: the gateway's public key, from the bundle.
        shuffler: address of the shuffler, inside the encrypted request.
        roots: PEM of authorities that are trusted in addition to the system's.

    Raises BadParameter: an invalid address, no key in the bundle, or pyhpke is not installed.
    """
    place = relay_place(relay)
    if not gateway:
        raise BadParameter(
            "relay needs a gateway key, which the bundle lacks; make one with: hubbub "
            "keys gateway FOLDER, and build the bundle"
        )
    if not is_installed("pyhpke"):
        raise BadParameter(f"relay needs pyhpke: {install_with('relay')}")

    def dial() -> Transport:
        from hubbub.client.transport.relay_connection import RelayConnection  # noqa: PLC0415 as above

        return RelayConnection(place, gateway, shuffler.rpartition("://")[2], roots)

    return LazyTransport(dial, bears_forks=True)
