"""The SDK against a fake shuffler: outcomes, limits, retries, and what stays on the device."""

import copy
import pickle
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hubbub.catalog import epoch_at
from hubbub.client import (
    Client,
    FolderState,
    GivenUp,
    MemoryState,
    Outcome,
    SealedReport,
    State,
    Submitted,
    TryAgain,
    transport_to,
)
from hubbub.client.mistakes_and_counters import value_hint
from hubbub.client.testing import FakeClock, FakeServer, FakeShuffler
from hubbub.client.transport.grpc_connection import GrpcConnection
from hubbub.errors import BadParameter, BundleRefused, NotListed, UnknownMetric, ValueOutOfDomain
from hubbub.errors.message_words import similar
from hubbub.keys.opening_key_files import read_opening_keys
from hubbub.mechanisms import KeyedBits
from hubbub.sealing.hpke import open_sealed, seal_info
from tests.support.bundles import Signed
from tests.support.catalogs import catalog_of, catalog_toml, metric_toml
from tests.support.client_parts import client_state, send_once, store_reports
from tests.support.devices import idle_client
from tests.support.programs import run_program
from tests.support.waiting import HANG_SECONDS

HOUR, DAY = 3600, 86_400
ClientOf = Callable[..., Client]


@pytest.fixture
def clock(signed: Signed) -> FakeClock:
    return FakeClock(signed.bundle.keys[0].start + 10 * DAY)


@pytest.fixture
def client_of(signed: Signed, clock: FakeClock) -> ClientOf:
    def make(shuffler: FakeShuffler, state: State | None = None, **changes: object) -> Client:
        return idle_client(signed.bundle, state, shuffler, clock=clock, **changes)

    return make


def test_a_report_reaches_the_shuffler_sealed_and_opens_to_a_payload(
    signed: Signed, client_of: ClientOf, clock: FakeClock
) -> None:
    shuffler = FakeShuffler()
    with client_of(shuffler) as client:
        assert client.report("theme", "dark") is Outcome.QUEUED
        assert client.report("homepage", "a.example") is Outcome.QUEUED
        assert shuffler.submissions == [], "report() itself sends nothing"
        assert client.waiting == 2
    private = read_opening_keys(signed.keys / "opening.keys.json")[0].load()
    assert {report.stream for report in shuffler.reports()} == {"theme", "homepage"}
    for report in shuffler.reports():
        assert report.epoch == epoch_at(clock.now(), "day")
        layout = signed.bundle.metric(report.stream).randomizer.layout
        info = seal_info(report.stream, report.epoch)
        layout.cells(open_sealed(report.sealed, private, info))
        assert len(report.sealed) == layout.payload_bytes + 48


def test_a_programmers_mistake_is_raised_without_the_value(client_of: ClientOf) -> None:
    client = client_of(FakeShuffler())
    with pytest.raises(
        UnknownMetric, match=r"it has .*, theme; pass the name first, then the value$"
    ) as unknown:
        client.report("plaid-77", "theme")
    assert "plaid" not in str(unknown.value)
    with pytest.raises(ValueOutOfDomain) as caught:
        client.report("theme", "plaid-77")
    assert "plaid" not in str(caught.value)
    assert client.waiting == 0


class _Hostile(str):
    """The app's own, which tells a value in what it raises."""

    __slots__ = ()

    def __getitem__(self, _: object) -> str:
        raise RuntimeError("plaid-77")

    def __hash__(self) -> int:
        raise RuntimeError("plaid-77")


def test_the_text_of_an_error_in_the_apps_object_is_not_shown(client_of: ClientOf) -> None:
    client = client_of(FakeShuffler())
    with pytest.raises(UnknownMetric, match="of this name"):
        client.report(_Hostile("theme"), "dark")
    with pytest.raises(ValueOutOfDomain) as caught:
        client.report("theme", _Hostile("dark"))
    assert "plaid" not in str(caught.value)


def test_a_report_from_the_end_of_the_stack_has_an_outcome(client_of: ClientOf) -> None:
    """At each of the depths at which Python lets the app call report()."""
    client = client_of(FakeShuffler(), strict=False)
    outcomes: list[Outcome] = []
    errors: list[RecursionError] = []

    def dive() -> None:
        try:
            dive()
        except RecursionError as error:
            errors.append(error)
        if len(outcomes) < 80:
            outcomes.append(client.report("theme", "dark"))

    dive()
    places = [traceback.extract_tb(error.__traceback__)[-1].filename for error in errors]
    assert set(places) == {__file__}
    # A report that fails after its charge is not sent: those after it are ALREADY_REPORTED.
    assert outcomes[0] is Outcome.FAILED
    assert outcomes[-1] in (Outcome.QUEUED, Outcome.ALREADY_REPORTED)


def test_calls_from_the_end_of_the_stack_damage_no_state(signed: Signed, tmp_path: Path) -> None:
    """An error in the middle of reading the state looked like damage, and waiting reports went."""
    nowhere = "http://127.0.0.1:1"
    arguments: Any = {"state_dir": tmp_path / "state", "shuffler": nowhere, "strict": False}
    client = Client.from_bundle(signed.path, **arguments, hold_seconds=None)
    assert client.report("theme", "dark") is Outcome.QUEUED
    assert not client.flush(0)
    ends: list[bool] = []

    def dive(end: Callable[[float], bool]) -> None:
        with suppress(RecursionError):
            dive(end)
        if len(ends) < 200:
            ends.append(end(0))

    dive(client.flush)
    assert client.waiting == 1
    ends.clear()
    dive(client.close)
    assert not any(ends), "the report waits for the next start"
    assert client.report("theme", "dark") is Outcome.CLOSED
    assert not list(tmp_path.rglob("damaged*"))
    again = Client.from_bundle(signed.path, **arguments)
    assert again.waiting == 1
    again.close(0)


def test_a_start_from_the_end_of_the_stack_reports(signed: Signed, tmp_path: Path) -> None:
    """It reported nothing until the next start of the app."""
    outcomes: list[Outcome] = []

    def dive(frames_left: int) -> None:
        if frames_left:
            dive(frames_left - 1)
            return
        arguments: Any = {"shuffler": "http://127.0.0.1:1", "strict": False}
        client = Client.from_bundle(signed.path, state_dir=tmp_path / "state", **arguments)
        outcomes.append(client.report("theme", "dark"))
        client.close(0)

    dive(sys.getrecursionlimit() - len(traceback.extract_stack()) - 60)
    assert outcomes == [Outcome.QUEUED]


def test_a_client_says_why_it_is_not_pickled(client_of: ClientOf) -> None:
    client = client_of(FakeShuffler())
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="make one in each process"):
            copied(client)


def test_a_wrong_value_is_refused_with_the_permitted_ones(client_of: ClientOf) -> None:
    client = client_of(FakeShuffler())
    for value, ending in (
        ("Dark", '"system"; did you mean "dark"?'),
        ("plaid-77", '"system"'),
        (7, '"system"'),
    ):
        with pytest.raises(ValueOutOfDomain) as caught:
            client.report("theme", value)
        text = str(caught.value)
        assert text.startswith('metric "theme": the value is not one of its 3 values: "light", ')
        assert text.endswith(ending)
        assert str(value) not in text.replace("3 values", "")
    with pytest.raises(ValueOutOfDomain, match='no value was given; it has 3 values: "light", '):
        client.report("theme")
    with pytest.raises(ValueOutOfDomain, match='metric "homepage": value is not a string'):
        client.report("homepage", 7)


def test_a_wrong_metric_name_is_refused_with_a_similar_one(client_of: ClientOf) -> None:
    client = client_of(FakeShuffler())
    for name, ending in (("Thme", 'then the value; did you mean "theme"?'), ("x", "the value")):
        with pytest.raises(UnknownMetric) as caught:
            client.report(name, "dark")
        assert str(caught.value).endswith(ending)
        assert name not in str(caught.value)


@pytest.mark.parametrize(
    ("typed", "names", "near"),
    [
        ("reports", ["report_on", "epsilon"], ""),
        ("percentile", ["experiment"], ""),
        ("percentile", ["experiment", "percentiles"], "percentiles"),
        ("crad", ["card"], "card"),
        ("xwing", ["x-wing"], "x-wing"),
        ("d3", ["de"], ""),
        ("jaa", ["ja"], "ja"),
        ("DE", ["de"], "de"),
        ("epsilon_per_week", ["min_batch", "epsilon_per_year"], "epsilon_per_year"),
        ("", ["a"], ""),
        ("oﬃce", ["office"], ""),
        ("STRASSE", ["straße"], "straße"),
        ("😀" * 60 + "a" * 60, ["😀" * 60 + "a" * 40], "😀" * 60 + "a" * 40),
    ],
)
def test_only_a_near_spelling_is_suggested(typed: str, names: list[str], near: str) -> None:
    """As for the SDK in TypeScript: local.test.ts."""
    assert similar(typed, names) == near


def test_a_long_list_of_values_is_cut_and_still_searched() -> None:
    values = [f"item-{number:03}" for number in range(1000)]
    hint = value_hint(values, "ITEM-907")
    assert hint.endswith('"item-011" and 988 more; did you mean "item-907"?')
    assert "item-012" not in hint


def test_the_values_of_a_boolean_are_named_as_an_app_writes_them() -> None:
    hint = 'True and False, also as texts "true" and "false"'
    assert value_hint(("false", "true"), "yes") == hint


@pytest.mark.parametrize("text", ["False", "TRUE", "0", "no", 0, 1])
def test_a_boolean_takes_no_other_texts_and_no_numbers(text: object) -> None:
    saved = metric_toml("saved", mechanism="rr", kind="boolean", epsilon=1.0)
    metric = catalog_of(catalog_toml(saved)).metrics["saved"]
    assert metric.code("false") == metric.code(value=False)
    with pytest.raises(NotListed):
        metric.code(text)


def test_a_client_without_a_bundle_is_refused_with_the_right_call() -> None:
    path: Any = "app.hubbub"
    with pytest.raises(BadParameter, match=r"bundle is not a Bundle; .*from_bundle\(PATH\)"):
        Client(path, MemoryState(), FakeShuffler())


def test_limits_are_kept_before_any_coin_is_drawn(client_of: ClientOf, clock: FakeClock) -> None:
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
    clock.advance(DAY)
    with pytest.raises(AssertionError, match="a coin was drawn"):
        again.report("theme", "light")


def test_a_clock_that_jumps_gives_no_second_report_and_blocks_no_first(
    client_of: ClientOf, clock: FakeClock
) -> None:
    client = client_of(FakeShuffler())
    today = clock.now()
    for days, outcome in (
        (0, Outcome.QUEUED),
        (100, Outcome.QUEUED),
        (0, Outcome.ALREADY_REPORTED),
        (1, Outcome.QUEUED),
        (100, Outcome.ALREADY_REPORTED),
        (-1, Outcome.QUEUED),
        (-1, Outcome.ALREADY_REPORTED),
        (5000, Outcome.NO_KEY),
        (2, Outcome.QUEUED),
    ):
        clock.set(today + days * DAY)
        assert client.report("theme", "dark") is outcome, days


def test_the_lifetime_budget_ends_reporting(client_of: ClientOf, clock: FakeClock) -> None:
    """crashed: epsilon 2 a report, 10 for life, 3 an hour."""
    client = client_of(FakeShuffler())
    outcomes = []
    for _ in range(4):
        outcomes += [client.report("crashed", "yes") for _ in range(4)]
        clock.advance(HOUR)
    assert outcomes.count(Outcome.QUEUED) == 5
    assert outcomes[3] is Outcome.ALREADY_REPORTED
    assert outcomes[-1] is Outcome.OVER_BUDGET


def test_an_unchanged_value_costs_its_permanent_response_once(
    client_of: ClientOf, clock: FakeClock
) -> None:
    """editor: 1.02 a report, 2.197 for all of one value, 2.2 for life."""
    client = client_of(FakeShuffler())
    for _ in range(40):
        assert client.report("editor", "vi") is Outcome.QUEUED
        clock.advance(7 * DAY)
    assert client.report("editor", "emacs") is Outcome.OVER_BUDGET
    assert client.report("editor", "vi") is Outcome.QUEUED


def test_expiry_missing_keys_and_a_closed_client_are_outcomes(
    signed: Signed, client_of: ClientOf, clock: FakeClock
) -> None:
    client = client_of(FakeShuffler())
    good = clock.now()
    clock.set(signed.bundle.keys[-1].end + DAY)
    assert client.report("theme", "dark") is Outcome.NO_KEY
    clock.set(5e9)  # the year 2128
    assert client.report("theme", "dark") is Outcome.EXPIRED
    clock.set(good)
    client.close()
    assert client.report("theme", "dark") is Outcome.CLOSED
    assert client.close()


@pytest.mark.slow
def test_a_resend_is_the_same_bytes(client_of: ClientOf) -> None:
    away = [TryAgain("away", 0.001) for _ in range(3)]
    shuffler = FakeShuffler(*away)
    client = client_of(shuffler)
    client.report("theme", "dark")
    assert client.flush(HANG_SECONDS)
    assert len(shuffler.submissions) == 4
    assert len(set(shuffler.submissions)) == 1


def test_no_server_can_make_a_device_retry_without_a_pause(client_of: ClientOf) -> None:
    """Each attempt is work on the device: being told to come back at once does not make it so."""
    shuffler = FakeShuffler(*[TryAgain("away", 0.001)] * 6)
    client = client_of(shuffler)
    client.report("theme", "dark")
    store_reports(client)
    waits = [send_once(client, HANG_SECONDS) for _ in range(6)]
    assert waits == [0.4, 0.8, 1.0, 1.0, 1.0, 1.0]


def test_a_report_that_cannot_be_sent_in_time_waits(client_of: ClientOf) -> None:
    shuffler = FakeShuffler(*[TryAgain("away", 60.0)] * 3)
    client = client_of(shuffler)
    client.report("theme", "dark")
    assert not client.flush(0.05)
    assert client.waiting == 1
    assert client.dropped == {}
    shuffler.answers.clear()
    assert client.flush(HANG_SECONDS)


def test_a_finally_refused_report_is_dropped_and_counted(client_of: ClientOf) -> None:
    drops: list[tuple[str, str]] = []
    shuffler = FakeShuffler({0: "refused_expired"}, GivenUp("invalid_argument"))
    client = client_of(shuffler, on_drop=lambda *drop: drops.append(drop))
    client.report("theme", "dark")
    assert client.flush(HANG_SECONDS)
    client.report("homepage", "a.example")
    assert client.flush(HANG_SECONDS)
    assert client.dropped == {"refused_expired": 1, "rejected_invalid_argument": 1}
    assert drops == [("theme", "refused_expired"), ("homepage", "rejected_invalid_argument")]
    assert client.ledger().counts == client.dropped
    assert client.waiting == 0


@pytest.mark.slow
def test_the_permanent_response_survives_a_restart_and_differs_between_devices(
    signed: Signed, client_of: ClientOf, tmp_path: Path
) -> None:
    """homepage with fixed instantaneous coins: what is left is the permanent step and cohort."""
    private = read_opening_keys(signed.keys / "opening.keys.json")[0].load()

    def payload(folder: Path, value: str) -> bytes:
        shuffler = FakeShuffler()
        with client_of(shuffler, FolderState(folder), coins=KeyedBits(b"c" * 32)) as client:
            client.report("homepage", value)
        report = shuffler.reports()[-1]
        return open_sealed(report.sealed, private, seal_info("homepage", report.epoch))

    first = payload(tmp_path / "a", "x.example")
    assert payload(tmp_path / "a", "x.example") == first
    others = {payload(tmp_path / str(n), "x.example") for n in range(20)}
    assert len(others) > 1


def test_from_bundle_reads_pins_and_refuses(signed: Signed, tmp_path: Path) -> None:
    client = Client.from_bundle(signed.path, state_dir=tmp_path / "state", insecure=True)
    assert client.report("theme", "dark") is Outcome.QUEUED
    client.close(0)
    with pytest.raises(BundleRefused, match="not by the pinned operator"):
        Client.from_bundle(signed.path, state_dir=tmp_path / "state", operator=b"x" * 32)


def test_plain_text_never_leaves_this_machine() -> None:
    for address in ("example.org:1", "localhost.example.org:1", "10.0.0.1:1", "[2001:db8::1]:1"):
        with pytest.raises(BadParameter, match="insecure is only for loopback"):
            transport_to(address, roots=None, insecure=True)
    for address in ("127.0.0.1:1", "localhost:1", "[::1]:1"):
        transport_to(address, roots=None, insecure=True).close()


def test_an_address_of_an_unknown_scheme_is_refused() -> None:
    with pytest.raises(BadParameter, match="carrier-pigeon:// is not supported"):
        transport_to("carrier-pigeon://example.org:1", roots=None)


def test_an_unreachable_shuffler_is_tried_again() -> None:
    transport = transport_to("127.0.0.1:1", roots=None, insecure=True)
    with pytest.raises(TryAgain):
        transport.submit([], HANG_SECONDS)
    transport.close()


def test_a_closed_connection_is_no_error_of_the_apps() -> None:
    connection = GrpcConnection("127.0.0.1:1", None, insecure=True)
    connection.close()
    with pytest.raises(TryAgain, match="connection_closed"):
        connection.submit([], HANG_SECONDS)


def test_the_background_thread_sends_each_held_report_once(
    signed: Signed, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hubbub.client.delivery.waits.uniform", lambda _low, high: high)
    shuffler = FakeShuffler()
    client = Client(signed.bundle, MemoryState(), shuffler, hold_seconds=100.0, clock=clock)
    client.report("theme", "dark")
    clock.settle()
    assert client_state(client).waiting() == 0, "what comes together is entered together"
    clock.advance(0.5)
    clock.settle()
    assert client_state(client).waiting() == 1
    clock.advance(99.9)
    clock.settle()
    assert shuffler.submissions == [], "the moment of sending says nothing of that of reporting"
    clock.advance(0.2)
    clock.settle()
    assert len(shuffler.reports()) == 1
    clock.advance(3600)
    clock.settle()
    assert len(shuffler.reports()) == 1, "and not again"
    assert client.close(HANG_SECONDS)


@pytest.mark.slow
def test_sealing_and_grpc_are_loaded_when_they_are_needed(signed: Signed, tmp_path: Path) -> None:
    code = (
        "import sys, hubbub.client\n"
        "start = hubbub.client.Client.from_bundle\n"
        "late = {'grpc', 'google', 'numpy', 'redis', 'asyncio', 'platformdirs'}\n"
        "sealing = {'cryptography.hazmat.backends.openssl.backend'}\n"
        "told = lambda: print(sorted(late & set(sys.modules)))\n"
        "told()\n"
        "assert not {'cryptography', 'sqlite3', '_hashlib'} & set(sys.modules)\n"
        "bundle, folder, shuffler = sys.argv[1:]\n"
        "client = start(bundle, state_dir=folder, shuffler=shuffler, insecure=True)\n"
        "assert not sealing & set(sys.modules)\n"
        "client.report('theme', 'dark')\n"
        "client._sender.entering.enter()\n"
        "told()\n"
        f"assert client.flush({HANG_SECONDS})\n"
        "told()\n"
        "client.close(0)\n"
    )
    with FakeServer() as server:
        arguments = [str(signed.path), str(tmp_path / "state"), server.address]
        done = run_program(sys.executable, "-c", code, *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == ["[]", "[]"]
    assert "'grpc'" in done.stdout.splitlines()[2]
    assert done.stderr == ""


class _Answering(FakeShuffler):
    """Runs a step of the test before it answers."""

    def __init__(self, step: Callable[[], object]) -> None:
        super().__init__()
        self.step = step

    def submit(self, reports: Sequence[SealedReport], timeout_seconds: float) -> Submitted:
        self.step()
        return super().submit(reports, timeout_seconds)


def test_two_threads_that_close_a_client_both_learn_of_the_delivery(
    client_of: Callable[..., Client],
) -> None:
    submitting, second = threading.Event(), threading.Event()

    def step() -> None:
        submitting.set()
        assert second.wait(HANG_SECONDS)

    client = client_of(shuffler := _Answering(step))
    client.report("theme", "dark")
    with ThreadPoolExecutor() as threads:
        first = threads.submit(client.close, HANG_SECONDS)
        assert submitting.wait(HANG_SECONDS)
        other = threads.submit(client.close, HANG_SECONDS)
        assert not client.close(0.0), "it does not wait longer than it may"
        second.set()
        assert first.result(HANG_SECONDS)
        assert other.result(HANG_SECONDS)
    assert len(shuffler.reports()) == 1


def test_reports_of_a_flush_that_a_signal_ends_are_free_for_the_next_at_once(
    client_of: Callable[..., Client], tmp_path: Path
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    client = client_of(_Answering(interrupted), FolderState(tmp_path / "state"))
    client.report("theme", "dark")
    with pytest.raises(KeyboardInterrupt):
        client.flush()
    next_process = client_of(shuffler := FakeShuffler(), FolderState(tmp_path / "state"))
    assert next_process.flush()
    assert len(shuffler.reports()) == 1
    assert next_process.close()
    assert client.close()
