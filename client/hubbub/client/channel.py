"""One gRPC channel to the shuffler. The only module of the client that imports gRPC."""

from collections.abc import Sequence
from typing import Final

import grpc

from hubbub.client.state import Waiting
from hubbub.client.transport import NotSent
from hubbub.wire.v1.report_pb2 import SealedReport
from hubbub.wire.v1.services_pb2 import Reason, SubmitRequest
from hubbub.wire.v1.services_pb2_grpc import ShufflerStub

__all__ = ["Channel"]

# Only these say that the same bytes can never be taken. A server that is killed, restarted or cut
# off answers with nearly any other code, and a report given up then would be lost.
_FOR_GOOD: Final = frozenset({grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNIMPLEMENTED})
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

    def submit(self, reports: Sequence[Waiting], timeout_seconds: float) -> dict[int, str]:
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
            code = error.code()
            hints = {str(item.key): str(item.value) for item in error.trailing_metadata() or ()}
            hint = hints.get("grpc-retry-pushback-ms", "")
            raise NotSent(
                code.name.lower(),
                retry=code not in _FOR_GOOD,
                after_seconds=int(hint) / 1000 if hint.isdecimal() else None,
            ) from error
        except ValueError as error:
            # Closed by another thread in the meantime.
            raise NotSent("connection_closed", retry=True) from error
        return {
            refusal.index: "refused_" + Reason.Name(refusal.reason).removeprefix("REASON_").lower()
            for refusal in response.refused
        }

    def close(self) -> None:
        """End every call and let go."""
        self._channel.close()
