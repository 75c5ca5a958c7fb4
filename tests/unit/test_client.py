"""The SDK against a fake shuffler: outcomes, limits, retries, and what stays on the device."""

import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from hubbub.catalog import epoch_at, open_sealed, read_opening_keys, seal_info
from hubbub.client import Client, FolderState, GrpcTransport, MemoryState, NotSent, Outcome
from hubbub.client.outbox import Outbox, Waiting
from hubbub.errors import (
    BadParameter,
    BundleRefused,
    StateUnusable,
    UnknownMetric,
    ValueOutOfDomain,
)
from hubbub.mechanisms import KeyedBits
from hubbub.wire.v1.services_pb2 import Reason, Refusal, SubmitRequest, SubmitResponse
from hubbub.wire.v1.services_pb2_grpc import ShufflerServicer, add_ShufflerServicer_to_server
from tests.unit.bundles import Signed

HOUR, DAY = 3600, 86_400


class FakeShuffler:
    """Answers as told, one answer a call; then acknowledges everything."""

    def __init__(self, *answers: NotSent | SubmitResponse) -> None:
        self.answers = list(answers)
        self.requests: list[bytes] = []

    def submit(self, request: SubmitRequest, timeout_seconds: float) -> SubmitResponse:
        assert timeout_seconds > 0
        self.requests.append(request.SerializeToString(deterministic=True))
        answer = self.answers.pop(0) if self.answers else SubmitResponse()
        if isinstance(answer, NotSent):
            raise answer
        return answer

    def close(self) -> None:
        pass

    def reports(self) -> list[tuple[str, int, bytes]]:
        every = [SubmitRequest.FromString(request) for request in self.requests]
        return [(r.stream, r.epoch, r.sealed) for request in every for r in request.reports]


class Clock:
    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(signed: Signed) -> Clock:
    return Clock(signed.bundle.keys[0].start + 10 * DAY)


@pytest.fixture
def client_of(signed: Signed, clock: Clock) -> Callable[..., Client]:
    def make(shuffler: FakeShuffler, state: object = None, **changes: object) -> Client:
        return Client(
            signed.bundle,
            state or MemoryState(),  # type: ignore[arg-type]
            shuffler,
            hold_seconds=None,
            clock=clock,
            **changes,  # type: ignore[arg-type]
        )

    return make


def test_a_report_reaches_the_shuffler_sealed_and_opens_to_a_payload(
    signed: Signed, client_of: Callable[..., Client], clock: Clock
) -> None:
    shuffler = FakeShuffler()
    with client_of(shuffler) as client:
        assert client.report("theme", "dark") is Outcome.QUEUED
        assert client.report("homepage", "a.example") is Outcome.QUEUED
        assert shuffler.requests == [], "report() itself sends nothing"
        assert client.waiting == 2
    private = read_opening_keys(signed.keys / "opening.keys.json")[0].load()
    assert {stream for stream, _, _ in shuffler.reports()} == {"theme", "homepage"}
    for stream, epoch, sealed in shuffler.reports():
        assert epoch == epoch_at(clock.now, "day")
        layout = signed.bundle.metric(stream).randomizer.layout
        payload = open_sealed(sealed, private, seal_info(stream, epoch))
        layout.cells(payload)
        assert len(sealed) == layout.payload_bytes + 48


def test_a_programmers_mistake_is_raised_without_the_value(
    client_of: Callable[..., Client],
) -> None:
    client = client_of(FakeShuffler())
    with pytest.raises(UnknownMetric, match='metric "colour" is not in the bundle'):
        client.report("colour", "dark")
    with pytest.raises(ValueOutOfDomain) as caught:
        client.report("theme", "plaid-77")
    assert "plaid" not in str(caught.value)
    assert client.waiting == 0


def test_limits_are_kept_before_any_coin_is_drawn(
    client_of: Callable[..., Client], clock: Clock
) -> None:
    class NoCoins:
        def chance(self, *_: object) -> bool:
            raise AssertionError("a coin was drawn")

        mask = below = chance

    state = MemoryState()
    shuffler = FakeShuffler()
    client = client_of(shuffler, state)
    assert client.report("theme", "dark") is Outcome.QUEUED
    client.flush()
    again = client_of(shuffler, state, coins=NoCoins())
    assert again.report("theme", "light") is Outcome.ALREADY_REPORTED
    clock.now -= DAY
    assert again.report("theme", "light") is Outcome.ALREADY_REPORTED, "a clock set back"
    clock.now += 2 * DAY
    with pytest.raises(AssertionError, match="a coin was drawn"):
        again.report("theme", "light")


def test_the_lifetime_budget_ends_reporting(client_of: Callable[..., Client], clock: Clock) -> None:
    """crashed: epsilon 2 a report, 10 for life, 3 an hour."""
    client = client_of(FakeShuffler())
    outcomes = []
    for _ in range(4):
        outcomes += [client.report("crashed", "yes") for _ in range(4)]
        clock.now += HOUR
    assert outcomes.count(Outcome.QUEUED) == 5
    assert outcomes[3] is Outcome.ALREADY_REPORTED
    assert outcomes[-1] is Outcome.OVER_BUDGET


def test_an_unchanged_value_costs_its_permanent_response_once(
    client_of: Callable[..., Client], clock: Clock
) -> None:
    """editor: 1.02 a report, 2.197 for all of one value, 2.2 for life."""
    client = client_of(FakeShuffler())
    for _ in range(40):
        assert client.report("editor", "vi") is Outcome.QUEUED
        clock.now += 7 * DAY
    assert client.report("editor", "emacs") is Outcome.OVER_BUDGET
    assert client.report("editor", "vi") is Outcome.QUEUED


def test_expiry_missing_keys_and_a_full_outbox_are_outcomes(
    signed: Signed, client_of: Callable[..., Client], clock: Clock
) -> None:
    client = client_of(FakeShuffler())
    good = clock.now
    clock.now = signed.bundle.keys[-1].end + DAY
    assert client.report("theme", "dark") is Outcome.NO_KEY
    clock.now = 5e9  # the year 2128
    assert client.report("theme", "dark") is Outcome.EXPIRED
    clock.now = good
    client._outbox._size = 0
    assert client.report("theme", "dark") is Outcome.OVERFLOWED
    client._outbox._size = 1
    assert client.report("theme", "dark") is Outcome.QUEUED, "an overflow spends nothing"
    client.close()
    assert client.report("theme", "dark") is Outcome.CLOSED
    assert client.close()


def test_a_resend_is_the_same_bytes(client_of: Callable[..., Client]) -> None:
    away = [NotSent("away", retry=True, after_seconds=0.001) for _ in range(3)]
    shuffler = FakeShuffler(*away)
    client = client_of(shuffler)
    client.report("theme", "dark")
    assert client.flush(5)
    assert len(shuffler.requests) == 4
    assert len(set(shuffler.requests)) == 1


def test_what_cannot_be_sent_in_time_waits(client_of: Callable[..., Client]) -> None:
    shuffler = FakeShuffler(*[NotSent("away", retry=True, after_seconds=60.0)] * 3)
    client = client_of(shuffler)
    client.report("theme", "dark")
    assert not client.flush(0.05)
    assert client.waiting == 1
    assert client.dropped == {}
    shuffler.answers.clear()
    assert client.flush(5)


def test_what_is_refused_for_good_is_dropped_and_counted(client_of: Callable[..., Client]) -> None:
    refusal = Refusal(index=0, reason=Reason.REASON_EXPIRED)
    shuffler = FakeShuffler(SubmitResponse(refused=[refusal]), NotSent("bad request", retry=False))
    client = client_of(shuffler)
    client.report("theme", "dark")
    assert client.flush(5)
    client.report("homepage", "a.example")
    assert client.flush(5)
    assert client.dropped == {"refused: REASON_EXPIRED": 1, "bad request": 1}
    assert client.waiting == 0


def test_the_permanent_response_survives_a_restart_and_differs_between_devices(
    signed: Signed, client_of: Callable[..., Client], tmp_path: Path
) -> None:
    """homepage with fixed instantaneous coins: what is left is the permanent step and cohort."""
    private = read_opening_keys(signed.keys / "opening.keys.json")[0].load()

    def payload(folder: Path, value: str) -> bytes:
        shuffler = FakeShuffler()
        with client_of(shuffler, FolderState(folder), coins=KeyedBits(b"c" * 32)) as client:
            client.report("homepage", value)
        _, epoch, sealed = shuffler.reports()[-1]
        return open_sealed(sealed, private, seal_info("homepage", epoch))

    first = payload(tmp_path / "a", "x.example")
    assert payload(tmp_path / "a", "x.example") == first
    others = {payload(tmp_path / str(n), "x.example") for n in range(20)}
    assert len(others) > 1


def test_the_state_folder_holds_no_value_and_is_its_owners(
    client_of: Callable[..., Client], tmp_path: Path
) -> None:
    folder = tmp_path / "state"
    state = FolderState(folder)
    state.pin(b"o" * 32)
    with client_of(FakeShuffler(), state) as client:
        client.report("homepage", "very-private.example")
        client.report("theme", "dark")
    assert {path.name for path in folder.iterdir()} == {"secret", "ledger.json", "operator.pub"}
    for path in folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert b"private" not in path.read_bytes()
        assert b"dark" not in path.read_bytes()
    assert len((folder / "secret").read_bytes()) == 32


def test_the_ledger_is_on_disk_before_anything_leaves(
    client_of: Callable[..., Client], tmp_path: Path
) -> None:
    folder = tmp_path / "state"

    class Looks(FakeShuffler):
        def submit(self, request: SubmitRequest, timeout_seconds: float) -> SubmitResponse:
            assert '"theme"' in (folder / "ledger.json").read_text()
            return super().submit(request, timeout_seconds)

    client = client_of(Looks(), FolderState(folder))
    client.report("theme", "dark")
    assert client.flush(5)
    assert client_of(FakeShuffler(), FolderState(folder)).report("theme", "dark") is (
        Outcome.ALREADY_REPORTED
    )


def test_an_unwritable_ledger_keeps_reports_on_the_device(
    client_of: Callable[..., Client], tmp_path: Path
) -> None:
    folder = tmp_path / "state"
    shuffler = FakeShuffler()
    client = client_of(shuffler, FolderState(folder))
    client.report("theme", "dark")
    (folder / "ledger.draft").mkdir()  # stands in the way of the next save
    assert not client.flush(1)
    assert shuffler.requests == []
    assert client.waiting == 1


def test_damaged_state_is_refused_with_the_remedy(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    state = FolderState(folder)
    for damage in ("{", "[]"):
        (folder / "ledger.json").write_text(damage)
        with pytest.raises(StateUnusable, match=r"ledger\.json: not a ledger"):
            state.load()
    (folder / "secret").write_bytes(b"short")
    with pytest.raises(StateUnusable, match="not 32 bytes"):
        FolderState(folder)
    (tmp_path / "file").write_text("")
    with pytest.raises(StateUnusable, match="give a writable state_dir"):
        FolderState(tmp_path / "file")


def test_the_first_operator_is_trusted_and_no_other(tmp_path: Path) -> None:
    state = FolderState(tmp_path)
    state.pin(b"a" * 32)
    state.pin(b"a" * 32)
    with pytest.raises(BundleRefused, match="trusts another operator"):
        state.pin(b"b" * 32)


def test_from_bundle_reads_pins_and_refuses(signed: Signed, tmp_path: Path) -> None:
    client = Client.from_bundle(signed.path, state_dir=tmp_path / "state", insecure=True)
    assert client.report("theme", "dark") is Outcome.QUEUED
    client.close(0.01)
    with pytest.raises(BundleRefused, match="not by the pinned operator"):
        Client.from_bundle(signed.path, state_dir=tmp_path / "state", operator=b"x" * 32)


def test_plain_text_never_leaves_this_machine() -> None:
    for address in ("example.org:7070", "10.0.0.1:7070", "[2001:db8::1]:1"):
        with pytest.raises(BadParameter, match="insecure is for loopback alone"):
            GrpcTransport(address, roots=None, insecure=True)
    for address in ("127.0.0.1:1", "localhost:1", "[::1]:1"):
        GrpcTransport(address, roots=None, insecure=True).close()


def test_an_unreachable_shuffler_is_worth_another_try() -> None:
    transport = GrpcTransport("127.0.0.1:9", roots=None, insecure=True)
    with pytest.raises(NotSent) as caught:
        transport.submit(SubmitRequest(), 2)
    assert caught.value.retry
    transport.close()


def test_a_closed_connection_is_no_error_of_the_apps() -> None:
    transport = GrpcTransport("127.0.0.1:9", roots=None, insecure=True)
    transport.close()
    with pytest.raises(NotSent, match="the connection was closed") as caught:
        transport.submit(SubmitRequest(), 2)
    assert caught.value.retry


@pytest.mark.parametrize("code", [c for c in grpc.StatusCode if c is not grpc.StatusCode.OK])
def test_only_a_refusal_of_the_request_itself_gives_reports_up(code: grpc.StatusCode) -> None:
    """A real server that answers with each code, and asks for a pause of 1.5 seconds."""

    class Refuses(ShufflerServicer):
        def Submit(self, request: SubmitRequest, context: Any) -> SubmitResponse:  # noqa: N802
            del request
            context.set_trailing_metadata([("grpc-retry-pushback-ms", "1500")])
            context.abort(code, "refused")
            return SubmitResponse()

    server = grpc.server(ThreadPoolExecutor(1))
    add_ShufflerServicer_to_server(Refuses(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    transport = GrpcTransport(f"127.0.0.1:{port}", roots=None, insecure=True)
    with pytest.raises(NotSent, match=code.name) as caught:
        transport.submit(SubmitRequest(), 10)
    assert caught.value.retry == (code.name not in {"INVALID_ARGUMENT", "UNIMPLEMENTED"})
    assert caught.value.after_seconds == 1.5
    transport.close()
    server.stop(0)


def test_the_background_thread_sends_without_being_asked(signed: Signed, clock: Clock) -> None:
    import threading

    sent = threading.Event()

    class Tells(FakeShuffler):
        def submit(self, request: SubmitRequest, timeout_seconds: float) -> SubmitResponse:
            sent.set()
            return super().submit(request, timeout_seconds)

    client = Client(signed.bundle, MemoryState(), Tells(), hold_seconds=0.01, clock=clock)
    client.report("theme", "dark")
    assert sent.wait(30)
    assert client.close(5)


def test_the_outbox_gives_random_order_and_forgets_what_is_done() -> None:
    outbox = Outbox(100)
    every = [Waiting("s", 0, bytes([i])) for i in range(50)]
    for waiting in every:
        outbox.add(waiting)
    orders = {tuple(w.payload for w in outbox.some(50, 1000)) for _ in range(4)}
    assert len(orders) == 4
    assert len(outbox.some(7, 1000)) == 7
    assert len(outbox.some(50, 20)) == 20
    assert len(outbox.some(50, 0)) == 1, "a long payload goes alone"
    outbox.remove(every[:49])
    assert outbox.some(10, 1000) == [every[49]]
    assert not outbox.full
