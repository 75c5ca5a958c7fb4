"""GrpcTransport: one gRPC connection, TLS unless it stays on this machine.

gRPC is imported at the first send, so that an app that starts pays nothing for it.
"""

import ipaddress
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from hubbub.client.state.contract import OutboxReport
from hubbub.client.transport.contract import NotSent
from hubbub.errors import BadParameter

if TYPE_CHECKING:
    from hubbub.client.transport.channel import Channel

__all__ = ["GrpcTransport"]

_LEAVE_SECONDS: Final = 0.5
_OTHERS_SECONDS: Final = 60.0


class GrpcTransport:
    """gRPC over TLS; in the clear (`insecure`) only to an address of this machine.

    roots: PEM of the certificates to chain to; None for the system's.
    A proxy named by the environment (https_proxy, no_proxy) is used, as by gRPC everywhere.
    """

    def __init__(self, address: str, *, roots: str | None, insecure: bool = False) -> None:
        if insecure and not _is_loopback(address):
            raise BadParameter(
                f"{address} is not on this machine: insecure is for loopback alone; use TLS"
            )
        self._address, self._roots, self._insecure = address, roots, insecure
        self._channel: Channel | None = None
        self._lock = threading.Lock()
        self._calls = 0
        self._idle = threading.Condition(self._lock)
        self._barred = self._broken = self._used = False

    def submit(self, reports: Sequence[OutboxReport], timeout_seconds: float) -> dict[int, str]:
        """As the Transport protocol says."""
        with self._lock:
            if self._barred or self._broken:
                wait = _LEAVE_SECONDS if self._barred else _OTHERS_SECONDS
                raise NotSent("forking", retry=True, after_seconds=wait)
            self._calls += 1
            self._used = True
        try:
            return self._dialled().submit(reports, timeout_seconds)
        finally:
            with self._idle:
                self._calls -= 1
                self._idle.notify_all()

    def pause(self) -> None:
        """Close the connection; a call on it ends with NotSent."""
        with self._lock:
            channel, self._channel = self._channel, None
        if channel:
            channel.close()

    def before_fork(self) -> None:
        """Before a fork: end every call, so that gRPC can follow the fork."""
        with self._lock:
            self._barred = True
        self.pause()
        with self._idle:
            self._idle.wait_for(lambda: not self._calls, _LEAVE_SECONDS)

    def after_fork_in_parent(self) -> None:
        """After a fork, in the parent."""
        with self._lock:
            self._barred = False

    def after_fork_in_child(self) -> None:
        """After a fork, in the child: a connection of its own, if gRPC was not used before.

        gRPC that was used before a fork may hang after it (seen one time in some hundred, with all
        channels closed). So the child stays out of it for good: what it reports is sent by its
        parent, by another process of the app, or by the next start.
        """
        self._broken = self._used
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._channel, self._calls, self._barred = None, 0, False

    def _dialled(self) -> "Channel":
        from hubbub.client.transport.channel import Channel  # noqa: PLC0415 gRPC, at the first send

        with self._lock:
            if self._barred:
                raise NotSent("forking", retry=True, after_seconds=_LEAVE_SECONDS)
            if self._channel is None:
                self._channel = Channel(self._address, self._roots, insecure=self._insecure)
            return self._channel


def _is_loopback(address: str) -> bool:
    host = address.rsplit(":", 1)[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
