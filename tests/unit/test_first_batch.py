"""Nothing waits in silence: how many reports there are until the first batch, and until when."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hubbub.aggregator.query.conservation_law import (
    Shuffler,
    Terms,
    until_first_batch,
    upstream_reports,
    withheld_sentence,
)
from hubbub.aggregator.query.derived_answers import compare
from hubbub.aggregator.query.engine import QueryEngine
from hubbub.aggregator.query.epoch_range import EpochRange
from hubbub.aggregator.query.estimating import EstimateQuery
from hubbub.aggregator.query.metric_answer import notice_of
from hubbub.aggregator.query.totals import EpochSelection
from hubbub.aggregator.store.contract import Counted
from hubbub.authoring import read_with_promises
from hubbub.catalog import Metric, epoch_at
from hubbub.conservation import Window
from hubbub.errors import BatchTooSmall
from tests.support.bundles import make_signed
from tests.support.catalogs import catalog_toml, metric_toml, promised_catalog_of
from tests.support.crowds import with_crowd
from tests.support.fakes import MemoryStore
from tests.support.stores import commit_of

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


@pytest.mark.slow
def test_the_refusal_names_waiting_and_needed_reports_and_the_end(
    metrics: dict[str, Metric],
) -> None:
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


def test_the_refusal_names_no_first_batch_after_one_left(
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


def test_a_refusal_without_counts_says_how_many_the_first_batch_needs(
    metrics: dict[str, Metric],
) -> None:
    other = {Window("other", 19_000): {"acknowledged": 5, "pooled": 0}}
    for terms in (None, {}, other):
        assert until_first_batch(metrics["theme"], terms, 1.0, has_left=False) == (
            "200 reports of an epoch must reach the shuffler for the first batch, of which 100 "
            "stay behind; it leaves after the shuffler's random delay, or once the epoch and its "
            "grace are over; fewer than 100 by then are withheld; how many wait is not shown"
        )
        assert until_first_batch(metrics["crowded"], terms, 1.0, has_left=False) == (
            "5,000 reports of an epoch leave the shuffler together once the epoch and its grace "
            "are over, or not at all; how many wait is not shown"
        )


def test_a_development_refusal_shows_whether_reports_are_on_their_way(
    metrics: dict[str, Metric],
) -> None:
    developed = replace(metrics["crowded"], development=True)
    none_text = (
        "no report has reached the shuffler yet; in development a report arrives within a second "
        "or two: ask again"
    )
    assert until_first_batch(developed, {}, 1.0, has_left=False) == none_text
    assert until_first_batch(developed, {}, 1.0, has_left=True) == ""
    assert until_first_batch(developed, None, 1.0, has_left=False) == ""
    steps = {"kind": "funnel", "steps": ["visit", "cart"]}
    funnel = metric_toml("funnel", mechanism="grr", epsilon=2.0, **steps)
    [metric] = promised_catalog_of(catalog_toml(funnel)).metrics.values()
    assert until_first_batch(replace(metric, development=True), {}, 1.0, has_left=False) == (
        "no report has reached the shuffler yet; a device sends its funnel after the end of the day"
    )
    left = {Window("crowded", 19_000): {"acknowledged": 5, "pooled": 1, "in_flight": 4}}
    assert until_first_batch(developed, left, 1.0, has_left=False) == (
        "4 reports left the shuffler; ask again in a few seconds"
    )


async def test_a_crowd_that_was_withheld_is_named_in_answers_refusals_and_lists(
    tmp_path: Path,
) -> None:
    """The shuffler deleted the newest epoch, so nothing else would show that people reported."""

    class Upstream(Shuffler):
        reserve = 1.0

        def __init__(self) -> None:
            pass

        async def terms(self, *, fresh: bool = False) -> Terms:
            assert not fresh, "answers may be a second old"
            return {
                Window("crowded", 19_000): {"acknowledged": 5000},
                Window("crowded", 19_001): {"acknowledged": 812, "withheld": 812},
                Window("theme", 19_001): {"acknowledged": 7, "withheld": 7},
            }

    bundle, store = (
        make_signed(tmp_path, CATALOG, start=0, reader=read_with_promises).bundle,
        MemoryStore(),
    )
    tags = [number.to_bytes(16) for number in range(5000)]
    await store.add(Window("crowded", 19_000), commit_of(tags, np.array([3000, 2000])))
    engine = QueryEngine(bundle, store, Upstream(), clock=lambda: 19_004 * 86_400.0)
    sentence = "he shuffler withheld {} of 2022-01-09, whose {} {}; no answer contains them"
    crowd = sentence.format("812 reports", "crowds were smaller than", "5,000")
    pool = sentence.format("7 reports", "streams ended below the minimum batch of", "100")
    answer = await engine.estimate("crowded", EstimateQuery())
    assert (answer.dates, answer.withheld) == ("2022-01-08", 812)
    assert answer.notes[0] == f"T{crowd}."
    before = await engine.estimate("crowded", EstimateQuery(range=EpochRange(epochs="2022-01-08")))
    assert (before.withheld, before.notes) == (0, [])
    with pytest.raises(BatchTooSmall, match=f"; t{pool}; 200 rep"):
        await engine.estimate("theme", EstimateQuery())
    lines = {line.name: line.until_first_batch for line in await engine.metrics()}
    assert lines["crowded"] == f"t{crowd}"
    assert lines["theme"].startswith(f"t{pool}; 200 reports")


@pytest.mark.parametrize(
    ("acknowledged", "withheld", "reason"),
    [
        (7, 7, "whose streams ended below the minimum batch of 100"),
        (307, 7, "which came after the last batch and were fewer than 100"),
        (300, 300, "whose stream its table had lacked for 30 days"),
    ],
)
def test_each_reason_for_withheld_reports_has_its_own_words(
    metrics: dict[str, Metric], acknowledged: int, withheld: int, reason: str
) -> None:
    terms = {Window("theme", 19_001): {"acknowledged": acknowledged, "withheld": withheld}}
    assert withheld_sentence(metrics["theme"], [19_001], terms) == (
        f"the shuffler withheld {withheld} reports of 2022-01-09, {reason}; no answer contains them"
    )


@pytest.mark.parametrize(("epoch", "end"), [("day", "03-03"), ("month", "04-01")])
async def test_a_funnel_without_reports_says_until_when_to_wait(
    tmp_path: Path, epoch: str, end: str
) -> None:
    steps = {"kind": "funnel", "steps": ["visit", "cart"], "epoch": epoch}
    catalog = catalog_toml(metric_toml("funnel", mechanism="grr", epsilon=2.0, **steps))
    bundle = make_signed(tmp_path, catalog, start=0).bundle
    engine = QueryEngine(bundle, MemoryStore(), clock=lambda: 19_053 * 86_400.0 + 7)
    with pytest.raises(BatchTooSmall, match=f"and this {epoch} ends at 2022-{end} 00:00 UTC"):
        await engine.estimate("funnel", EstimateQuery())


async def test_a_refusal_for_past_epochs_names_the_epochs_with_reports(
    tmp_path: Path,
) -> None:
    bundle = make_signed(tmp_path, CATALOG, start=0, reader=read_with_promises).bundle
    store = MemoryStore()
    for epoch, people in ((19_000, 150), (19_001, 20), (19_002, 150)):
        tags = [(epoch * 1000 + number).to_bytes(16) for number in range(people)]
        await store.add(Window("theme", epoch), commit_of(tags, np.array([people, 0])))
    engine = QueryEngine(bundle, store, clock=lambda: 19_009 * 86_400.0)
    reports = "; there are reports from 2022-01-08 to 2022-01-10"

    def of(epochs: str) -> EstimateQuery:
        return EstimateQuery(range=EpochRange(epochs=epochs))

    with pytest.raises(BatchTooSmall, match=f"0 reports in .* more epochs{reports}"):
        await engine.estimate("theme", of("2020-01-01"))
    with pytest.raises(BatchTooSmall, match=f"20 reports in .* epochs than 2022-01-09{reports}"):
        await engine.estimate("theme", of("2022-01-09"))
    for before, after, place in (("8", "9", "after"), ("7", "8", "before")):
        later = EpochRange(epochs=f"2022-01-0{after}")
        with pytest.raises(BatchTooSmall, match=f"^the range {place}: .*{reports}"):
            await compare(engine, "theme", of(f"2022-01-0{before}"), later)
    # A report may be counted after the epochs were selected, and before the refusal.
    engine = QueryEngine(bundle, store, clock=lambda: 19_002.5 * 86_400)
    with pytest.raises(BatchTooSmall, match=f"{reports}; if you asked for these, ask again"):
        await engine.estimate("theme", of("2022-01-11"))
    # While the requested epoch accepts reports, more may come.
    engine = QueryEngine(bundle, store, clock=lambda: 19_001.5 * 86_400)
    with pytest.raises(BatchTooSmall, match="epochs than 2022-01-09, or wait"):
        await engine.estimate("theme", of("2022-01-09"))


def test_a_hidden_number_of_reports_is_never_shown_as_none_waiting(
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
