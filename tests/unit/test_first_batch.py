"""Nothing waits in silence: how many reports there are until the first batch, and until when."""

from dataclasses import replace

import pytest

from hubbub.aggregator.query.answer_notes import notice_of
from hubbub.aggregator.query.report_counts import until_first_batch, upstream_reports
from hubbub.aggregator.query.totals import EpochSelection
from hubbub.aggregator.store.contract import Counted
from hubbub.catalog import Metric, epoch_at
from hubbub.conservation import Window
from tests.support.catalogs import catalog_toml, metric_toml, promised_catalog_of
from tests.support.crowds import with_crowd

CATALOG = catalog_toml(
    metric_toml("theme", mechanism="grr", epsilon=2.0, values=["light", "dark"]),
    metric_toml(
        "crowded",
        mechanism="grr",
        central_epsilon=1.0,
        crowd=5000,
        values=["light", "dark"],
        lifetime_epsilon=500.0,
    ),
)


@pytest.fixture(scope="module")
def metrics() -> dict[str, Metric]:
    return dict(promised_catalog_of(CATALOG).metrics)


def test_it_says_how_many_of_how_many_and_until_when(metrics: dict[str, Metric]) -> None:
    day = epoch_at(1_700_000_000, "day")  # 2023-11-14
    pooled = {Window("theme", day): {"acknowledged": 161, "pooled": 161}}
    assert until_first_batch(metrics["theme"], pooled, 1.0, has_left=False) == (
        "161 of 200 reports wait at the shuffler until the first batch, of which 100 stay behind, "
        "or until 2023-11-16 00:00 UTC at the latest; fewer than 100 by then are withheld"
    )
    assert until_first_batch(metrics["theme"], pooled, 0.0, has_left=False).startswith(
        "161 of 100 reports"
    )
    crowd = {Window("crowded", day): {"acknowledged": 4000, "pooled": 4000}}
    assert until_first_batch(metrics["crowded"], crowd, 1.0, has_left=False) == (
        "4,000 of the 5,000 reports of a crowd wait at the shuffler; they leave together at "
        "2023-11-16 00:00 UTC, or not at all"
    )


def test_it_says_nothing_where_a_batch_has_left_or_nothing_waits(
    metrics: dict[str, Metric],
) -> None:
    window = Window("theme", 19_000)
    for terms in (
        None,
        {},
        {window: {"acknowledged": 0, "pooled": 0}},
        {window: {"acknowledged": 300, "pooled": 100, "in_flight": 0}},
        {Window("other", 19_000): {"acknowledged": 5, "pooled": 5}},
    ):
        assert until_first_batch(metrics["theme"], terms, 1.0, has_left=True) == ""


def test_where_the_shuffler_shows_no_number_it_says_how_many_the_first_batch_needs(
    metrics: dict[str, Metric],
) -> None:
    other = {Window("other", 19_000): {"acknowledged": 5, "pooled": 0}}
    for terms in (None, {}, other):
        assert until_first_batch(metrics["theme"], terms, 1.0, has_left=False) == (
            "200 reports of an epoch must reach the shuffler for the first batch, of which 100 "
            "stay behind, or it leaves once the epoch and its grace are over; fewer than 100 by "
            "then are withheld; how many wait is not shown"
        )
        assert until_first_batch(metrics["crowded"], terms, 1.0, has_left=False) == (
            "5,000 reports of an epoch leave the shuffler together once the epoch and its grace "
            "are over, or not at all; how many wait is not shown"
        )


def test_in_development_it_says_whether_reports_are_on_their_way(
    metrics: dict[str, Metric],
) -> None:
    developed = replace(metrics["crowded"], development=True)
    none_text = "the shuffler has none yet: devices hold theirs for hold_seconds at most"
    assert until_first_batch(developed, {}, 1.0, has_left=False) == none_text
    assert until_first_batch(developed, {}, 1.0, has_left=True) == ""
    assert until_first_batch(developed, None, 1.0, has_left=False) == ""
    left = {Window("crowded", 19_000): {"acknowledged": 5, "pooled": 1, "in_flight": 4}}
    assert until_first_batch(developed, left, 1.0, has_left=False) == (
        "4 reports left the shuffler: ask again in a few seconds"
    )


def test_of_a_hidden_number_of_reports_nobody_says_that_none_wait(
    metrics: dict[str, Metric],
) -> None:
    plain = replace(metrics["crowded"], development=True)
    hidden = with_crowd(replace(plain, development=False), count_epsilon=0.5)
    upstream = {Window("crowded", 19_000): {"pooled": 7, "in_flight": 0, "withheld": 2}}
    assert upstream_reports(plain, (19_000,), upstream) == (7, 2)
    assert upstream_reports(hidden, (19_000,), upstream) == (None, None)
    assert notice_of(EpochSelection(hidden, (), {})) == (
        "crowded: nothing has left the shuffler, which never reveals how many reports wait."
    )
    window, many = Window("crowded", 19_000), hidden.fewest + 500
    selection = EpochSelection(hidden, (19_000,), {window: Counted(many)})
    assert f"the number of reports is an estimate, {many:,} ± 2.8" in notice_of(selection)
    # Of an epoch that barely left there may be far fewer: see `CountNoise.variance_above`.
    barely = hidden.fewest + 36
    selection = EpochSelection(hidden, (19_000,), {window: Counted(barely)})
    assert f"the number of reports is an estimate, {barely:,} ± 17." in notice_of(selection)
