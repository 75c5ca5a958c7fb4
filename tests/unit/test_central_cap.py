"""A cap on what all crowds of a year say together: at the catalog, on the device, in its ledger."""

import json
from dataclasses import replace
from math import exp, inf, sqrt
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from scipy.stats import norm

from hubbub.authoring import Catalog
from hubbub.bundles import Bundle, read_bundle
from hubbub.catalog import Metric
from hubbub.catalog.crowds.gaussian_privacy import (
    crowd_cost,
    delta_of_mu,
    epsilon_of_mu,
    mu_of_pure,
    mu_within,
    room_of,
    spent_of,
)
from hubbub.catalog.limits_and_budgets import Caps
from hubbub.cli.commands import ledger
from hubbub.client import Client, MemoryState, Outcome, SystemClock
from hubbub.client.ledger import Account, charge, crowds_since, forgotten, merge
from hubbub.client.testing import FakeShuffler
from hubbub.errors import CatalogInvalid
from hubbub.keys.opening_key_files import new_periods
from hubbub.privacy.card import card
from hubbub.privacy.exact_accountant import gaussian_mu
from hubbub.privacy.many_epochs import composed_epsilon
from hubbub.privacy.shuffled_epoch import ShuffledEpoch
from hubbub.privacy.shuffled_histogram import largest_local, profile
from hubbub.signing.sign_bundle import sign_bundle
from hubbub.signing.testing import make_bundle
from tests.support.bundles import DAY
from tests.support.catalogs import metric_toml, promised_catalog_of
from tests.support.crowds import crowd_of
from tests.support.moment import now
from tests.support.waiting import HANG_SECONDS

ENTRY = metric_toml(
    "NAME",
    mechanism="auto",
    values=["light", "dark", "system", "contrast"],
    central_epsilon=1.0,
    crowd=30000,
    lifetime_epsilon=5000.0,
)
ALONE = metric_toml("alone", mechanism="grr", epsilon=0.5, values=["no", "yes", "maybe"])
OPERATOR = Ed25519PrivateKey.from_private_bytes(bytes(32))
TODAY = int(now()) // DAY


def _text(caps: str, *names: str) -> str:
    metrics = "".join(ENTRY.replace("NAME", name) for name in names)
    return f'shuffler = "127.0.0.1:1"\n[caps]\n{caps}\n{metrics}{ALONE}'


def _read(caps: str, *names: str) -> Catalog:
    return promised_catalog_of(_text(caps, *names))


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return _read("central_epsilon_per_year = 60", "one", "other")


@pytest.mark.parametrize("mu", [0.05, 0.2, 1.0, 5.0])
def test_gaussian_losses_are_those_of_the_textbook(mu: float) -> None:
    for epsilon in (0.0, 0.1, 1.0, 10.0):
        book = norm.sf(epsilon / mu - mu / 2) - exp(epsilon) * norm.sf(epsilon / mu + mu / 2)
        assert delta_of_mu(mu, epsilon) == pytest.approx(book, rel=1e-6, abs=1e-11)
        assert delta_of_mu(mu, epsilon) >= book
    for delta in (1e-10, 1e-8, 1e-3):
        epsilon = epsilon_of_mu(mu, delta)
        assert delta_of_mu(mu, epsilon) <= delta < delta_of_mu(mu, epsilon * (1 - 1e-6))
        assert mu * (1 - 1e-6) <= mu_within(epsilon, delta) <= mu * (1 + 1e-6)
    assert delta_of_mu(mu, 1e5) == 0.0


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
def test_one_report_reveals_no_more_than_its_gaussian(epsilon: float) -> None:
    mu, lie = mu_of_pure(epsilon), 1 / (1 + exp(epsilon))
    for share in (0.0, 0.2, 0.5, 0.9, 1.0, 1.1):
        at = share * epsilon
        largest = max(0.0, 1 - lie - exp(at) * lie)  # of a coin, which tells most
        assert delta_of_mu(mu, at) >= largest * (1 - 1e-12)
    assert delta_of_mu(mu * 0.99, 0.0) < 1 - 2 * lie, "and of none much nearer"


@pytest.mark.parametrize(
    ("reports", "categories", "central"),
    [(300, 2, 1.0), (300, 4, 0.5), (3000, 2, 1.0), (3000, 224, 2.0)],
)
@pytest.mark.thorough
def test_no_crowd_reveals_more_than_its_gaussian(
    reports: int, categories: int, central: float
) -> None:
    crowd = crowd_of(reports, categories, 16.0, honest=0.9)
    crowd = replace(crowd, epsilon_local=largest_local(crowd, central, 1e-8))
    mu = gaussian_mu(crowd)
    for place in range(20):
        epsilon = place * 0.15 * central + 0.003
        assert profile(crowd, 1e-15)(epsilon) <= delta_of_mu(mu, epsilon) + 2e-13
    for times in (2, 365):
        exact = composed_epsilon([(crowd, times)], 1e-8)
        rule = epsilon_of_mu(mu * sqrt(times), 0.9e-8)
        assert exact <= rule <= (2.0 if categories == 2 else 1.6) * exact


def test_no_crowd_costs_more_than_its_reports_reveal_alone() -> None:
    assert gaussian_mu(crowd_of(1, 4, 1.0)) <= mu_of_pure(1.0)
    nobody_lies = ShuffledEpoch(reports=100, categories=4, epsilon_local=inf)
    assert gaussian_mu(nobody_lies) > 30, "where nobody lies nothing is hidden"


@pytest.mark.slow
def test_a_catalog_above_the_cap_is_refused_with_the_sum_and_the_remedy() -> None:
    catalog = _read("central_epsilon_per_year = 35", "one")
    assert set(catalog.caps.central_mu) == {"one"}
    with pytest.raises(CatalogInvalid) as caught:
        _read("central_epsilon_per_year = 35", "one", "other")
    text = str(caught.value)
    assert 'field "central_epsilon_per_year": all crowds together can reveal 5' in text
    assert "above the cap of 35 (one 31.9, other 31.9 by itself)" in text
    assert "choose longer epochs, or raise the cap" in text
    # With a limit for life of twenty reports each, both are far below it.
    limited = _text("central_epsilon_per_year = 35", "one", "other")
    limited = limited.replace("= 5000.0", "= 5000.0, lifetime_central_epsilon = 20.0")
    assert promised_catalog_of(limited).caps.central_epsilon_per_year == 35


@pytest.mark.parametrize(
    ("caps", "message"),
    [
        ("central_epsilon_per_year = 0", "must be a number of nats"),
        ("central_epsilon_per_year = 9\ncentral_delta_per_year = 0", "must be a chance"),
        ("central_mu = { one = 0.1 }", "central_mu.*is not known in"),
    ],
)
def test_a_wrong_cap_is_named(caps: str, message: str) -> None:
    with pytest.raises(CatalogInvalid, match=message):
        _read(caps, "one")


@pytest.mark.slow
def test_the_cap_travels_in_the_bundle_and_is_on_the_card(catalog: Catalog, tmp_path: Path) -> None:
    path = tmp_path / "app.hubbub"
    path.write_bytes(sign_bundle(_bundle(catalog), OPERATOR))
    bundle = read_bundle(path)
    assert bundle.caps == catalog.caps
    assert crowd_cost(bundle.metrics["one"]) == crowd_cost(catalog.metrics["one"]) > 0
    assert crowd_cost(bundle.metrics["alone"]) == 0
    privacy_card = card(catalog)
    assert privacy_card.central_cap == 60
    sentence = "A device stops when all its crowds of a year can reveal 60"
    assert sentence in " ".join(privacy_card.sentences)
    assert privacy_card.central is not None
    assert privacy_card.central["year"] <= 60, "the exact account is below the devices' rule"


def test_an_app_tests_its_caps_without_numpy(tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text(_text("central_epsilon_per_year = 900", "one"))
    assert make_bundle(path).bundle.caps.central_mu == pytest.approx({"one": mu_of_pure(1.0)})


def _bundle(catalog: Catalog) -> Bundle:
    keys = tuple(new_periods(1, (TODAY - 10) * DAY, 500 * DAY, 2)[1])
    metrics, caps = dict(catalog.metrics), catalog.caps
    return Bundle(
        metrics=metrics, keys=keys, shuffler="127.0.0.1:9", roots=None, history={}, caps=caps
    )


def _with_tight_cap(catalog: Catalog, reports: float) -> dict[str, Metric]:
    """The same with a cap that so many reports of one crowd use up."""
    cost = crowd_cost(catalog.metrics["one"])
    cap = epsilon_of_mu(sqrt(cost * reports), 0.9e-8)
    caps = replace(catalog.caps, central_epsilon_per_year=cap)
    return {name: replace(metric, caps=caps) for name, metric in catalog.metrics.items()}


@pytest.mark.slow
def test_a_device_stops_at_the_cap_over_all_crowds_for_a_year(
    catalog: Catalog, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = _with_tight_cap(catalog, 5.5)
    bundle = replace(_bundle(catalog), metrics=metrics, caps=metrics["one"].caps)
    state, outcomes = MemoryState(), []
    for day in (0, 1, 2, 366, 367):
        clock = SystemClock(lambda day=day: float((TODAY + day) * DAY + 600))  # type: ignore[misc]
        client = Client(bundle, state, FakeShuffler(), hold_seconds=None, clock=clock)
        outcomes += [client.report(name, "dark") for name in ("one", "other")]
        assert client.report("alone", "yes") is Outcome.QUEUED, "what is in no crowd is not stopped"
        client.flush(HANG_SECONDS)
        view = client.ledger()
        client.close()
    queued, over = Outcome.QUEUED, Outcome.OVER_BUDGET
    assert outcomes == [*[queued] * 5, over, queued, queued, queued, queued]
    assert view.crowds_cap == bundle.caps.central_epsilon_per_year
    spent = spent_of(bundle.caps, 5 * crowd_cost(metrics["one"]))
    assert view.crowds_in_year == pytest.approx(spent, rel=1e-6)
    ledger._show("folder", view, [])
    assert f"of {view.crowds_cap:g} nats about you" in capsys.readouterr().out
    assert ledger._json(view, [])["crowds_cap"] == view.crowds_cap


def test_the_larger_of_two_accounts_counts_as_spent(catalog: Catalog) -> None:
    metrics = _with_tight_cap(catalog, 2.5)
    accounts = {"one": Account(), "other": Account()}
    charges = [charge(accounts, metrics["one"], TODAY + day, "") for day in range(3)]
    assert charges == [None, None, Outcome.OVER_BUDGET]
    account = Account.load(json.loads(json.dumps(accounts["one"].data())))
    assert account == accounts["one"]
    lost = replace(account, crowds={TODAY: account.crowds[TODAY]})
    assert merge(lost, account).crowds == merge(account, lost).crowds == account.crowds
    # A name that is gone counts all the same; version 0.1 knew no crowds.
    accounts = {"gone": account, "other": Account()}
    assert charge(accounts, metrics["other"], TODAY + 3, "") is Outcome.OVER_BUDGET
    document = accounts["other"].data()
    assert "crowds" not in document
    assert Account.load(document).crowds == {}
    # Who has all forgotten has not said less.
    rest = forgotten({"gone": account}, float(TODAY * DAY))
    assert crowds_since(rest.values(), TODAY - 366) == pytest.approx(sum(account.crowds.values()))
    accounts = {**rest, "other": Account()}
    assert charge(accounts, metrics["other"], TODAY + 3, "") is Outcome.OVER_BUDGET
    assert crowds_since([account], TODAY) == pytest.approx(crowd_cost(metrics["one"]))


def test_without_a_cap_crowds_charge_nothing_to_it() -> None:
    metric = _read("epsilon_per_year = 9000", "one").metrics["one"]
    assert (crowd_cost(metric), room_of(Caps())) == (0.0, None)
