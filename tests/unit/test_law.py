"""The law as the aggregator tells it, with a shuffler that answers, is away, or hangs."""

import asyncio
import re
import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hubbub.aggregator.query.conservation_law import (
    Shuffler,
    Terms,
    status,
    upstream_reports,
    visible_status,
)
from hubbub.authoring import read_with_promises
from hubbub.conservation import TERMS, Window, balances
from tests.support.bundles import crowd_text
from tests.support.fakes import MemoryStore
from tests.support.stores import commit_of
from tests.support.waiting import eventually_async

pytestmark = pytest.mark.slow

WINDOW = Window("theme", 7)


class ShufflerTerms(Shuffler):
    """A shuffler's terms, as it tells them."""

    def __init__(self, terms: Terms | None) -> None:
        self._terms = terms

    reserve: float | None = None
    total: Mapping[str, int] = {}

    async def terms(self, *, fresh: bool = False) -> Terms | None:
        assert fresh, "the law is of now"
        return self._terms


async def _store() -> MemoryStore:
    store = MemoryStore()
    commit = commit_of(
        [bytes(16)],
        np.array([1]),
        batch_id=bytes(16),
        duplicates=2,
        rejected={"expired": 3},
        seen_until=0,
    )
    await store.add(WINDOW, commit)
    return store


async def test_the_terms_of_both_are_one_law() -> None:
    upstream = {WINDOW: {"acknowledged": 7, "pooled": 1}, Window("new", 8): {"acknowledged": 5}}
    result = await status(await _store(), ShufflerTerms(upstream))
    assert (result.complete, result.balanced) == (True, False), "5 of another window are lost"
    theme = next(line for line in result.windows if line.stream == "theme")
    assert (theme.counted, theme.duplicate, theme.rejected, theme.pooled) == (1, 2, 3, 1)
    assert theme.balanced is True
    assert (result.total.acknowledged, result.total.balanced) == (12, False)


@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("off", [-1, 1])
def test_a_report_that_is_nowhere_or_twice_breaks_the_law(term: str, off: int) -> None:
    terms = dict.fromkeys(TERMS, 1) | {"acknowledged": len(TERMS) - 3}
    assert balances(terms)
    assert not balances({**terms, term: terms[term] + off})


def test_a_hidden_number_is_never_shown_as_none_waiting_or_withheld(tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    text = 'shuffler = "127.0.0.1:1"\n' + crowd_text(1000)
    hidden = text + "count_epsilon = 0.5\n"
    mean = re.sub("values = .*", 'domain = "number"\nlow = 0\nhigh = 9', text)
    law = "dummies_scale = 5.05\ndummies_shift = 147\ndummies_sum_scale = 26.93\n"
    for catalog, development, expected in (
        (text, True, (4, 5)),
        (text, False, (None, 5)),
        (hidden, False, (None, None)),
        (mean + law, False, (None, None)),
    ):
        path.write_text(catalog)
        metric = replace(read_with_promises(path).metrics["theme"], development=development)
        upstream = {WINDOW: {"pooled": 3, "in_flight": 1, "withheld": 5}}
        assert upstream_reports(metric, (7,), upstream) == expected


async def test_production_shows_waiting_reports_only_over_all_streams() -> None:
    shuffler = ShufflerTerms({WINDOW: {"acknowledged": 6, "pooled": 0}})
    shuffler.total = {"acknowledged": 10, "pooled": 4}
    result = await status(await _store(), shuffler)
    [theme] = result.windows
    assert (theme.acknowledged, theme.pooled, theme.balanced) == (6, None, True)
    assert (result.total.acknowledged, result.total.pooled, result.balanced) == (10, 4, True)
    assert result.waiting.startswith("Waiting reports are shown for all streams together")
    some = visible_status(result, "theme".__eq__)
    assert some.total.pooled is None, "those of the streams that a caller sees are not known"
    assert some.waiting.startswith("Waiting reports are not shown")


async def test_a_stream_that_hides_its_number_never_shows_none_waiting() -> None:
    shuffler = ShufflerTerms({WINDOW: {"acknowledged": 6, "pooled": 0}})
    shuffler.total = {"acknowledged": 6}
    result = await status(await _store(), shuffler)
    assert (result.total.acknowledged, result.total.pooled, result.balanced) == (6, None, True)
    assert result.waiting.startswith("Waiting reports are not shown")


@pytest.mark.parametrize("total", [{}, {"acknowledged": 5, "pooled": 0}])
@pytest.mark.parametrize("over", [True, False])
async def test_the_law_balances_after_the_shuffler_deleted_the_counters_of_epochs_that_are_over(
    total: Mapping[str, int], *, over: bool
) -> None:
    shuffler = ShufflerTerms({Window("new", 8): {"acknowledged": 5, "withheld": 5}})
    shuffler.total = total and {**total, "withheld": 5}
    result = await status(await _store(), shuffler, is_over=lambda _: over)
    assert (result.balanced, result.total.balanced) == (over, over)
    assert (result.windows[1].acknowledged, result.total.acknowledged) == (
        (6, 11) if over else (0, 5)
    )


async def test_without_the_shuffler_its_terms_are_unknown() -> None:
    for beyond in (None, ShufflerTerms(None)):
        result = await status(await _store(), beyond)
        assert (result.complete, result.balanced, result.total.balanced) == (False, None, None)
        assert result.total.pooled is None
        assert result.total.counted == 1


async def test_a_shuffler_that_hangs_or_is_away_is_not_waited_for() -> None:
    """Its terms are not known; and while somebody asks, others get what was told last."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        shuffler = Shuffler(f"127.0.0.1:{deaf.getsockname()[1]}", None)
        assert await shuffler.terms() is None
        asking = asyncio.create_task(shuffler.terms(fresh=True))
        await eventually_async(shuffler._asking.locked)
        assert await shuffler.terms() is None
        assert not asking.done(), "who did not need to wait did not"
        assert await asking is None
        await shuffler.close()
