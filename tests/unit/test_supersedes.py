"""A metric that goes on from another: what may, and that a trend joins their reports exactly."""

import asyncio
import json
from dataclasses import asdict, replace
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, chi2

from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.query.epoch_range import EpochRange
from hubbub.aggregator.query.estimating import EstimateQuery
from hubbub.aggregator.query.trends import Point, Trended, trend
from hubbub.analysis.answering import Followed, answer, joined_shares
from hubbub.analysis.families import draw
from hubbub.bundles import Bundle
from hubbub.cli.terminal.answer_tables import show_trend
from hubbub.conservation import Window
from hubbub.errors import BadParameter, CatalogInvalid
from hubbub.keys.operator_key import read_operator_key
from hubbub.mechanisms import Totals, build
from hubbub.notebook.answer import Answer
from hubbub.signing.sign_bundle import sign_bundle
from tests.support.bundles import DAY, make_signed
from tests.support.catalogs import catalog_of, catalog_toml, metric_toml
from tests.support.fakes import MemoryStore

THREE = 'mechanism = "grr"\nvalues = ["light", "dark", "system"]'
FOUR = 'mechanism = "unary.oue"\nvalues = ["sepia", "dark", "system", "light"]'
NUMBER = 'mechanism = "mean.one_bit"\ndomain = "number"\nlow = 0\nhigh = {high}'
FIRST = 20_000


def _table(name: str, rest: str, epoch: str = "day") -> str:
    return metric_toml(name, rest, epoch=epoch, epsilon=2.0)


def _catalog(*tables: str) -> str:
    return catalog_toml(*tables, shuffler="shuffler.example.org:443")


def _joins(rest: str, name: str = "theme") -> str:
    return f'{rest}\nsupersedes = "{name}"'


THEME = _table("theme", THREE)


def _bundle(folder: Path, *tables: str) -> Bundle:
    return make_signed(folder, _catalog(*tables), start=FIRST * DAY).bundle


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ([_table("theme_2", _joins(FOUR))], "is not in this catalog.*as expires"),
        ([_table("theme", _joins(THREE))], "continues it in turn"),
        ([_table("theme", _joins(THREE, "b")), _table("b", _joins(THREE))], "continues it in turn"),
        ([THEME, _table("b", _joins(THREE)), _table("c", _joins(THREE))], 'is superseded by "b"'),
        ([_table("theme", THREE, "week"), _table("b", _joins(FOUR))], "its epoch is day, and that"),
        (
            [THEME, _table("b", _joins('mechanism = "grr"\nvalues = ["x", "y"]'))],
            "no value in common",
        ),
        (
            [THEME, _table("b", _joins(NUMBER.format(high=9)))],
            "it is over numbers and that one over values",
        ),
        (
            [_table("theme", NUMBER.format(high=8)), _table("b", _joins(NUMBER.format(high=9)))],
            "their low and high differ",
        ),
    ],
)
def test_metrics_that_cannot_be_joined_are_refused(tables: list[str], message: str) -> None:
    with pytest.raises(CatalogInvalid, match=rf'field "supersedes": .*{message}'):
        catalog_of(_catalog(*tables))


def test_supersedes_is_checked_in_a_bundle_and_devices_never_get_it(tmp_path: Path) -> None:
    signed = make_signed(
        tmp_path,
        _catalog(_table("theme", THREE), _table("theme_2", _joins(FOUR))),
        start=FIRST * DAY,
    )
    bundle = signed.bundle
    assert bundle.metric("theme_2").supersedes == "theme"
    assert b"supersedes" not in sign_bundle(bundle, read_operator_key(signed.keys))
    alone = {"theme_2": bundle.metrics["theme_2"]}
    with pytest.raises(BadParameter, match='metric "theme_2": supersedes: "theme" is not in this'):
        replace(bundle, metrics=alone)


def _trend(
    bundle: Bundle, window_totals: dict[tuple[str, int], Totals], values: list[str]
) -> Trended:
    async def trend_of() -> Trended:
        store = MemoryStore()
        for (name, epoch), totals in window_totals.items():
            await store.count(Window(name, epoch), totals)
        engine = QueryEngine(bundle, store, clock=lambda: (FIRST + 9) * DAY)
        last = list(bundle.metrics)[-1]
        return await trend(engine, last, EstimateQuery(range=EpochRange(epochs="all")), values)

    return asyncio.run(trend_of())


def _draw(bundle: Bundle, name: str, true_counts: list[int], seed: int) -> Totals:
    mechanism = bundle.metric(name).randomizer
    return draw(mechanism, range(len(true_counts)), true_counts, np.random.default_rng(seed))


@pytest.fixture
def renamed(tmp_path: Path) -> tuple[Bundle, dict[tuple[str, int], Totals]]:
    """A day of the old name, one of both, one of the new."""
    bundle = _bundle(tmp_path, _table("theme", THREE), _table("theme_2", _joins(FOUR)))
    return bundle, {
        ("theme", FIRST): _draw(bundle, "theme", [600, 300, 100], 1),
        ("theme", FIRST + 1): _draw(bundle, "theme", [500, 200, 100], 2),
        ("theme_2", FIRST + 1): _draw(bundle, "theme_2", [200, 600, 200, 200], 3),
        ("theme_2", FIRST + 2): _draw(bundle, "theme_2", [500, 600, 200, 200], 4),
    }


def _check_share(point: Point, share: float, reports: int) -> None:
    assert point.reports == reports
    assert point.low < point.share < point.high
    # Of a normal law, 5 errors are passed by one in 1.7 million.
    assert abs(point.share - share) < 5 * point.stderr


def test_a_trend_adds_reports_of_both_names(
    renamed: tuple[Bundle, dict[tuple[str, int], Totals]],
) -> None:
    bundle, window_totals = renamed
    trend = _trend(bundle, window_totals, ["dark", "sepia"])
    assert trend.joined == ["theme"]
    assert [epoch.reports for epoch in trend.epochs] == [1000, 2000, 1500]
    dark, sepia = trend.series
    for point, (share, reports) in zip(
        dark.points, [(0.3, 1000), (800 / 2000, 2000), (600 / 1500, 1500)], strict=True
    ):
        _check_share(point, share, reports)
    # Those alone who were asked for it.
    for point, (share, reports) in zip(
        sepia.points, [(200 / 1200, 1200), (500 / 1500, 1500)], strict=True
    ):
        _check_share(point, share, reports)
    assert (dark.not_asked, sepia.not_asked) == ("", trend.epochs[0].date)
    # Exactly: sums of what each name says, and of its variances.
    rows = []
    for name in ("theme", "theme_2"):
        metric, totals = bundle.metric(name), window_totals[name, FIRST + 1]
        values = answer(metric.randomizer, totals, metric.values).values
        rows.append(next(row for row in values if row.value == "dark"))
    joined = dark.points[1]
    assert joined.share == pytest.approx(sum(row.estimate for row in rows) / 2000)
    coins = sum(row.stderr**2 for row in rows) / 2000**2
    drawn = joined.share * (1 - joined.share) / (2000 / 2)  # a device may be in both
    assert joined.stderr == pytest.approx(sqrt(coins + drawn))


def test_too_few_under_a_name_are_left_out(
    renamed: tuple[Bundle, dict[tuple[str, int], Totals]],
) -> None:
    bundle, window_totals = renamed
    window_totals["theme", FIRST + 1] = _draw(bundle, "theme", [50, 40, 9], 5)
    dark, sepia = _trend(bundle, window_totals, ["dark", "sepia"]).series
    assert [point.reports for point in dark.points] == [1000, 1200, 1500]
    del window_totals["theme", FIRST]
    alone = _trend(bundle, window_totals, ["dark", "sepia"])
    assert alone.joined == []
    assert [series.not_asked for series in alone.series] == ["", ""]
    assert [series.points for series in alone.series] == [dark.points[1:], sepia.points]


def test_means_are_joined(tmp_path: Path) -> None:
    number = NUMBER.format(high=10)
    bundle = _bundle(tmp_path, _table("load", number), _table("load_2", _joins(number, "load")))
    chance = np.random.default_rng(6)
    window_totals = {
        (name, FIRST): draw(bundle.metric(name).randomizer, [at], [many], chance)
        for name, at, many in (("load", 2.0, 4000), ("load_2", 8.0, 2000))
    }
    trend = _trend(bundle, window_totals, [])
    [point] = trend.series[0].points
    _check_share(point, 4.0, 6000)


def test_every_interface_shows_epochs_before_a_value_was_listed(
    renamed: tuple[Bundle, dict[tuple[str, int], Totals]], capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(json.dumps(asdict(_trend(*renamed, ["dark", "sepia"]))))
    date = document["epochs"][0]["date"]
    show_trend(document)
    output, html = capsys.readouterr().out, Answer("trend", document)._repr_html_()
    for face in (output, html):
        assert "with the reports of former metrics: theme" in face
        assert f"sepia: not asked in {date}" in face
        assert "dark: not asked" not in face


@pytest.mark.slow
def test_the_joined_errors_are_as_stated() -> None:
    """500 epochs of two populations, of which either may be asked under another mechanism."""
    chance = np.random.default_rng(7)
    old, new = (
        build("grr", epsilon=2.0, categories=3),
        build("unary.oue", epsilon=1.0, categories=4),
    )
    shares, sizes = ([0.1, 0.3, 0.6], [0.4, 0.2, 0.3, 0.1]), (800, 500)
    true = (800 * 0.3 + 500 * 0.4) / 1300
    scores, inside, runs = [], 0, 500
    for _ in range(runs):
        parts = []
        for mechanism, law, reports, place in zip((old, new), shares, sizes, (1, 0), strict=True):
            counts = chance.multinomial(reports, law).tolist()
            totals = draw(mechanism, range(len(law)), counts, chance)
            parts.append(Followed([(mechanism, totals)], [place]))
        [joint_share] = joined_shares(parts)
        scores.append((joint_share.estimate - true) / joint_share.stderr)
        inside += joint_share.low <= true <= joint_share.high
    # Each bound is passed by chance less than once in a million; the band holds the sampling of
    # devices that are in both.
    assert abs(np.mean(scores)) < 5 / sqrt(runs)
    assert sum(np.square(scores)) < chi2.isf(1e-6, runs)
    assert inside >= binom.ppf(1e-6, runs, 0.95)
    assert np.mean(np.square(scores)) > 0.5
