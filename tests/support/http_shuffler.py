"""A server of HTTP that plays the shuffler, as FakeServer does over gRPC."""

import base64
import http.server
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from hubbub.client import GivenUp, SealedReport, TryAgain
from hubbub.client.testing.fakes import Answer
from hubbub.wire.v1.services_pb2 import Reason, Refusal, SubmitRequest, SubmitResponse


class HttpShuffler(http.server.ThreadingHTTPServer):
    """Takes every report, until told otherwise, in the clear.

    answers: those of the next calls, as a `FakeShuffler` has them, or status, headers and body.
    heads: what the requests said beside their bodies.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Call)
        self.address = f"http://127.0.0.1:{self.server_address[1]}"
        self.answers: list[Answer | tuple[int, dict[str, str], bytes]] = []
        self.received: list[SealedReport] = []
        self.heads: list[dict[str, str]] = []
        self.calls = self.connections = 0
        self.ending = threading.Event()

    def answer(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        """What the next call is told."""
        self.calls += 1
        answer = self.answers.pop(0) if self.answers else {}
        if isinstance(answer, tuple):
            return answer
        if answer is None:
            self.ending.wait()
        if isinstance(answer, GivenUp):
            return 400, {"Hubbub-Refused": "for-good"}, b"{}"
        if isinstance(answer, TryAgain):
            if answer.after_seconds is None:
                return 503, {}, b"{}"
            document: dict[str, object] = {"retry_after_ms": round(1000 * answer.after_seconds)}
            if answer.notice:
                document["notice"] = base64.b64encode(answer.notice).decode()
            return 503, {}, json.dumps(document).encode()
        refused = answer if isinstance(answer, Mapping) else {}
        reports = SubmitRequest.FromString(body).reports
        self.received += [
            SealedReport(stream=r.stream, epoch=r.epoch, key_id=r.key_id, sealed=r.sealed)
            for r in reports
        ]
        numbers = {at: "REASON_" + why[len("refused_") :].upper() for at, why in refused.items()}
        response = SubmitResponse(
            refused=[Refusal(index=at, reason=Reason.Value(why)) for at, why in numbers.items()]
        )
        return 200, {"Content-Type": "application/protobuf"}, response.SerializeToString()


class _Call(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HttpShuffler

    def setup(self) -> None:
        self.server.connections += 1
        super().setup()

    def do_POST(self) -> None:
        assert self.path == "/v1/reports"
        self.server.heads.append(dict(self.headers.items()))
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status, headers, answer = self.server.answer(body)
        self.send_response_only(status)
        for name, value in {**headers, "Content-Length": str(len(answer))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer)

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionError:
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 as its base has it
        """Say nothing."""


@contextmanager
def http_shuffler() -> Iterator[HttpShuffler]:
    """One that listens."""
    with HttpShuffler() as server:
        server.daemon_threads = True
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        try:
            yield server
        finally:
            server.ending.set()
            server.shutdown()
            serving.join()
