"""A metric that asks each device on one secret day of a period, with the period's whole epsilon."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from math import sqrt
from pathlib import Path

import pytest

from hubbub.authoring import crowds_within, exposure, read_catalog, read_with_promises
from hubbub.bundles import read_bundle
from hubbub.catalog import Metric, days_of_period, reports_of_one
from hubbub.client import Client, MemoryState, Outcome, SystemClock
from hubbub.client.state.folder import FolderState
from hubbub.conservation import Window
from hubbub.errors import BundleRefused, CatalogInvalid
from hubbub.installation.keys_and_bundles import build_bundle, make_keys
from hubbub.signing.metric_changes import refuse_changes
from tests.conftest import CATALOG
from tests.support.bundles import DAY, make_signed
from tests.support.catalogs import catalog_of
from tests.support.devices import idle_client
from tests.support.waiting import HANG_SECONDS

FIRST = 20_010  # a day on which a period of 30 begins
PERIODIC = CATALOG.replace(
    "[metrics.theme]", '[metrics.theme]\ntiers = [0.5]\nperiod = "30d"\nreport_on = "one day"'
)
Make = Callable[..., Client]


@pytest.fixture
def client_of(tmp_path: Path) -> Make:
    signed = make_signed(tmp_path, PERIODIC, start=20_000 * DAY)
    theme = read_bundle(signed.path).metrics["theme"]
    assert (theme.period, theme.report_on) == ("30d", "one day")

    def make(day: int | list[int], state: MemoryState | FolderState | None = None) -> Client:
        today = [day] if isinstance(day, int) else day
        clock = SystemClock(lambda: float((FIRST + today[0]) * DAY))
        return idle_client(signed.bundle, state, clock=clock)

    return make


def days_of(client_of: Make, state: MemoryState, days: range) -> list[int]:
    """The days on which a device reports that runs on each of these."""
    reported = []
    for day in days:
        with client_of(day, state) as client:
            first, again = (client.report("theme", value) for value in ("dark", "light"))
            if first is Outcome.QUEUED:
                assert again is Outcome.ALREADY_REPORTED
                reported.append(day)
            else:
                assert first is again
                assert first is Outcome.NOT_ITS_DAY
    return reported


def test_a_device_reports_once_in_each_period_and_the_ledger_charges_once(client_of: Make) -> None:
    state = MemoryState(bytes(32))
    reported = days_of(client_of, state, range(90))
    assert [day // 30 for day in reported] == [0, 1, 2]
    assert len({day % 30 for day in reported}) > 1, "drawn anew"
    with client_of(89, state) as client:
        (own,) = (metric for metric in client.ledger().metrics if metric.name == "theme")
        assert own.reports == 1
        assert own.spent_in_epoch == pytest.approx(own.epsilon)
        assert own.spent == pytest.approx(3 * own.epsilon)


@pytest.mark.slow
def test_restarts_and_other_processes_agree_on_the_day(client_of: Make, tmp_path: Path) -> None:
    outcomes: list[set[Outcome]] = []
    for day in range(30):
        states = [FolderState(tmp_path / "state") for _ in range(2)]
        state_outcomes = set()
        for state in states:
            with client_of(day, state) as client:
                state_outcomes.add(client.report("theme", "dark"))
        outcomes.append(state_outcomes)
    reported = {Outcome.QUEUED, Outcome.ALREADY_REPORTED}
    assert sorted(map(len, outcomes)) == [1] * 29 + [2]
    assert reported in outcomes


@pytest.mark.slow
def test_every_reporting_day_is_equally_likely_and_independent_of_the_value(
    client_of: Make,
) -> None:
    """Six standard errors of each half of the days, over 600 devices: a false alarm of 4e-9."""
    counts: Counter[tuple[str, bool]] = Counter()
    for device in range(600):
        value, today = ("dark", "light")[device % 2], [0]
        with client_of(today) as client:
            early = False
            for today[0] in range(15):
                early |= client.report("theme", value) is Outcome.QUEUED
        counts[value, early] += 1
    for value in ("dark", "light"):
        assert abs(counts[value, True] - 150) < 6 * sqrt(300 * 0.25)


def test_a_day_on_which_a_device_does_not_run_is_missed(client_of: Make) -> None:
    report_day = days_of(client_of, state := MemoryState(), range(30))[0]
    fresh = MemoryState(state.device_state().secret)
    rest = [day for day in range(30) if day != report_day]
    for day in rest:
        with client_of(day, fresh) as client:
            assert client.report("theme", "dark") is Outcome.NOT_ITS_DAY


def test_a_device_that_forgot_reports_no_more_in_that_period(client_of: Make) -> None:
    state = MemoryState()
    with client_of(3, state) as client:
        client.disable(forget=True)
        client.enable()
    for day in range(3, 30):
        with client_of(day, state) as client:
            outcome = client.report("theme", "dark")
            assert outcome in {Outcome.NOT_ITS_DAY, Outcome.ALREADY_REPORTED}
    assert days_of(client_of, state, range(30, 60))


def test_a_smaller_tier_in_between_is_no_second_report(client_of: Make) -> None:
    state = MemoryState()
    report_days = days_of(client_of, state, range(30))
    for day in range(30):
        with client_of(day, state) as client:
            client.prefer(0.5)
            assert client.report("theme", "dark") is not Outcome.QUEUED
    assert report_days


def test_a_report_belongs_to_the_day_of_its_sending(client_of: Make) -> None:
    state = MemoryState()
    for day in range(30):
        with client_of(day, state) as client:
            if client.report("theme", "dark") is Outcome.QUEUED:
                assert client.flush(HANG_SECONDS)
                (record,) = client.ledger().payloads
                assert Window("theme", record.epoch) == Window("theme", FIRST + day)


@pytest.mark.parametrize(
    ("period", "day", "first", "days"),
    [
        ("30d", FIRST, FIRST, 30),
        ("30d", FIRST + 29, FIRST, 30),
        ("30d", FIRST + 30, FIRST + 30, 30),
        ("4w", 28 * 700, 28 * 700, 28),
        ("month", (date(2028, 2, 29) - date(1970, 1, 1)).days, 21215, 29),
        ("month", (date(2026, 12, 31) - date(1970, 1, 1)).days, 20788, 31),
    ],
)
def test_periods_are_the_same_for_everybody(period: str, day: int, first: int, days: int) -> None:
    period_days = days_of_period(period, day)
    assert (period_days.start, len(period_days)) == (first, days)
    assert day in period_days


def metric_of(tmp_path: Path, period: str) -> Metric:
    path = tmp_path / f"{period}.toml"
    path.write_text(PERIODIC.replace('"30d"', f'"{period}"'))
    return read_catalog(path).metrics["theme"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("period", "days", "most"),
    [("30d", 1, 1), ("30d", 2, 2), ("30d", 31, 2), ("30d", 32, 3), ("month", 366, 13)],
)
def test_a_person_sends_one_report_per_period(
    period: str, days: int, most: int, tmp_path: Path
) -> None:
    metric = metric_of(tmp_path, period)
    assert exposure(metric, days) == pytest.approx(most * metric.report_loss)
    worst = max(
        reports_of_one(metric, range(start, start + days)) for start in range(20_000, 20_400)
    )
    assert worst <= most
    assert days > 300 or worst == most


def test_a_person_is_in_one_crowd_a_period(tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    crowd = PERIODIC.replace('mechanism = "unary.oue"', 'mechanism = "grr"', 1)
    crowd = crowd.replace("min_batch = 20", "central_epsilon = 1.0\ncrowd = 30000", 1)
    path.write_text(crowd.replace("tiers = [0.5]\n", "", 1).replace("epsilon = 1.0\n", "", 1))
    metric = read_with_promises(path).metrics["theme"]
    assert metric.central is not None
    assert crowds_within(metric, 366) == 14
    assert crowds_within(replace(metric, period="", report_on=""), 366) == 366


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('period = "1d"\nreport_on = "one day"', r'"period": must be "month", or from 2 to 366'),
        ('period = "500d"\nreport_on = "one day"', r'"period": must be'),
        ("period = 30", r'"period": must be'),
        ('period = "30d"', r'"period": is of report_on; write report_on = "one day"'),
        ('report_on = "one day"', r'"report_on": is of a period; write period = "30d"'),
        (
            'period = "30d"\nreport_on = "one days"',
            r'"report_on": must be one of one day; did you mean "one day"\? write',
        ),
    ],
)
def test_an_invalid_period_is_refused(lines: str, message: str) -> None:
    with pytest.raises(CatalogInvalid, match=message):
        catalog_of(CATALOG.replace("[metrics.theme]", f"[metrics.theme]\n{lines}"))


def test_a_period_is_of_days_and_of_one_report(tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    for old, new, message in (
        ('epoch = "day"', 'epoch = "hour"', r'"epoch": must be "day" with report_on'),
        ("per_epoch = 1", "per_epoch = 2", r'"limits": reports_per_epoch must be 1'),
    ):
        path.write_text(PERIODIC.replace(old, new, 1))
        with pytest.raises(CatalogInvalid, match=message):
            read_catalog(path)


def test_a_period_is_part_of_the_promise(tmp_path: Path) -> None:
    signed = make_signed(tmp_path, PERIODIC, start=20_000 * DAY)
    with pytest.raises(BundleRefused, match=r'"theme": .* changed under an old name'):
        refuse_changes(catalog_of(CATALOG).metrics, signed.bundle)


def test_a_bundle_whose_keys_end_within_a_period_is_not_built(tmp_path: Path) -> None:
    path, out, streams = (tmp_path / name for name in ("metrics.toml", "it.hubbub", "streams.json"))
    path.write_text(PERIODIC)
    keys = tmp_path / "keys"
    make_keys(keys, days=3, periods=10)  # from two weeks ago on
    with pytest.raises(BundleRefused, match=r"30 days is longer than the keys, .* cover 15 days"):
        build_bundle(read_catalog(path), keys, out=out, streams=streams, previous=out, roots=None)
