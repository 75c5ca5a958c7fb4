"""Totals in files: written once and whole, and read as those in Redis are."""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pyarrow import fs

from hubbub.aggregator.exported_files import Place
from hubbub.aggregator.publishing.totals_writer import TotalsWriter
from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.query.answer_store import AnswerStore
from hubbub.aggregator.query.epoch_range import EpochRange
from hubbub.aggregator.query.estimating import EstimateQuery
from hubbub.aggregator.store.contract import Outcome, WindowTotals
from hubbub.aggregator.store.files import FileTotals, newest_bundle
from hubbub.aggregator.store.redis import RedisStore
from hubbub.aggregator.store.redis_and_files import FiledStore
from hubbub.aggregator.totals_deletion import Retention, delete_totals
from hubbub.bundles import Bundle
from hubbub.cli.main import main
from hubbub.conservation import Window
from hubbub.errors import BadParameter, BundleRefused, StoreUnavailable, TotalsUnreadable
from hubbub.runtime.clocks import Clocks
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.redis.command_sender import MemoryServer
from tests.conftest import CatalogFiles
from tests.support.fakes import MemoryStore
from tests.support.servers import redis_server
from tests.support.stores import commit_of

EPOCHS = range(20_000, 20_004)
NOW = 20_004.2 * 86_400  # the second takes no more, the third does
ALL = EstimateQuery(range=EpochRange(epochs="all"))


def _now() -> float:
    return NOW


class Settled(Clocks):
    """Clocks that have agreed for an hour."""

    settled = True


async def _count(
    store: MemoryStore | RedisStore, bundle: Bundle, window: Window, seed: int
) -> None:
    """Reports of a window, drawn; their tags are not remembered, as of a window that closed."""
    chance = np.random.default_rng(seed)
    reports = 60
    cells = chance.integers(10, 30, bundle.metric_of(window.stream).randomizer.layout.size)
    commit = commit_of(
        [secrets.token_bytes(16) for _ in range(reports)],
        cells,
        duplicates=1,
        seen_until=int(NOW),
        batch_reports=reports,
        at=int(NOW) - 9,
    )
    await store.shards(window)
    assert (await store.add(window, commit))[0] is Outcome.APPLIED


class Filled:
    """Four days of one metric in a store, and what writes and reads their files."""

    def __init__(self, bundle: Bundle, store: MemoryStore | RedisStore, place: Place) -> None:
        self.bundle, self.store = bundle, store
        self.files = FileTotals(place, lambda: bundle)
        self.filed = FiledStore(store, self.files)
        self.query = QueryEngine(bundle, store, clock=_now, clocks=Settled(_now))
        self.windows = [Window("theme", epoch) for epoch in EPOCHS]

    async def fill(self) -> None:
        for seed, window in enumerate(self.windows):
            await _count(self.store, self.bundle, window, seed)
            await self.store.forget(window)

    def writer(self, redis_days: int = 0) -> TotalsWriter:
        return TotalsWriter(self.query.collected, self.store, self.files, redis_days)

    async def answer(self, store: object) -> object:
        """What every epoch together says, whatever has the totals."""
        engine = QueryEngine(self.bundle, store, clock=_now)  # type: ignore[arg-type]
        answer = await engine.estimate("theme", ALL)
        assert answer.reports == 60 * len(answer.epochs)
        return answer


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place.of(str(tmp_path / "totals"))


@pytest.fixture
def filled(catalog_files: CatalogFiles, place: Place) -> Filled:
    return Filled(catalog_files.bundle, MemoryStore(), place)


def _names(place: Place) -> list[str]:
    return [entry.name for entry in place.entries("totals/theme")]


async def test_closed_windows_are_written_once_and_dropped_and_answer_as_before(
    filled: Filled, place: Place
) -> None:
    await filled.fill()
    before = await filled.answer(filled.store)
    assert await filled.writer().look() == 2, "an epoch is closed once its grace is over"
    assert await filled.writer().look() == 0
    names = _names(place)
    assert [name.split(".")[:4] for name in names] == [
        ["2024-10-04", "20000", "60", "0"],
        ["2024-10-05", "20001", "60", "0"],
    ]
    await filled.writer(redis_days=3).look()
    [first, second] = await filled.store.read(filled.windows[:2])
    assert (first.cells.size, first.counted, second.cells.size > 0) == (0, 60, True)
    assert _names(place) == names
    assert await filled.answer(filled.filed) == before
    with pytest.raises(TotalsUnreadable, match="do not fit their metric"):
        await filled.answer(filled.store)
    assert newest_bundle(place).metrics == filled.bundle.metrics


async def test_a_window_whose_tags_are_remembered_stays_in_redis(filled: Filled) -> None:
    await _count(filled.store, filled.bundle, filled.windows[0], 1)
    writer = filled.writer(redis_days=1)
    await writer.look()
    assert (await filled.store.read(filled.windows[:1]))[0].cells.size
    await filled.store.forget(filled.windows[0])
    await writer.look()
    assert not (await filled.store.read(filled.windows[:1]))[0].cells.size


async def test_files_answer_for_totals_that_redis_lost_but_not_for_deleted_ones(
    filled: Filled, place: Place
) -> None:
    await filled.fill()
    before = await filled.answer(filled.store)
    await filled.writer().look()
    for window in filled.windows[:2]:
        del filled.store._windows[window]  # type: ignore[union-attr]
    after = await filled.answer(filled.filed)
    assert replace(after, updated=None) == replace(before, updated=None)  # type: ignore[type-var]
    assert sum(terms["counted"] for terms in (await filled.filed.report_counts()).values()) == 240
    # Deleted in Redis alone, as by a command that knows of no files.
    await _count(filled.store, filled.bundle, filled.windows[1], 1)
    await filled.store.delete(filled.windows[1])
    assert filled.windows[1] not in await filled.filed.counted(["theme"])
    assert not (await filled.filed.read(filled.windows[1:2]))[0].counted
    await filled.writer().look()
    assert [name[:10] for name in _names(place)] == ["2024-10-04"]
    # And in both.
    assert await delete_totals(filled.windows[:1], filled.filed, AnswerStore(MemoryServer())) == 60
    assert not _names(place)


async def test_a_file_follows_totals_that_changed_after_all(filled: Filled, place: Place) -> None:
    """As where Redis was restored from a backup, and shufflers sent again what it lacked."""
    window = filled.windows[0]
    await _count(filled.store, filled.bundle, window, 1)
    writer = filled.writer()
    assert await writer.look() == 1
    await _count(filled.store, filled.bundle, window, 2)
    assert len((await writer.compare()).differences) == 1
    [former] = _names(place)
    assert await writer.look() == 1
    [name] = _names(place)
    assert name != former
    assert name.split(".")[2] == "120"
    assert not (await writer.compare()).differences
    # Restored from a backup of before: the file has what Redis lost.
    del filled.store._windows[window]  # type: ignore[union-attr]
    await _count(filled.store, filled.bundle, window, 1)
    assert await writer.look() == 0
    assert _names(place) == [name]
    [sentence] = (await writer.compare()).differences
    assert sentence.endswith("(120 reports) than Redis (60); delete the file if Redis is right")


STEPS = 15


class Killed(BaseException):
    """The process ended here."""


def _dying(monkeypatch: pytest.MonkeyPatch, after: int) -> list[int]:
    """Let the process die at the so many-th step of writing files and dropping cells.

    Returns how many steps there were.
    """
    calls = [0]

    def counting(call: Callable[..., object]) -> Callable[..., object]:
        def counted(*arguments: object, **more: object) -> object:
            calls[0] += 1
            if calls[0] > after:
                raise Killed
            return call(*arguments, **more)

        return counted

    monkeypatch.setattr("os.fsync", counting(__import__("os").fsync))
    for name in ("mkdir", "open", "replace", "unlink"):
        monkeypatch.setattr(Path, name, counting(getattr(Path, name)))
    monkeypatch.setattr(Place, "delete", counting(Place.delete))
    monkeypatch.setattr(MemoryStore, "drop_cells", counting(MemoryStore.drop_cells))
    return calls


@pytest.mark.parametrize("after", range(STEPS + 1))
async def test_a_writer_killed_at_any_step_leaves_whole_files_for_the_next(
    filled: Filled, place: Place, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    await filled.fill()
    before = await filled.answer(filled.store)
    first, second = filled.windows[:2]
    await filled.writer().look()
    # A third state of the first, so that its file is replaced; the second's has to be written.
    filled.store._windows[first][0].at += 1  # type: ignore[union-attr]
    await filled.files.delete([second])
    [entry] = place.entries("index")
    place.delete(f"index/{entry.name}")
    before = await filled.answer(filled.store)
    with monkeypatch.context() as patch, suppress(Killed):
        calls = _dying(patch, after)
        await filled.writer(redis_days=1).look()
    assert (calls[0] > after) == (after < STEPS), "every step is one that it dies at"
    assert await filled.answer(filled.filed) == before, "while nobody writes"
    for window in await filled.files.listed(["theme"]):
        with suppress(TotalsUnreadable):  # two states of one window: never a part of one
            assert (await filled.files.read([window]))[0].counted == 60
    await filled.writer(redis_days=1).look()
    assert await filled.answer(filled.filed) == before
    assert len(_names(place)) - sum(name.endswith(".part") for name in _names(place)) == 2
    assert not (await filled.writer().compare()).differences
    assert len(await filled.files.windows(["theme"])) == 2
    for name in _names(place):
        place.delete(f"totals/theme/{name}")
    assert len(await filled.files.windows(["theme"])) == 2, "the index has both"


@pytest.mark.parametrize("where", ["local", "object store"])
async def test_a_damaged_foreign_or_missing_file_is_named_with_its_remedy(
    filled: Filled, tmp_path: Path, where: str
) -> None:
    place = Place.of(str(tmp_path / "totals"))
    if where == "object store":
        objects = fs._MockFileSystem()
        for folder in ("bundles", "totals/theme", "index"):
            objects.create_dir(f"bucket/{folder}")
        place = Place(objects, "bucket", "s3://bucket")
    installation = Filled(filled.bundle, MemoryStore(), place)
    await installation.fill()
    await installation.writer(redis_days=1).look()
    whole = {name: place.read(f"totals/theme/{name}") for name in _names(place)}
    [first, second] = whole
    path = f"totals/theme/{first}"

    async def refusal() -> str:
        for store in (installation.filed, installation.files):
            with pytest.raises(TotalsUnreadable) as it:
                await installation.answer(store)
        assert path in str(it.value)
        [sentence] = (await installation.writer().compare()).differences
        assert sentence == str(it.value)
        return sentence

    for damaged in (
        b"",
        b"x",
        whole[first][:-9],
        whole[first][:99] + b"?" + whole[first][100:],
    ):
        place.write(path, damaged)
        assert "is damaged or not a file of totals" in await refusal()
    place.write(path, whole[second])
    assert "has the totals of theme:20001" in await refusal()
    from hubbub.aggregator.exported_files import to_parquet

    place.write(path, to_parquet([{"count": 1}]))
    assert "is a Parquet file without totals" in await refusal()
    place.delete(path)
    with pytest.raises(TotalsUnreadable, match=r"theme:20000 were moved .* has no file of them"):
        await installation.answer(installation.filed)
    missing = "totals/theme: the file of 2024-10-04 is missing, which the index has; put it"
    with pytest.raises(TotalsUnreadable, match=missing):
        await installation.answer(installation.files)
    [sentence] = (await installation.writer().compare()).differences
    assert sentence.endswith("has no file of theme, 2024-10-04; put back a copy")
    del installation.store._windows[installation.windows[0]]  # type: ignore[union-attr]
    with pytest.raises(TotalsUnreadable, match=missing):
        await installation.answer(installation.filed)
    assert (await installation.writer().compare()).differences == [sentence]
    place.write(path, whole[first])
    assert not (await installation.writer().compare()).differences


@pytest.mark.parametrize("counts", ["999999.0", "60.1"])
async def test_a_file_whose_name_has_other_counts_than_its_content_is_refused(
    filled: Filled, place: Place, counts: str
) -> None:
    await filled.fill()
    await filled.writer().look()
    first = f"totals/theme/{_names(place)[0]}"
    renamed = first.replace("60.0", counts)
    place.write(renamed, place.read(first))
    place.delete(first)
    with pytest.raises(TotalsUnreadable, match="restore its name") as it:
        await filled.answer(filled.files)
    [sentence] = (await filled.writer().compare()).differences
    assert sentence == str(it.value)
    assert renamed in sentence


async def test_files_of_totals_are_their_owners_alone_and_other_files_are_not(
    filled: Filled, place: Place
) -> None:
    await filled.fill()
    await filled.writer().look()
    root = Path(place.name)
    paths = [root, *root.rglob("*")]  # noqa: ASYNC240 nothing else runs meanwhile
    modes = {path: path.stat().st_mode & 0o777 for path in paths}
    assert modes == {path: 0o700 if path.is_dir() else 0o600 for path in paths}
    mask = os.umask(0o022)
    try:
        place.write("estimates/theme/x", b"x")
    finally:
        os.umask(mask)
    assert (root / "estimates/theme/x").stat().st_mode & 0o777 == 0o644
    assert (root / "estimates/theme").stat().st_mode & 0o777 == 0o755


async def test_totals_that_were_deleted_while_somebody_wrote_them_do_not_come_back(
    filled: Filled, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled.fill()
    aggregator, [window, other] = filled.writer(), filled.windows[:2]
    await aggregator.look()
    [totals] = await filled.store.read([window])
    await filled.filed.delete(window)
    await aggregator.look()
    # By another writer, which was killed before it looked for what was deleted.
    await filled.files.write(window, totals)
    assert len(_names(place)) == 2
    await aggregator.look()
    assert [name[:10] for name in _names(place)] == ["2024-10-05"]

    written = FileTotals.write

    async def write(files: FileTotals, window: Window, totals: WindowTotals) -> bool:
        await filled.filed.delete(window)  # after it was read, before its file is there
        return await written(files, window, totals)

    await filled.files.delete([other])
    with monkeypatch.context() as patch:
        patch.setattr(FileTotals, "write", write)
        assert await filled.writer().look() == 1
    assert not _names(place)


async def test_a_file_that_somebody_deleted_is_written_again_while_redis_has_its_window(
    filled: Filled, place: Place
) -> None:
    await filled.fill()
    writer = filled.writer()
    await writer.look()
    names = _names(place)
    place.delete(f"totals/theme/{names[0]}")
    assert await writer.look() == 1
    assert _names(place) == names
    [bundle] = place.entries("bundles")
    for name in (f"totals/theme/{names[0]}", f"bundles/{bundle.name}"):
        place.delete(name)
    assert await writer.look() == 1
    assert newest_bundle(place).metrics == filled.bundle.metrics


async def test_the_newest_bundle_that_is_whole_is_read(
    filled: Filled, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    await filled.fill()
    await filled.writer().look()
    [whole] = place.entries("bundles")
    (Path(place.name) / "bundles/9.folder.hubbub").mkdir()
    for name in ("²", "x", ""):
        place.write(f"bundles/{name}.x.hubbub", b"x")
    assert newest_bundle(place).metrics == filled.bundle.metrics
    assert not caplog.records
    place.write("bundles/999.x.hubbub", filled.bundle.signed[:-9])
    assert newest_bundle(place).metrics == filled.bundle.metrics
    [warning] = caplog.records
    assert "bundles/999.x.hubbub" in warning.getMessage()
    place.delete(f"bundles/{whole.name}")
    with pytest.raises(BundleRefused, match=r"bundles/999\.x\.hubbub"):
        newest_bundle(place)


async def test_while_the_place_is_away_redis_alone_answers_and_totals_are_deleted(
    filled: Filled,
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await filled.fill()
    await filled.writer(redis_days=3).look()  # drops the cells of the first
    server, promise = MemoryServer(), '{"epoch": "day", "days": {"2": null}}'
    await server.durable([("HSET", "aggregator:retention", "theme", promise)])
    retention = Retention(
        filled.bundle,
        filled.filed,
        server,
        Settled(_now),
        changed=set(),
    )

    def away(*_: object) -> None:
        raise StoreUnavailable("s3://stats: cannot be read: timeout")

    engine = QueryEngine(filled.bundle, filled.filed, clock=_now)
    with monkeypatch.context() as patch:
        for name in ("entries", "read", "write", "delete"):
            patch.setattr(Place, name, away)
        assert (await engine.estimate("theme", EstimateQuery())).reports == 60
        with pytest.raises(StoreUnavailable, match="timeout"):
            await engine.estimate("theme", ALL)
        await retention.look()
        laws = await filled.store.report_counts()
        assert [laws[window]["counted"] for window in filled.windows] == [0, 0, 60, 60]
        assert (await engine.estimate("theme", ALL)).epochs == [20002, 20003]
    [warning] = [each for each in caplog.records if each.levelname == "WARNING"]
    assert "timeout; meanwhile answers use only the totals in Redis" in warning.getMessage()
    assert len(_names(place)) == 2
    await filled.writer().look()
    assert not _names(place)


async def test_files_and_folders_of_others_beside_the_totals_change_nothing(
    filled: Filled, place: Place
) -> None:
    await filled.fill()
    await filled.writer().look()
    counts = await filled.files.report_counts()
    assert len(counts) == 2
    root = Path(place.name) / "totals"
    (root / "README.md").write_text("x")
    for folder in ("lost+found", "%FF", "theme%", "..%2f"):
        (root / folder).mkdir()
    for name in (b"caf\xe9", b"\xff.parquet"):
        for where in (root, root / "theme", Path(place.name) / "bundles"):
            (where / os.fsdecode(name)).touch()
    assert await filled.files.report_counts() == counts
    assert newest_bundle(place).metrics == filled.bundle.metrics
    assert not (await filled.writer().compare()).differences
    assert await filled.writer().look() == 0


async def test_a_file_of_another_definition_is_refused(
    filled: Filled, catalog_files: CatalogFiles
) -> None:
    await filled.fill()
    await filled.writer().look()
    metric = catalog_files.bundle.metric("theme")
    other = replace(
        catalog_files.bundle,
        metrics={"theme": replace(metric, epsilon=metric.epsilon / 2)},
        history={},
    )
    with pytest.raises(TotalsUnreadable, match=r"by another definition .* with --bundle"):
        await filled.answer(FileTotals(filled.files.place, lambda: other))


def test_an_invalid_place_is_refused_without_its_password(tmp_path: Path) -> None:
    for text in ("s3://KEY:hunter2@bucket/x", "s3://b/x?secret_key=hunter2", "nonsense://hunter/2"):
        with pytest.raises(BadParameter) as it:
            Place.of(text)
        assert "hunter2" not in str(it.value)
    for text in ("s3://", "s3:///prefix", "gs://", "gs:///prefix"):
        with pytest.raises(BadParameter, match=r"(?i)names no bucket|missing bucket"):
            Place.of(text)
    with pytest.raises(BadParameter, match="no place is given"):
        Place.of("")
    with pytest.raises(BundleRefused, match="has no bundle: name the folder"):
        newest_bundle(Place.of(str(tmp_path / "nothing")))
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreUnavailable, match=r"file/bundles/x: cannot be written"):
        Place.of(str(tmp_path / "file")).write("bundles/x", b"")


@pytest.fixture(params=[1, 3])
def redis_filled(
    request: pytest.FixtureRequest, catalog_files: CatalogFiles, tmp_path: Path
) -> Iterator[Callable[[], Filled]]:
    with redis_server(tmp_path / "redis") as port:
        servers = []

        async def make() -> Filled:
            server = await connect_redis(f"redis://127.0.0.1:{port}/0")
            servers.append(server)
            store = RedisStore(server, request.param)
            return Filled(catalog_files.bundle, store, Place.of(str(tmp_path / "totals")))

        yield make  # type: ignore[misc]


async def test_redis_drops_cells_and_keeps_what_it_counted(
    redis_filled: Callable[[], Filled],
) -> None:
    installation = await redis_filled()  # type: ignore[misc]
    await installation.fill()
    before, law = (
        await installation.answer(installation.store),
        await installation.store.report_counts(),
    )
    await installation.writer(redis_days=1).look()
    key = installation.windows[0].key("aggregator:totals")
    fields = {field.decode() for field in await installation.store._server.ask("HKEYS", key)}
    assert fields == {"law", "crowd", "at", "last", "batches"}
    assert await installation.answer(installation.filed) == before
    assert await installation.store.report_counts() == law
    late = commit_of(
        [secrets.token_bytes(16)],
        np.ones(installation.bundle.metric_of("theme").randomizer.layout.size, dtype=np.int64),
        seen_until=int(NOW),
    )
    assert (await installation.store.add(installation.windows[0], late))[0] is Outcome.FORGOTTEN
    assert await installation.answer(installation.filed) == before
    # Where several shards are dropped one by one, the file has all of them meanwhile.
    await installation.filed.delete(installation.windows[0])
    assert (await installation.store.report_counts())[installation.windows[0]][
        "counted:deleted"
    ] == 60
    await installation.store._server.close()


async def test_verify_counts_compared_files_and_names_the_first_window_to_close(
    filled: Filled,
) -> None:
    writer = filled.writer()
    assert await writer.first_closing() == "Redis has no closed epoch yet, and no report"
    await _count(filled.store, filled.bundle, filled.windows[2], 1)
    assert await writer.compare() == (0, 0, [])
    assert await writer.first_closing() == (
        "Redis has no closed epoch yet; the first, theme of 2024-10-06, closes at "
        "2024-10-09 00:00 UTC"
    )
    for seed in (0, 1):
        await _count(filled.store, filled.bundle, filled.windows[seed], seed)
    windows, whole, [sentence] = await writer.compare()
    assert (windows, whole) == (2, 0)
    dates = "has no file of theme, 2024-10-04..2024-10-05; hubbub totals write creates it"
    assert sentence.endswith(dates)
    await writer.look()
    assert await writer.compare() == (2, 2, [])


def test_commands_before_the_first_closed_epoch_say_so(
    catalog_files: CatalogFiles,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    place, bundle = str(tmp_path / "nowhere"), ("--bundle", str(catalog_files.path))
    with redis_server(tmp_path / "redis") as port:
        monkeypatch.setenv("HUBBUB_REDIS_URL", f"redis://127.0.0.1:{port}/0")
        assert main(["totals", "verify", place, *bundle]) == 0
        assert main(["totals", "write", place, *bundle]) == 0
    nothing = "Redis has no closed epoch yet, and no report"
    assert capsys.readouterr().out.splitlines() == [
        f"{place} has no totals; {nothing}",
        f"{place}: nothing written; {nothing}",
    ]
