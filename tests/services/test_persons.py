"""A server reports for its visitors: each has limits, consent and coins of their own."""

import contextlib
import math
import multiprocessing
import os
import random
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import redis
from scipy.stats import norm

from hubbub.bundles.tokens import TokenIssuer, Tokens
from hubbub.client import (
    Client,
    FolderState,
    MemoryState,
    Outcome,
    Persons,
    PersonStore,
    RedisStore,
    SQLStore,
)
from hubbub.client.testing import FakeClock, FakeShuffler
from hubbub.client.testing.memory_clients import MemoryStore
from hubbub.errors import BadParameter, StateUnusable, UnknownMetric
from tests.support.bundles import DAY, Signed, make_signed, metric_text
from tests.support.catalogs import metric_toml
from tests.support.commands import output_of
from tests.support.devices import idle_client
from tests.support.servers import redis_server

KEY = b"k" * 32
START = 20_000 * DAY
TABLE = "CREATE TABLE hubbub_persons (person BLOB PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID"
CATALOG = (
    'shuffler = "127.0.0.1:1"\n'
    + metric_text("theme")
    + metric_text("asked", more='default = "light"')
    + metric_toml(
        "days", kind="activity", mechanism="auto", reports=1000, epsilon=2.0, lifetime_epsilon=90.0
    )
)
MOST = float(norm.isf(1e-7))
ClientOf = Callable[..., Client]


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Signed:
    return make_signed(tmp_path_factory.mktemp("signed"), CATALOG, start=START - 14 * DAY)


def sqlite_store(folder: Path) -> SQLStore:
    """A new one; what a test writes need not outlast a power cut."""
    path = folder / "persons.sqlite3"

    def connect() -> sqlite3.Connection:
        rows = sqlite3.connect(path)
        rows.execute("PRAGMA synchronous = OFF")
        return rows

    with contextlib.closing(connect()) as rows:
        rows.execute(TABLE)
    return SQLStore(connect)


@pytest.fixture(params=["sqlite", "redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PersonStore]:
    if request.param == "sqlite":
        yield sqlite_store(tmp_path)
        return
    with redis_server(tmp_path) as port, redis.Redis(port=port, decode_responses=True) as client:
        yield RedisStore(client)


@pytest.fixture
def client_of(signed: Signed) -> ClientOf:
    def make(store: PersonStore, state: Any = None, **changes: Any) -> Client:
        options = {"hold_seconds": None, "clock": FakeClock(START + 60), "strict": False}
        state = state or MemoryState()
        transport = changes.pop("transport", FakeShuffler())
        persons = Persons(store, KEY)
        return Client(signed.bundle, state, transport, persons=persons, **options | changes)

    return make


def test_each_person_has_limits_over_all_processes_and_hosts(
    store: PersonStore, client_of: ClientOf, tmp_path: Path
) -> None:
    shuffler = FakeShuffler()
    hosts = [
        client_of(store, FolderState(tmp_path / name), transport=shuffler) for name in ("a", "b")
    ]
    outcomes = [
        host.person(name).report("theme", "dark")
        for name in ("ann", "bob", "ann")
        for host in hosts
    ]
    assert Counter(outcomes) == {Outcome.QUEUED: 2, Outcome.ALREADY_REPORTED: 4}
    assert hosts[0].report("theme", "dark") is Outcome.QUEUED, "the server is a device of its own"
    assert all(host.flush() for host in hosts)
    assert len(shuffler.reports()) == 3
    spent = hosts[1].person("ann").ledger().metrics[0].spent
    assert spent == pytest.approx(4.0)
    assert hosts[1].person("eve").ledger().metrics[0].spent == 0


def test_the_ledger_of_a_server_names_the_ledger_of_persons(
    client_of: Callable[..., Client], signed: Signed, tmp_path: Path, capsys: Any
) -> None:
    folder = tmp_path / "state"
    state = FolderState(folder)
    state.remember(signed.bundle.operator, signed.bundle.signed)
    server = client_of(MemoryStore(), state)
    assert server.report("asked", "dark") is Outcome.QUEUED
    sentence = "charged to each person"
    assert sentence not in output_of(capsys, "ledger", "--state-dir", str(folder))
    assert server.person("ann").report("theme", "dark") is Outcome.QUEUED
    server.flush(timeout=0)
    shown = output_of(capsys, "ledger", "--state-dir", str(folder))
    assert sentence in shown
    assert "client.person(NAME).ledger()" in shown


def test_an_opt_out_on_one_host_stops_waiting_reports_on_another(
    store: PersonStore, client_of: ClientOf, tmp_path: Path
) -> None:
    shuffler = FakeShuffler()
    here, there = (
        client_of(store, FolderState(tmp_path / name), transport=shuffler) for name in ("a", "b")
    )
    for name in ("ann", "bob", "eve"):
        assert here.person(name).report("theme", "dark") is Outcome.QUEUED
    there.person("ann").disable()
    there.person("eve").disable(forget=True)
    there.person("eve").enable()
    assert here.person("ann").report("asked", "dark") is Outcome.DISABLED
    assert here.person("eve").report("theme", "dark") is Outcome.ALREADY_REPORTED
    assert here.flush()
    assert (len(shuffler.reports()), here.dropped) == (1, {"disabled": 2})
    assert here.person("eve").ledger().metrics[0].spent == pytest.approx(4.0), "sums stay"
    here.person("bob").prefer(0.5)
    assert there.person("bob").report("asked", "dark") is Outcome.DECLINED


def test_the_apps_own_no_and_local_mode_hold_for_its_persons(
    client_of: ClientOf, tmp_path: Path
) -> None:
    store, folder = sqlite_store(tmp_path), tmp_path / "state"
    shuffler, clock = FakeShuffler(), FakeClock(START + 60)

    def client(**changes: Any) -> Client:
        return client_of(store, FolderState(folder), transport=shuffler, clock=clock, **changes)

    local = client(local=True)
    assert local.person("ann").report("theme", "dark") is Outcome.COUNTED
    local.person("ann").disable()
    assert local.person("ann").report("theme", "dark") is Outcome.DISABLED
    assert local.person("eve").report("theme", "dark") is Outcome.COUNTED
    assert local.ledger().own_counts == {"theme": {"dark": 2}}
    local.person("ann").enable()
    here, there = client(), client()
    assert there.person("bob").report("days") is Outcome.NOTED
    here.disable()
    assert there.person("eve").report("theme", "dark") is Outcome.QUEUED, "it has not looked yet"
    assert there.flush()
    assert there.dropped == {"disabled": 1}
    clock.set(START + DAY + 60)
    here.person("bob").ledger()  # no default is drawn of the day before
    assert here.waiting == 0
    here.enable()
    assert here.flush()
    assert [report.stream for report in shuffler.reports()] == ["asked"], "of the server itself"


def test_a_person_whose_record_was_deleted_counts_as_opted_out(
    client_of: ClientOf, tmp_path: Path
) -> None:
    shuffler, folder = FakeShuffler(), tmp_path / "state"
    client = client_of(MemoryStore(), FolderState(folder))
    assert client.person("ann").report("theme", "dark") is Outcome.QUEUED
    assert client_of(MemoryStore(), FolderState(folder), transport=shuffler).flush()
    assert shuffler.reports() == []


def test_a_record_that_cannot_be_read_stops_nobody_elses_reports(
    client_of: ClientOf, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shuffler, store, clock = FakeShuffler(), MemoryStore(), FakeClock(START + 60)
    client = client_of(store, FolderState(tmp_path / "state"), transport=shuffler, clock=clock)
    for name in ("ann", "bob"):
        assert client.person(name).report("theme", "dark") is Outcome.QUEUED
    assert client.report("theme", "dark") is Outcome.QUEUED
    bob = Persons(store, KEY).hash_of("bob")
    record = store.read(bob) or b""
    assert store.replace(bob, record, b"2" + record[1:])
    assert not client.flush(1)
    assert len(shuffler.reports()) == 2
    assert "of a later version of hubbub; update this hubbub" in caplog.text
    assert client.person("bob").report("asked", "dark") is Outcome.NO_STATE
    assert store.replace(bob, b"2" + record[1:], record)
    assert client.flush()
    assert len(shuffler.reports()) == 3


def test_a_slow_store_does_not_hold_a_flush_longer_than_its_timeout(client_of: ClientOf) -> None:
    shuffler, clock, seconds = FakeShuffler(), FakeClock(START + 60), [0.0]

    class Slow(MemoryStore):
        def read(self, person: bytes) -> bytes | None:
            clock.sleep(seconds[0])
            return super().read(person)

    client = client_of(Slow(), transport=shuffler, clock=clock)
    for number in range(20):
        assert client.person(f"visitor {number}").report("theme", "dark") is Outcome.QUEUED
    seconds[0], before = 1.0, clock.monotonic()
    assert not client.flush(4)
    assert clock.monotonic() - before <= 5
    assert 0 < len(shuffler.reports()) < 5
    seconds[0] = 0.0
    assert client.flush()
    assert len(shuffler.reports()) == 20


def test_a_store_that_fails_charges_nobody_and_sends_nothing_of_persons(
    client_of: ClientOf, tmp_path: Path
) -> None:
    store = sqlite_store(tmp_path)
    is_down = False

    class Failing:
        def read(self, person: bytes) -> bytes | None:
            if is_down:
                raise ConnectionError("redis://:password@host")
            return store.read(person)

        replace = staticmethod(store.replace)

    shuffler = FakeShuffler()
    client = client_of(Failing(), transport=shuffler)
    assert client.person("ann").report("theme", "dark") is Outcome.QUEUED
    is_down = True
    assert client.person("bob").report("theme", "dark") is Outcome.NO_STATE
    with pytest.raises(StateUnusable, match=r"the store of persons fails: ConnectionError$"):
        client.person("ann").disable()
    assert not client.flush(1)
    is_down = False
    assert client.flush()
    assert len(shuffler.reports()) == 1
    assert client.person("bob").report("theme", "dark") is Outcome.QUEUED
    with contextlib.closing(sqlite3.connect(tmp_path / "persons.sqlite3")) as rows, rows:
        rows.execute("UPDATE hubbub_persons SET record = x'31ff'")
    assert client.person("bob").report("theme", "dark") is Outcome.NO_STATE


@pytest.mark.parametrize("name", ["", None, 7, b"ann", ["ann"]])
def test_a_person_whose_name_is_no_text_is_refused(
    name: Any, client_of: ClientOf, tmp_path: Path
) -> None:
    store = sqlite_store(tmp_path)
    with pytest.raises(BadParameter, match=r"not a text; give str\(user.id\)"):
        client_of(store, strict=True).person(name)
    client = client_of(store)
    assert client.person(name).report("theme", "dark") is Outcome.NO_STATE
    assert client.waiting == 0


def test_mistakes_of_the_app_raise_only_if_strict(signed: Signed, client_of: ClientOf) -> None:
    client, public = client_of(MemoryStore()), {"os": None}
    assert client.person("ann").arm("unknown") == ""
    assert client.person("ann", public=public).report("theme", "dark") is Outcome.QUEUED  # type: ignore[arg-type]
    strict = client_of(MemoryStore(), strict=True)
    with pytest.raises(UnknownMetric):
        strict.person("ann").arm("unknown")
    with pytest.raises(BadParameter, match='"public" must be'):
        strict.person("ann", public=public)  # type: ignore[arg-type]
    issuer = TokenIssuer(Tokens("https://issuer.example.org"), bytes(32))
    bundle = replace(signed.bundle, tokens=issuer)
    with_tokens = Client(bundle, MemoryState(), FakeShuffler(), persons=Persons(MemoryStore(), KEY))
    with with_tokens, pytest.raises(BadParameter, match="tokens are for one device"):
        with_tokens.person("ann")


def test_names_are_kept_as_keyed_hashes_alone(client_of: ClientOf, tmp_path: Path) -> None:
    names = ["ann@example.org", "x" * 1_000_000, "\ud800", "\0", "Ann@example.org"]
    store = sqlite_store(tmp_path)
    client = client_of(store, FolderState(tmp_path / "state"))
    outcomes = {client.person(name).report("theme", "dark") for name in names}
    assert outcomes == {Outcome.QUEUED}
    for path in (path for path in tmp_path.rglob("*") if path.is_file()):
        assert not any(text in path.read_bytes() for text in (b"example.org", b"x" * 100))
    with pytest.raises(BadParameter, match=r"use secrets\.token_bytes"):
        Persons(store, b"short")


def test_metrics_computed_from_the_past_work_for_persons(
    client_of: ClientOf, tmp_path: Path
) -> None:
    shuffler, clock = FakeShuffler(), FakeClock(START + 60)
    client = client_of(sqlite_store(tmp_path), transport=shuffler, clock=clock)
    assert client.person("ann").report("days") is Outcome.NOTED
    assert client.person("ann").report("days") is Outcome.ALREADY_REPORTED
    assert client.person("ann").report("theme", "dark") is Outcome.QUEUED
    clock.set(START + DAY + 60)  # the default of the day before is said now
    assert client.person("ann").report("theme", "dark") is Outcome.QUEUED
    assert client.person("ann").report("days") is Outcome.NOTED
    clock.set(START + 1.5 * DAY)
    assert client.flush()
    streams = Counter((report.stream, report.epoch) for report in shuffler.reports())
    assert streams[("asked", 20_000)] == 1
    assert {("theme", 20_000), ("theme", 20_001), ("days", 20_000)} <= streams.keys()
    assert set(streams.values()) == {1}


def test_the_first_event_of_a_person_is_stored(tmp_path: Path) -> None:
    """Of a catalog without defaults, so that nothing else changes the new record."""
    text = CATALOG[: CATALOG.index("[metrics.theme]")] + CATALOG[CATALOG.index("[metrics.days]") :]
    steps = 'kind = "funnel"\nsteps = ["visit", "paid"]'
    text = text.replace('kind = "activity"', steps)
    bundle = make_signed(tmp_path, text, start=START - 14 * DAY).bundle
    shuffler, clock = FakeShuffler(), FakeClock(START + 60)
    persons = Persons(MemoryStore(), KEY)
    client = Client(
        bundle, MemoryState(), shuffler, hold_seconds=None, clock=clock, persons=persons
    )
    for step in ("visit", "paid"):
        assert client.person("ann").report("days", step) is Outcome.NOTED
    clock.set(START + DAY + 60)
    client.person("ann").ledger()
    assert client.flush()
    assert [(report.stream, report.epoch) for report in shuffler.reports()] == [("days", 20_000)]


def test_a_process_killed_before_storing_a_report_has_charged_the_budget(
    client_of: ClientOf, tmp_path: Path
) -> None:
    store = sqlite_store(tmp_path)

    def report(*, dies: bool) -> None:
        client = client_of(store, FolderState(tmp_path / "state"))
        if dies:
            client._sender.entering.adopt = lambda entries: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign]  # noqa: ARG005
        name = "ann" if dies else "bob"
        assert client.person(name).report("theme", "dark") is Outcome.QUEUED
        os.kill(os.getpid(), signal.SIGKILL)

    fork = multiprocessing.get_context("fork")
    for dies in (True, False):
        process = fork.Process(target=report, kwargs={"dies": dies})
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    client = client_of(store, FolderState(tmp_path / "state"))
    assert client.waiting == 1, "of who was killed later"
    outcomes = {client.person(name).report("theme", "dark") for name in ("ann", "bob")}
    assert outcomes == {Outcome.ALREADY_REPORTED}
    assert client.flush()


def test_persons_reports_leave_by_a_client_that_can_ask_for_their_consent(
    signed: Signed, client_of: ClientOf, tmp_path: Path
) -> None:
    client = client_of(sqlite_store(tmp_path), FolderState(tmp_path / "state"))
    client.person("ann").report("theme", "dark")
    shuffler = FakeShuffler()
    other = idle_client(
        signed.bundle, FolderState(tmp_path / "state"), shuffler, clock=FakeClock(START + 60)
    )
    with pytest.raises(BadParameter, match="the client has no persons"):
        other.person("ann")
    assert other.flush()
    assert (shuffler.reports(), other.dropped) == ([], {"disabled": 1})


VISITORS, WORKERS = 1_000, 4


@pytest.mark.thorough
def test_estimates_of_visitors_hold_with_four_workers(
    signed: Signed, client_of: ClientOf, tmp_path: Path
) -> None:
    """Half of the visitors come twice, to workers that share a store and a folder."""
    store = sqlite_store(tmp_path)
    chance = random.Random(47)
    visits = [*range(VISITORS), *range(0, VISITORS, 2)]
    chance.shuffle(visits)

    def work(number: int) -> None:
        client = client_of(store, FolderState(tmp_path / "state"))
        for visitor in visits[number::WORKERS]:
            value = "dark" if visitor % 4 == 0 else "light"
            client.person(f"visitor {visitor}").report("theme", value)
        assert not client.dropped
        os._exit(0)

    fork = multiprocessing.get_context("fork")
    processes = [fork.Process(target=work, args=(number,)) for number in range(WORKERS)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    records = FolderState(tmp_path / "state").payload_records()
    assert len(records) == VISITORS
    layout = signed.bundle.metrics["theme"].randomizer.layout
    counts = Counter(code for record in records for code in layout.cells(record.payload))
    says_truth = math.exp(4) / (math.exp(4) + 2)
    lies = 1 / (math.exp(4) + 2)
    for code, people in enumerate((750, 250, 0)):
        mean = people * says_truth + (VISITORS - people) * lies
        variance = people * says_truth * (1 - says_truth) + (VISITORS - people) * lies * (1 - lies)
        assert abs(counts[code] - mean) < MOST * math.sqrt(variance)
    with contextlib.closing(sqlite3.connect(tmp_path / "persons.sqlite3")) as rows:
        rows.execute("VACUUM")
    size = (tmp_path / "persons.sqlite3").stat().st_size
    assert size / VISITORS < 300


def test_an_invalid_store_or_persons_argument_is_refused_at_once(signed: Signed) -> None:
    with pytest.raises(BadParameter, match="the methods read and replace; give SQLStore"):
        Persons(cast("Any", object()), bytes(32))
    with pytest.raises(BadParameter, match='"connect" is not a function'):
        SQLStore(cast("Any", sqlite3.Connection))  # callable, as its instances are
    for client in ("redis://127.0.0.1", redis.asyncio.Redis()):
        with pytest.raises(BadParameter, match="not a synchronous client of redis-py; give redis"):
            RedisStore(client)
    store = cast("Any", RedisStore(redis.Redis()))
    with pytest.raises(BadParameter, match=r"give Persons\(store, key\)"):
        Client(signed.bundle, MemoryState(), FakeShuffler(), hold_seconds=None, persons=store)
