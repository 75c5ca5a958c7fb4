"""Both promises of a metric in a crowd: what the device counts of each, stops at, and shows."""

import json
import re
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hubbub.bundles import Bundle, Promise
from hubbub.catalog import Metric
from hubbub.catalog.limits_and_budgets import Limits
from hubbub.cli.commands import ledger
from hubbub.client import Client, FolderState, MemoryState, Outcome, State, SystemClock
from hubbub.client.ledger import Account, charge, merge
from hubbub.client.state.consent import Consent, agreed
from hubbub.client.state.state_witness import StateMoment
from hubbub.client.testing import FakeShuffler
from hubbub.errors import BadParameter, CatalogInvalid
from hubbub.errors.message_words import at_least, at_most
from hubbub.keys.opening_key_files import new_periods
from hubbub.privacy.card import card, metric_card
from hubbub.privacy.crowd_guarantees import smallest_crowd
from hubbub.privacy.many_epochs import composed_epsilon
from tests.support.bundles import DAY
from tests.support.catalogs import catalog_toml, metric_toml, promised_catalog_of
from tests.support.crowds import crowd_in
from tests.support.moment import now
from tests.support.waiting import HANG_SECONDS

pytestmark = pytest.mark.slow

CATALOG = catalog_toml(
    metric_toml(
        "crowded",
        mechanism="auto",
        values=["light", "dark", "system", "contrast"],
        central_epsilon=1.0,
        crowd=30000,
        lifetime_epsilon=500.0,
        lifetime_central_epsilon=3.5,
    ),
    metric_toml("alone", mechanism="grr", epsilon=0.50006, values=["no", "yes", "maybe"]),
)
TODAY = int(now()) // DAY


@pytest.fixture(scope="module")
def metrics() -> dict[str, Metric]:
    return dict(promised_catalog_of(CATALOG).metrics)


@pytest.fixture
def device(metrics: dict[str, Metric]) -> Callable[[State, int], Client]:
    keys = tuple(new_periods(1, (TODAY - 10) * DAY, 100 * DAY, 2)[1])
    bundle = Bundle(metrics=metrics, keys=keys, shuffler="127.0.0.1:9", roots=None, history={})

    def client_on(state: State, day: int) -> Client:
        clock = SystemClock(lambda: float((TODAY + day) * DAY + 600))
        return Client(bundle, state, FakeShuffler(), hold_seconds=None, clock=clock)

    return client_on


@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_a_device_counts_local_and_central_loss_and_stops_at_either_limit(
    kind: str,
    device: Callable[[State, int], Client],
    metrics: dict[str, Metric],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    memory = MemoryState()
    outcomes = []
    for day in range(5):
        state = memory if kind == "memory" else FolderState(tmp_path / "s")
        client = device(state, day)
        outcomes.append(client.report("crowded", "dark"))
        assert client.report("alone", "yes") is Outcome.QUEUED
        client.flush(HANG_SECONDS)
        if day == 4:
            view = client.ledger()
        client.close()
    assert outcomes == [*[Outcome.QUEUED] * 3, *[Outcome.OVER_BUDGET] * 2]
    metrics_by_name = {metric.name: metric for metric in view.metrics}
    crowded, alone = metrics_by_name["crowded"], metrics_by_name["alone"]
    assert (crowded.central, crowded.central_epsilon, crowded.delta) == (3.0, 1.0, 1e-8)
    assert crowded.spent == pytest.approx(3 * metrics["crowded"].report_loss)
    assert crowded.lifetime_central_epsilon == 3.5
    assert (alone.central, alone.central_epsilon) == (alone.spent, None)
    ledger._show("folder", view, [])
    output = capsys.readouterr().out
    assert "work together against you" in output.replace("\n", " ")
    assert "depends only on this device" in output
    left = at_least(alone.lifetime_epsilon - alone.spent, ".3f")
    assert re.search(rf"alone .* {at_most(alone.spent, '.3f')} +50 +{left}", output)
    in_json = {metric["name"]: metric for metric in ledger._json(view, [])["metrics"]}
    assert in_json["crowded"]["central"] == 3.0


def test_the_ledger_never_counts_less_than_the_exact_account(
    metrics: dict[str, Metric],
) -> None:
    metric, accounts = metrics["crowded"], {"crowded": Account()}
    metric = replace(metric, limits=Limits(1, 500.0))
    crowd = smallest_crowd(metric)
    assert crowd is not None
    for reports in range(1, 11):
        assert charge(accounts, metric, TODAY + reports, "") is None
        if reports in {1, 2, 10}:
            exact = composed_epsilon([(crowd, reports)], reports * crowd_in(metric).delta)
            assert exact <= accounts["crowded"].central == reports


def test_accounts_of_former_versions_are_read_with_the_same_sums() -> None:
    former = Account(spent=18.3, epochs={TODAY: 1}, losses={TODAY: 6.1}).data()
    del former["central"]
    assert Account.load(former).central == 18.3
    first, other = Account(spent=2.0, central=1.0), Account(spent=1.0, central=1.5)
    assert merge(first, other).central == 1.5
    for wrong in (-1, float("nan"), "1", None, True):
        with pytest.raises((ValueError, TypeError)):
            Account.load({**former, "central": wrong})


def test_no_later_bundle_raises_or_drops_the_limit(metrics: dict[str, Metric]) -> None:
    metric = metrics["crowded"]
    promise = Promise.of(metric)
    assert Promise.load(json.loads(json.dumps(promise.data()))) == promise

    def later(most: float | None) -> Promise:
        return Promise.of(replace(metric, limits=Limits(1, 500.0, most)))

    assert promise.broken_by(later(3.5)) == promise.broken_by(later(2.0)) == ""
    assert promise.broken_by(later(4)) == "lifetime_central_epsilon raised from 3.5 to 4"
    assert promise.broken_by(later(None)) == "lifetime_central_epsilon 3.5 taken away"
    assert promise.and_then(later(2.0)).lifetime_central_epsilon == 2.0
    assert later(None).broken_by(promise) == ""
    assert later(None).and_then(promise).lifetime_central_epsilon == 3.5
    former = later(None).data()
    assert len(former) == 4, "as former versions wrote it"
    assert Promise.load(former).lifetime_central_epsilon is None
    with pytest.raises(ValueError, match="invalid figures"):
        Promise.load([*former, "much"])


def test_a_limit_without_an_effect_is_refused(metrics: dict[str, Metric]) -> None:
    with pytest.raises(BadParameter, match="must not be below central_epsilon"):
        replace(metrics["crowded"], limits=Limits(1, 500.0, 0.5))
    with pytest.raises(BadParameter, match="epsilon is only for a central promise"):
        replace(metrics["alone"], limits=Limits(1, 50.0, 2.0))
    with pytest.raises(CatalogInvalid, match="lifetime_central_epsilon"):
        promised_catalog_of(CATALOG.replace("= 3.5", "= 0.5"))


def test_the_card_shows_both_losses_within_the_limit() -> None:
    catalog = promised_catalog_of(CATALOG)
    privacy_card = metric_card(catalog.metrics["crowded"])
    assert "For life the device stops at 500 nats." in privacy_card.sentence
    assert "For life the device stops at 3.5 nats of that." in privacy_card.sentence
    assert "if it does collude, a report reveals epsilon" in privacy_card.sentence
    assert privacy_card.lifetime_central_epsilon == 3.5
    central = card(catalog).central
    assert central is not None
    assert central["month"] == central["year"] <= 3.5, "three reports at most, ever"


@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_a_person_sets_a_maximum_of_local_and_central_epsilon(
    kind: str, device: Callable[[State, int], Client], metrics: dict[str, Metric], tmp_path: Path
) -> None:
    """Without max_local nothing changes: a crowd's local epsilon is above what was preferred."""
    memory, day = MemoryState(), 0
    local = metrics["crowded"].report_loss

    def says(*limits: float | None) -> list[Outcome]:
        nonlocal day
        state = memory if kind == "memory" else FolderState(tmp_path / "s")
        client = device(state, day)
        day += 1
        if limits:
            client.prefer(limits[0], max_local=limits[1])
        outcomes = [client.report("crowded", "dark"), client.report("alone", "no")]
        client.flush(HANG_SECONDS)
        client.close()
        return outcomes

    yes, no = Outcome.QUEUED, Outcome.DECLINED
    assert says(1.0, None) == [no, yes]
    assert says(1.0, local + 0.01) == [yes, yes]
    assert says() == [yes, yes], "it is kept"
    assert says(1.0, local - 0.01) == [no, yes]
    assert says(0.9, 8.0) == [no, yes], "the crowd promises 1"
    assert says(None, 0.4) == [no, no]
    assert says(0.4, 8.0) == [no, no]
    client = device(MemoryState(), 0)
    with pytest.raises(BadParameter, match="max_local -1 must be 0 or more, in nats"):
        client.prefer(1.0, max_local=-1)


def test_preferences_survive_loss_of_the_state_and_the_stricter_holds(
    device: Callable[[State, int], Client], tmp_path: Path
) -> None:
    folder = tmp_path / "s"
    client = device(FolderState(folder), 0)
    client.prefer(1.0, max_local=7.0)
    assert client.report("crowded", "dark") is Outcome.QUEUED
    client.flush(HANG_SECONDS)
    client.close()
    [path] = folder.glob("*.sqlite3")
    for file in folder.iterdir():
        file.unlink()
    state = FolderState(folder)
    consent = state.device_state().consent
    assert (consent.preference, consent.local) == (1.0, 7.0)
    state.close()
    with sqlite3.connect(path) as rows:  # as a file of a version that knew no second word
        rows.execute("DELETE FROM meta WHERE name = 'max_local'")
    rows.close()
    state = FolderState(folder)
    consent = state.device_state().consent
    assert (consent.preference, consent.local) == (1.0, 1.0)
    state.close()
    both, alone = Consent(0, 1.0, 0.0, 7.0), Consent(0, 2.0)
    assert agreed(both, alone, ordered=False) == Consent(0, 1.0, 0.0, 2.0)
    assert agreed(both, alone, ordered=True) == alone
    moment = StateMoment(state="state", commits=1, head="head", accounts={}, consent=both)
    assert StateMoment.load(moment.document()).consent == both
    former = json.loads(moment._replace(consent=alone).document())
    assert "max_local" not in former
