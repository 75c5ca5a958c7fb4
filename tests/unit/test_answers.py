"""What shufflers, newer ones, and what stands before them may answer: nothing hurts an app."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from hubbub.client import (
    Client,
    FolderState,
    GivenUp,
    Outcome,
    SealedReport,
    Submitted,
    TryAgain,
    transport_to,
)
from hubbub.client.testing import FakeClock, FakeShuffler
from hubbub.wire.v1.services_pb2 import SubmitRequest
from tests.support.bundles import DAY, Signed
from tests.support.client_parts import client_state, store_reports
from tests.support.devices import Device, idle_client
from tests.support.waiting import HANG_SECONDS

pytestmark = pytest.mark.slow

MARK = ("hubbub-refused", "for-good")
Answer = Callable[[bytes, Any], bytes]


class Newer:
    """A real gRPC server of the shuffler's method, which answers with any bytes."""

    def __init__(self) -> None:
        self.calls: list[bytes] = []
        self.answer: Answer = lambda _raw, _context: b""
        self._server = grpc.server(ThreadPoolExecutor(4))
        handlers: dict[str, Any] = {"Submit": grpc.unary_unary_rpc_method_handler(self._submit)}
        self._server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler("hubbub.wire.v1.Shuffler", handlers)]
        )
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def _submit(self, raw: bytes, context: Any) -> bytes:
        self.calls.append(raw)
        return self.answer(raw, context)

    def sent(self) -> list[bytes]:
        """The sealed bytes of every report of every call."""
        return [r.sealed for raw in self.calls for r in SubmitRequest.FromString(raw).reports]

    def close(self) -> None:
        self._server.stop(0).wait()


@pytest.fixture
def newer() -> Iterator[Newer]:
    server = Newer()
    yield server
    server.close()


@pytest.fixture
def client_of(signed: Signed) -> Iterator[Callable[..., Client]]:
    clients: list[Client] = []

    def make(address: str) -> Client:
        client = idle_client(
            signed.bundle,
            transport=transport_to(address, roots=None, insecure=True),
            clock=FakeClock(float(signed.bundle.keys[0].start + 10 * DAY)),
        )
        clients.append(client)
        return client

    yield make
    for client in clients:
        client.close(0)


def _varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def _refusal(index: int, reason: int, more: bytes = b"") -> bytes:
    body = b"\x08" + _varint(index) + b"\x10" + _varint(reason) + more
    return b"\x0a" + _varint(len(body)) + body


MORE = b"\x9a\x06\x05later" + b"\xa0\x06\x07" + b"\xa9\x06" + bytes(8)  # fields 99 to 101


@pytest.mark.parametrize(
    ("answer", "dropped"),
    [
        (_refusal(0, 99), {"refused_unknown_99": 1}),
        (_refusal(0, 1) + _refusal(1, 77), {"refused_unknown_stream": 1, "refused_unknown_77": 1}),
        (_refusal(0, 0), {"refused_unspecified": 1}),
        (_refusal(0, 2**31 - 1), {"refused_unknown": 1}),
        (_refusal(0, 2**64 - 5), {"refused_unknown": 1}),  # a negative number
        (_refusal(4_000_000_000, 1), {}),
        (_refusal(2, 1), {}),
        (_refusal(0, 4) * 3, {"refused_expired": 1}),
        (_refusal(0, 4, MORE) + MORE, {"refused_expired": 1}),
        (MORE, {}),
        (b"".join(_refusal(n, 99 + n % 5) for n in range(20_000)), None),
    ],
)
def test_unknown_fields_of_a_newer_shufflers_answer_are_ignored(
    newer: Newer, client_of: Callable[..., Client], answer: bytes, dropped: dict[str, int] | None
) -> None:
    newer.answer = lambda _raw, _context: answer
    client = client_of(newer.address)
    client.report("theme", "dark")
    client.report("homepage", "a.example")
    assert client.flush(HANG_SECONDS)
    if dropped is not None:
        assert client.dropped == dropped
        assert client.ledger().counts == dropped
    assert client.waiting == 0
    newer.answer = lambda _raw, _context: b""
    assert client.flush(HANG_SECONDS)
    assert len(newer.calls) == 1, "nothing is sent again"


@pytest.mark.parametrize("raw", [b"\xff", b"\x0a\xff\xff\xff\xff\x0f", bytes(5), b"\x0b" * 99])
def test_an_invalid_answer_counts_as_none(
    newer: Newer, client_of: Callable[..., Client], raw: bytes
) -> None:
    newer.answer = lambda _raw, _context: raw
    client = client_of(newer.address)
    client.report("theme", "dark")
    assert not client.flush(5)
    assert len(newer.calls) > 1, "it is tried again"
    assert (client.waiting, client.dropped) == (1, {})
    newer.answer = lambda _raw, _context: b""
    assert client.flush(HANG_SECONDS)
    assert len(set(newer.sent())) == 1, "the same bytes each time"


def _aborting(code: Any, *metadata: tuple[str, str]) -> Answer:
    def answer(_raw: bytes, context: Any) -> bytes:
        context.set_trailing_metadata(metadata)
        context.set_code(code)
        context.set_details("by somebody")
        return b""

    return answer


def _submit_one(address: str) -> TryAgain | GivenUp:
    transport = transport_to(address, roots=None, insecure=True)
    with pytest.raises((TryAgain, GivenUp)) as caught:
        transport.submit(
            [SealedReport(stream="theme", epoch=1, key_id=1, sealed=b"sealed")], HANG_SECONDS
        )
    transport.close()
    assert isinstance(caught.value, TryAgain | GivenUp)
    return caught.value


@pytest.mark.parametrize("code", [c for c in grpc.StatusCode if c is not grpc.StatusCode.OK])
@pytest.mark.parametrize("marked", [True, False])
def test_only_a_shufflers_own_mark_gives_reports_up(
    newer: Newer, code: grpc.StatusCode, *, marked: bool
) -> None:
    newer.answer = _aborting(code, ("grpc-retry-pushback-ms", "1500"), *[MARK] * marked)
    failure = _submit_one(newer.address)
    assert failure.reason == code.name.lower()
    final = marked and code is grpc.StatusCode.INVALID_ARGUMENT
    assert isinstance(failure, GivenUp if final else TryAgain)
    assert isinstance(failure, GivenUp) or failure.after_seconds == 1.5


@pytest.mark.parametrize("hint", ["", "-1", "1e9", "9" * 5000, "soon", "٣", "1 0"])
def test_an_invalid_delay_of_a_server_is_ignored(newer: Newer, hint: str) -> None:
    newer.answer = _aborting(
        grpc.StatusCode.UNAVAILABLE,
        ("grpc-retry-pushback-ms", hint.encode("ascii", "replace").decode()),
    )
    failure = _submit_one(newer.address)
    assert isinstance(failure, TryAgain)
    assert failure.after_seconds is None


class Proxy:
    """Speaks HTTP/2 and no gRPC: every request is answered with one status, and nothing else."""

    def __init__(self, status: int, *headers: tuple[bytes, bytes]) -> None:
        fields = [(b":status", b"%d" % status), *headers]
        self._fields = b"".join(
            b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value
            for name, value in fields
        )
        self.answers = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                peer, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(peer,), daemon=True).start()

    def _answer(self, peer: socket.socket) -> None:
        with peer, peer.makefile("rb") as reading:
            try:
                reading.read(24)  # the preface
                peer.sendall(_frame(4, 0, 0, b""))
                while head := reading.read(9):
                    length = int.from_bytes(head[:3], "big")
                    kind, flags, stream = struct.unpack(">BBI", head[3:])
                    reading.read(length)
                    if kind == 4 and not flags & 1:
                        peer.sendall(_frame(4, 1, 0, b""))
                    if kind in (0, 1) and flags & 1:  # the request is over
                        peer.sendall(_frame(1, 5, stream, self._fields))
                        self.answers += 1
            except OSError:
                return

    def close(self) -> None:
        self._socket.close()


def _frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    return len(body).to_bytes(3, "big") + struct.pack(">BBI", kind, flags, stream) + body


BELOW_500 = (204, 301, 302, 400, 401, 403, 404, 405, 408, 411, 413, 415, 426, 429, 431)
STATUSES = (*BELOW_500, 500, 501, 502, 503, 504, 505, 511, 520, 599)
# Of a gateway that speaks gRPC; 3 is INVALID_ARGUMENT, 12 UNIMPLEMENTED.
OWN = (b"3", b"12", b"16", b"17", b"99", b"-1", b"x", b"")


@pytest.mark.parametrize(
    ("status", "fields"),
    [
        *((status, [(b"content-type", b"text/html")]) for status in STATUSES),
        *((200, [(b"content-type", b"application/grpc"), (b"grpc-status", own)]) for own in OWN),
    ],
)
def test_no_answer_of_a_proxy_empties_the_outbox(
    client_of: Callable[..., Client], status: int, fields: list[tuple[bytes, bytes]]
) -> None:
    proxy = Proxy(status, *fields)
    client = client_of(proxy.address)
    client.report("theme", "dark")
    client.report("homepage", "a.example")
    assert not client.flush(5)
    assert proxy.answers > 0
    assert (client.waiting, client.dropped) == (2, {})
    proxy.close()


def test_one_bad_report_loses_no_other(newer: Newer, client_of: Callable[..., Client]) -> None:
    """A shuffler that refuses whole calls for good, for the sake of one report in them."""
    client = client_of(newer.address)
    for n in range(40):
        client.report("homepage", f"{n}.example")
    store_reports(client)
    bad = client_state(client).take(1, 1 << 20, client._clock.now())[0][0].sealed
    refuse = _aborting(grpc.StatusCode.INVALID_ARGUMENT, MARK)

    def answer(raw: bytes, context: Any) -> bytes:
        return refuse(raw, context) if bad in raw else b""

    newer.answer = answer
    assert client.flush(HANG_SECONDS)
    assert client.dropped == {"rejected_invalid_argument": 1}
    assert len(newer.calls) <= 20
    fates = [payload.fate for payload in client.ledger().payloads]
    assert sorted(fates) == ["rejected_invalid_argument"] + ["sent"] * (len(fates) - 1)


def test_reports_accepted_before_a_failure_are_not_sent_again(device: Device) -> None:
    refused = GivenUp("invalid_argument")
    shuffler = FakeShuffler(refused, {}, TryAgain("unavailable", 60))
    device.shuffler = shuffler
    client = device.start_with(FolderState(device.folder))
    for n in range(4):
        client.report("homepage", f"{n}.example")
    assert not client.flush(1)
    assert client.waiting == 2
    assert client.flush(HANG_SECONDS)
    assert client.dropped == {}
    first, second, failed, last = shuffler.submissions
    assert set(first) == set(second) | set(last)
    assert set(failed) == set(last)


def test_a_transport_that_fails_in_any_way_is_no_error_of_the_apps(device: Device) -> None:
    class Broken(FakeShuffler):
        def submit(self, reports: object, timeout_seconds: float) -> Submitted:
            raise TypeError(f"{reports} {timeout_seconds}")

    device.shuffler = Broken()
    client = device.start()
    assert client.report("theme", "dark") is Outcome.QUEUED
    assert not client.flush(1)
    assert not client.close(1)
