"""A central promise for many days together: worked out, checked, kept count of, and shown."""

from collections import Counter
from dataclasses import replace
from math import ceil

import pytest

from hubbub.authoring import crowds_within
from hubbub.catalog import Metric
from hubbub.catalog.epochs_and_periods import epochs_within
from hubbub.client.ledger import Account, charge
from hubbub.client.outcome import Outcome
from hubbub.errors import CatalogInvalid
from hubbub.mechanisms.probability import MIN_EPSILON
from hubbub.privacy.card import metric_card
from hubbub.privacy.crowd_guarantees import promise_epsilon_of, smallest_crowd
from hubbub.privacy.many_epochs import composed_epsilon
from tests.support.bundles import crowd_text
from tests.support.catalogs import promised_catalog_of
from tests.support.commands import document_of
from tests.support.crowds import crowd_in

# To plan a crowd takes a quarter of a second, of whichever test comes first.
pytestmark = pytest.mark.slow

LISTED = 'mechanism = "auto"\nvalues = ["light", "dark", "system", "contrast"]\n'
TREE = 'mechanism = "tree"\ndomain = "string"\n'
CATALOG = 'shuffler = "127.0.0.1:1"\n' + crowd_text(
    3000, 'central_period = "7d"\n', ", lifetime_central_epsilon = 3.5"
)


@pytest.fixture(scope="module")
def metric() -> Metric:
    return promised_catalog_of(CATALOG).metrics["theme"]


def test_all_epochs_of_a_period_together_keep_the_promise(metric: Metric) -> None:
    crowd = smallest_crowd(metric)
    assert crowd is not None
    assert metric.central is not None
    assert metric.central.epochs == 7
    assert 0.99 <= composed_epsilon([(crowd, 7)], crowd_in(metric).delta) <= 1.0
    assert promise_epsilon_of(metric) == composed_epsilon([(crowd, 7)], crowd_in(metric).delta)
    more = replace(crowd, epsilon_local=metric.epsilon + 0.03)
    assert composed_epsilon([(more, 7)], crowd_in(metric).delta) > 1.0
    sentence = metric_card(metric).sentence
    assert "of any 7 days, 7 at most, together reveal epsilon 1 at delta 1e-08." in sentence


def test_a_device_is_charged_once_per_central_period(metric: Metric) -> None:
    """Days 0 to 6 since 1970 are such days, and so on; its limit has room for three of them."""
    accounts = {"theme": Account()}
    outcomes = [charge(accounts, metric, day, "") for day in range(2, 30)]
    assert outcomes[:19] == [None] * 19, "5 days of one week, two whole ones"
    assert set(outcomes[19:]) == {Outcome.OVER_BUDGET}
    assert accounts["theme"].central == pytest.approx(3.0)
    assert crowds_within(metric, 366) >= 21
    # Never too small: of those days, the exact account of all that was reported.
    crowd = smallest_crowd(metric)
    assert crowd is not None
    assert composed_epsilon([(crowd, 19)], 3 * crowd_in(metric).delta) <= accounts["theme"].central


def test_a_forgotten_period_is_charged_again_and_small_reports_separately(metric: Metric) -> None:
    accounts = {"theme": Account()}
    assert charge(accounts, metric, 7, "") is None
    accounts["theme"] = accounts["theme"].sums(8 * 86_400.0)
    assert charge(accounts, metric, 8, "") is None
    assert accounts["theme"].central == 2.0
    small = replace(metric, epsilon=0.25)
    accounts = {"theme": Account()}
    for day in range(7, 14):
        assert charge(accounts, small, day, "") is None
        most = min((day - 6) * small.report_loss, 1.0)
        assert accounts["theme"].central == pytest.approx(most)
    assert crowds_within(small, 366) == 23, "three weeks, and two days that each cost less"


@pytest.mark.parametrize(("epoch", "days"), [("hour", 30), ("day", 30), ("week", 30), ("28d", 30)])
def test_no_span_of_the_ledger_has_more_epochs_than_the_promise_is_of(
    epoch: str, days: int
) -> None:
    hours = {"hour": 1, "day": 24, "week": 168, "28d": 672}[epoch]
    ends = [number * hours + hours - 1 for number in range(ceil(400 * 24 / hours))]
    spans = [end // 24 // days for end in ends]
    assert max(Counter(spans).values()) <= epochs_within(epoch, days)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"7d"', '"1d"', r'"central_period": must be "month", or from 2 to 366 days'),
        ('"7d"', "7", r'"central_period": must be "month"'),
        ("central_epsilon = 1.0\n", "", r'"central_epsilon": is missing; write central_epsilon ='),
        ("limits", 'dummies = "auto"\nlimits', r'"dummies": .* write a number'),
        ("limits", 'dummies = "devices"\nlimits', r'"dummies": .* write a number'),
        (
            "limits",
            "epsilon = 7\nlimits",
            r"in a crowd of 3,000 and 7 epochs together; write 2\.4\d* at most, or leave it out",
        ),
        (
            "limits",
            'period = "30d"\nreport_on = "one day"\nlimits',
            r"central_period.* cannot be combined with report_on",
        ),
        (
            'epsilon = 1.0\ncentral_period = "7d"\ncrowd = 3000',
            'epsilon = 0.001\ncentral_period = "366d"\ncrowd = 10',
            r"a crowd of 10 keeps a central epsilon of 0.001 over 366 epochs together only if the",
        ),
        (
            LISTED + 'central_epsilon = 1.0\ncentral_period = "7d"\ncrowd = 3000',
            TREE + 'central_epsilon = 0.01\ncentral_period = "366d"\ncrowd = 10',
            r'"crowd": a crowd of 10 keeps .* is below 0.000977, the smallest possible: gather',
        ),
    ],
)
def test_fields_that_a_central_period_excludes_are_refused_with_a_remedy(
    old: str, new: str, message: str
) -> None:
    with pytest.raises(CatalogInvalid, match=message):
        promised_catalog_of(CATALOG.replace(old, new, 1))


def test_the_command_finds_the_local_epsilon_of_many_epochs(
    capsys: pytest.CaptureFixture[str], metric: Metric
) -> None:
    arguments = ["privacy", "crowd", "--reports", "3000", "--values", "4", "--honest", "0.9"]
    document = document_of(capsys, *arguments, "--central", "1", "--epochs", "7", "--json")
    assert metric.epsilon == pytest.approx(document["epsilon_local"], abs=1e-3)
    assert 0.99 <= document["epsilon_all_epochs"] <= 1.0
    assert document["epsilon_central"] < 0.5


def test_a_tree_with_a_tiny_share_of_the_promise_keeps_it_by_its_crowd() -> None:
    text = CATALOG.replace(LISTED, TREE)
    assert text != CATALOG
    most = "max_local_epsilon = 0.1\nlimits"
    for old, new in (("1.0", "0.3"), ("7d", "366d"), ("3000", "30000"), ("limits", most)):
        text = text.replace(old, new, 1)
    metric = promised_catalog_of(text).metrics["theme"]
    assert metric.central is not None
    assert metric.central.epsilon / metric.central.epochs < MIN_EPSILON < metric.epsilon
    promise_epsilon = promise_epsilon_of(metric)
    assert promise_epsilon is not None
    assert promise_epsilon <= metric.central.epsilon
