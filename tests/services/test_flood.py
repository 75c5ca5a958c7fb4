"""A flood of one metric's fake reports: others are counted, nothing acknowledged is lost."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from hubbub.authoring import Catalog
from hubbub.cli.commands.demo import close_epochs
from hubbub.conservation import Window, balances
from hubbub.installation.local_run import LocalRun, Ports
from hubbub.wire.v1.report_pb2 import SealedReport
from hubbub.wire.v1.services_pb2 import SubmitRequest
from tests.conftest import CatalogFiles
from tests.services.test_guards import Serving, _hint
from tests.services.test_pipeline import _report, _sealed, _submit
from tests.support.law_terms import report_counts
from tests.support.mixing import pool_counts
from tests.support.prometheus_scrape import scraped
from tests.support.waiting import eventually

pytestmark = pytest.mark.thorough

# More than fits into what is given.
FLOOD = {"memory": 21_000, "setting": 6_000}
HONEST = 60


class Flooded(LocalRun):
    """As everybody's; its aggregator's own limit is the one that the test chooses."""

    more: tuple[str, ...] = ()
    flood = 0

    def _service(self, role: str, *arguments: str, redis_url: str) -> None:
        more = self.more if role == "aggregator" else ()
        super()._service(role, *arguments, *more, redis_url=redis_url)


@pytest.fixture(params=["memory", "setting"])
def run(
    request: pytest.FixtureRequest, catalog_files: CatalogFiles, tmp_path: Path
) -> Iterator[Flooded]:
    catalog = Catalog(shuffler="127.0.0.1:1", metrics=dict(catalog_files.bundle.metrics))
    new_run = Flooded(tmp_path / "home", catalog, Ports.free())
    new_run.flood = FLOOD[request.param]
    new_run.more = ("--max-window", "3000") if request.param == "setting" else ()
    with new_run as running:
        if request.param == "memory":
            _give(running, 13 << 15)
        yield new_run


def _give(run: LocalRun, more_bytes: int) -> None:
    """Let the totals' Redis take so much more than it has now; 0: as much as there is."""
    with redis.Redis.from_url(run.aggregator_redis) as client:
        used = int(client.info("memory")["used_memory"])
        client.config_set("maxmemory", used + more_bytes if more_bytes else 0)


def _terms(run: LocalRun, stream: str) -> dict[str, int]:
    terms: dict[str, int] = {}
    exact = pool_counts(run.shuffler_redis)
    for window, counts in report_counts(run.endpoints).items():
        assert balances(counts), window
        if window[0] == stream:
            for term, number in {**counts, **exact.get(Window(*window), {})}.items():
                terms[term] = terms.get(term, 0) + number
    return terms


def _terms_once(run: LocalRun, stream: str, **expected: int) -> dict[str, int]:
    terms: dict[str, int] = {}

    def has_expected() -> bool:
        terms.update(_terms(run, stream))
        return all(terms.get(term) == number for term, number in expected.items())

    # An AssertionError: asked while something moved.
    eventually(has_expected, lambda: f"{terms} never became {expected}", although=(AssertionError,))
    return terms


def test_a_flooded_metric_stops_no_other_and_all_of_it_is_accounted_for(run: Flooded) -> None:
    honest = ["dark"] * HONEST
    for _ in range(run.flood // 1000):
        _submit(run, SubmitRequest(reports=[_sealed(run.bundle, "crashed", b"\1")] * 1))
        fakes = [_sealed(run.bundle, "crashed", b"\1") for _ in range(999)]
        _submit(run, SubmitRequest(reports=fakes))
    _report(run, "theme", honest)
    close_epochs(run.shuffler_redis)
    _terms_once(run, "theme", acknowledged=HONEST, counted=HONEST)
    flooded = _terms_once(run, "crashed", acknowledged=run.flood)
    assert 0 < flooded["counted"] < run.flood
    assert flooded["pooled"] + flooded["in_flight"] == run.flood - flooded["counted"], (
        "it waits there"
    )
    metrics = scraped(run, run.ports.aggregator_metrics)
    assert metrics["", 'hubbub_batches_total{outcome="window_full"}'] > 0
    assert metrics["", "hubbub_clock_apart_seconds"] < 60

    def ratio() -> float:
        return scraped(run, run.ports.aggregator_metrics)["", "hubbub_redis_memory_ratio"]

    if run.more:
        assert ratio() == 0
    else:
        eventually(lambda: ratio() > 0.1)  # it is looked at now and then
    log = (run.home / "log" / "shuffler.log").read_text()
    assert "RESOURCE_EXHAUSTED" in log
    assert "holds the largest number of reports of one window" in log
    assert "INTERNAL" not in log
    if run.more:
        return
    _give(run, 0)
    _terms_once(run, "crashed", acknowledged=run.flood, counted=run.flood)


async def test_a_growing_stream_leaves_room_for_others(
    catalog_files: CatalogFiles, serving: Serving
) -> None:
    """Its reports are refused for now, those that come with them are kept."""
    async with serving(max_reports=1000) as front:
        await front.send(front.request(900))
        assert await _hint(front.send(front.request(1))) >= 20
        other = _of(catalog_files, "crashed", 50)
        await front.send(SubmitRequest(reports=other))
        await front.pressure.look()
        assert front.pressure.wait_seconds == 0
        mixed = _of(catalog_files, "crashed", 20)
        both = SubmitRequest(reports=[*front.request(5).reports, *mixed])
        for _ in range(3):
            assert await _hint(front.send(both)) >= 20
        law = {window.stream: terms for window, terms in (await front.pool.report_counts()).items()}
        assert law["theme"]["acknowledged"] == 900
        assert law["crashed"]["acknowledged"] == 70, "what came beside it, once"
        assert front.admission.refusals == {"stream_full": 4}


async def test_a_growing_stream_leaves_memory_for_others(
    catalog_files: CatalogFiles, serving: Serving
) -> None:
    async with serving(max_memory=0.9) as front:
        client = front.pool.server.client
        used = int((await client.info("memory"))["used_memory"])
        await client.config_set("maxmemory", int((used + 2_000_000) / 0.9))
        await front.pressure.look()
        report_count = 0
        while not front.pressure.is_crowded("theme"):
            await front.send(front.request(500))
            await front.pressure.look()
            report_count += 500
        assert await _hint(front.send(front.request(1))) >= 20
        assert 5000 <= report_count < 30_000
        assert front.admission.refusals == {"stream_full": 1}
        await front.send(SubmitRequest(reports=_of(catalog_files, "crashed", 100)))
        await front.pressure.look()
        assert front.pressure.wait_seconds == 0, "Redis itself has room"


def _of(catalog_files: CatalogFiles, stream: str, number: int) -> list[SealedReport]:
    return [_sealed(catalog_files.bundle, stream, b"\1") for _ in range(number)]
