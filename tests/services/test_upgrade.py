"""What version 0.1 left behind is gone on with: both Redis, a device's folder, bundle and keys.

tests/data/installations/0.1 was made by its own programs: 66 devices, of which one still had a
report to send, and pools that had not reached their minimum. recorded.json is what they said.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.query.epoch_range import EpochRange
from hubbub.aggregator.query.estimating import EstimateQuery
from hubbub.aggregator.store.redis import RedisStore
from hubbub.authoring import read_with_promises
from hubbub.bundles import Bundle, key_at, read_bundle
from hubbub.catalog import epoch_start
from hubbub.client import Client, FolderState, Outcome, SystemClock
from hubbub.client.testing import FakeShuffler
from hubbub.conservation import Window
from hubbub.installation.embedded_redis import EmbeddedRedis
from hubbub.installation.keys_and_bundles import build_bundle
from hubbub.keys.opening_key_files import read_opening_keys
from hubbub.runtime.redis.client import connect_redis
from hubbub.sealing.hpke import PrivateKey, open_sealed, seal_info
from hubbub.shuffler.pool import Pool
from tests.support.waiting import HANG_SECONDS

OLD_INSTALLATION = Path(__file__).parents[1] / "data" / "installations" / "0.1"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The installation, with the rights that its files had."""
    home = tmp_path / "home"
    shutil.copytree(OLD_INSTALLATION, home)
    for secret in (home / "keys").iterdir():
        secret.chmod(0o600)
    return home


@pytest.fixture
def recorded(home: Path) -> Any:
    return json.loads((home / "recorded.json").read_text())


@pytest.fixture
def servers(home: Path) -> Iterator[dict[str, str]]:
    started = {role: EmbeddedRedis(home / f"redis-{role}") for role in ("shuffler", "aggregator")}
    yield {role: server.url for role, server in started.items()}
    for server in started.values():
        server.stop()


async def test_an_upgrade_loses_nothing_of_both_redis(
    home: Path, recorded: Any, servers: dict[str, str]
) -> None:
    bundle = read_bundle(home / "app.hubbub")
    pools, totals = [await connect_redis(servers[r]) for r in ("shuffler", "aggregator")]
    store = RedisStore(totals)
    pool = await Pool(pools).report_counts()
    counted = await store.counted(bundle.streams)
    for name, expected in recorded["counts"].items():
        stream, _, epoch = name.rpartition(":")
        window = Window(stream, int(epoch))
        terms = pool[window]
        assert (terms["acknowledged"], terms["pooled"]) == (
            expected["acknowledged"],
            expected["pooled"],
        )
        assert counted[window].reports == expected["counted"]
        assert terms["acknowledged"] == terms["pooled"] + counted[window].reports
        # What waits can be delivered and counted: it opens with the keys that were kept.
        mechanism = bundle.metric_of(window.stream).randomizer
        async with Redis.from_url(servers["shuffler"]) as client:
            waiting: list[Any] = [*await client.smembers(f"shuffler:pool:{{{name}}}")]
        assert len(waiting) == expected["pooled"]
        private = _key_of(home, bundle, window)
        for sealed in waiting:
            payload = open_sealed(sealed, private, seal_info(window.stream, window.epoch))
            assert len(payload) == mechanism.layout.payload_bytes
    engine = QueryEngine(bundle, store, clock=lambda: float(recorded["moment"]))
    for name, expected in recorded["estimates"].items():
        answer = await engine.estimate(name, EstimateQuery(range=EpochRange(epochs="all")))
        assert answer.reports == expected["reports"]
        assert {row.value for row in answer.values} == expected["values"].keys()
        for row in answer.values:
            # Of errors 0.1 thought otherwise.
            assert row.estimate == pytest.approx(expected["values"][row.value][0])
    for server in (pools, totals):
        await server.close()


def _key_of(home: Path, bundle: Bundle, window: Window) -> PrivateKey:
    """What opens a window's reports, by the operator's own files."""
    begins = epoch_start(window.epoch, bundle.metric_of(window.stream).epoch)
    public = key_at(bundle.keys, begins)
    assert public is not None
    opening_keys = read_opening_keys(home / "keys" / "opening.keys.json")
    return next(key for key in opening_keys if key.id == public.id).load()


def test_a_device_continues_with_its_budget_and_waiting_reports(home: Path, recorded: Any) -> None:
    bundle, expected = read_bundle(home / "app.hubbub"), recorded["device"]
    moment = recorded["moment"] + 60
    state = FolderState(home / "device", clock=lambda: moment)
    shuffler = FakeShuffler()
    clock = SystemClock(lambda: moment)
    with Client(bundle, state, shuffler, hold_seconds=None, clock=clock) as client:
        ledger = client.ledger()
        assert [[m.name, m.reports, m.spent] for m in ledger.metrics] == expected["metrics"]
        payloads = [[p.metric, p.epoch, p.payload.hex(), p.fate] for p in ledger.payloads]
        assert payloads == expected["payloads"]
        for name, value in (("theme", "light"), ("editor", "emacs")):
            assert client.report(name, value) is Outcome.ALREADY_REPORTED
        assert client.waiting == expected["waiting"]
        assert client.flush(HANG_SECONDS)
        assert {p.fate for p in client.ledger().payloads} == {"sent"}
    [report] = shuffler.reports()
    private = _key_of(home, bundle, Window(report.stream, report.epoch))
    payload = open_sealed(report.sealed, private, seal_info(report.stream, report.epoch))
    assert payload.hex() == expected["payloads"][-1][2]


def test_the_next_bundle_follows_the_last_one(home: Path) -> None:
    before = read_bundle(home / "app.hubbub")
    source = home / "metrics.toml"
    source.write_text(source.read_text().replace('"system"]', '"system", "sepia"]'))
    built = build_bundle(
        read_with_promises(source),
        home / "keys",
        out=home / "app.hubbub",
        streams=home / "streams.json",
        previous=home / "app.hubbub",
        roots=before.roots,
    )
    assert built.operator == before.operator
    assert built.serial > before.serial
    assert built.metric("theme").grown == (3,)  # and what was counted is asked for still
    assert set(before.streams) < set(built.streams)
