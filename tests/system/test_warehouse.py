"""What others do with the files: a dbt project, Grafana's queries, and an object store.

dbt and the S3 server come from the package index, as `locks/warehouse.lock` has them, into a folder
of the test's own: their dependencies do not go with ours.
"""

import asyncio
import io
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import httpx2
import numpy as np
import pytest

from hubbub.aggregator.exported_files import Place
from hubbub.aggregator.publishing.estimates_table import EstimatesTable
from hubbub.aggregator.publishing.publisher import EpochPublisher
from hubbub.aggregator.publishing.totals_writer import TotalsWriter
from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.query.epoch_range import EpochRange
from hubbub.aggregator.query.estimating import EstimateQuery
from hubbub.aggregator.store.files import FileTotals, newest_bundle
from hubbub.errors import StoreUnavailable, TotalsUnreadable
from hubbub.installation.child_process import free_port
from tests.support import web
from tests.support.alerting_metrics import engine_of, signed_in
from tests.support.clean_environment import CALLER
from tests.support.programs import run_program
from tests.support.waiting import eventually

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
PROJECT = ROOT / "examples" / "warehouse"


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of programs of the lock."""
    folder = tmp_path_factory.mktemp("warehouse")
    lock = ["--require-hashes", "-r", str(ROOT / "locks" / "warehouse.lock")]
    install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--target", str(folder)]
    subprocess.run([*install, "--python", sys.executable, *lock], check=True, env=CALLER)
    return {**os.environ, "PYTHONPATH": str(folder), "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}


async def _engine(folder: Path, epochs: int = 3) -> QueryEngine:
    return await engine_of(
        signed_in(folder), epochs, np.random.default_rng(6), {"shape": [0.1, 0.9]}
    )


def test_dbt_builds_its_models_and_grafana_asks_them(tools: dict[str, str], tmp_path: Path) -> None:
    async def write() -> None:
        query = await _engine(tmp_path)
        table = EstimatesTable(Place.of(str(tmp_path / "files")), query.collected)
        await EpochPublisher(query, [table]).publish_closed()

    asyncio.run(write())
    shutil.copytree(PROJECT, tmp_path / "project")
    warehouse = str(tmp_path / "warehouse.duckdb")
    paths = {"HUBBUB_ESTIMATES": str(tmp_path / "files"), "HUBBUB_WAREHOUSE": warehouse}
    done = run_program(
        sys.executable,
        "-m",
        "dbt.cli.main",
        "build",
        "--profiles-dir",
        ".",
        "--no-use-colors",
        cwd=tmp_path / "project",
        env={**tools, **paths},
    )
    assert done.returncode == 0, done.stdout
    assert "ERROR=0" in done.stdout
    board = json.loads((PROJECT / "grafana.json").read_text())
    with duckdb.connect(warehouse) as database:
        [variable] = [item for item in board["templating"]["list"] if item["name"] == "metric"]
        assert ("shape",) in database.execute(variable["query"]).fetchall()
        for panel in board["panels"]:
            [target] = panel["targets"]
            sql = target["rawSql"].replace("${metric}", "shape")
            assert database.execute(sql.replace("$__timeFilter(epoch_start)", "true")).fetchall()
        wrong = database.execute("select * from daily_estimates where low > high")
        assert not wrong.fetchall()


class Killed(BaseException):
    """The process ended here."""


class DyingStore:
    """An object store whose writer is killed at a step: what it has not finished never appears."""

    def __init__(self, files: Any, after: int) -> None:
        self._files = files
        self.steps, self._after = 0, after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def step(self) -> None:
        """Count a step. Raises Killed at the last one and at every later one."""
        self.steps += 1
        if self.steps > self._after:
            raise Killed

    def delete_file(self, path: str) -> None:
        self.step()
        self._files.delete_file(path)

    @contextmanager
    def open_output_stream(self, path: str) -> Iterator[Any]:
        self.step()
        content = io.BytesIO()
        yield content
        self.step()
        with self._files.open_output_stream(path) as stream:
            stream.write(content.getvalue())


@contextmanager
def _object_store(tools: dict[str, str]) -> Iterator[str]:
    """The address of an S3 server with an empty bucket. tools: its environment."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-p", str(port)],
        env=tools,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:

        def is_created() -> bool:
            answer = web.put(f"http://127.0.0.1:{port}/bucket")
            return bool(answer.status_code == 200)

        eventually(is_created, although=(httpx2.TransportError,))
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


@pytest.fixture
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


EVERY = EstimateQuery(range=EpochRange(epochs="closed"))


@pytest.mark.usefixtures("_credentials")
def test_an_object_store_keeps_totals_and_answers_from_them(
    tools: dict[str, str], tmp_path: Path
) -> None:

    async def body(place: Place) -> None:
        query = await _engine(tmp_path)
        bundle = query.collected.bundle
        files = FileTotals(place, lambda: bundle)
        writer = TotalsWriter(query.collected, query.collected._store, files)  # type: ignore[arg-type]
        assert await writer.look() > 0
        assert await writer.look() == 0
        assert not (await writer.compare()).differences
        clock = query.collected.now
        filed = QueryEngine(newest_bundle(place), files, clock=clock)
        assert await filed.estimate("shape", EVERY) == await query.estimate("shape", EVERY)
        [name, *_] = place.entries("totals/shape")
        place.write(f"totals/shape/{name.name}", b"x")
        with pytest.raises(TotalsUnreadable, match=r"s3://bucket/hubbub/totals/shape/.* damaged"):
            await filed.estimate("shape", EstimateQuery(range=EpochRange(epochs="all")))
        place.delete(f"totals/shape/{name.name}")
        place.delete(f"totals/shape/{name.name}")
        assert name.name not in [entry.name for entry in place.entries("totals/shape")]

    with _object_store(tools) as address:
        more = f"endpoint_override={address}&scheme=http&region=us-east-1"
        asyncio.run(body(Place.of(f"s3://bucket/hubbub?{more}")))
        with pytest.raises(StoreUnavailable, match=r"s3://nothing/x/a: cannot be written") as it:
            Place.of(f"s3://nothing/x?{more}").write("a", b"x")
        assert "hunter2" not in str(it.value)


@pytest.mark.usefixtures("_credentials")
def test_credentials_that_an_object_store_refuses_are_named_as_the_reason(
    tools: dict[str, str],
) -> None:
    """moto makes the bucket without them, and afterwards asks for those of somebody it knows."""
    with _object_store({**tools, "INITIAL_NO_AUTH_ACTION_COUNT": "1"}) as address:
        more = f"endpoint_override={address}&scheme=http&region=us-east-1"
        place = Place.of(f"s3://bucket/hubbub?{more}")
        asks: dict[str, Callable[[], object]] = {
            "written": lambda: place.write("a", b"x"),
            "read": lambda: place.read("a"),
            "deleted": lambda: place.delete("a"),
        }
        for done, ask in asks.items():
            with pytest.raises(
                StoreUnavailable, match=f"s3://bucket/hubbub/a: cannot be {done}: "
            ) as it:
                ask()
            assert re.search("INVALID_ACCESS_KEY_ID|ACCESS_DENIED", str(it.value)), str(it.value)
            assert "hunter2" not in str(it.value)
        with pytest.raises(StoreUnavailable, match="cannot be read: "):
            place.entries()


@pytest.mark.usefixtures("_credentials")
def test_a_writer_of_an_object_store_that_is_killed_at_any_step_leaves_whole_files(
    tools: dict[str, str], tmp_path: Path
) -> None:
    async def body(address: str) -> int:
        """Write a bucket's folder anew for every step that the writer is killed at: their number.

        Every time the first window's file is written before, of fewer reports, and then replaced.
        """
        query = await _engine(tmp_path, epochs=1)
        bundle, store = query.collected.bundle, query.collected._store
        expected = await query.estimate("shape", EVERY)
        first, *_ = sorted(await store.counted(bundle.streams))
        [totals] = await store.read([first])
        for after in itertools.count():
            place = Place.of(f"s3://bucket/{after}?{address}")
            files = FileTotals(place, lambda: bundle)
            await files.write(first, replace(totals, counted=totals.counted - 1))
            dying = DyingStore(place._files, after)
            place._files = dying
            with suppress(Killed):
                await TotalsWriter(query.collected, store, files).look()  # type: ignore[arg-type]
            place._files = dying._files
            for window in await files.listed(bundle.streams):
                with suppress(TotalsUnreadable):  # two states of one window: never a part of one
                    await files.read([window])
            writer = TotalsWriter(query.collected, store, files)  # type: ignore[arg-type]
            await writer.look()
            assert not (await writer.compare()).differences
            filed = QueryEngine(newest_bundle(place), files, clock=query.collected.now)
            assert await filed.estimate("shape", EVERY) == expected
            if dying.steps <= after:
                return after
        raise AssertionError

    with _object_store(tools) as address:
        more = f"endpoint_override={address}&scheme=http&region=us-east-1"
        # The bundle, 3 windows, one of them in place of another, and the index.
        assert asyncio.run(body(more)) == 2 * (1 + 3 + 1) + 1
