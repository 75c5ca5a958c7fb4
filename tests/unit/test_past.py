"""Funnels, rates, activity and retention: one report an epoch of what a device remembers."""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hubbub.authoring import read_catalog
from hubbub.authoring.typed_modules import python_module, typescript_module
from hubbub.bundles import Bundle
from hubbub.catalog.values.event_history_kinds import AGAIN, FIRST_OF_28, FIRST_OF_WEEK
from hubbub.cli.main import main
from hubbub.client import Client, FolderState, MemoryState, Outcome
from hubbub.client.state.contract import State
from hubbub.client.state.database import FILE_NAME
from hubbub.client.testing import FakeClock, FakeShuffler, capture
from hubbub.errors import CatalogInvalid, ValueOutOfDomain
from hubbub.privacy.leaflet_and_reviewer_claims import leaflet
from tests.support.bundles import DAY, Signed, make_signed
from tests.support.catalogs import catalog_of, catalog_toml, metric_toml
from tests.support.moment import now

HOUR = 3600
CATALOG = catalog_toml()
FUNNEL = 'kind = "funnel"\nsteps = ["visit", "cart", "paid"]'
RATE = 'rate = { of = "crashed", per = "started", most = 5 }'
RETENTION = 'kind = "retention"\nweeks = 2'
SMALL_RATE = f"{RATE}\nwords = 8\nbooks = 2"


def _table(name: str, more: str, epoch: str = "day", mechanism: str = "grr") -> str:
    return metric_toml(
        name,
        more,
        description=f"What devices do: {name}",
        epoch=epoch,
        mechanism=mechanism,
        epsilon=4.0,
        min_batch=20,
        lifetime_epsilon=5000.0,
    )


EVERY = catalog_toml(
    _table("checkout", FUNNEL),
    _table("crashes", SMALL_RATE, mechanism="vector.codes"),
    _table("use", 'kind = "activity"'),
    _table("back", RETENTION, "week"),
)


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Signed:
    start = (int(now()) // (28 * DAY) - 1) * 28 * DAY
    return make_signed(tmp_path_factory.mktemp("past"), EVERY, start=start)


@pytest.fixture
def clock(signed: Signed) -> FakeClock:
    """At ten o'clock of the first day of 28."""
    return FakeClock(signed.bundle.keys[0].start + 28 * DAY + 10 * HOUR)


@pytest.fixture
def randomized(signed: Signed, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """What randomizers receive: metrics and values."""
    values: list[tuple[str, Any]] = []
    names = {id(metric.randomizer): metric for metric in signed.bundle.metrics.values()}
    for mechanism in {type(metric.randomizer) for metric in names.values()}:
        monkeypatch.setattr(mechanism, "randomize", _recording(mechanism, names, values))
    return values


def _recording(
    mechanism: type, metrics: dict[int, Any], values: list[tuple[str, Any]]
) -> Callable[..., bytes]:
    randomize = mechanism.randomize  # type: ignore[attr-defined]

    def recording(self: Any, value: Any, coins: Any) -> bytes:
        metric = metrics[id(self)]
        text = [*map(round, value)] if metric.rate else metric.values[value]
        values.append((metric.name, text))
        payload: bytes = randomize(self, value, coins)
        return payload

    return recording


def _client(bundle: Bundle, state: State, clock: FakeClock, **more: Any) -> Client:
    shuffler = more.pop("shuffler", FakeShuffler())
    return Client(bundle, state, shuffler, hold_seconds=None, clock=clock, **more)


def _reports(client: Client, metric: str) -> int:
    return sum(1 for payload in client.ledger().payloads if payload.metric == metric)


def test_a_funnel_reports_the_furthest_step_once_its_epoch_is_over(
    signed: Signed, state: State, clock: FakeClock, randomized: list[tuple[str, Any]]
) -> None:
    shuffler = FakeShuffler()
    client = _client(signed.bundle, state, clock, shuffler=shuffler)
    for steps in (["visit"], ["cart", "visit"], [], ["paid", "visit", "visit"]):
        assert {client.report("checkout", step) for step in steps} <= {Outcome.NOTED}
        client.flush()
        client.flush()
        clock.advance(DAY)
    client.flush()
    assert randomized == [("checkout", "visit"), ("checkout", "cart"), ("checkout", "paid")]
    first = signed.bundle.keys[0].start // DAY + 28
    assert [report.epoch - first for report in shuffler.reports()] == [0, 1, 3]
    [spent] = [m.spent for m in client.ledger().metrics if m.name == "checkout"]
    assert spent == pytest.approx(3 * signed.bundle.metrics["checkout"].report_loss)
    assert state.device_state().events == {}


def test_a_rate_reports_both_counts_up_to_its_maximum(
    signed: Signed, state: State, clock: FakeClock, randomized: list[tuple[str, Any]]
) -> None:
    client = _client(signed.bundle, state, clock)
    for events in (["started", "crashed", "started"], ["crashed"], ["started"] * 9):
        assert {client.report("crashes", event) for event in events} == {Outcome.NOTED}
        clock.advance(DAY)
        client.flush()
    assert randomized == [("crashes", [1, 2]), ("crashes", [1, 0]), ("crashes", [0, 5])]


def test_activity_reports_whether_a_day_is_the_first_of_its_week_and_of_its_28_days(
    signed: Signed, state: State, clock: FakeClock, randomized: list[tuple[str, Any]]
) -> None:
    client = _client(signed.bundle, state, clock)
    day, firsts = 0, []
    for active in (0, 1, 6, 7, 20, 27, 28, 35, 36):
        clock.advance((active - day) * DAY)
        day = active
        firsts.append(client.report("use"))
        client.flush()
        assert client.report("use") is Outcome.ALREADY_REPORTED
    assert {*firsts} == {Outcome.NOTED}
    week = [FIRST_OF_28, AGAIN, AGAIN, FIRST_OF_WEEK, FIRST_OF_WEEK, FIRST_OF_WEEK]
    assert randomized == [("use", text) for text in [*week, FIRST_OF_28, FIRST_OF_WEEK, AGAIN]]


def test_retention_reports_the_week_since_the_first(
    signed: Signed, state: State, clock: FakeClock, randomized: list[tuple[str, Any]]
) -> None:
    client = _client(signed.bundle, state, clock)
    for weeks in (1, 1, 4):
        assert [client.report("back") for _ in range(2)] == [Outcome.NOTED] * 2
        client.flush()
        assert client.report("back") is Outcome.ALREADY_REPORTED
        clock.advance(weeks * 7 * DAY)
    client.report("back")
    client.flush()
    assert randomized == [("back", text) for text in ("week 0", "week 1", "week 2", "later")]
    assert _reports(client, "back") == 4


def test_a_restart_and_a_kill_between_note_and_entry_report_once(
    signed: Signed, tmp_path: Path, clock: FakeClock, randomized: list[tuple[str, Any]]
) -> None:
    first = FolderState(tmp_path / "state")
    killed = _client(signed.bundle, first, clock)
    killed.report("checkout", "cart")
    killed.flush()
    clock.advance(DAY)
    killed._reporter.keep_events()
    killed._reporter.cover()  # drawn and noted in the journal, and never entered
    assert randomized == [("checkout", "cart")]
    first.close()
    for _ in range(2):
        client = _client(signed.bundle, FolderState(tmp_path / "state"), clock)
        client.flush()
        assert _reports(client, "checkout") == 1
        client.close()
    assert FolderState(tmp_path / "state").device_state().events == {}


def test_processes_add_up_and_report_once(
    signed: Signed, tmp_path: Path, clock: FakeClock, randomized: list[tuple[str, Any]]
) -> None:
    states = [FolderState(tmp_path / "state") for _ in range(2)]
    clients = [_client(signed.bundle, state, clock) for state in states]
    for client in clients:
        client.report("crashes", "started")
        client.report("use")
        client.flush()
    assert randomized == [("use", FIRST_OF_28)]
    clock.advance(DAY)
    for client in reversed(clients):
        client.report("use")
        client.flush()
    assert randomized[1:] == [("crashes", [0, 2]), ("use", AGAIN)]
    for client in clients:
        client.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_leaves_what_its_parent_noted_to_it(
    signed: Signed, tmp_path: Path, clock: FakeClock
) -> None:
    client = _client(signed.bundle, FolderState(tmp_path / "state"), clock)
    client.report("crashes", "started")
    if (child := os.fork()) == 0:
        client.report("crashes", "crashed")
        client.flush()
        os._exit(0)
    os.waitpid(child, 0)
    client.flush()
    events = FolderState(tmp_path / "state").device_state().events
    assert {event: n for (_, _, event), n in events.items()} == {"started": 1, "crashed": 1}
    client.close()


def test_an_opt_out_deletes_counted_events_and_counts_no_more(
    signed: Signed, state: State, clock: FakeClock, randomized: list[tuple[str, Any]]
) -> None:
    client = _client(signed.bundle, state, clock)
    client.report("checkout", "paid")
    client.flush()
    client.report("crashes", "crashed")
    client.disable()
    assert client.report("checkout", "visit") is Outcome.DISABLED
    assert state.device_state().events == {}
    client.enable()
    client.flush()
    assert state.device_state().events == {}
    client.report("checkout", "visit")
    client.flush()
    client.disable(forget=True)
    client.enable()
    clock.advance(DAY)
    client.flush()
    assert randomized == []


def test_events_of_another_process_noted_before_an_opt_out_are_lost(
    signed: Signed, tmp_path: Path, clock: FakeClock
) -> None:
    states = [FolderState(tmp_path / "state") for _ in range(2)]
    clients = [_client(signed.bundle, state, clock) for state in states]
    clients[0].report("checkout", "paid")
    clients[1].disable()
    clients[1].enable()
    clients[0].flush()
    assert states[1].device_state().events == {}
    for client in clients:
        client.close()


def test_a_late_epoch_is_forgotten_and_a_clock_set_back_changes_no_report(
    signed: Signed, state: State, clock: FakeClock, randomized: list[tuple[str, Any]]
) -> None:
    client = _client(signed.bundle, state, clock)
    client.report("checkout", "visit")
    client.flush()
    clock.advance(DAY)
    client.flush()
    clock.set(clock.now() - DAY)
    assert client.report("checkout", "paid") is Outcome.ALREADY_REPORTED
    clock.advance(DAY)
    client.report("checkout", "cart")
    client.flush()
    clock.advance(3 * DAY)
    client.flush()
    assert randomized == [("checkout", "visit")]
    assert state.device_state().events == {}


def test_a_folder_of_an_earlier_version_gets_its_table(
    signed: Signed, tmp_path: Path, clock: FakeClock
) -> None:
    FolderState(tmp_path).close()
    with sqlite3.connect(tmp_path / FILE_NAME) as rows:
        rows.execute("DROP TABLE events")
    rows.close()
    client = _client(signed.bundle, FolderState(tmp_path), clock)
    assert client.report("checkout", "cart") is Outcome.NOTED
    client.close()
    state = FolderState(tmp_path)
    assert [event for _, _, event in state.device_state().events] == ["cart"]
    assert state.device_state().counts == {}
    state.close()


def test_local_mode_counts_events_and_reports_nothing(signed: Signed, clock: FakeClock) -> None:
    client = _client(signed.bundle, MemoryState(), clock, local=True)
    for metric, value in (("checkout", "cart"), ("crashes", "crashed"), ("use", None)):
        assert client.report(metric, value) is Outcome.COUNTED
    clock.advance(DAY)
    client.flush()
    view = client.ledger()
    counts = {"checkout": {"cart": 1}, "crashes": {"crashed": 1}, "use": {"use": 1}}
    assert view.own_counts == counts
    assert view.payloads == ()


def test_mistakes_are_refused_without_the_value(signed: Signed, clock: FakeClock) -> None:
    client = _client(signed.bundle, MemoryState(), clock)
    for metric, value, message in (
        ("checkout", "secret", 'not one of its 3 values: "visit"'),
        ("crashes", "secret", 'not one of its 2 values: "crashed", "started"'),
        ("checkout", None, "no value was given; it has 3 values"),
        ("use", "secret", "takes no value"),
        ("back", 3, "takes no value"),
    ):
        with pytest.raises(ValueOutOfDomain, match=message) as caught:
            client.report(metric, value)
        assert "secret" not in str(caught.value)


def test_events_that_an_app_reports_are_captured(
    signed: Signed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUBBUB_BUNDLE", str(signed.path))
    with capture() as captured:
        client = Client.from_bundle()
        client.report("checkout", "cart")
        client.report("use")
    assert captured.values("checkout") == ["cart"]
    assert captured.values("use") == [None]


@pytest.mark.parametrize(
    ("more", "epoch", "problem"),
    [
        ('kind = "funnel"', "day", '"steps": is missing; write steps'),
        ('kind = "funnel"\nsteps = ["visit"]', "day", "must be a list of 2 to 20 texts"),
        ('kind = "funnel"\nsteps = ["a", "b", "a"]', "day", "lists a value twice"),
        ('values = ["a", "b"]\nsteps = ["a", "b"]', "day", 'add kind = "funnel"'),
        (f'{FUNNEL}\ndefault = "visit"', "day", "leave it out"),
        (f'{FUNNEL}\nvalues = ["visit", "cart"]', "day", "leave it out"),
        (
            f'{FUNNEL}\nbreakdown = {{ os = ["linux", "mac"] }}',
            "day",
            '"breakdown": cannot be used .* no longer be that of the events; .* an experiment',
        ),
        ('rate = { of = "a", per = "a", most = 2 }', "day", "must be different events"),
        ('rate = { of = "a", per = "b", most = 0 }', "day", r"most must be a whole number in \[1"),
        ('rate = { of = "a" }', "day", "must hold of, per and most"),
        ('rate = { of = "a", per = "b", least = 1 }', "day", "holds 'least', which is not known"),
        (f'{RATE}\nkind = "count"', "day", "is a kind of its own"),
        (f"{RATE}\nmax_length = 3.0", "day", "follows from `most`"),
        ('kind = "activity"', "week", '"epoch": must be "day"'),
        ('kind = "activity"\nsampling = 0.5', "day", '"sampling": cannot be used'),
        ('kind = "activity"\nperiod = "30d"\nreport_on = "one day"', "day", "leave it out"),
        ('kind = "retention"\nweeks = 0', "week", r"must be a whole number in \[1, 52\]"),
        ('kind = "retention"', "week", "write weeks = 8"),
        (RETENTION, "day", '"epoch": must be "week"'),
        (RETENTION.replace("retention", "count"), "week", 'add kind = "retention"'),
    ],
)
def test_mistakes_in_metrics_of_events_are_named(more: str, epoch: str, problem: str) -> None:
    mechanism = "vector.codes" if "rate" in more.split(" ", maxsplit=1)[0] else "grr"
    with pytest.raises(CatalogInvalid, match=problem):
        catalog_of(CATALOG + _table("it", more, epoch, mechanism))


def test_an_error_of_a_rate_names_only_written_fields() -> None:
    with pytest.raises(CatalogInvalid, match="for a single value, not for a rate") as refused:
        catalog_of(CATALOG + _table("it", RATE))
    assert "max_length" not in str(refused.value)


def test_limits_and_mechanisms_of_other_values_are_refused(tmp_path: Path) -> None:
    path, funnel = tmp_path / "metrics.toml", _table("it", FUNNEL)
    for text, problem in (
        (CATALOG + funnel.replace("_epoch = 1", "_epoch = 2"), "reports_per_epoch must be 1"),
        (catalog_toml(funnel, cover=True), "cannot be combined with cover"),
        (CATALOG + _table("it", FUNNEL, mechanism="privset"), "privset"),
        (CATALOG + _table("it", RETENTION).replace('epoch = "day"', ""), 'write epoch = "week"'),
    ):
        path.write_text(text)
        with pytest.raises(CatalogInvalid, match=problem):
            read_catalog(path)


@pytest.mark.parametrize(
    ("more", "reports", "warning"),
    [
        (RETENTION, 2, "stops after 2 weeks of use, so later weeks are too low"),
        (RETENTION, 3, ""),
        ('kind = "activity"', 50, "stops after 50 days of use and is not active"),
        ('kind = "activity"', 365, ""),
        (FUNNEL, 1, ""),
    ],
)
def test_the_check_warns_of_activity_that_a_limit_stops(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: str, reports: int, warning: str
) -> None:
    path = tmp_path / "metrics.toml"
    table = _table("it", more, "week" if more == RETENTION else "day")
    path.write_text(CATALOG + table.replace("5000.0", str(4.0 * reports)))
    assert main(["catalog", "check", str(path)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert warning in shown
    assert ("a device stops after" in shown) == bool(warning)


def test_codegen_knows_the_events() -> None:
    catalog = catalog_of(EVERY)
    python = "\n".join(python_module(catalog))
    assert "checkout: Final = TypedMetric[Literal['visit', 'cart', 'paid']]('checkout')" in python
    assert "crashes: Final = TypedMetric[Literal['crashed', 'started']]('crashes')" in python
    assert "use: Final = TypedMetric[None]('use')" in python
    typescript = "\n".join(typescript_module(catalog))
    assert '"crashes": "crashed" | "started";' in typescript
    assert '"back": undefined;' in typescript
    assert "...[value]: Metrics[Name] extends undefined" in typescript


def test_catalog_new_writes_each_kind(tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    for name, *options in (
        ("checkout", "--steps", "visit,cart,paid"),
        ("crashes", "--rate", "crashed", "started"),
        ("use", "--activity"),
        ("back", "--retention", "8"),
    ):
        texts = ["--description", "What devices do", "--owner", "you@example.org"]
        assert main(["catalog", "new", name, "--catalog", str(path), *texts, *options]) == 0
    metrics = read_catalog(path).metrics
    kinds = [metric.kind for metric in metrics.values()]
    assert kinds == ["funnel", "rate", "activity", "retention"]
    assert metrics["back"].epoch == "week"


def test_a_person_sees_counted_events_and_the_leaflet_mentions_them(
    signed: Signed, clock: FakeClock, tmp_path: Path
) -> None:
    client = _client(signed.bundle, MemoryState(), clock)
    for _ in range(2):
        client.report("crashes", "started")
    client.flush()
    assert client.ledger().events == {"crashes": {"started": 2}}
    client.disable()
    assert client.ledger().events == {}
    path = tmp_path / "metrics.toml"
    path.write_text(EVERY)
    [sentence] = [s for s in leaflet(read_catalog(path)).sentences if "remembers" in s]
    assert sentence.count("What devices do: ") == 4


def test_a_funnel_and_a_rate_are_reported_in_the_arm_of_an_experiment(
    tmp_path: Path, signed: Signed, clock: FakeClock
) -> None:
    arms = "[experiments.menu]\narms = { control = 1, new = 1 }\n"
    tables = CATALOG + arms + _table("checkout", f'{FUNNEL}\nexperiment = "menu"')
    tables += _table("crashes", f'{SMALL_RATE}\nexperiment = "menu"', mechanism="vector.codes")
    in_arms = make_signed(tmp_path, tables, start=signed.bundle.keys[0].start).bundle
    streams = set()
    for _ in range(22):  # all in one arm with a chance of 5e-7
        now = FakeClock(clock.now())
        client = Client(in_arms, MemoryState(), FakeShuffler(), hold_seconds=None, clock=now)
        arm = client.arm("menu")
        assert client.report("checkout", "cart") is Outcome.NOTED
        assert client.report("crashes", "started") is Outcome.NOTED
        now.set(now.now() + DAY)
        client.flush(0)
        streams_now = [row.stream.name for row in client.ledger().payloads if row.stream]
        assert streams_now == [f"checkout@menu={arm}", f"crashes@menu={arm}"]
        streams |= {*streams_now}
    assert len(streams) == 4
