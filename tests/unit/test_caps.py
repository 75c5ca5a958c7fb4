"""Caps on all metrics together: devices keep them, whatever the metrics are called today."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from hubbub.bundles import Bundle, read_bundle
from hubbub.catalog import SPANS, Metric, epoch_at
from hubbub.catalog.limits_and_budgets import Caps, Limits
from hubbub.client import Client, FolderState, MemoryState, Outcome, State, SystemClock
from hubbub.client.ledger import Account, merge
from hubbub.client.testing import FakeClock, FakeShuffler
from hubbub.keys.opening_key_files import new_periods
from hubbub.signing.sign_bundle import sign_bundle
from tests.support.bundles import DAY, Signed
from tests.support.devices import idle_client
from tests.support.waiting import HANG_SECONDS

NOW = 20_000 * DAY
BundleOf = Callable[..., Bundle]


@pytest.fixture
def bundle_of(signed: Signed) -> BundleOf:
    keys = tuple(new_periods(1, NOW - 400 * DAY, 1000 * DAY, 2)[1])

    def make(caps: Caps, *names: str) -> Bundle:
        theme = replace(signed.bundle.metric("theme"), limits=Limits(1, 5.0))
        metrics = {name: replace(theme, name=name, caps=caps) for name in names}
        return Bundle(
            metrics=metrics, keys=keys, shuffler="127.0.0.1:9", roots=None, history={}, caps=caps
        )

    return make


class Device:
    """One device through the years, with whatever bundle its app has."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.now = float(NOW)

    def report(self, bundle: Bundle, *names: str) -> list[Outcome]:
        client = idle_client(bundle, self.state, clock=SystemClock(lambda: self.now))
        outcomes = [client.report(name, "dark") for name in names]
        client.flush(HANG_SECONDS)
        return outcomes

    def forget(self) -> None:
        """The person has everything forgotten, and then lets it report again."""
        self.state.consent(on=False, forget=True, now=self.now)
        self.state.consent(on=True, forget=False, now=self.now)

    def pass_days(self, days: int) -> None:
        self.now += days * DAY


@pytest.fixture(params=["memory", "folder"])
def device(request: pytest.FixtureRequest, tmp_path: Path) -> Device:
    return Device(MemoryState() if request.param == "memory" else FolderState(tmp_path / "s"))


def test_renaming_a_metric_gives_no_more_than_the_cap(device: Device, bundle_of: BundleOf) -> None:
    caps = Caps(epsilon_per_year=5.0)
    outcomes = []
    for name in ("theme", "theme_2", "theme_3"):
        for _ in range(8):
            outcomes += device.report(bundle_of(caps, name), name)
            device.pass_days(1)
    assert outcomes.count(Outcome.QUEUED) == 5
    assert outcomes[5:] == [Outcome.OVER_BUDGET] * 19
    device.pass_days(360)
    assert device.report(bundle_of(caps, "theme_3"), "theme_3") == [Outcome.QUEUED]


def test_each_span_has_its_cap_over_all_metrics(device: Device, bundle_of: BundleOf) -> None:
    caps = Caps(epsilon_per_day=2.0, epsilon_per_month=3.0)
    names = ("one", "two", "three")
    bundle = bundle_of(caps, *names)
    assert device.report(bundle, *names) == [Outcome.QUEUED] * 2 + [Outcome.OVER_BUDGET]
    device.pass_days(1)
    assert device.report(bundle, *names) == [Outcome.QUEUED] + [Outcome.OVER_BUDGET] * 2
    device.pass_days(30)
    assert device.report(bundle, "two") == [Outcome.QUEUED], "the first day is over"


def test_a_clock_set_back_allows_no_new_report(device: Device, bundle_of: BundleOf) -> None:
    bundle = bundle_of(Caps(epsilon_per_year=2.0), "one", "two")
    assert device.report(bundle, "one", "two") == [Outcome.QUEUED] * 2
    device.pass_days(-380)
    assert device.report(bundle, "one") == [Outcome.OVER_BUDGET]


def test_the_last_word_is_the_states(tmp_path: Path, bundle_of: BundleOf) -> None:
    bundle = bundle_of(Caps(epsilon_per_day=1.0), "one", "two")
    shuffler = FakeShuffler()
    states, clock = [FolderState(tmp_path / "s") for _ in range(2)], FakeClock(NOW)
    first, other = (
        Client(bundle, state, shuffler, hold_seconds=None, clock=clock) for state in states
    )
    assert first.report("one", "dark") is Outcome.QUEUED
    assert other.report("two", "dark") is Outcome.QUEUED, "drawn, and not entered yet"
    first.close(HANG_SECONDS)
    other.close(HANG_SECONDS)
    assert len(shuffler.reports()) == 1
    assert other.dropped == {"over_budget": 1}


def test_caps_travel_in_the_bundle(signed: Signed, tmp_path: Path) -> None:
    from hubbub.keys.operator_key import read_operator_key

    caps = Caps(epsilon_per_year=400.0)
    metrics = {name: replace(m, caps=caps) for name, m in signed.bundle.metrics.items()}
    path = tmp_path / "app.hubbub"
    bundle = replace(signed.bundle, caps=caps, metrics=metrics)
    path.write_bytes(sign_bundle(bundle, read_operator_key(signed.keys)))
    again = read_bundle(path)
    assert again.caps == caps
    assert all(metric.caps == caps for metric in again.streams.values())


def _by_0_1(metric: Metric, epochs: range) -> Account:
    """An account as version 0.1 kept it: by epochs alone."""
    account = Account()
    for epoch in epochs:
        account.add(metric, epoch, "")
    document = account.data()
    del document["days"]
    return Account.load(document)


@pytest.mark.parametrize(("epoch", "count"), [("hour", 240), ("day", 90), ("week", 20)])
def test_budget_spent_in_version_0_1_counts_in_full(signed: Signed, epoch: str, count: int) -> None:
    metric = replace(signed.bundle.metric("theme"), epoch=epoch)
    last = epoch_at(NOW, epoch)
    epochs = range(last - count + 1, last + 1)
    old, new = _by_0_1(metric, epochs), Account()
    for number in epochs:
        new.add(metric, number, "")
    assert sum(old.days.values()) == pytest.approx(old.spent)
    for since in range(NOW // DAY - 200, NOW // DAY + 8):
        counted, true = (sum(v for d, v in a.days.items() if d > since) for a in (old, new))
        assert counted >= true - 1e-9


def test_days_are_kept_in_bounds_and_nothing_is_forgotten(signed: Signed) -> None:
    theme, account = signed.bundle.metric("theme"), Account()
    for day in range(1000):
        account.add(theme, day, "")
    assert len(account.days) <= 400
    assert sum(account.days.values()) == pytest.approx(account.spent)
    assert sum(v for d, v in account.days.items() if d > 999 - 366) == pytest.approx(
        366 * theme.report_loss
    )
    assert merge(account, Account.load(account.data())).days == account.days


def test_forgetting_gives_no_second_lifetime(bundle_of: BundleOf, device: Device) -> None:
    bundle = bundle_of(Caps(), "theme")
    most = int(5.0 / bundle.metric("theme").report_loss)
    for _ in range(most):
        assert device.report(bundle, "theme") == [Outcome.QUEUED]
        device.forget()
        assert device.report(bundle, "theme") == [Outcome.ALREADY_REPORTED], "today is over"
        device.pass_days(1)
    assert device.report(bundle, "theme") == [Outcome.OVER_BUDGET]
    device.pass_days(1000)
    assert device.report(bundle, "theme") == [Outcome.OVER_BUDGET]


def test_forgetting_gives_no_second_year(bundle_of: BundleOf, device: Device) -> None:
    loss = bundle_of(Caps(), "theme").metric("theme").report_loss
    bundle = bundle_of(Caps(epsilon_per_year=2 * loss), "theme", "font")
    assert device.report(bundle, "theme", "font") == [Outcome.QUEUED] * 2
    device.pass_days(300)
    device.forget()
    device.pass_days(30)
    assert device.report(bundle, "theme") == [Outcome.OVER_BUDGET], "it is the same year"
    device.pass_days(366)
    assert device.report(bundle, "theme") == [Outcome.QUEUED]


@pytest.mark.parametrize("seed", range(20))
def test_sums_of_days_never_count_less_than_the_days_and_never_much_longer(seed: int) -> None:
    drawn = Random(seed)
    today = 20_000
    days = {today - drawn.randrange(-6, 800): drawn.random() for _ in range(60)}
    account = Account(spent=sum(days.values()), days=days, central=1.0)
    sums = account.sums(today * DAY + drawn.random() * DAY)
    assert (sums.spent, sums.central) == (account.spent, 1.0)
    assert (sums.epochs, sums.losses, sums.responses) == ({}, {}, {})
    assert len(sums.days) <= 4
    assert sum(sums.days.values()) == pytest.approx(account.spent)
    for later in range(today, today + 800, 7):
        for span in SPANS.values():
            total = sum(loss for day, loss in sums.days.items() if day > later - span)
            exact = sum(loss for day, loss in days.items() if day > later - span)
            longer = sum(loss for day, loss in days.items() if day > later - 2 * 366)
            assert exact - 1e-9 <= total <= longer + 1e-9


def test_sums_of_a_clock_at_its_beginning_are_of_days_that_can_be_kept() -> None:
    account = Account(spent=3.0, days={0: 1.0, 20_000: 2.0})
    for now in (0.0, 40.0 * DAY, 1e5 * DAY):
        assert Account.load(account.sums(now).data()).spent == 3.0
