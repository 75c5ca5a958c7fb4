"""A default: a device that has nothing to say is not told from one that has."""

import random
from dataclasses import replace
from math import sqrt
from pathlib import Path

import pytest

from hubbub.client import Client, FolderState, Outcome
from hubbub.client.state.contract import State
from hubbub.client.testing import FakeClock, FakeShuffler
from hubbub.errors import BadParameter, CatalogInvalid
from hubbub.keys.opening_key_files import read_opening_keys
from hubbub.sealing.hpke import open_sealed, seal_info
from tests.support.bundles import DAY, Signed, make_signed
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.devices import idle_client
from tests.support.moment import now
from tests.support.waiting import HANG_SECONDS
from tests.support.watching_shuffler import accuracy

HOUR = 3600
# So large that a lie comes once in five million reports: what arrives is what was said.
COVERED = catalog_toml(
    metric_toml(
        "crash",
        mechanism="grr",
        epsilon=16.0,
        values=["gpu", "disk"],
        default="none",
        min_batch=20,
        lifetime_epsilon=5000.0,
    )
)


@pytest.fixture(scope="module")
def covered(tmp_path_factory: pytest.TempPathFactory) -> Signed:
    start = (int(now()) // DAY - 14) * DAY
    return make_signed(tmp_path_factory.mktemp("covered"), COVERED, start=start)


@pytest.fixture
def clock(covered: Signed) -> FakeClock:
    return FakeClock(covered.bundle.keys[0].start + 20 * DAY + 10 * HOUR)


def _sent_values(signed: Signed, shuffler: FakeShuffler) -> list[tuple[int, str]]:
    """What was sent: epochs, counted from the first key's, and values."""
    [metric] = signed.bundle.metrics.values()
    keys = {key.id: key.load() for key in read_opening_keys(signed.keys / "opening.keys.json")}
    first = signed.bundle.keys[0].start // DAY
    return [
        (report.epoch - first, metric.values[payload[0]])  # type: ignore[index]
        for report in shuffler.reports()
        for payload in [
            open_sealed(report.sealed, keys[report.key_id], seal_info(report.stream, report.epoch))
        ]
    ]


def test_a_device_without_a_value_sends_the_default_after_the_epoch(
    covered: Signed, state: State, clock: FakeClock
) -> None:
    shuffler = FakeShuffler()
    client = idle_client(covered.bundle, state, shuffler, clock=clock)
    client.flush(HANG_SECONDS)
    clock.advance(13 * HOUR)
    client.flush(HANG_SECONDS)
    assert shuffler.reports() == []
    clock.advance(2 * HOUR)
    for _ in range(3):
        client.flush(HANG_SECONDS)
    assert _sent_values(covered, shuffler) == [(20, "none")]
    assert client.report("crash", "gpu") is Outcome.QUEUED
    client.flush(HANG_SECONDS)
    assert len(shuffler.reports()) == 1, "what is said of the epoch that runs waits for its end"
    clock.advance(DAY)
    client.flush(HANG_SECONDS)
    assert _sent_values(covered, shuffler)[1:] == [(21, "gpu")]


def test_a_start_within_the_grace_sends_the_default_and_a_later_one_does_not(
    covered: Signed, state: State, clock: FakeClock
) -> None:
    shuffler = FakeShuffler()
    client = idle_client(covered.bundle, state, shuffler, clock=clock)
    client.flush(HANG_SECONDS)
    clock.advance(37 * HOUR)  # the next day, late
    idle_client(covered.bundle, state, shuffler, clock=clock).flush(HANG_SECONDS)
    assert _sent_values(covered, shuffler) == [(20, "none")]
    clock.advance(72 * HOUR)  # of the days in between the device ran in the first, too long ago
    idle_client(covered.bundle, state, shuffler, clock=clock).flush(HANG_SECONDS)
    assert len(shuffler.reports()) == 1


def test_an_opted_out_device_sends_no_default(
    covered: Signed, state: State, clock: FakeClock
) -> None:
    shuffler = FakeShuffler()
    client = idle_client(covered.bundle, state, shuffler, clock=clock)
    client.disable()
    client.flush(HANG_SECONDS)
    clock.advance(DAY)
    client.flush(HANG_SECONDS)
    assert shuffler.reports() == []
    assert client.dropped == {}


def test_two_processes_send_the_default_once(
    covered: Signed, tmp_path: Path, clock: FakeClock
) -> None:
    shuffler = FakeShuffler()
    states = [FolderState(tmp_path / "state") for _ in range(2)]
    clients = [idle_client(covered.bundle, state, shuffler, clock=clock) for state in states]
    for client in clients:
        client.flush(HANG_SECONDS)
    clock.advance(DAY)
    for client in clients:
        client.flush(HANG_SECONDS)
    assert _sent_values(covered, shuffler) == [(20, "none")]
    for state in states:
        state.close()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("reports_per_epoch = 2", "otherwise the number of reports would show"),
        ('breakdown = { os = ["linux", "mac"] }', "cannot be combined with a default"),
        ('default = "light"', "default must be one of the metric's values"),
        ("default = true", "must be one of the metric's values, or"),
    ],
)
def test_a_revealing_or_invalid_default_is_refused(tmp_path: Path, line: str, message: str) -> None:
    name = line.split(" = ", maxsplit=1)[0]
    former = {"reports_per_epoch": "reports_per_epoch = 1", "default": 'default = "none"'}
    catalog = (
        COVERED.replace(former[name], line)
        if name in former
        else COVERED.replace("min_batch", f"{line}\nmin_batch")
    )
    with pytest.raises(CatalogInvalid, match=message):
        make_signed(tmp_path, catalog, start=0)


def test_a_mechanism_that_charges_new_answers_has_no_default(signed: Signed) -> None:
    with pytest.raises(BadParameter, match="charges each new answer"):
        replace(signed.bundle.metric("editor"), default="vi")


def test_a_default_of_a_range_may_be_none_and_of_a_mean_is_a_number(tmp_path: Path) -> None:
    kind = 'kind = "count"\nedges = [0, 10, 100]'
    ranges = COVERED.replace('values = ["gpu", "disk"]', kind)
    folders = [tmp_path / name for name in ("ranges", "none", "zero")]
    for folder in folders:
        folder.mkdir()
    metric = make_signed(folders[0], ranges, start=0).bundle.metric("crash")
    assert metric.values == ("0 to 9", "10 or more", "none")
    assert [metric.code(value) for value in (3, 5000, "none")] == [0, 1, 2]
    mean = 'domain = "number"\nlow = 0\nhigh = 10'
    numbers = COVERED.replace('values = ["gpu", "disk"]', mean).replace('"grr"', '"mean.one_bit"')
    with pytest.raises(
        CatalogInvalid, match='for "none" of a number write edges, or add a boolean'
    ):
        make_signed(folders[1], numbers, start=0)
    zero = make_signed(folders[2], numbers.replace('"none"', "0"), start=0).bundle.metric("crash")
    assert zero.default == 0


def test_a_default_is_part_of_the_promise_and_changes_no_bundle_without_it(
    covered: Signed, signed: Signed
) -> None:
    metric = covered.bundle.metric("crash")
    assert metric.definition()["default"] == "none"
    assert all("default" not in metric.definition() for metric in signed.bundle.metrics.values())


def _crashes(client: Client, rng: random.Random) -> None:
    client.report("crash", rng.choice(["gpu", "disk"]))


@pytest.mark.thorough
def test_a_classifier_of_everything_a_shuffler_sees_guesses_at_chance(covered: Signed) -> None:
    """1,000 devices, half of them with an event, half of them restarted over midnight."""
    devices = 1000
    assert abs(accuracy(covered.bundle, devices, _crashes) - 0.5) < 3 * sqrt(0.25 / (devices // 2))


@pytest.mark.slow
def test_without_a_default_the_same_classifier_is_always_right(tmp_path: Path) -> None:
    start = (int(now()) // DAY - 14) * DAY
    plain = make_signed(tmp_path, COVERED.replace('default = "none"\n', ""), start=start)
    assert accuracy(plain.bundle, 100, _crashes) > 0.95
