"""FakeServer: a real gRPC server on a port of this machine that plays the shuffler."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import grpc

from hubbub.catalog import OpeningKey, open_sealed, seal_info
from hubbub.wire.v1.services_pb2 import SubmitRequest, SubmitResponse
from hubbub.wire.v1.services_pb2_grpc import ShufflerServicer, add_ShufflerServicer_to_server

if TYPE_CHECKING:
    from hubbub.wire.v1.report_pb2 import SealedReport

__all__ = ["FakeServer"]


class FakeServer(ShufflerServicer):  # type: ignore[misc,unused-ignore]
    """Takes every report, until told otherwise. In the clear: dial it with insecure=True.

    opening: the keys that open reports, of `make_bundle()`.
    failing: a status to answer with instead, and `retry_ms` to hint at. hang_seconds: how long to
        wait before any answer. received: every report of every call that was taken, resends too.
    """

    def __init__(self, opening: Sequence[OpeningKey] = ()) -> None:
        self._keys = {key.id: key.load() for key in opening}
        self.failing: grpc.StatusCode | None = None
        self.retry_ms: int | None = None
        self.hang_seconds = 0.0
        self.calls = 0
        self.received: list[SealedReport] = []
        self._server = grpc.server(ThreadPoolExecutor(8))
        add_ShufflerServicer_to_server(self, self._server)
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def Submit(self, request: SubmitRequest, context: Any) -> SubmitResponse:
        """Answer as told."""
        self.calls += 1
        if self.hang_seconds:
            time.sleep(self.hang_seconds)
        if self.failing is not None:
            if self.retry_ms is not None:
                hint = ("grpc-retry-pushback-ms", str(self.retry_ms))
                context.set_trailing_metadata([hint])
            context.abort(self.failing, "as told")
        self.received += request.reports
        return SubmitResponse()

    def payloads(self, metric: str) -> list[bytes]:
        """The payloads of one metric, opened; a report that came twice is one."""
        distinct = {r.sealed: r for r in self.received if r.stream == metric}.values()
        return [
            open_sealed(r.sealed, self._keys[r.key_id], seal_info(r.stream, r.epoch))
            for r in distinct
        ]

    def close(self) -> None:
        """Stop at once."""
        self._server.stop(0).wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
