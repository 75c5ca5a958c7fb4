"""Development: a single report leaves, its answers say so, and production refuses its files."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from math import exp, sqrt
from pathlib import Path
from typing import Any

import pytest

from hubbub.aggregator.ingest.development_reports import Arrivals
from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.query.arriving_reports import Watched
from hubbub.aggregator.query.derived_answers import compare, top
from hubbub.aggregator.query.epoch_range import EpochRange
from hubbub.aggregator.query.estimating import EstimateQuery
from hubbub.aggregator.query.trends import trend
from hubbub.aggregator.releases.releasing import ReleaseQuery, Releases
from hubbub.authoring import read_with_promises
from hubbub.bundles import Bundle, read_bundle
from hubbub.bundles.opening_keys import DEVELOPMENT_IDS
from hubbub.cli.commands.status import show_pipeline
from hubbub.cli.terminal.answer_tables import (
    show_changes,
    show_estimates,
    show_metrics,
    show_top,
    show_trend,
)
from hubbub.client import Outcome, init
from hubbub.client.delivery.waits import Waits
from hubbub.conservation import Window
from hubbub.errors import BadParameter, BundleRefused
from hubbub.errors.message_words import PROTECTS_NOBODY
from hubbub.installation.keys_and_bundles import build_bundle, make_keys
from hubbub.keys.opening_key_files import read_public_keys
from hubbub.mechanisms import Totals
from hubbub.notebook.answer import Answer
from hubbub.privacy.card import facts, metric_card
from hubbub.privacy.crowd_guarantees import rests_on, shuffled_of
from hubbub.query_results.answer_table import QueryName, whole_rows
from hubbub.shuffler.stream_table import StreamTable, read_stream_table
from hubbub.wire.v1.report_pb2 import SealedReport
from hubbub.wire.v1.services_pb2 import Reason
from tests.support.bundles import crowd_text
from tests.support.catalogs import catalog_toml, metric_toml, promised_catalog_of
from tests.support.fakes import MemoryReleaseLog, MemoryStore

CATALOG = catalog_toml(
    metric_toml("theme", mechanism="grr", epsilon=2.0, values=["light", "dark", "system"]),
    shuffler="shuffler.example.org:443",
)

DAY, FIRST = 86_400, 20_000
VIEWS: Mapping[QueryName, Callable[[dict[str, Any]], None]] = {
    "estimates": show_estimates,
    "top": show_top,
    "compare": show_changes,
    "trend": show_trend,
    "metrics": show_metrics,
    "status": show_pipeline,
}

PROMISE = {"central_epsilon": 1.0, "crowd": 30000, "dummies": 4000}
CROWD = metric_toml("font", mechanism="auto", values=["serif", "sans", "mono"], **PROMISE)


def _signed_files(folder: Path, *, development: bool) -> tuple[Bundle, StreamTable]:
    folder.mkdir()
    make_keys(folder / "keys", development=development)
    catalog, keys = promised_catalog_of(CATALOG + CROWD), folder / "keys"
    out, streams = folder / "app.hubbub", folder / "streams.json"
    build_bundle(catalog, keys, out=out, streams=streams, previous=out, roots=None)
    return read_bundle(out), read_stream_table(streams)


@pytest.fixture
def dev(tmp_path: Path) -> tuple[Bundle, StreamTable]:
    return _signed_files(tmp_path / "dev", development=True)


@pytest.fixture
def production(tmp_path: Path) -> tuple[Bundle, StreamTable]:
    return _signed_files(tmp_path / "production", development=False)


def test_each_kind_of_service_refuses_the_files_of_the_other(
    dev: tuple[Bundle, StreamTable], production: tuple[Bundle, StreamTable]
) -> None:
    for installation, development in ((dev, True), (production, False)):
        bundle, table = installation
        bundle.refuse_elsewhere(development=development, path="app.hubbub")
        table.refuse_elsewhere(development=development, path=Path("streams.json"))
        says = "with --dev" if development else "a service with --dev refuses"
        with pytest.raises(BundleRefused, match=says):
            bundle.refuse_elsewhere(development=not development, path="app.hubbub")
        with pytest.raises(BadParameter, match=says):
            table.refuse_elsewhere(development=not development, path=Path("streams.json"))


def test_a_start_with_a_development_bundle_is_strict(
    dev: tuple[Bundle, StreamTable],
    production: tuple[Bundle, StreamTable],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("HUBBUB_BUNDLE", raising=False)
    assert (dev[0].development, production[0].development) == (True, False)
    with pytest.raises(BadParameter, match="max_epsilon -1 must be"):
        init(tmp_path / "dev" / "app.hubbub", max_epsilon=-1)
    assert init(tmp_path / "dev" / "app.hubbub", max_epsilon=-1, strict=False) is None
    assert init(tmp_path / "production" / "app.hubbub", max_epsilon=-1) is None
    monkeypatch.setenv("HUBBUB_BUNDLE", str(tmp_path / "dev" / "app.hubbub"))
    with pytest.raises(BadParameter, match="max_epsilon -1 must be"):
        init(max_epsilon=-1)


def test_a_path_that_cannot_be_told_disables_the_client_of_a_program() -> None:
    class Gone:
        def __fspath__(self) -> str:
            raise FileNotFoundError("the drive is gone")

    client = init(Gone())
    assert client is not None
    assert client.report("theme", "dark") is Outcome.DISABLED


def test_a_single_report_leaves_in_development_alone(
    dev: tuple[Bundle, StreamTable], production: tuple[Bundle, StreamTable]
) -> None:
    assert (dev[0].metric("theme").fewest, dev[1].streams["theme"].min_batch) == (1, 1)
    bundle, table = production
    assert (bundle.metric("theme").fewest, table.streams["theme"].min_batch) == (100, 100)
    assert Waits(dev[0], 3600.0).before_sending(left_over=False) == 0


def test_the_page_and_the_card_show_the_minimum_batch_in_force(
    dev: tuple[Bundle, StreamTable], production: tuple[Bundle, StreamTable]
) -> None:
    """The page's chip, and the privacy card: the catalog's number is not what protects here."""
    for (bundle, _), batch in ((dev, "1"), (production, "100")):
        metric = bundle.metric("theme")
        texts = {fact.label: fact.text for fact in facts(metric)}
        assert texts["minimum batch"] == batch
        assert metric_card(metric).min_batch == int(batch)


def test_a_promise_that_development_does_not_keep_is_marked(tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text('shuffler = "127.0.0.1:1"\n' + crowd_text(1000, "count_epsilon = 0.5\n"))
    metric = read_with_promises(path).metrics["theme"]
    for development in (True, False):
        shown = {fact.field: fact.text for fact in facts(replace(metric, development=development))}
        promises = {"central_epsilon", "count_epsilon", "crowd"}
        marked = {field for field, text in shown.items() if text.endswith(" (not under --dev)")}
        assert promises <= shown.keys()
        assert marked & promises == (promises if development else set())


def test_a_production_table_takes_no_single_reports(tmp_path: Path) -> None:
    _signed_files(tmp_path / "dev", development=True)
    path = tmp_path / "dev" / "streams.json"
    document = json.loads(path.read_text())
    del document["development"]
    path.write_text(json.dumps(document))
    with pytest.raises(BadParameter, match="min_batch"):
        read_stream_table(path)


def test_each_shuffler_refuses_reports_of_devices_of_the_other(
    dev: tuple[Bundle, StreamTable], production: tuple[Bundle, StreamTable]
) -> None:
    for (bundle, _), (_, table) in ((dev, production), (production, dev)):
        stream = table.streams["theme"]
        [key, *_] = bundle.keys
        epoch = key.start // stream.epoch_seconds
        report = SealedReport(
            stream="theme", epoch=epoch, key_id=key.id, sealed=bytes(stream.sealed_bytes)
        )
        now = float(epoch * stream.epoch_seconds)
        assert table.refusal(report, now) == Reason.REASON_WRONG_KEY


@pytest.mark.usefixtures("dev")
def test_the_development_mark_is_signed_and_matches_the_keys(
    production: tuple[Bundle, StreamTable], tmp_path: Path
) -> None:
    path = tmp_path / "dev" / "app.hubbub"
    path.write_bytes(path.read_bytes().replace(b'"development":true', b'"development":null'))
    with pytest.raises(BundleRefused, match="altered after signing"):
        read_bundle(path)
    with pytest.raises(BadParameter, match="hubbub keys new --dev"):
        replace(production[0], development=True)
    keys = read_public_keys(tmp_path / "dev" / "keys")
    assert [key.id for key in keys][:2] == [DEVELOPMENT_IDS, DEVELOPMENT_IDS + 1]


def _document(answer: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(asdict(answer)))
    return document


async def _all_answers(bundle: Bundle) -> dict[QueryName, dict[str, Any]]:
    """The answer to every question, as it comes over HTTP, of two days that hold enough reports."""
    store = MemoryStore()
    for place in range(2):
        await store.count(Window("theme", FIRST + place), Totals(cells=[200, 80, 20], reports=300))
    engine = QueryEngine(bundle, store, clock=lambda: (FIRST + 9) * DAY)
    every = EstimateQuery(range=EpochRange(epochs="all"))
    before, after = (EpochRange(epochs=str(FIRST + place)) for place in range(2))
    line, _ = await engine.metrics()
    return {
        "estimates": _document(await engine.estimate("theme", every)),
        "top": _document(await top(engine, "theme", every, 2)),
        "compare": _document(await compare(engine, "theme", EstimateQuery(range=before), after)),
        "trend": _document(await trend(engine, "theme", every)),
        "metrics": {"metrics": [_document(line)], "total": 1},
        "status": _document(await engine.status()),
    }


def test_every_interface_marks_answers_of_development(
    dev: tuple[Bundle, StreamTable], capsys: pytest.CaptureFixture[str]
) -> None:
    answers = asyncio.run(_all_answers(dev[0]))
    assert answers.keys() == VIEWS.keys()
    for question, answer in answers.items():
        document = answer["metrics"][0] if question == "metrics" else answer
        assert document["notice"] == PROTECTS_NOBODY, question
        VIEWS[question](answer)
        assert capsys.readouterr().out.startswith(PROTECTS_NOBODY), question
        in_notebook = Answer(question, answer)
        assert in_notebook._repr_html_().startswith(f"<p><strong>{PROTECTS_NOBODY}"), question
        assert PROTECTS_NOBODY in repr(in_notebook), question
        assert {row["notice"] for row in whole_rows(question, answer)} <= {PROTECTS_NOBODY}


def test_answers_of_production_have_no_development_notice(
    production: tuple[Bundle, StreamTable], capsys: pytest.CaptureFixture[str]
) -> None:
    for question, answer in asyncio.run(_all_answers(production[0])).items():
        VIEWS[question](answer)
        assert "DEVELOPMENT" not in capsys.readouterr().out
        assert "DEVELOPMENT" not in Answer(question, answer)._repr_html_()
        assert not any("notice" in row for row in whole_rows(question, answer) if "value" in row)


@pytest.mark.parametrize("each", [0.5, 1.0])
def test_every_interface_marks_an_estimated_number_of_reports(
    production: tuple[Bundle, StreamTable], capsys: pytest.CaptureFixture[str], each: float
) -> None:
    """300 reports and dummies a day; their coins are the number's error."""
    font = production[0].metrics["font"]
    assert font.crowd
    font = replace(
        font,
        name="theme",
        crowd=replace(font.crowd, dummies=0, dummies_each=each, reports=100),
        min_batch=100,
    )
    metrics = {**production[0].metrics, "theme": font}
    history = {name: metric.digest() for name, metric in metrics.items()}
    bundle = replace(production[0], metrics=metrics, history=history)
    reports = 300 / (1 + each)
    error = sqrt(reports * (each % 1) * (1 - each % 1)) / (1 + each)
    answers = asyncio.run(_all_answers(bundle))
    for question in ("estimates", "top", "compare", "trend", "metrics"):
        answer = answers[question]
        document = answer["metrics"][0] if question == "metrics" else answer
        number, its = (reports, error) if question == "compare" else (2 * reports, error * sqrt(2))
        notice = f"the number of reports is an estimate, {number:,.0f} ± {its:,.1f}"
        assert notice in document["notice"], question
        VIEWS[question](answer)
        assert notice in " ".join(capsys.readouterr().out.split()), question
        assert notice in Answer(question, answer)._repr_html_(), question
    assert answers["estimates"]["reports_stderr"] == pytest.approx(error * sqrt(2))
    rows = whole_rows("estimates", answers["estimates"])
    assert {row["reports_stderr"] for row in rows} == {answers["estimates"]["reports_stderr"]}


async def _watched(bundle: Bundle, arrivals: Arrivals | None, after: int = 0) -> Watched:
    return await QueryEngine(bundle, MemoryStore(), arrivals=arrivals).watch(after)


def test_a_report_is_watched_with_what_it_could_have_meant(dev: tuple[Bundle, StreamTable]) -> None:
    arrivals, window = Arrivals(), Window("theme", FIRST)
    arrivals.add(window, [b"\1", b"\2"], time=FIRST * DAY + 61)
    arrivals.add(Window("gone", FIRST), [b"\1"], time=FIRST * DAY + 62)
    result = asyncio.run(_watched(dev[0], arrivals))
    assert result.notice == PROTECTS_NOBODY
    assert [(arrival.number, arrival.payload) for arrival in result.arrivals] == [
        (1, "01"),
        (2, "02"),
    ]
    first = result.arrivals[0]
    assert (first.stream, first.date, first.at) == ("theme", "2024-10-04", "2024-10-04T00:01:01Z")
    assert [meaning.value for meaning in first.meanings] == ["dark", "light", "system"]
    assert (sum(meaning.probability for meaning in first.meanings), first.others) == (1, 0)
    assert first.meanings[0].probability / first.meanings[1].probability == pytest.approx(exp(2))
    [second] = asyncio.run(_watched(dev[0], arrivals, after=1)).arrivals
    assert second.number == 2
    of_another_run = asyncio.run(_watched(dev[0], arrivals, after=50))
    assert len(of_another_run.arrivals) == 2


def test_only_the_newest_reports_are_remembered() -> None:
    arrivals = Arrivals()
    arrivals.add(Window("theme", FIRST), [b"\1"] * 1000, time=0)
    newest = arrivals.newer_than(0)
    assert len(newest) < 1000
    assert [arrival.number for arrival in newest] == list(range(1001 - len(newest), 1001))


def test_production_shows_no_single_report(production: tuple[Bundle, StreamTable]) -> None:
    assert asyncio.run(_watched(production[0], None)) == Watched([], "")


def test_a_development_crowd_has_no_central_promise(
    dev: tuple[Bundle, StreamTable], production: tuple[Bundle, StreamTable]
) -> None:
    assert (production[1].streams["font"].mix, production[1].streams["font"].dummies) == (
        "epoch",
        4000,
    )
    stream, font = dev[1].streams["font"], dev[0].metric("font")
    assert (stream.mix, stream.dummies, stream.min_batch) == ("pool", 0, 1)
    for reports in (None, 1):
        shuffled = shuffled_of(font, reports)
        assert shuffled.epsilon == font.report_loss
        assert "whole epoch" not in rests_on(font, shuffled)
    detail = asyncio.run(QueryEngine(dev[0], MemoryStore()).metric("font"))
    assert detail.shuffled.epsilon == font.report_loss
    assert font.digest() == production[0].metric("font").digest()


@pytest.mark.parametrize("name", ["theme", "font"])
def test_answers_of_development_are_not_released(
    dev: tuple[Bundle, StreamTable], name: str
) -> None:
    releases = Releases(QueryEngine(dev[0], MemoryStore()).collected, MemoryReleaseLog())
    with pytest.raises(BadParameter, match="Its answers are not released"):
        asyncio.run(
            releases.release(
                ReleaseQuery(
                    metric=name, query="histogram", value="", epochs=(), purpose="p", by="me"
                )
            )
        )
