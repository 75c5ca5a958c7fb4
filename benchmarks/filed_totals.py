"""The stages of files of totals: writing them, and answering a year from them."""

import asyncio
import io
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from benchmarks.answers import CATALOG, EPOCHS, VALUES
from benchmarks.measure import Row
from benchmarks.own import own_redis
from hubbub.aggregator.exported_files import Place
from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.query.epoch_range import EpochRange
from hubbub.aggregator.query.estimating import EstimateQuery
from hubbub.aggregator.store.contract import TotalsReader, WindowTotals
from hubbub.aggregator.store.files import FileTotals
from hubbub.aggregator.store.redis import RedisStore
from hubbub.aggregator.store.window_file import encode
from hubbub.bundles import Bundle
from hubbub.cli.main import main
from hubbub.conservation import Window
from hubbub.runtime.redis.client import connect_redis
from tests.support.bundles import DAY, make_signed

_REPORTS: Final = 100_000
_METRICS: Final = 50
_FEW: Final = 16
_YEAR: Final = EstimateQuery(range=EpochRange(epochs="all"))


def filed() -> Iterator[Row]:
    """The first answer about a year of ten thousand values: from Redis, and from files."""
    with tempfile.TemporaryDirectory() as folder, own_redis() as url:
        yield from asyncio.run(_measure_answers(Path(folder), url))


def reestimated() -> Iterator[Row]:
    """The table of estimates of a year, made from files by the command."""
    with tempfile.TemporaryDirectory() as folder:
        files, bundle = asyncio.run(_year(Path(folder)))
        start, processor = time.perf_counter(), time.process_time()
        with redirect_stdout(io.StringIO()) as output:
            code = main(["totals", "estimates", files.place.name, f"{folder}/table"])
        seconds, processor = time.perf_counter() - start, time.process_time() - processor
        number = len(list(Path(folder).glob("table/estimates/*/*.parquet")))
        if code or number != _METRICS * EPOCHS:
            raise RuntimeError(output.getvalue())
        reading = asyncio.run(_reading_seconds(files, bundle))
    yield Row(
        f"estimates of {_METRICS} metrics x {EPOCHS} epochs from files, written as a table",
        f"{seconds:.0f} s, of which {processor:.0f} s of processor, {1000 * seconds / number:.1f} "
        "ms a file",
        f"reading the files {reading:.0f} s",
        seconds / reading,
        "minutes",
    )


async def _measure_answers(folder: Path, url: str) -> list[Row]:
    bundle = make_signed(folder, CATALOG, start=_first_epoch() * DAY).bundle
    server = await connect_redis(url)
    store, files = RedisStore(server), FileTotals(Place.of(str(folder / "files")), lambda: bundle)
    chance = np.random.default_rng(1)
    windows = [Window("wide", _first_epoch() + number) for number in range(EPOCHS)]
    writing = 0.0
    for window in windows:
        totals = _totals(chance, bundle, "wide")
        await store.restore(window, totals)
        start = time.perf_counter()
        await files.write(window, totals)
        writing += time.perf_counter() - start
    paths = list((folder / "files" / "totals" / "wide").iterdir())
    size = sum(path.stat().st_size for path in paths) / len(paths)
    answer = await _seconds(lambda: _answer(bundle, store))
    from_files = await _seconds(lambda: _answer(bundle, files))
    await server.close()
    return [
        Row(
            f"answer of {EPOCHS} x {VALUES:,} from files of totals",
            f"{from_files * 1000:.0f} ms",
            f"from Redis {answer * 1000:.0f} ms",
            from_files / answer,
            "<= 1.5",
        ),
        Row(
            f"a window of {VALUES:,} values as a file",
            f"{size / 1024:.1f} KiB, written in {1000 * writing / EPOCHS:.1f} ms",
            f"its cells in Redis {8 * VALUES / 1024:.1f} KiB",
            size / (8 * VALUES),
            "below what Redis takes",
        ),
    ]


async def _year(folder: Path) -> tuple[FileTotals, Bundle]:
    """A year of small metrics as files, with their bundle."""
    metrics = CATALOG.partition("[metrics.wide]")[2].partition("values =")[0]
    values = [f"value {number}" for number in range(_FEW)]
    catalog = 'shuffler = "127.0.0.1:7070"\n' + "".join(
        f"[metrics.m{number}]{metrics}values = {values}\n".replace("'", '"')
        for number in range(_METRICS)
    )
    bundle = make_signed(folder, catalog, start=_first_epoch() * DAY).bundle
    files = FileTotals(Place.of(str(folder / "files")), lambda: bundle)
    chance = np.random.default_rng(1)
    await files.write_bundle(bundle)
    for name in bundle.metrics:
        for number in range(EPOCHS):
            window = Window(name, _first_epoch() + number)
            file_name, content = encode(window, _totals(chance, bundle, name), bundle.metric(name))
            # Without waiting for the disk, as the table does afterwards.
            path = folder / "files" / file_name.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    await files.index(bundle.streams)
    return files, bundle


async def _reading_seconds(files: FileTotals, bundle: Bundle) -> float:
    """How many seconds it takes to read every file."""
    start = time.perf_counter()
    for name in bundle.metrics:
        await files.read([Window(name, _first_epoch() + epoch) for epoch in range(EPOCHS)])
    return time.perf_counter() - start


async def _answer(bundle: Bundle, reader: TotalsReader) -> None:
    """The first answer of an engine: nothing is at hand."""
    await QueryEngine(bundle, reader).estimate("wide", _YEAR)


async def _seconds(work: Callable[[], Coroutine[Any, Any, None]]) -> float:
    await work()
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        await work()
        seconds.append(time.perf_counter() - start)
    return median(seconds)


def _totals(chance: np.random.Generator, bundle: Bundle, name: str) -> WindowTotals:
    size = bundle.metric(name).randomizer.layout.size
    cells = chance.binomial(_REPORTS, 0.27, size)
    return WindowTotals(cells=cells, counted=_REPORTS, batch_reports=_REPORTS, at=1)


def _first_epoch() -> int:
    """The first day of the year, which is over."""
    return int(time.time()) // DAY - EPOCHS - 10
