"""One gRPC channel to the shuffler. The only module of the client that imports gRPC."""

from collections.abc import Sequence
from typing import Final

import grpc

from hubbub.client.state.contract import OutboxReport
from hubbub.client.transport.contract import NotSent
from hubbub.wire.v1.report_pb2 import SealedReport
from hubbub.wire.v1.services_pb2 import Reason, SubmitRequest
from hubbub.wire.v1.services_pb2_grpc import ShufflerStub

__all__ = ["Channel"]

# That the same bytes can never be taken is believed of a shuffler alone, which marks it so. Servers
# that are killed, restarted or cut off, proxies and gateways answer with any code there is: gRPC
# makes one of each HTTP status, UNIMPLEMENTED of a 404. A report given up then would be lost.
_FOR_GOOD: Final = grpc.StatusCode.INVALID_ARGUMENT
_MARK: Final = ("hubbub-refused", "for-good")
_HINT: Final = "grpc-retry-pushback-ms"
_LONGEST_HINT: Final = 9
# Reasons of shufflers to come are counted by their number, but for those that cannot be theirs.
_REASONS: Final = 1000
_OPTIONS: Final = (
    # A connection that died without a word is noticed while a call waits on it, not before.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.enable_retries", 0),  # the sender tries again, and knows the whole outbox
    ("grpc.max_receive_message_length", 1 << 20),
)


class Channel:
    """Dials when first used. roots: PEM, None for the system's."""

    def __init__(self, address: str, roots: str | None, *, insecure: bool) -> None:
        if insecure:
            self._channel = grpc.insecure_channel(address, _OPTIONS)
        else:
            credentials = grpc.ssl_channel_credentials(roots.encode() if roots else None)
            self._channel = grpc.secure_channel(address, credentials, _OPTIONS)
        self._stub = ShufflerStub(self._channel)

    def submit(self, reports: Sequence[OutboxReport], timeout_seconds: float) -> dict[int, str]:
        """The refused ones by their place, with the reason. Raises NotSent."""
        request = SubmitRequest(
            reports=[
                SealedReport(stream=r.stream, epoch=r.epoch, key_id=r.key_id, sealed=r.sealed)
                for r in reports
            ]
        )
        try:
            response = self._stub.Submit(request, timeout=timeout_seconds)
        except grpc.RpcError as error:
            told = {str(item.key): str(item.value) for item in error.trailing_metadata() or ()}
            hint = told.get(_HINT, "")
            known = hint.isascii() and hint.isdecimal() and len(hint) <= _LONGEST_HINT
            raise NotSent(
                error.code().name.lower(),
                retry=not (error.code() is _FOR_GOOD and told.get(_MARK[0]) == _MARK[1]),
                after_seconds=int(hint) / 1000 if known else None,
            ) from error
        except ValueError as error:
            # Closed by another thread in the meantime.
            raise NotSent("connection_closed", retry=True) from error
        return {refusal.index: _reason(refusal.reason) for refusal in response.refused}

    def close(self) -> None:
        """End every call and let go."""
        self._channel.close()


def _reason(number: "Reason.ValueType") -> str:
    """A name for counting; a reason that only newer shufflers know is as final as any."""
    if number in Reason.values():
        return "refused_" + Reason.Name(number).removeprefix("REASON_").lower()
    return f"refused_unknown_{number}" if 0 < number < _REASONS else "refused_unknown"
