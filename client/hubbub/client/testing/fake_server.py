"""FakeServer: a real gRPC server on a port of this machine, in place of the shuffler."""

import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Self

import grpc

from hubbub.bundles import OpeningKey
from hubbub.client.transport.contract import FOR_GOOD, GivenUp, SealedReport, TryAgain
from hubbub.client.transport.grpc_connection import HINT, METHOD, NOTICE, SERVICE
from hubbub.client.transport.messages import REASONS, element, field, fields_of
from hubbub.sealing.hpke import open_sealed, seal_info

if TYPE_CHECKING:
    from hubbub.client.testing.fakes import Answer


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
        handler: Any = grpc.unary_unary_rpc_method_handler(self._submit)
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),)
        )
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def _submit(self, request: bytes, context: Any) -> bytes:
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
        reports = _reports_in(request)
        self.received += reports
        refusals = [
            element(1, field(1, place) + field(2, REASONS.index(reason)))
            for place, reason in refused.items()
        ]
        models = b"" if reports else self.models
        return b"".join([*refusals, field(2, self.notice), field(3, models)])

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


def _reports_in(request: bytes) -> list[SealedReport]:
    """The reports of a SubmitRequest, without their tokens."""
    reports = []
    for number, message in fields_of(request):
        if number == 1 and isinstance(message, bytes):
            members: dict[int, Any] = dict(fields_of(message))
            report = SealedReport(
                stream=members.get(1, b"").decode(),
                epoch=members.get(2, 0),
                key_id=members.get(3, 0),
                sealed=members.get(4, b""),
            )
            reports.append(report)
    return reports
