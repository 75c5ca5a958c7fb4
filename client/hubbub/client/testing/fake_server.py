"""FakeServer: a real gRPC server on a port of this machine, in place of the shuffler."""

import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Self

import grpc

from hubbub.bundles import OpeningKey
from hubbub.client.transport.contract import FOR_GOOD, GivenUp, TryAgain
from hubbub.client.transport.grpc_connection import HINT, NOTICE
from hubbub.sealing.hpke import open_sealed, seal_info
from hubbub.wire.v1.methods import add_service
from hubbub.wire.v1.services_pb2 import Reason, Refusal, SubmitRequest, SubmitResponse

if TYPE_CHECKING:
    from hubbub.client.testing.fake_shuffler import Answer
    from hubbub.wire.v1.report_pb2 import SealedReport


class FakeServer:
    """A gRPC server in place of the shuffler; connect with insecure=True. It accepts every report.

    Args:
        opening: keys that open reports, from `make_bundle()`.

    Attributes:
        answers: answers to the next calls, one each, as for `FakeShuffler`.
        failing: a status to answer with instead; `retry_ms` is its hint, in milliseconds.
        hang_seconds: delay before every answer.
        notice: the operator's signed notice, in every answer.
        models: the signed state of models, in answers to submissions without a report.
        received: every accepted report, resends included.
    """

    def __init__(self, opening: Sequence[OpeningKey] = ()) -> None:
        self._keys = {key.id: key.load() for key in opening}
        self.failing: grpc.StatusCode | None = None
        self.retry_ms: int | None = None
        self.hang_seconds = 0.0
        self.calls = 0
        self.notice = b""
        self.models = b""
        self.answers: list[Answer] = []
        self.received: list[SealedReport] = []
        self._server = grpc.server(ThreadPoolExecutor(8))
        add_service("Shuffler", self, self._server)
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def Submit(self, request: SubmitRequest, context: Any) -> SubmitResponse:
        """Answers as `answers`, `failing` and `hang_seconds` request."""
        self.calls += 1
        if self.hang_seconds:
            time.sleep(self.hang_seconds)
        if self.failing is not None:
            if self.retry_ms is not None:
                context.set_trailing_metadata([(HINT, str(self.retry_ms))])
            context.abort(self.failing, "as told")
        answer = self.answers.pop(0) if self.answers else {}
        if isinstance(answer, GivenUp):
            context.set_trailing_metadata([FOR_GOOD])
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, answer.reason)
        if isinstance(answer, TryAgain):
            metadata: list[tuple[str, str | bytes]] = []
            if answer.after_seconds is not None:
                metadata.append((HINT, str(round(1000 * answer.after_seconds))))
            if answer.notice:
                metadata.append((NOTICE, answer.notice))
            context.set_trailing_metadata(metadata)
            context.abort(grpc.StatusCode.UNAVAILABLE, answer.reason)
        if answer is None:
            gone = threading.Event()
            if not context.add_callback(gone.set):
                gone.set()
            gone.wait()  # the caller has left, or this server ends
        refused = answer if isinstance(answer, Mapping) else {}
        self.received += request.reports
        return SubmitResponse(
            refused=[Refusal(index=place, reason=_number(why)) for place, why in refused.items()],
            notice=self.notice,
            models=b"" if request.reports else self.models,
        )

    def payloads(self, metric: str) -> list[bytes]:
        """Returns the opened payloads of one metric; a resent report counts once."""
        distinct = {r.sealed: r for r in self.received if r.stream == metric}.values()
        return [
            open_sealed(r.sealed, self._keys[r.key_id], seal_info(r.stream, r.epoch))
            for r in distinct
        ]

    def close(self) -> None:
        """Stops at once."""
        self._server.stop(0).wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()


def _number(why: str) -> "Reason.ValueType":
    return Reason.Value("REASON_" + why.removeprefix("refused_").upper())
