"""gRPC to the shuffler: the only module of the client that imports it."""

import re
from collections.abc import Sequence
from typing import Final

import grpc

from hubbub.client.transport.contract import TLS_FAILED, GivenUp, SealedReport, Submitted, TryAgain
from hubbub.client.transport.messages import answer_of, request_of
from hubbub.wire.v1.services_pb2_grpc import ShufflerStub

# That the same bytes can never be taken is believed of a shuffler alone, which marks it so. Servers
# that are killed, restarted or cut off, proxies and gateways answer with any code there is: gRPC
# makes one of each HTTP status, UNIMPLEMENTED of a 404. A report given up then would be lost.
_FOR_GOOD: Final = grpc.StatusCode.INVALID_ARGUMENT
_MARK: Final = ("hubbub-refused", "for-good")
_NOTICE: Final = "hubbub-notice-bin"
_HINT: Final = "grpc-retry-pushback-ms"
_LONGEST_HINT: Final = 9
# What gRPC says of the last address that it tried, beside the address itself.
_CAUSE: Final = re.compile(r"last error: [A-Z_]+: \S+ (.+)")
_HANDSHAKE: Final = re.compile(r"handshake|peer name", re.IGNORECASE)
_OPTIONS: Final = (
    # A connection that died without a word is noticed while a call waits on it, not before.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.enable_retries", 0),  # the sender tries again, and knows the whole outbox
    ("grpc.max_receive_message_length", 1 << 20),
)


class GrpcConnection:
    """One channel. roots: PEM, None for the system's."""

    def __init__(self, address: str, roots: str | None, *, insecure: bool) -> None:
        if insecure:
            self._channel = grpc.insecure_channel(address, _OPTIONS)
        else:
            credentials = grpc.ssl_channel_credentials(roots.encode() if roots else None)
            self._channel = grpc.secure_channel(address, credentials, _OPTIONS)
        self._stub = ShufflerStub(self._channel)

    def submit(self, reports: Sequence[SealedReport], timeout_seconds: float) -> Submitted:
        """As the Transport protocol says."""
        request = request_of(reports)
        try:
            response = self._stub.Submit(request, timeout=timeout_seconds)
        except grpc.RpcError as error:
            raise _not_sent(error) from error
        except ValueError as error:
            # Closed by another thread in the meantime.
            raise TryAgain("connection_closed") from error
        return answer_of(response, len(reports))

    def close(self) -> None:
        """End every call and let go."""
        self._channel.close()


def _not_sent(error: grpc.RpcError) -> TryAgain | GivenUp:
    reason = error.code().name.lower()
    trailing: dict[str, str | bytes] = {
        str(item.key): item.value for item in error.trailing_metadata() or ()
    }
    if error.code() is _FOR_GOOD and trailing.get(_MARK[0]) == _MARK[1]:
        return GivenUp(reason)
    hint, notice = str(trailing.get(_HINT, "")), trailing.get(_NOTICE)
    known = hint.isascii() and hint.isdecimal() and len(hint) <= _LONGEST_HINT
    told = notice if isinstance(notice, bytes) else b""
    cause = _CAUSE.search(error.details() or "")
    if cause and _HANDSHAKE.search(cause[1]):
        reason = TLS_FAILED
    return TryAgain(reason, int(hint) / 1000 if known else None, told, cause[1] if cause else "")
