"""Cover: every device sends as many reports of every stream, fillers among them."""

import os
import random
from dataclasses import replace
from math import sqrt
from pathlib import Path

import pytest

from hubbub.catalog import Crowd
from hubbub.client import Client, FolderState, Outcome
from hubbub.client.state.contract import State
from hubbub.client.testing import FakeClock, FakeShuffler
from hubbub.errors import BadParameter, BadPayload, CatalogInvalid
from hubbub.keys.opening_key_files import read_opening_keys
from hubbub.sealing.hpke import filler_info, open_sealed, seal_info
from hubbub.signing.metric_changes import LESS, MORE, differences
from tests.support.bundles import DAY, Signed, make_signed
from tests.support.cover_catalog import FILLED, STREAMS
from tests.support.waiting import HANG_SECONDS
from tests.support.watching_shuffler import accuracy

FIRST = 20_000


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Signed:
    return make_signed(tmp_path_factory.mktemp("filled"), FILLED, start=FIRST * DAY)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock((FIRST + 3) * DAY + 1000.0)


class Device:
    """One, over the days; what it sends, told apart as only the aggregator can."""

    def __init__(self, signed: Signed, state: State, clock: FakeClock) -> None:
        self.signed, self.state, self.clock = signed, state, clock
        self.shuffler = FakeShuffler()
        self.client = self.start()

    def start(self) -> Client:
        """Another process, or the next one."""
        bundle, clock = self.signed.bundle, self.clock
        return Client(bundle, self.state, self.shuffler, hold_seconds=None, clock=clock)

    def next_day(self) -> dict[str, list[str]]:
        """Of each stream what was sent of the day that ends: "report" or "filler"."""
        self.client.flush(HANG_SECONDS)
        before = len(self.shuffler.reports())
        self.clock.advance(DAY)
        self.client.flush(HANG_SECONDS)
        [key] = read_opening_keys(self.signed.keys / "opening.keys.json")[:1]
        kinds: dict[str, list[str]] = {}
        for report in self.shuffler.reports()[before:]:
            assert len(report.sealed) == self.signed.bundle.streams[report.stream].sealed_bytes
            assert report.epoch == self.clock.now() // DAY - 1
            try:
                open_sealed(report.sealed, key.load(), seal_info(report.stream, report.epoch))
                kind = "report"
            except BadPayload:
                open_sealed(report.sealed, key.load(), filler_info(report.stream, report.epoch))
                kind = "filler"
            kinds.setdefault(report.stream, []).append(kind)
        return dict(sorted(kinds.items()))


def test_a_device_sends_one_report_of_every_stream(
    filled: Signed, state: State, clock: FakeClock
) -> None:
    device = Device(filled, state, clock)
    daily_names = []
    for day in range(6):
        if day == 1:
            assert device.client.report("crash", "gpu") is Outcome.QUEUED
        if day == 3:
            device.client.prefer(0.5)
        if day == 5:
            device.client.prefer(0.1)
        sent = device.next_day()
        assert list(sent) == STREAMS
        assert all(len(kinds) == 1 for kinds in sent.values())
        daily_names.append(
            [name for name in STREAMS if sent[name] == ["report"] and name != "asked"]
        )
    # Said, said, over the limit of 9, at the person's own tier of half a nat twice, declined.
    assert daily_names == [["crash"], ["crash"], [], ["crash/0.5"], ["crash/0.5"], []]
    fillers = [payload for payload in device.client.ledger().payloads if payload.is_filler]
    assert len(fillers) >= 6 * 4 - 4 - 6, "of asked there may be a report on every day"
    assert all(filler.meanings() == [] for filler in fillers)
    spent = {metric.name: metric.spent for metric in device.client.ledger().metrics}
    assert spent["crash"] < 9.0 + 1e-9, "fillers cost nothing"


def test_two_processes_and_a_restart_send_a_filler_once(
    filled: Signed, tmp_path: Path, clock: FakeClock
) -> None:
    device = Device(filled, FolderState(tmp_path / "state"), clock)
    device.client.prefer(0.1)
    other = Device(filled, FolderState(tmp_path / "state"), clock)
    other.shuffler = device.shuffler
    other.client = other.start()
    other.client.flush(HANG_SECONDS)
    assert [len(kinds) for kinds in device.next_day().values()] == [1] * 4
    for client in (other.client, device.start()):
        client.flush(HANG_SECONDS)
    assert len(device.shuffler.reports()) == 4
    for used in (device, other):
        used.state.close()


def test_a_program_that_ends_as_it_reports_is_filled_up_by_the_next(
    filled: Signed, tmp_path: Path, clock: FakeClock
) -> None:
    if not (child := os.fork()):
        Device(filled, FolderState(tmp_path / "state"), clock).client.report("crash", "gpu")
        os._exit(0)
    os.waitpid(child, 0)
    clock.advance(DAY)
    device = Device(filled, FolderState(tmp_path / "state"), clock)
    device.client.flush(HANG_SECONDS)
    sent = [report.stream for report in device.shuffler.reports() if report.epoch == FIRST + 3]
    assert sorted(sent) == STREAMS
    device.state.close()


def test_cover_is_switched_off_and_on_and_nothing_is_lost_or_sent_twice(
    filled: Signed, tmp_path: Path, clock: FakeClock
) -> None:
    plain = replace(filled, bundle=replace(filled.bundle, cover=False))
    for signed in (filled, plain, filled):
        device = Device(signed, FolderState(tmp_path / "state"), clock)
        device.client.prefer(1.0)
        assert device.client.report("crash", "disk") is Outcome.QUEUED
        sent = device.next_day()
        # Whether this device is among those that are asked is its own coin.
        sent.pop("asked", None)
        filler = {} if signed is plain else {"crash": ["filler"], "crash/0.5": ["filler"]}
        assert sent == {**filler, "crash/1": ["report"]}
        [spent] = [
            metric.spent for metric in device.client.ledger().metrics if metric.name == "crash"
        ]
        device.client.close(HANG_SECONDS)
    assert 2.9 < spent <= 3.0


def test_an_opted_out_device_sends_no_filler_and_deletes_waiting_reports(
    filled: Signed, state: State, clock: FakeClock
) -> None:
    device = Device(filled, state, clock)
    device.client.report("crash", "gpu")
    device.client.flush(HANG_SECONDS)
    assert device.state.waiting() == 3, "the report, and a filler for each of its other tiers"
    device.client.disable()
    assert device.next_day() == {}


def test_after_its_last_day_a_metric_has_no_fillers_either(
    tmp_path: Path, state: State, clock: FakeClock
) -> None:
    text = FILLED.replace("2099-12-31", "2024-10-06", 1)  # day 20,002
    device = Device(make_signed(tmp_path, text, start=FIRST * DAY), state, clock)
    device.client.prefer(0.1)
    assert list(device.next_day()) == ["asked"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('default = "no"\n', "", r'"asked", field "default": is needed with cover: without it the'),
        ("cover = true", "cover = 1", '"cover": must be true or false'),
    ],
)
def test_a_metric_that_cover_cannot_hide_is_refused(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    with pytest.raises(CatalogInvalid, match=message):
        make_signed(tmp_path, FILLED.replace(old, new), start=0)


def test_a_bundle_with_impossible_cover_is_refused(filled: Signed) -> None:
    silent = replace(filled.bundle.metric("asked"), default=None)
    with pytest.raises(BadParameter, match='metric "asked": default is needed with cover'):
        replace(filled.bundle, metrics={"asked": silent}, history={"asked": silent.digest()})


def test_a_crowd_takes_no_fillers(filled: Signed) -> None:
    crash = filled.bundle.metric("crash")
    of_many = Crowd(epsilon=0.5, reports=20_000)
    crowd = replace(crash, tiers=(), crowd=of_many, min_batch=20_000)
    history = {**filled.bundle.history, "crash": crowd.digest()}
    with pytest.raises(BadParameter, match="with cover: fillers would count towards"):
        replace(filled.bundle, metrics={"crash": crowd}, history=history)


def test_a_change_of_cover_is_shown_and_bundles_without_it_are_unchanged(
    filled: Signed, tmp_path: Path
) -> None:
    plain = make_signed(tmp_path, FILLED.replace("cover = true\n", ""), start=FIRST * DAY)
    assert b'"cover"' not in plain.path.read_bytes()
    for old, new, gives in ((plain, filled, LESS), (filled, plain, MORE)):
        changes = differences(old.bundle, new.bundle)
        assert [change.gives for change in changes if change.field == "cover"] == [gives]


def _declines(client: Client, rng: random.Random) -> None:
    """What nobody but the device should know: at which tier it reports, or that it does not."""
    client.prefer(rng.choice([0.1, 0.5, 1.0]))


@pytest.mark.slow
@pytest.mark.parametrize("devices", [200, pytest.param(1000, marks=pytest.mark.thorough)])
def test_cover_hides_which_metrics_a_device_has_no_answer_for(filled: Signed, devices: int) -> None:
    """Half of the people decline a metric or choose a smaller epsilon."""
    right = accuracy(filled.bundle, devices, _declines)
    assert abs(right - 0.5) < 3 * sqrt(0.25 / (devices // 2))


@pytest.mark.slow
def test_without_cover_the_same_classifier_is_always_right(filled: Signed) -> None:
    assert accuracy(replace(filled.bundle, cover=False), 200, _declines) > 0.99
