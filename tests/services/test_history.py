"""The demo's past: drawn by the law of the randomizers, kept as totals are, and balanced."""

import asyncio
import secrets
import sys
from collections import Counter
from dataclasses import replace
from math import sqrt
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub.aggregator.store.contract import Outcome, WindowTotals
from hubbub.aggregator.store.redis import RedisStore
from hubbub.authoring.crowds.accountant import expected_dummies, number_variance
from hubbub.bundles import Bundle
from hubbub.catalog import epoch_at
from hubbub.catalog.crowds.noise_dummies import value_noise
from hubbub.cli.commands import demo
from hubbub.cli.commands.demo import people
from hubbub.cli.demo_questions import answers_of, demo_questions
from hubbub.cli.main import main
from hubbub.conservation import Window, balances, sum_terms
from hubbub.errors import BadParameter
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.redis.command_sender import RedisServer
from hubbub.shuffler.pool import Pool
from hubbub.simulation.demo_history import DAYS, Day, days_before, drawn_notice, write_history
from tests.support.crowds import crowd_in
from tests.support.moment import now
from tests.support.stores import commit_of, totals_of

PEOPLE = 2000
OF_LISTS = ("occupation", "education_by_work_crowd")
# Two-sided, of some 8,000 numbers together, below one in a million.
SIGMAS = 6.8


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    catalog = demo_questions(tmp_path_factory.mktemp("questions"), PEOPLE)
    metrics, shuffler = catalog.metrics, catalog.shuffler
    return Bundle(metrics=metrics, keys=(), shuffler=shuffler, roots=None, history={})


@pytest.fixture(scope="module")
def days(bundle: Bundle) -> list[Day]:
    everyone = answers_of(people(PEOPLE))
    return days_before(bundle, everyone, epoch_at(now(), "day"), seed=7)


def test_the_demo_has_every_past_day_with_right_estimates(days: list[Day], bundle: Bundle) -> None:
    today, metrics = epoch_at(now(), "day"), bundle.metrics
    assert {day.window for day in days} == {
        Window(name, today - ago) for name in metrics for ago in range(1, DAYS + 1)
    }
    # Who is drawn has anybody's value; a Bachelor's degree a fifth more rarely at most.
    true_counts = {
        name: Counter(map(itemgetter(name), answers_of(people(PEOPLE)))) for name in OF_LISTS
    }
    assert [value_noise(metrics[name]) is not None for name in OF_LISTS] == [False, True]
    for day in days:
        metric = metrics[day.window.stream]
        off = SIGMAS * sqrt(number_variance(metric, PEOPLE))
        number = min((PEOPLE, 0.9 * PEOPLE), key=lambda number: abs(day.totals.counted - number))
        assert abs(day.totals.counted - number) <= off
        assert epoch_at(day.totals.at, "day") == day.window.epoch
        assert day.totals.batch_reports == (day.totals.counted if metric.central else 1000)
        assert day.totals.dummies == expected_dummies(metric)
        if metric.name not in OF_LISTS:
            continue
        mechanism: Any = metric.randomizer
        noise, channel = value_noise(metric), mechanism.channel
        dummies = noise.each.variance / float(channel.p - channel.q) ** 2 if noise else 0.0
        estimates = mechanism.estimate(totals_of(day.totals))
        for value, estimate in zip(metric.values or (), estimates.values, strict=True):
            expected = number * true_counts[metric.name][value] / PEOPLE
            variance = mechanism.variance(expected, number) + dummies + expected
            assert abs(estimate - expected) <= SIGMAS * sqrt(variance) + 0.2 * expected + off


async def test_the_past_is_kept_as_totals_are_and_the_law_balances(
    redis_url: str, days: list[Day]
) -> None:
    stream = secrets.token_hex(4)
    named = [
        replace(day, window=Window(f"{stream}-{day.window.stream}", day.window.epoch))
        for day in days
    ]
    await asyncio.to_thread(write_history, named, redis_url, redis_url)
    server = await connect_redis(redis_url)
    store, pool = RedisStore(server), Pool(server)
    all_totals = await store.read([entry.window for entry in named])
    for entry, totals in zip(named, all_totals, strict=True):
        assert totals.cells.tolist() == entry.totals.cells.tolist()
        for part in ("counted", "batch_reports", "at", "dummies"):
            assert getattr(totals, part) == getattr(entry.totals, part)
    counted, before = await store.report_counts(), await pool.report_counts()
    for entry in named:
        terms = sum_terms([counted[entry.window], before[entry.window]])
        assert balances(terms)
        assert terms["acknowledged"] == entry.totals.counted
        assert terms["dummies"] == entry.totals.dummies
    window = named[0].window
    with pytest.raises(BadParameter, match="already has totals"):
        await store.restore(window, named[0].totals)
    late = commit_of([secrets.token_bytes(16)], all_totals[0].cells, seen_until=1)
    assert await store.add(window, late) == (Outcome.FORGOTTEN, frozenset())
    assert (await store.read([window]))[0].counted == all_totals[0].counted
    await server.close()


async def test_restored_totals_of_many_cells_are_whole(server: RedisServer) -> None:
    store, window = RedisStore(server), Window(secrets.token_hex(4), 3)
    cells = np.zeros(1500, dtype=np.int64)
    cells[[3, 1499]] = 5, 7
    await store.restore(window, WindowTotals(cells=cells, counted=12, batch_reports=12, at=99))
    [totals] = await store.read([window])
    assert totals.cells.tolist() == cells.tolist()
    assert (totals.counted, totals.batch_reports, totals.at) == (12, 12, 99)


def test_a_smaller_demo_has_a_smaller_crowd(bundle: Bundle) -> None:
    for name in ("education_crowd", "education_by_work_crowd"):
        crowd = crowd_in(bundle.metrics[name])
        assert (crowd.reports, crowd.epsilon) == (PEOPLE * 5 // 6, 1.0)
    assert len(bundle.metrics["homepage"].candidates) == 10_000
    [person] = answers_of(people(1))
    assert person.keys() == bundle.metrics.keys()
    for name, value in person.items():
        bundle.metrics[name].code(value)


@pytest.mark.parametrize(
    ("words", "terminal", "keeps"),
    [
        ([], True, True),
        ([], False, False),
        (["--no-keep"], True, False),
        (["--keep", "kept"], False, True),
    ],
)
def test_the_page_is_left_open_on_a_terminal(
    words: list[str],
    terminal: bool,
    keeps: bool,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    calls: list[tuple[Path, bool]] = []

    def run(home: Path, *_: Any, keep: bool) -> int:
        calls.append((home, keep))
        return 0

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "_run", run)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    assert main(["demo", *words]) == 0
    [(home, keep)] = calls
    assert keep is keeps
    assert (home == tmp_path / "kept") is ("--keep" in words)


def test_the_notice_names_the_days_that_are_drawn() -> None:
    assert drawn_notice(20780).startswith("2026-11-10 to 2026-11-22 are simulated: nobody reported")
