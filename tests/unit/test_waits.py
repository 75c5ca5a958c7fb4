"""How long a device waits: long and random, and never so long that a report is too late."""

from math import log, sqrt
from random import Random

import pytest

from hubbub.catalog import EPOCH_SECONDS
from hubbub.client import Client
from hubbub.client.delivery import waits
from hubbub.client.delivery.waits import Waits, soon
from hubbub.client.state.memory import MemoryState
from hubbub.client.testing import FakeClock, FakeShuffler
from hubbub.client.transport.contract import TryAgain
from tests.support.bundles import Signed
from tests.support.client_parts import send_once, store_reports

HOUR = 3600.0
# More would be drawn once in ten million runs: client/typescript/tests/outage.test.ts has it, too.
OUTAGE_SECONDS, MOST_TRIES = 15, 14


def latest(_low: float, high: float) -> float:
    return high


def test_no_wait_makes_a_report_of_the_shortest_epoch_late(
    signed: Signed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waits, "uniform", latest)
    # `crashed` is of an hour: an hour of grace, of which holding takes two thirds at most.
    of_hours = Waits(signed.bundle, 10 * HOUR)
    assert of_hours.before_sending(left_over=False) == HOUR * 2 / 3
    assert of_hours.before_trying_again(6, 0.2) == HOUR / 2
    assert of_hours.before_sending(left_over=True) == 30
    assert Waits(signed.bundle, 4.0).before_sending(left_over=True) == 4


def test_first_retries_are_soon_and_the_shufflers_delay_is_respected(
    signed: Signed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waits, "uniform", latest)
    some = Waits(signed.bundle, HOUR)
    assert [some.before_trying_again(n, soon(n)) for n in range(1, 6)] == pytest.approx(
        [0.4, 0.8, 1.6, 3.2, 6.4]
    )
    assert some.before_trying_again(6, 3000.0) == 3000.0


def test_after_an_outage_waiting_devices_add_no_more_than_the_usual_load(
    signed: Signed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a fleet that begins to report at one rate, how many call in the ten minutes after it."""
    monkeypatch.setattr(waits, "uniform", Random(22).uniform)
    monkeypatch.setattr(waits, "GRACE_SECONDS", dict.fromkeys(EPOCH_SECONDS, 24 * HOUR))
    fleet = Waits(signed.bundle, HOUR)
    devices, back = 20_000, 0
    for n in range(devices):
        tries, failures = HOUR * n / devices, 0  # the outage ends after an hour
        while tries < HOUR:
            failures += 1
            tries += fleet.before_trying_again(failures, soon(failures))
        back += tries < HOUR * 7 / 6
    expected = devices / 6  # an hour's usual number of reports, in ten minutes
    assert back < expected + sqrt(2 * log(1e6) * expected)
    assert back > expected / 2


@pytest.mark.parametrize(
    ("after", "dropped"), [(48 * HOUR - 1, {}), (48 * HOUR + 1, {"expired": 1})]
)
def test_a_report_is_sent_until_a_day_after_its_own_and_no_longer(
    signed: Signed, after: float, dropped: dict[str, int]
) -> None:
    start = signed.bundle.keys[0].start + 24 * HOUR
    clock, shuffler = FakeClock(start), FakeShuffler()
    client = Client(signed.bundle, MemoryState(), shuffler, hold_seconds=None, clock=clock)
    client.report("theme", "dark")
    store_reports(client)
    clock.set(start + after)
    client.flush(OUTAGE_SECONDS)
    assert (len(shuffler.reports()), client.dropped) == (0 if dropped else 1, dropped)
    client.close(0)


def test_a_shuffler_puts_a_device_off_for_an_hour_at_most(signed: Signed) -> None:
    clock = FakeClock(signed.bundle.keys[0].start + 24 * HOUR)
    shuffler = FakeShuffler(TryAgain("unavailable", after_seconds=1000 * HOUR))
    client = Client(signed.bundle, MemoryState(), shuffler, hold_seconds=None, clock=clock)
    client.report("theme", "dark")
    store_reports(client)
    assert send_once(client, OUTAGE_SECONDS) == HOUR
    client.close(0)


@pytest.mark.parametrize(
    ("after_seconds", "most"), [(None, MOST_TRIES), (0.0, MOST_TRIES), (4.0, 4)], ids=str
)
@pytest.mark.parametrize("end", ["flush", "close"])
def test_a_failing_shuffler_is_tried_a_handful_of_times(
    signed: Signed, after_seconds: float | None, most: int, end: str
) -> None:
    clock = FakeClock(signed.bundle.keys[0].start + 24 * HOUR)
    failures = [TryAgain("unavailable", after_seconds=after_seconds) for _ in range(100)]
    shuffler = FakeShuffler(*failures)
    client = Client(signed.bundle, MemoryState(), shuffler, hold_seconds=None, clock=clock)
    client.report("theme", "dark")
    assert getattr(client, end)(OUTAGE_SECONDS) is False
    assert 2 <= len(shuffler.submissions) <= most
    client.close(0)
