"""The person's will: off stops at once and for good, forgetting forgets, less epsilon is less."""

import contextlib
import fcntl
import math
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from hubbub.catalog import epoch_at
from hubbub.client import (
    Client,
    FolderState,
    MemoryState,
    Outcome,
    SealedReport,
    State,
    Submitted,
    files,
)
from hubbub.client import client as sdk
from hubbub.client.mistakes_and_counters import OnDrop
from hubbub.client.state import state_witness as witness
from hubbub.client.state.contract import Dropped
from hubbub.client.testing import FakeClock, FakeShuffler
from hubbub.errors import BadParameter, StateBusy, UnknownMetric
from tests.support.bundles import DAY, Signed
from tests.support.client_parts import client_state, store_reports
from tests.support.devices import idle_client
from tests.support.waiting import HANG_SECONDS, eventually

Make = Callable[..., Client]


@pytest.fixture
def client_of(signed: Signed, tmp_path: Path) -> Iterator[Make]:
    clients: list[Client] = []
    start = signed.bundle.keys[0].start + 10 * DAY

    def make(
        shuffler: FakeShuffler | None = None,
        state: State | None = None,
        on_drop: OnDrop | None = None,
        max_epsilon: float = math.inf,
    ) -> Client:
        client = idle_client(
            signed.bundle,
            state or FolderState(tmp_path / "state"),
            shuffler,
            clock=FakeClock(float(start)),
            on_drop=on_drop,
            max_epsilon=max_epsilon,
        )
        clients.append(client)
        return client

    yield make
    for client in clients:
        client.close(0)


def test_opt_out_stops_at_once_and_waiting_reports_are_never_sent(client_of: Make) -> None:
    shuffler = FakeShuffler()
    client = client_of(shuffler)
    client.report("theme", "dark")
    client.report("homepage", "a.example")
    client.disable()
    assert client.waiting == 0
    assert client.report("crashed", "yes") is Outcome.DISABLED
    assert client.flush(HANG_SECONDS)
    client.enable()
    assert client.flush(HANG_SECONDS)
    assert shuffler.submissions == []
    assert client.report("theme", "dark") is Outcome.QUEUED, "what never left was never spent"
    assert client.flush(HANG_SECONDS)
    assert [report.stream for report in shuffler.reports()] == ["theme"]


def test_opt_out_survives_a_restart_and_reaches_other_processes(client_of: Make) -> None:
    shuffler = FakeShuffler()
    first, other = client_of(shuffler), client_of(shuffler)
    other.report("homepage", "a.example")
    first.disable()
    assert client_of(shuffler).report("theme", "dark") is Outcome.DISABLED
    assert other.report("theme", "dark") is Outcome.QUEUED, "it has not looked yet"
    assert other.flush(HANG_SECONDS)
    assert other.report("crashed", "yes") is Outcome.DISABLED
    assert shuffler.submissions == []
    assert other.dropped == {"disabled": 2}


def test_reports_that_another_process_drew_during_opt_out_are_never_sent(client_of: Make) -> None:
    shuffler = FakeShuffler()
    first, other = client_of(shuffler), client_of(shuffler)
    other.report("homepage", "a.example")
    first.disable()
    first.enable()
    assert other.flush(HANG_SECONDS)
    assert shuffler.submissions == []
    assert other.report("homepage", "a.example") is Outcome.QUEUED
    assert other.flush(HANG_SECONDS)
    assert len(shuffler.reports()) == 1


@pytest.mark.parametrize("forget", [False, True])
@pytest.mark.parametrize("on_disk", [False, True])
def test_an_app_learns_each_payload_that_an_opt_out_discards_once(
    client_of: Make, *, forget: bool, on_disk: bool
) -> None:
    drops: list[tuple[str, str]] = []
    state = None if on_disk else MemoryState()
    client = client_of(state=state, on_drop=lambda *drop: drops.append(drop))
    assert client.report("theme", "dark") is Outcome.QUEUED
    client.flush(0)  # it is entered, and not sent
    assert client.report("crashed", "yes") is Outcome.QUEUED
    client.disable(forget=forget)
    assert sorted(drops) == [("crashed", "disabled"), ("theme", "disabled")]
    assert client.dropped == {"disabled": 2}
    client.disable(forget=forget)
    client.close()
    assert client.dropped == {"disabled": 2}


def test_an_opt_out_is_stored_though_on_drop_closes_the_client(client_of: Make) -> None:
    client: Client = client_of(on_drop=lambda *_: client.close(0) and None)
    assert client.report("theme", "dark") is Outcome.QUEUED
    client.disable()
    assert client.dropped == {"disabled": 1}
    assert client_of().report("theme", "dark") is Outcome.DISABLED


def test_opt_out_waits_for_its_turn_among_busy_writers(
    client_of: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_of()
    client.report("theme", "dark")
    state, tries = client_state(client), 0
    consent = state.consent

    def counted(*, on: bool, forget: bool, now: float) -> list[Dropped]:
        nonlocal tries
        tries += 1
        if tries == 3:
            fcntl.flock(busy, fcntl.LOCK_UN)
        return consent(on=on, forget=forget, now=now)

    monkeypatch.setattr(files, "_USUAL_SECONDS", 0.01)
    monkeypatch.setattr(state, "consent", counted)
    with (tmp_path / "state.lock").open() as busy:
        fcntl.flock(busy, fcntl.LOCK_EX)
        monkeypatch.setattr(sdk, "_NO_TRIES", 2)
        with pytest.raises(StateBusy, match="try again"):
            client.disable()
        assert client.report("crashed", "yes") is Outcome.DISABLED, "this process has stopped"
        client.disable()
    assert client_of().report("theme", "dark") is Outcome.DISABLED, "it is written down"


def test_a_waiting_writer_goes_before_the_last_writer(tmp_path: Path) -> None:
    order = list[str]()

    def waits() -> None:
        with witness.Witness(tmp_path / "state.witness").alone():
            order.append("who waited")

    def is_waiting() -> bool:
        turn = tmp_path / "state.turn"
        with contextlib.suppress(FileNotFoundError), turn.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    writer, waiting = witness.Witness(tmp_path / "state.witness"), threading.Thread(target=waits)
    with writer.alone():
        waiting.start()
        eventually(is_waiting)
    with writer.alone():
        order.append("who had just written")
    waiting.join()
    assert order == ["who waited", "who had just written"]


def test_opt_out_ends_a_submission_that_hangs(client_of: Make) -> None:
    submitting = threading.Event()

    class Hangs(FakeShuffler):
        def submit(self, reports: Sequence[SealedReport], timeout_seconds: float) -> Submitted:
            assert reports
            submitting.set()
            return super().submit(reports, timeout_seconds)

    client = client_of(Hangs(None))
    client.report("theme", "dark")
    thread = threading.Thread(target=client.flush, args=(HANG_SECONDS,))
    thread.start()
    assert submitting.wait(HANG_SECONDS)
    client.disable()
    thread.join()
    assert client.waiting == 0


def test_forgetting_deletes_secret_ledger_and_payloads_from_the_disk(
    client_of: Make, tmp_path: Path
) -> None:
    client = client_of()
    client.report("theme", "dark")
    client.report("homepage", "a.example")
    client.flush(HANG_SECONDS)
    secret = client_state(client).device_state().secret
    (tag,) = client_state(client).device_state().accounts["homepage"].responses
    spent = {metric.name: metric.spent for metric in client.ledger().metrics}
    assert spent["theme"] > 0
    assert spent["homepage"] > 0
    client.disable(forget=True)
    everything = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert secret not in everything
    assert tag.encode() not in everything
    view = client.ledger()
    assert not view.on
    assert view.payloads == ()
    assert {metric.name: metric.spent for metric in view.metrics} == spent, "sums stay"
    client.enable()
    assert client.report("theme", "dark") is Outcome.ALREADY_REPORTED, "today is over"
    assert client_state(client).device_state().secret != secret


@pytest.mark.slow
def test_an_opt_out_that_cannot_be_stored_holds_for_this_process_and_raises(
    client_of: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No disk is full, and a retry stores it."""
    monkeypatch.setattr(files, "_USUAL_SECONDS", 0.01)
    client = client_of(state=FolderState(tmp_path / "state"))
    client.report("theme", "dark")
    blocker = sqlite3.connect(tmp_path / "state" / "hubbub.sqlite3", isolation_level=None)
    with contextlib.closing(blocker):
        blocker.execute("BEGIN IMMEDIATE")
        with pytest.raises(StateBusy, match="another process holds it all the time; try again"):
            client.disable()
        assert client.report("crashed", "yes") is Outcome.DISABLED
    client.disable()


def test_a_preference_chooses_the_tier_and_stays(client_of: Make) -> None:
    shuffler = FakeShuffler()
    client = client_of(shuffler)
    client.prefer(0.7)
    assert client.report("crashed", "yes") is Outcome.QUEUED
    assert client.report("theme", "dark") is Outcome.DECLINED, "it has no tier that small"
    client.flush(HANG_SECONDS)
    next_client = client_of(shuffler)
    assert next_client.report("crashed", "yes") is Outcome.QUEUED
    next_client.prefer(None)
    assert next_client.report("crashed", "yes") is Outcome.QUEUED
    next_client.flush(HANG_SECONDS)
    assert sorted(r.stream for r in shuffler.reports()) == ["crashed", "crashed/0.5", "crashed/0.5"]
    assert next_client.report("crashed", "yes") is Outcome.ALREADY_REPORTED, (
        "tiers share the limits"
    )
    spent = {metric.name: metric.spent for metric in next_client.ledger().metrics}["crashed"]
    assert 2.999 < spent <= 3.0
    with pytest.raises(BadParameter, match="max_epsilon -1 must be 0 or more, in nats"):
        client.prefer(-1)


@pytest.mark.parametrize(("by_app", "by_person"), [(0.7, 5.0), (5.0, 0.7)])
def test_the_smaller_of_the_apps_and_the_persons_epsilon_chooses_the_tier(
    client_of: Make, by_app: float, by_person: float
) -> None:
    shuffler = FakeShuffler()
    client = client_of(shuffler, max_epsilon=by_app)
    client.prefer(by_person)
    assert client.report("crashed", "yes") is Outcome.QUEUED
    assert client.report("theme", "dark") is Outcome.DECLINED
    client.flush(HANG_SECONDS)
    assert [report.stream for report in shuffler.reports()] == ["crashed/0.5"]


def test_a_tier_is_the_persons_to_choose_and_not_the_apps(client_of: Make) -> None:
    client = client_of(state=MemoryState())
    with pytest.raises(UnknownMetric, match="has no metric of this name; it has crashed, "):
        client.report("crashed/0.5", "yes")


def test_the_ledger_shows_sent_payloads_with_their_possible_values(client_of: Make) -> None:
    shuffler = FakeShuffler({}, {0: "refused_expired"})
    client = client_of(shuffler)
    client.report("theme", "dark")
    client.flush(HANG_SECONDS)
    client.report("homepage", "a.example")
    client.flush(HANG_SECONDS)
    client.report("editor", "vi")
    store_reports(client)
    view = client.ledger()
    assert view.on
    assert [(payload.metric, payload.fate) for payload in view.payloads] == [
        ("theme", "sent"),
        ("homepage", "refused_expired"),
        ("editor", "waiting"),
    ]
    theme = view.payloads[0].meanings()
    assert {value for value, _ in theme} == {"light", "dark", "system"}
    assert abs(sum(chance for _, chance in theme) - 1) < 1e-12
    assert theme[0][1] / theme[-1][1] <= 2.7183, "epsilon 1"
    homepage = view.payloads[1]
    assert homepage.meanings() == []
    assert len(homepage.meanings(["a.example", "b.example"])) == 2
    budget = {metric.name: metric for metric in view.metrics}["theme"]
    assert (budget.reports, budget.reports_per_epoch, budget.lifetime_epsilon) == (1, 1, 50.0)
    assert 0.999 < budget.spent <= 1
    assert budget.epsilon <= 1
    assert epoch_at(view.payloads[0].made, "day") == view.payloads[0].epoch


@pytest.mark.parametrize("state_class", [FolderState, MemoryState])
def test_the_ledger_shows_a_report_at_once(
    client_of: Make, tmp_path: Path, state_class: type[FolderState | MemoryState]
) -> None:
    client = client_of(
        state=MemoryState() if state_class is MemoryState else FolderState(tmp_path / "s")
    )
    assert client.report("theme", "dark") is Outcome.QUEUED
    view = client.ledger()
    assert [(payload.metric, payload.fate) for payload in view.payloads] == [("theme", "waiting")]
    [spent] = [metric.spent for metric in view.metrics if metric.name == "theme"]
    assert spent > 0
