"""Releases end to end: budgets and the record on a real Redis, the service, gRPC, HTTP, command.

The census answers a year-old day through the real randomizers; the aggregator's own process, its
Redis and both faces are the shipping ones.
"""

import asyncio
import csv
import gzip
import json
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub.aggregator.access.tokens import Caller, Grant
from hubbub.aggregator.query.totals import TotalsByEpoch
from hubbub.aggregator.releases.release_log import (
    Entries,
    Entry,
    ReleaseLog,
    Unreadable,
    read_entry,
)
from hubbub.aggregator.releases.releasing import ReleaseQuery, Releases
from hubbub.aggregator.store.contract import Commit
from hubbub.aggregator.store.redis import RedisStore
from hubbub.cli.main import main
from hubbub.conservation import Window
from hubbub.epochs import epoch_date, epoch_dates
from hubbub.errors import BadParameter, BatchTooSmall, BudgetExhausted, UnknownMetric
from hubbub.mechanisms import SystemBits, tally
from hubbub.privacy.central_releases import Released
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.version import VERSION
from tests.interfaces.running_aggregator import house
from tests.support import web
from tests.support.bundles import DAY, Signed, make_signed
from tests.support.catalogs import metric_toml
from tests.support.commands import document_of, output_of, refusal_of
from tests.support.fakes import MemoryReleaseLog, MemoryStore
from tests.support.servers import redis_server
from tests.support.stores import commit_of

EPSILONS = (0.1, 1, 10)
HEAD = """
shuffler = "127.0.0.1:1"
[budget]
epsilon_per_year = 50
delta_per_year = 1e-6
purposes = { report = 0.9, "tiny one" = 0.002 }
"""
EDUCATION = [
    "Preschool",
    "1st-4th",
    "5th-6th",
    "7th-8th",
    "9th",
    "10th",
    "11th",
    "12th",
    "HS-grad",
    "Some-college",
    "Assoc-voc",
    "Assoc-acdm",
    "Bachelors",
    "Masters",
    "Prof-school",
    "Doctorate",
]
CATALOG = HEAD
for _number, _epsilon in enumerate(EPSILONS):
    CATALOG += metric_toml(
        f"education_{_number}",
        mechanism="grr",
        epsilon=2.0,
        values=EDUCATION,
        release={"mechanism": "laplace", "epsilon": _epsilon},
    )
    CATALOG += metric_toml(
        f"age_{_number}",
        mechanism="mean.piecewise",
        epsilon=2.0,
        domain="number",
        low=17,
        high=90,
        release={"mechanism": "gaussian", "epsilon": _epsilon, "delta": 1e-8},
    )
CATALOG += metric_toml("kept", mechanism="rr", epsilon=2.0, values=["no", "yes"])


@pytest.fixture(scope="module")
def census() -> list[dict[str, str]]:
    packed = files("hubbub.cli") / "demo_data" / "census_people.csv.gz"
    return list(csv.DictReader(gzip.decompress(packed.read_bytes()).decode().splitlines()))


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Signed:
    return make_signed(
        tmp_path_factory.mktemp("released"), CATALOG, start=(int(time.time()) // DAY - 14) * DAY
    )


def _entry(name: str, **changes: Any) -> Entry:
    number = Released(value="a", estimate=1.5, stderr=2.0, noise=1.0, low=-2.5, high=5.5)
    entry = Entry(
        id=name,
        at=1000,
        year=2026,
        purpose="report",
        by="me",
        metric="theme",
        query="count",
        value="a",
        epochs=(1, 2),
        mechanism="laplace",
        epsilon=1.0,
        delta=0.0,
        answer=(number,),
    )
    return replace(entry, **changes)


@asynccontextmanager
async def _release_log(backend: str, folder: Path) -> AsyncIterator[ReleaseLog]:
    if backend == "memory":
        yield MemoryReleaseLog()
        return
    with redis_server(folder / "redis", appendonly="yes") as port:
        server = await connect_redis(f"redis://127.0.0.1:{port}/0")
        yield ReleaseLog(server)
        await server.close()


@pytest.mark.parametrize("backend", ["memory", "redis"])
async def test_a_release_is_recorded_once_and_returned_again(tmp_path: Path, backend: str) -> None:
    async with _release_log(backend, tmp_path) as record:
        first = _entry("a")
        assert await record.spend(first, (3.0, 0.0)) == (first, False)
        other = _entry("a", at=9999, by="you", answer=())
        assert await record.spend(other, (0.0, 0.0)) == (first, True)
        assert list(await record.entries()) == [first]


@pytest.mark.parametrize("backend", ["memory", "redis"])
async def test_a_purpose_spends_no_more_than_its_share_of_a_year(
    tmp_path: Path, backend: str
) -> None:
    async with _release_log(backend, tmp_path) as record:
        for number in range(3):
            await record.spend(_entry(f"a{number}", epsilon=0.1), (0.3, 0.0))  # sums like .1 + .2
        with pytest.raises(BudgetExhausted, match="has epsilon 0 and delta 0 left in 2026"):
            await record.spend(_entry("b", epsilon=0.001), (0.3, 0.0))
        await record.spend(_entry("c", epsilon=0.3, year=2027), (0.3, 0.0))
        await record.spend(_entry("d", epsilon=0.3, purpose="research"), (0.3, 0.0))
        await record.spend(_entry("e", epsilon=0.1, purpose="g", delta=6e-7), (1.0, 1e-6))
        with pytest.raises(BudgetExhausted, match=r"this release costs 0\.1 and 6e-07"):
            await record.spend(_entry("f", epsilon=0.1, purpose="g", delta=6e-7), (1.0, 1e-6))
        assert [entry.id for entry in await record.entries()] == ["a0", "a1", "a2", "c", "d", "e"]


# What may stand in a record: as 0.1 wrote it for a "by" that is no text, or as nobody ever should.
_BAD: dict[str, tuple[Callable[[str], str | bytes], bool]] = {
    "lone surrogate": (lambda text: text.replace('"me"', '"\\ud800"'), True),
    "control characters": (lambda text: text.replace('"me"', '"a\\u001b[2J\\u0000"'), True),
    "direction": (lambda text: text.replace('"me"', '"a\\u202eb"'), True),
    "cut": (lambda text: text[:-9], False),
    "a number for a name": (lambda text: text.replace('"me"', "7"), False),
    "deep": (lambda text: text.replace('"me"', "[" * 200_000), False),
    "not UTF-8": (lambda text: text.encode().replace(b'"me"', b'"\xff"'), False),
    "more fields": (lambda text: text[:-1] + ',"more":1}', False),
    "no time": (lambda text: text.replace('"at":1000', '"at":1e400'), False),
    "an epoch of none": (lambda text: text.replace("[1,2]", "[-1,99999999999]"), False),
}


@pytest.mark.parametrize("bad", _BAD)
async def test_an_unreadable_entry_is_skipped_named_and_its_cost_counted(
    bad: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spoil, readable = _BAD[bad]
    text = _entry("spoilt", epsilon=0.25, delta=1e-7).text()

    with redis_server(tmp_path / "redis", appendonly="yes") as port:
        server = await connect_redis(f"redis://127.0.0.1:{port}/0")
        client: Any = server.client
        record, first = ReleaseLog(server), _entry("first", epsilon=0.5)
        await record.spend(first, (1.0, 1e-6))
        await client.rpush("aggregator:releases", spoil(text))
        entries = await record.entries()
        assert entries.unreadable == 1
        assert [entry.id for entry in entries] == (["first", "spoilt"] if readable else ["first"])
        assert entries.spent("report", 2026) == pytest.approx((0.75, 1e-7))
        assert entries.spent("report", 2027) == (0, 0)
        assert entries.spent("other", 2026) == (0, 0)
        with pytest.raises(BudgetExhausted, match=r"has epsilon 0\.25"):
            await record.spend(_entry("more", epsilon=0.3), (1.0, 1e-6))
        assert await record.spend(first, (1.0, 1e-6)) == (first, True)
        last = _entry("last", epsilon=0.25)
        assert await record.spend(last, (1.0, 1e-6)) == (last, False)
        assert [entry.id for entry in await ReleaseLog(server).entries()][-1] == "last"
        for entry in entries:
            (entry.by + entry.text()).encode()
            assert entry.by.isprintable()
        await server.close()
    assert caplog.text.count("1 entries of the record of releases are unreadable") == 2


@pytest.mark.parametrize(
    ("text", "purpose", "year", "spent"),
    [
        (b"", "report", 2026, (0, 0)),
        (b"null", "report", 2026, (0, 0)),
        (b'{"purpose":"report","epsilon":0.5', "report", 2030, (0.5, 0)),
        (b'{"year":2026,"epsilon":0.5,"delta":1e-7', "any", 2026, (0.5, 1e-7)),
        (b'{"purpose":"report","year":2026,"epsilon":1e999', "report", 2026, (np.inf, 0)),
        (b'{"purpose":"report","year":2026,"epsilon":-5}', "report", 2026, (0, 0)),
        (b'{"purpose":"report","year":2026,"epsilon":NaN}', "report", 2026, (0, 0)),
        (b'{"purpose":"other","year":2026,"epsilon":0.5', "report", 2026, (0, 0)),
        (b'{"by":"\\"epsilon\\":0","year":2026,"epsilon":2', "report", 2026, (2, 0)),
    ],
)
def test_an_unreadable_release_counts_as_spent_where_its_budget_is_known(
    text: bytes, purpose: str, year: int, spent: tuple[float, float]
) -> None:
    unreadable, mended = read_entry(text)
    assert isinstance(unreadable, Unreadable)
    assert not mended
    assert Entries([], [unreadable]).spent(purpose, year) == pytest.approx(spent)


async def test_entries_by_several_at_once_keep_within_the_budget(tmp_path: Path) -> None:
    with redis_server(tmp_path / "redis") as port:
        server = await connect_redis(f"redis://127.0.0.1:{port}/0")
        records = [ReleaseLog(server) for _ in range(5)]
        spending = [
            record.spend(_entry(f"{number % 15}", epsilon=0.1), (1.0, 0.0))
            for number, record in enumerate(records * 6)
        ]
        results = await asyncio.gather(*spending, return_exceptions=True)
        refused = [result for result in results if isinstance(result, BudgetExhausted)]
        entered = [result for result in results if isinstance(result, tuple) and not result[1]]
        assert len(entered) == 10
        assert len(refused) == 10, "five questions, each asked twice"
        assert len({entry.id for entry in await records[0].entries()}) == 10
        await server.close()


_NO_TEXTS = [
    "\ud800",
    "a\udfff",
    "a\x00",
    "\x1b[31m",
    "two\nlines",
    "a\u2028b",
    "a\u202eb",
    "x" * 201,
]


@pytest.mark.parametrize("text", _NO_TEXTS, ids=ascii)
@pytest.mark.parametrize("name", ["metric", "query", "value", "purpose", "by"])
def test_no_query_has_an_unstorable_text(name: str, text: str) -> None:
    fields = {"metric": "m", "query": "count", "value": "v", "purpose": "p", "by": "me"}
    if (name, len(text)) == ("value", 201):
        text *= 400
    with pytest.raises(BadParameter, match=f"^{name} has") as caught:
        ReleaseQuery(**{**fields, name: text}, epochs=())
    assert text not in str(caught.value)
    str(caught.value).encode()
    with pytest.raises(BadParameter):
        _entry("a", **{name: text})


def _fill(metric: Any, values: list[Any]) -> Commit:
    """What a day's reports of these values add up to, each through the shipping randomizer."""
    mechanism, source = metric.randomizer, SystemBits()
    payloads = (mechanism.randomize(metric.code(value), source) for value in values)
    summed = np.array(tally(mechanism.layout, payloads).cells, dtype=np.int64)
    tags = [os.urandom(16) for _ in values]
    return commit_of(tags, summed, batch_reports=len(values))


async def test_callers_of_some_metrics_see_no_budget_spent_by_others(signed: Signed) -> None:
    now = time.time()
    epoch = int(now) // DAY - 40
    whole = Caller(name="all", way="token", grants=(Grant("publisher"),))
    part = Caller(name="part", way="token", grants=(Grant("publisher", ("education_1",)),))
    store = MemoryStore()
    collected = TotalsByEpoch(signed.bundle, store, lambda: now)
    releases = Releases(collected, MemoryReleaseLog(), lambda: now)
    for name in ("education_0", "education_1"):
        commit = _fill(signed.bundle.metric(name), ["Masters"] * 200)
        await store.add(Window(name, epoch), commit)
    by_all, by_part = (releases.for_viewer(caller, collected) for caller in (whole, part))
    hidden = ReleaseQuery(
        metric="education_0", query="histogram", value="", epochs=(), purpose="report", by="me"
    )
    visible = replace(hidden, metric="education_1")
    before = await by_part.record()
    assert (await by_all.release(hidden)).budget_left.epsilon_left == pytest.approx(44.9)
    assert await by_part.record() == before, "the release of a hidden metric changed an answer"
    budget = (await by_part.release(visible)).budget_left
    assert (budget.epsilon_left, budget.delta_left) == (None, None)
    entries, purposes = await by_part.record()
    assert [entry.metric for entry in entries] == ["education_1"]
    assert {(purpose.epsilon_left, purpose.delta_left) for purpose in purposes} == {(None, None)}
    [report, _] = (await by_all.record())[1]
    assert report.epsilon_left == pytest.approx(43.9)
    costly = replace(visible, purpose="tiny one", query="mode")
    with pytest.raises(BudgetExhausted, match="has too little budget left for this release"):
        await by_part.release(costly)
    with pytest.raises(BudgetExhausted, match=r"has epsilon 0\.1 and delta"):
        await by_all.release(costly)


async def test_only_final_totals_of_enough_people_are_released(signed: Signed) -> None:
    now = time.time()
    today = int(now) // DAY
    store = MemoryStore()
    collected = TotalsByEpoch(signed.bundle, store, lambda: now)
    releases = Releases(collected, MemoryReleaseLog(), lambda: now)
    metric = signed.bundle.metric("education_1")
    ask = ReleaseQuery(
        metric="education_1", query="histogram", value="", epochs=(), purpose="report", by="me"
    )
    for epoch, people in ((today - 40, 200), (today - 30, 50), (today, 300)):
        commit = _fill(metric, ["Masters"] * people)
        await store.add(Window("education_1", epoch), commit)
    with pytest.raises(BatchTooSmall, match="50 reports in the requested epochs"):
        await releases.release(ask)
    with pytest.raises(BadParameter, match=f"{epoch_date(today, DAY)} has no final totals"):
        await releases.release(replace(ask, epochs=(today,)))
    with pytest.raises(BadParameter, match="has no final totals"):
        await releases.release(replace(ask, dates=epoch_date(today - 35, DAY)))
    release = await releases.release(replace(ask, epochs=(today - 30, today - 40)))
    assert release.entry.epochs == (today - 40, today - 30)
    assert not release.again
    dates = epoch_dates((today - 40, today - 30), DAY)
    assert releases.dated(release.entry)["dates"] == dates
    by_date = await releases.release(replace(ask, dates=dates))
    assert (by_date.entry, by_date.again) == (release.entry, True)
    # Of two days one person may have two reports.
    other_release = await releases.release(replace(ask, epochs=(today - 40,)))
    assert (release.entry.answer[0].noise or 0) > 1.9 * (other_release.entry.answer[0].noise or 0)
    again = await releases.release(
        replace(ask, epochs=(today - 40, today - 30), by="you", purpose="tiny one")
    )
    assert (again.entry, again.again) == (release.entry, True)
    assert (again.budget_left.epsilon_left, again.budget_left.delta_left) == pytest.approx(
        (0.1, 2e-9)
    )
    with pytest.raises(BudgetExhausted, match=r'purpose "tiny one" has epsilon 0\.1'):
        await releases.release(replace(ask, query="mode", epochs=(today - 40,), purpose="tiny one"))
    for wrong, error, message in (
        ({"metric": "colour"}, UnknownMetric, "not in the bundle"),
        ({"metric": "kept"}, BadParameter, "add release to it in the catalog"),
        ({"purpose": "fun"}, BadParameter, "there are report, tiny one"),
        ({"query": "sum"}, BadParameter, "there are count, histogram, mean, mode"),
        ({"by": " "}, BadParameter, "say who makes the release"),
        (
            {"metric": "age_0", "query": "mean", "purpose": "tiny one"},
            BadParameter,
            "above the yearly delta",
        ),
    ):
        with pytest.raises(error, match=message):
            await releases.release(replace(ask, **wrong))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def running(
    census: list[dict[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The HTTP address of an aggregator with a day of the census, long closed."""

    async def fill(signed: Signed, url: str, today: int, _: object) -> None:
        server = await connect_redis(url)
        store = RedisStore(server)
        for number in range(len(EPSILONS)):
            for name, values in (
                ("education", [person["education"] for person in census]),
                ("age", [int(person["age"]) for person in census]),
            ):
                metric = signed.bundle.metric(f"{name}_{number}")
                window = Window(metric.name, today - 60)
                await store.shards(window)
                await store.add(window, _fill(metric, values))
        await server.close()

    with house(tmp_path_factory.mktemp("aggregator"), catalog=CATALOG, fill=fill) as home:
        yield home.page


def _release(running: str, *arguments: str, capsys: Any) -> dict[str, Any]:
    command = ["release", *arguments, "--purpose", "report", "--url", running]
    document: dict[str, Any] = document_of(capsys, *command, "--format", "json")
    return document


@pytest.mark.thorough
def test_the_census_is_released_with_the_errors_that_theory_says(
    running: str,
    census: list[dict[str, str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nine standard errors of both noises; and the release's own falls as 1 / epsilon.

    At epsilon 0.1 more than half of a histogram's error is the noise of Laplace, whose tail is not
    that of Gauss: beyond 6 of their standard errors is one in 4e5, beyond 9 one in 7e8, of 54.
    """
    true = Counter(person["education"] for person in census)
    mean = sum(int(person["age"]) for person in census) / len(census)
    noises: dict[str, list[float]] = {"count": [], "histogram": [], "mean": []}
    for number, epsilon in enumerate(EPSILONS):
        education, age = f"education_{number}", f"age_{number}"
        histogram = _release(running, education, "histogram", capsys=capsys)
        assert histogram["epsilon"] == epsilon
        for value in histogram["values"]:
            assert abs(value["estimate"] - true[value["value"]]) < 9 * value["stderr"]
        noises["histogram"].append(histogram["values"][0]["noise"])
        count = _release(running, education, "count", "--value", "Masters", capsys=capsys)
        [masters] = count["values"]
        assert abs(masters["estimate"] - true["Masters"]) < 9 * masters["stderr"]
        noises["count"].append(masters["noise"])
        row = _release(running, age, "mean", capsys=capsys)["values"][0]
        assert abs(row["estimate"] - mean) < 9 * row["stderr"]
        noises["mean"].append(row["noise"])
        mode = _release(running, education, "mode", capsys=capsys)
        assert mode["values"] == [{"value": "HS-grad"}]
    gap = 1.0  # of grr at epsilon 2 over 16 values
    gap = (np.exp(2) - 1) / (np.exp(2) + 15)
    for query, sensitivity in (("count", 1), ("histogram", 2)):
        for noise, epsilon in zip(noises[query], EPSILONS, strict=True):
            alpha = np.exp(-epsilon / sensitivity)  # discrete Laplace
            assert noise == pytest.approx(np.sqrt(2 * alpha) / (1 - alpha) / gap, rel=1e-6)
    assert noises["mean"][0] > 5 * noises["mean"][1] > 10 * noises["mean"][2]


def test_the_record_shows_spender_and_remaining_budget(
    running: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first = _release(running, "education_1", "histogram", "--by", "Ada", capsys=capsys)
    again = _release(running, "education_1", "histogram", "--by", "Bob", capsys=capsys)
    assert again["again"] is True
    assert again["values"] == first["values"]
    assert again["by"] == first["by"]
    document = document_of(capsys, "release", "--url", running, "--format", "json")
    assert first["id"] in {record["id"] for record in document["records"]}
    spent = sum(record["epsilon"] for record in document["records"])
    [report, tiny] = document["purposes"]
    assert report["epsilon"] - report["epsilon_left"] == pytest.approx(spent)
    assert tiny["epsilon_left"] == tiny["epsilon"] == pytest.approx(0.1)
    assert document["together"]["best"] <= spent
    assert "What each purpose may spend this year" in output_of(capsys, "release", "--url", running)
    where = ["--url", running]
    assert "purpose is missing: name one of" in refusal_of(capsys, "release", "education_1", *where)
    assert main(["release", "education_1", "mode", "--purpose", "tiny one", *where]) in {0, 2}
    capsys.readouterr()
    assert main(["release", "education_2", "mode", "--purpose", "report", *where]) == 0
    assert "the most common value: HS-grad" in capsys.readouterr().out
    assert main(["release", "education_2", "mean", "--purpose", "report", *where]) == 2
    assert "grr does not answer mean" in capsys.readouterr().err


def test_http_releases_as_grpc_does(running: str, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"{running}/v1/releases"
    same = _release(running, "education_1", "histogram", capsys=capsys)
    ask = {"metric": "education_1", "query": "histogram", "purpose": "report", "by": "Eve"}
    answer = web.post(url, json=ask)
    assert answer.status_code == 200
    assert answer.json()["values"] == same["values"]
    assert answer.json()["again"] is True
    assert {record["id"] for record in web.get(url).json()["records"]} >= {same["id"]}
    dear = {**ask, "metric": "education_2", "query": "count", "purpose": "tiny one"}
    for wrong, status, title in (
        ({**ask, "metric": "colour"}, 404, "UnknownMetric"),
        ({**ask, "query": "sum"}, 400, "BadParameter"),
        (
            {**dear, "value": "Doctorate"},
            409,
            "BudgetExh",
        ),
        ({**ask, "colour": 7}, 422, "Malformed"),
        ({"metric": "secret-77"}, 422, "Malformed"),
    ):
        problem = web.post(url, json=wrong)
        assert problem.status_code == status
        assert problem.headers["content-type"] == "application/problem+json"
        assert problem.json()["title"].startswith(title)
        assert "secret-77" not in problem.text
    assert web.get(f"{running}/health").json() == {"status": "serving", "version": VERSION}
    schema = web.get(f"{running}/openapi.json").json()
    assert {"/v1/releases", "/health"} <= set(schema["paths"])


@pytest.mark.thorough
@pytest.mark.parametrize("text", ["\\ud800", "\\u0000", "\\u001b[2J", "a\\nb", "\\u202e"])
@pytest.mark.parametrize("name", ["by", "value", "purpose", "query", "metric"])
def test_no_interface_stores_unreadable_text(
    running: str, name: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """HTTP and command line: refused, and everybody goes on."""
    url = f"{running}/v1/releases"
    before = len(web.get(url).json()["records"])
    ask = {"metric": "education_1", "query": "histogram", "purpose": "report", "by": "Eve"}
    body = json.dumps({**ask, name: "TEXT"}).replace("TEXT", text)
    refused = web.post(url, content=body, headers={"content-type": "application/json"})
    assert refused.status_code in {400, 404, 422}, refused.text
    assert refused.headers["content-type"] == "application/problem+json"
    letters = json.loads(f'"{text}"')
    options = {"--by": letters} if name == "by" else {"--by": "Eve", "--value": letters}
    if "\0" not in letters:
        flags = [part for pair in options.items() for part in pair]
        where = ["--url", running, "--purpose", "report"]
        errors = refusal_of(capsys, "release", "education_1", "histogram", *flags, *where)
        assert errors.startswith("hubbub: ")
        assert errors.count("\n") == 1
    response = web.get(url)
    assert (response.status_code, response.json()["unreadable"]) == (200, 0)
    assert len(response.json()["records"]) == before
    assert main(["release", "--url", running]) == 0
    capsys.readouterr()
