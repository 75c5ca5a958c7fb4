"""Values that were appended under the same name: told apart by stream, joined exactly."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub.aggregator.__main__ import check_follows
from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.query.answer_types import Compared, Estimated
from hubbub.aggregator.query.breakdowns import breakdown
from hubbub.aggregator.query.derived_answers import compare
from hubbub.aggregator.query.epoch_range import EpochRange
from hubbub.aggregator.query.estimating import EstimateQuery
from hubbub.aggregator.query.trends import Trended, trend
from hubbub.analysis.answering import answer, answer_lists
from hubbub.analysis.families import draw
from hubbub.authoring import read_with_promises
from hubbub.bundles import Bundle, open_bundle, read_bundle
from hubbub.bundles.signatures import _signed_body
from hubbub.client import Client, MemoryState, Outcome, SystemClock
from hubbub.client.testing import FakeShuffler
from hubbub.client.trust import Trust
from hubbub.conservation import Window
from hubbub.errors import BundleRefused, UnknownMetric
from hubbub.installation.keys_and_bundles import build_bundle, make_keys
from hubbub.mechanisms import Totals, build
from hubbub.shuffler.stream_table import read_stream_table
from hubbub.signing.sign_bundle import stream_table
from tests.support.bundles import DAY
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.fakes import MemoryStore
from tests.support.moment import now
from tests.support.waiting import HANG_SECONDS

THREE, FOUR = ["light", "dark", "system"], ["light", "dark", "system", "sepia"]
FIVE = [*FOUR, "blue"]


class Installation:
    """A folder whose catalog is built again and again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        make_keys(folder / "keys")

    def build(self, values: list[str], mechanism: str = "grr", rest: str = "") -> Bundle:
        source = self.folder / "metrics.toml"
        fields: dict[str, Any] = {"mechanism": mechanism, "values": values, "epsilon": 2.0}
        if "crowd" in rest:  # which says what leaves together, and with auto what is told
            fields["min_batch"] = None
            if mechanism == "auto" or "\nepsilon" in rest:
                fields["epsilon"] = None
        source.write_text(catalog_toml(metric_toml("theme", rest, **fields)))
        out = self.folder / "app.hubbub"
        catalog, keys = read_with_promises(source), self.folder / "keys"
        streams = self.folder / "streams.json"
        return build_bundle(catalog, keys, out=out, streams=streams, previous=out, roots=None)


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return Installation(tmp_path)


def test_an_appended_value_makes_a_new_stream_under_the_same_name(
    installation: Installation,
) -> None:
    assert list(installation.build(THREE).streams) == ["theme"]
    second = installation.build(FOUR, rest="tiers = [0.5]")
    assert list(second.streams) == ["theme", "theme/0.5", "theme/v4", "theme/v4/0.5"]
    assert second.metric_of("theme").values == tuple(THREE)
    assert second.metric_of("theme/v4").values == second.metric("theme").values == tuple(FOUR)
    assert second.metric_of("theme/v4/0.5").tier == "0.5"
    assert second.metric("theme").streams == tuple(second.streams)
    third = read_bundle(installation.folder / "app.hubbub")
    assert third.metrics == second.metrics
    assert installation.build(FIVE, rest="tiers = [0.5]").metric("theme").grown == (3, 4)
    assert set(stream_table(second).split('"')) >= {"theme", "theme/v4"}


@pytest.mark.parametrize(
    ("values", "mechanism", "why"),
    [
        (["light", "dark", "sepia", "system"], "grr", "values changed under an old name"),
        (["light", "dark"], "grr", "1 of the 3 values vanished"),
        (FOUR, "unary.oue", "mechanism, values changed under an old name"),
    ],
)
def test_a_change_that_would_corrupt_totals_is_refused(
    values: list[str], mechanism: str, why: str, installation: Installation
) -> None:
    installation.build(THREE)
    with pytest.raises(BundleRefused, match=why):
        installation.build(values, mechanism)


def test_appended_values_cannot_be_removed_or_replaced(installation: Installation) -> None:
    installation.build(THREE)
    installation.build(FOUR)
    with pytest.raises(BundleRefused, match="values were removed under an old name"):
        installation.build(THREE)
    with pytest.raises(BundleRefused, match="values changed under an old name"):
        installation.build([*THREE, "blue"])


def test_other_keeps_its_index_when_a_list_grows(installation: Installation) -> None:
    rest = "other = true"
    installation.build(THREE, rest=rest)
    for values, tail in ((FOUR, ("other", "sepia")), (FOUR, ("other", "sepia")), (FIVE, ("blue",))):
        metric = installation.build(values, rest=rest).metric("theme")
        assert (metric.values or ())[-len(tail) :] == tail
    assert metric.grown == (4, 5)
    assert metric.streams == ("theme", "theme/v5", "theme/v6")
    assert [metric.code(value) for value in ("blue", "sepia", "never heard of")] == [5, 4, 3]
    with pytest.raises(BundleRefused, match="values changed under an old name"):
        installation.build(FOUR, rest=rest)
    with pytest.raises(BundleRefused, match="values changed under an old name"):
        installation.build([*FOUR[::-1], "blue"], rest=rest)


@pytest.mark.slow
def test_the_none_of_a_default_keeps_its_place_and_is_asked_of_everybody(
    installation: Installation,
) -> None:
    rest = 'default = "none"\ntiers = [0.5]'
    installation.build(THREE, rest=rest)
    bundle = installation.build(FOUR, rest=rest)
    metric = bundle.metric("theme")
    assert metric.values == (*THREE, "none", "sepia")
    assert [metric.code(value) for value in ("none", "sepia")] == [3, 4]
    assert installation.build(FIVE, rest=rest).metric("theme").grown == (4, 5)
    window_totals = {
        ("theme", FIRST): _draw(bundle, "theme", [300, 200, 100, 900], 1),
        ("theme/v5/0.5", FIRST): _draw(bundle, "theme/v5/0.5", [300, 200, 100, 900, 300], 2),
        ("theme", FIRST + 1): _draw(bundle, "theme", [300, 200, 100, 900], 4),
        ("theme/v5", FIRST + 1): _draw(bundle, "theme/v5", [300, 200, 100, 900, 200], 3),
        ("theme/v5", FIRST + 2): _draw(bundle, "theme/v5", [300, 200, 100, 900, 200], 5),
    }
    joint_answer = _list_answers(bundle, window_totals)[0]
    rows = {row.value: row for row in joint_answer.values}
    assert abs(rows["none"].estimate - 4500) < 5 * rows["none"].stderr
    assert abs(rows["sepia"].estimate - 700) < 5 * rows["sepia"].stderr
    assert (
        "Not asked in 3,000 of 8,200 reports, since these values were appended later: sepia."
        in joint_answer.notes[0]
    )


def test_other_before_and_after_an_appended_value_are_distinguished(
    installation: Installation,
) -> None:
    installation.build(THREE, rest="other = true")
    bundle = installation.build(FOUR, rest="other = true")
    first = _draw(bundle, "theme", [600, 300, 100, 500], 1)  # of the 500 some meant sepia
    window_totals = {
        ("theme", FIRST): first,
        ("theme", FIRST + 1): first,
        ("theme/v5", FIRST + 1): _draw(bundle, "theme/v5", [500, 600, 200, 300, 400], 2),
        ("theme/v5", FIRST + 2): _draw(bundle, "theme/v5", [500, 600, 200, 300, 400], 3),
    }
    joint_answer, _, compared, _ = _list_answers(bundle, window_totals)
    rows = {row.value: row for row in joint_answer.values}
    for value, true in (("light", 2200), ("sepia", 800), ("other", 600)):
        assert abs(rows[value].estimate - true) < 5 * rows[value].stderr
    assert rows["other"].share == pytest.approx(rows["other"].estimate / 4000)
    assert (
        "Not asked in 3,000 of 7,000 reports, since these values were appended later: other, sepia."
        in joint_answer.notes[0]
    )
    assert (
        '"other" of a shorter list contained the values appended since, so it is left out.'
        in joint_answer.notes
    )
    assert [row.value for row in compared.values] == THREE

    async def follow() -> Trended:
        engine = QueryEngine(bundle, await _store(window_totals), clock=lambda: (FIRST + 9) * DAY)
        every = EstimateQuery(range=EpochRange(epochs="all"))
        return await trend(engine, "theme", every, ["dark", "other"])

    dark, other = asyncio.run(follow()).series
    assert [point.reports for point in dark.points] == [1500, 3500, 2000]
    assert [point.reports for point in other.points] == [2000, 2000]


@pytest.mark.slow
async def test_every_tier_and_cell_of_every_list_is_counted(installation: Installation) -> None:
    rest = 'tiers = [0.5]\nbreakdown = { os = ["linux", "macos"] }'
    installation.build(THREE, rest=rest)
    bundle = installation.build(FOUR, rest=rest)
    window_totals, linux = {}, []
    for number, stream in enumerate(bundle.metric("theme").streams):
        size = len(bundle.metric_of(stream).values or ())
        window_totals[stream, FIRST] = _draw(bundle, stream, [100 * size + number] * size, number)
        linux += [window_totals[stream, FIRST].reports] if "linux" in stream else []
    assert len(window_totals) == 12
    engine = QueryEngine(bundle, await _store(window_totals), clock=lambda: (FIRST + 9) * DAY)
    every = EstimateQuery(range=EpochRange(epochs="all"))
    names = [f"theme{cell}{tier}" for cell in ("", "@os=linux") for tier in ("", "/0.5")]
    answers = [await engine.estimate(name, every) for name in names]
    # Of one list alone, as its own stream has it.
    answers.append(await engine.estimate("theme/v4/0.5", every))
    table = await breakdown(engine, "theme", every)
    for part_answer in answers:
        cell, _, tier = part_answer.metric.partition("/")
        streams = [
            s for s in window_totals if cell.partition("@")[2] in s[0] and s[0].endswith(tier)
        ]
        assert part_answer.reports == sum(window_totals[stream].reports for stream in streams), (
            part_answer.metric
        )
        for place, row in enumerate(part_answer.values):
            sizes = [len(bundle.metric_of(name).values or ()) for name, _ in streams]
            longer = [
                window_totals[stream].reports / size
                for stream, size in zip(streams, sizes, strict=True)
                if size > place
            ]
            assert abs(row.estimate - sum(longer)) < 5 * row.stderr, row.value
    assert {part.part: part.reports for part in table.parts}["linux"] == sum(linux)


@pytest.mark.slow
def test_each_list_fills_a_crowd_of_its_own(installation: Installation) -> None:
    rest = "central_epsilon = 1.0\ncrowd = 1000"
    first = installation.build(THREE, rest=rest)
    bundle = installation.build(FOUR, rest=rest)
    table = read_stream_table(installation.folder / "streams.json").streams
    assert {name: (policy.mix, policy.min_batch) for name, policy in table.items()} == {
        "theme": ("epoch", 1000),
        "theme/v4": ("epoch", 1000),
    }
    assert first.metric("theme").central == bundle.metric_of("theme").central
    window_totals = {
        ("theme", FIRST): _draw(bundle, "theme", [600, 300, 100], 1),
        ("theme/v4", FIRST): _draw(bundle, "theme/v4", [500, 600, 200, 200], 2),
    }
    days = {(name, day + n): t for (name, day), t in window_totals.items() for n in range(3)}
    joint_answer = _list_answers(bundle, days)[0]
    rows = {row.value: row for row in joint_answer.values}
    for value, true in (("light", 3300), ("sepia", 600)):
        assert abs(rows[value].estimate - true) < 5 * rows[value].stderr


@pytest.mark.slow
def test_a_crowds_list_grows_once_its_chosen_mechanism_is_written(
    installation: Installation,
) -> None:
    rest = "central_epsilon = 1.0\ncrowd = 1000"
    few = installation.build(THREE, "auto", rest).metric("theme")
    with pytest.raises(BundleRefused) as refused:
        installation.build(FOUR, "auto", rest)
    choice_line = f'mechanism = "{few.mechanism}" and epsilon = {few.epsilon:g}'
    assert f"values can be appended once it is written: {choice_line}" in str(refused.value)
    many = installation.build(FOUR, few.mechanism, f"{rest}\nepsilon = {few.epsilon:g}")
    assert many.metric("theme").grown == (3,)


def test_parts_and_sets_name_why_they_cannot_grow(installation: Installation) -> None:
    rest = 'kind = "set"\nmost = 2'
    installation.build(THREE, "privset", rest)
    with pytest.raises(BundleRefused, match="appended to plain lists, not to sets"):
        installation.build(FOUR, "privset", rest)
    with pytest.raises(BundleRefused) as refused:  # the same values, and another mechanism
        installation.build(THREE)
    assert "appended" not in str(refused.value)


def test_two_values_of_auto_name_why_they_cannot_grow(installation: Installation) -> None:
    installation.build(["light", "dark"], "auto", "reports = 10000")
    with pytest.raises(BundleRefused) as refused:
        installation.build(THREE, "auto", "reports = 10000")
    assert 'new name, such as "theme_2", and supersedes = "theme"' in str(refused.value)
    assert 'rr, which "auto" chose for the shorter list, takes no longer one' in str(refused.value)


def test_auto_stays_with_its_mechanism(installation: Installation) -> None:
    few = installation.build(THREE, "auto", "reports = 10000").metric("theme")
    many = [*THREE, *(f"v{n}" for n in range(60))]
    grown = installation.build(many, "auto", "reports = 10000").metric("theme")
    assert (grown.grown, grown.mechanism) == ((3,), few.mechanism)


def test_a_device_accepts_the_longer_list_with_one_budget(installation: Installation) -> None:
    old, new = installation.build(THREE), installation.build(FOUR)
    trust = Trust()
    for bundle in (old, new):  # what was promised is kept
        trust.admit("app", bundle, None, [])
    state, shuffler, moment = MemoryState(), FakeShuffler(), now()

    def client(bundle: Bundle, at: float) -> Client:
        return Client(bundle, state, shuffler, hold_seconds=None, clock=SystemClock(lambda: at))

    with client(old, moment) as app:
        assert app.report("theme", "dark") is Outcome.QUEUED
        assert app.flush(HANG_SECONDS)
    with client(new, moment) as app:
        assert app.report("theme", "sepia") is Outcome.ALREADY_REPORTED  # whatever the list
    with client(new, moment + DAY) as app:
        assert app.report("theme", "sepia") is Outcome.QUEUED
        with pytest.raises(UnknownMetric, match="has no metric of this name"):
            app.report("theme/v4", "sepia")
        assert app.flush(HANG_SECONDS)
        assert app.ledger().metrics[0].spent == pytest.approx(2 * new.metric("theme").report_loss)
        assert {payload.metric for payload in app.ledger().payloads} == {"theme"}
    assert [report.stream for report in shuffler.reports()] == ["theme", "theme/v4"]


def test_an_sdk_without_grown_lists_refuses_the_bundle(installation: Installation) -> None:
    """Or an app with an older SDK would count four values as three."""
    installation.build(THREE)
    plain = (installation.folder / "app.hubbub").read_bytes()
    assert b'"version":1,"shuffler"' in plain
    installation.build(FOUR)
    signed = (installation.folder / "app.hubbub").read_bytes()
    assert b'"version":2,"shuffler"' in signed
    assert open_bundle(signed, "it").metric("theme").grown == (3,)
    assert _signed_body("bundle", b"") == b"hubbub/1 bundle\n"


FIRST = 20_000


async def _store(window_totals: Mapping[tuple[str, int], Totals]) -> MemoryStore:
    store = MemoryStore()
    for (stream, epoch), totals in window_totals.items():
        await store.count(Window(stream, epoch), totals)
    return store


def _draw(bundle: Bundle, stream: str, true_counts: list[int], seed: int) -> Totals:
    mechanism = bundle.metric_of(stream).randomizer
    return draw(mechanism, range(len(true_counts)), true_counts, np.random.default_rng(seed))


@pytest.fixture
def counted(installation: Installation) -> tuple[Bundle, dict[tuple[str, int], Totals]]:
    """A day of the first list, one of both, one of the second."""
    installation.build(THREE)
    bundle = installation.build(FOUR)
    return bundle, {
        ("theme", FIRST): _draw(bundle, "theme", [600, 300, 100], 1),
        ("theme", FIRST + 1): _draw(bundle, "theme", [500, 200, 100], 2),
        ("theme/v4", FIRST + 1): _draw(bundle, "theme/v4", [200, 600, 200, 200], 3),
        ("theme/v4", FIRST + 2): _draw(bundle, "theme/v4", [500, 600, 200, 200], 4),
    }


def _list_answers(
    bundle: Bundle, window_totals: Mapping[tuple[str, int], Totals]
) -> tuple[Estimated, Trended, Compared, list[int]]:
    async def ask() -> tuple[Estimated, Trended, Compared, list[int]]:
        store = await _store(window_totals)
        engine = QueryEngine(bundle, store, clock=lambda: (FIRST + 9) * DAY)
        every = EstimateQuery(range=EpochRange(epochs="all"))
        days = [EpochRange(epochs=str(FIRST + n)) for n in (1, 2)]
        return (
            await engine.estimate("theme", every),
            await trend(engine, "theme", every, ["dark", "sepia"]),
            await compare(engine, "theme", EstimateQuery(range=days[0]), days[1]),
            [metric.reports for metric in await engine.metrics()],
        )

    return asyncio.run(ask())


def test_answers_join_all_lists_with_exact_variances(
    counted: tuple[Bundle, dict[tuple[str, int], Totals]],
) -> None:
    bundle, window_totals = counted
    joint_answer, trend, compared, reports = _list_answers(bundle, window_totals)
    assert joint_answer.reports == 4500
    assert reports == [4500]
    rows = {row.value: row for row in joint_answer.values}
    parts = [
        answer(metric.randomizer, _sum(window_totals, metric.name), metric.values)
        for metric in map(bundle.metric_of, ("theme", "theme/v4"))
    ]
    dark = [next(row for row in part.values if row.value == "dark") for part in parts]
    assert rows["dark"].estimate == pytest.approx(sum(row.estimate for row in dark))
    assert rows["dark"].stderr == pytest.approx(sqrt(sum(row.stderr**2 for row in dark)))
    sepia = parts[1].values[3]
    assert rows["sepia"].estimate == pytest.approx(sepia.estimate)
    assert rows["sepia"].stderr == pytest.approx(sepia.stderr)
    assert rows["sepia"].share == pytest.approx(sepia.estimate / 2700)
    assert rows["dark"].share == pytest.approx(rows["dark"].estimate / 4500)
    [note] = joint_answer.notes
    assert (
        "Not asked in 1,800 of 4,500 reports, since these values were appended later: sepia."
        in note
    )
    assert "The share is of the 2,700 that could contain it." in note
    for value, true in (("light", 1800), ("dark", 1700), ("system", 600), ("sepia", 400)):
        # Of a normal law, 5 errors are passed by one in 1.7 million.
        assert abs(rows[value].estimate - true) < 5 * rows[value].stderr
    dark_line, sepia_line = trend.series
    assert [point.reports for point in dark_line.points] == [1000, 2000, 1500]
    assert [point.reports for point in sepia_line.points] == [1200, 1500]
    assert (dark_line.not_asked, sepia_line.not_asked) == ("", trend.epochs[0].date)
    assert trend.joined == []
    # What not all could say is not compared.
    assert [row.value for row in compared.values] == THREE


def _sum(window_totals: Mapping[tuple[str, int], Totals], stream: str) -> Totals:
    stream_totals = [totals for (name, _), totals in window_totals.items() if name == stream]
    cells = np.sum([totals.cells for totals in stream_totals], axis=0).tolist()
    return Totals(cells=cells, reports=sum(totals.reports for totals in stream_totals))


@pytest.mark.slow
def test_the_errors_of_joined_lists_are_as_stated() -> None:
    """600 epochs of two lists: scores of a value of both, and of an appended one."""
    chance = np.random.default_rng(9)
    three, four = (build("grr", epsilon=1.0, categories=size) for size in (3, 4))
    scores = np.empty((600, 2))
    inside = np.zeros(2)
    for run in range(600):
        old = chance.multinomial(700, [0.2, 0.3, 0.5]).tolist()
        new = chance.multinomial(500, [0.3, 0.3, 0.2, 0.2]).tolist()
        lists = [
            ([(mechanism, draw(mechanism, range(len(counts)), counts, chance))], len(counts))
            for mechanism, counts in ((three, old), (four, new))
        ]
        joint_answer = answer_lists(lists, FOUR)
        for place, (row, true) in enumerate(((1, old[1] + new[1]), (3, new[3]))):
            cell = joint_answer.values[row]
            scores[run, place] = (cell.estimate - true) / cell.stderr
            inside[place] += cell.low <= true <= cell.high
    assert np.all(np.abs(scores.mean(axis=0)) < 5 / sqrt(600))
    assert np.all(np.abs((scores**2).mean(axis=0) - 1) < 5 * sqrt(2 / 600))
    assert np.all(inside / 600 > 0.95 - 5 * sqrt(0.95 * 0.05 / 600))


def test_an_aggregator_takes_the_longer_list_while_it_runs(installation: Installation) -> None:
    old = installation.build(THREE)
    table = read_stream_table(installation.folder / "streams.json")
    new = installation.build(FOUR)
    here = installation.folder / "operator.hubbub"
    check_follows(new, old, here)
    read_stream_table(installation.folder / "streams.json").check_follows(table)
    with pytest.raises(BundleRefused):
        check_follows(replace(old, serial=new.serial + 1), new, here)
