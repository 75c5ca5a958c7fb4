"""The way to the shuffler: one gRPC channel, TLS unless it stays on this machine."""

import ipaddress
from typing import Final, Protocol

import grpc

from hubbub.errors import BadParameter, HubbubError
from hubbub.wire.v1.services_pb2 import SubmitRequest, SubmitResponse
from hubbub.wire.v1.services_pb2_grpc import ShufflerStub

__all__ = ["GrpcTransport", "NotSent", "Transport"]

# Only these say that the same bytes can never be taken. A server that is killed, restarted or cut
# off answers with nearly any other code, and a report given up then would be lost.
_FOR_GOOD: Final = frozenset({grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNIMPLEMENTED})


class NotSent(HubbubError):
    """A submission failed. `retry`: whether the same bytes may do better later.

    after_seconds: how long the server asks to wait, if it says.
    """

    def __init__(self, reason: str, *, retry: bool, after_seconds: float | None = None) -> None:
        super().__init__(reason)
        self.retry = retry
        self.after_seconds = after_seconds


class Transport(Protocol):
    """Carries sealed reports to the shuffler."""

    def submit(self, request: SubmitRequest, timeout_seconds: float) -> SubmitResponse:
        """Raises NotSent unless the shuffler answered."""
        ...

    def close(self) -> None:
        """Let go of the connection."""
        ...


class GrpcTransport:
    """gRPC over TLS; in the clear (`insecure`) only to an address of this machine.

    roots: PEM of the certificates to chain to; None for the system's.
    """

    def __init__(self, address: str, *, roots: str | None, insecure: bool = False) -> None:
        if insecure and not _is_loopback(address):
            raise BadParameter(
                f"{address} is not on this machine: insecure is for loopback alone; use TLS"
            )
        self._channel = (
            grpc.insecure_channel(address)
            if insecure
            else grpc.secure_channel(
                address, grpc.ssl_channel_credentials(roots.encode() if roots else None)
            )
        )
        self._stub = ShufflerStub(self._channel)

    def submit(self, request: SubmitRequest, timeout_seconds: float) -> SubmitResponse:
        """Raises NotSent unless the shuffler answered."""
        try:
            return self._stub.Submit(request, timeout=timeout_seconds)
        except grpc.RpcError as error:
            code = error.code()
            hints = {str(item.key): str(item.value) for item in error.trailing_metadata() or ()}
            hint = hints.get("grpc-retry-pushback-ms", "")
            raise NotSent(
                f"the shuffler did not take the reports: {code.name}",
                retry=code not in _FOR_GOOD,
                after_seconds=int(hint) / 1000 if hint.isdecimal() else None,
            ) from error
        except ValueError as error:
            # Closed by another thread in the meantime: what is left waits for the next start.
            raise NotSent("the connection was closed", retry=True) from error

    def close(self) -> None:
        """Let go of the connection."""
        self._channel.close()


def _is_loopback(address: str) -> bool:
    host = address.rsplit(":", 1)[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
