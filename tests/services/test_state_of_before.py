"""What an installation of before the tags in buckets had in Redis: written by its own code, read.

tests/data/redis/0.2-november.aof was written by the totals' store and the pool of commit 5b7a529:
three batches of ten reports counted, thirty sealed reports pooled, of which twenty are in flight.
"""

import asyncio
import hashlib
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from hubbub.aggregator.store.contract import Commit, Outcome
from hubbub.aggregator.store.redis import RedisStore
from hubbub.conservation import Window
from hubbub.mechanisms import Totals
from hubbub.runtime.redis.client import connect_redis
from hubbub.shuffler.pool import Pool
from tests.support.servers import redis_server
from tests.support.stores import commit_of, totals

OLD_FILE = Path(__file__).parents[1] / "data" / "redis" / "0.2-november.aof"
WINDOW = Window("theme", 20779)
LATER = 4 * 10**9


def _token(what: str, number: int) -> bytes:
    return hashlib.sha256(f"{what} {number}".encode()).digest()[:16]


def _batch(number: int) -> Commit:
    """As it was counted then."""
    tags = [_token("tag", 10 * number + place) for place in range(10)]
    cells = np.array([4 + number, 6 - number], dtype=np.int64)
    rejected = {"expired": number} if number else {}
    return commit_of(
        tags, cells, batch_id=_token("batch", number), duplicates=number, rejected=rejected
    )


async def _goes_on(url: str) -> None:
    server = await connect_redis(url)
    store, pool = RedisStore(server), Pool(server)
    assert await totals(store, WINDOW) == Totals(cells=[15, 15], reports=30)
    terms: Any = (await store.report_counts())[WINDOW]
    assert terms["counted"] == 30
    assert (terms["duplicate"], terms["rejected:expired"]) == (3, 3)
    for number in range(3):
        assert (await store.add(WINDOW, _batch(number)))[0] is Outcome.ALREADY_APPLIED
    again = commit_of([_token("tag", 29)], np.array([1, 0]), batch_id=_token("batch", 7))
    assert await store.add(WINDOW, again) == (Outcome.SEEN, frozenset([_token("tag", 29)]))
    fresh = commit_of([_token("tag", 99)], np.array([1, 0]), batch_id=_token("batch", 8))
    assert (await store.add(WINDOW, fresh))[0] is Outcome.APPLIED
    assert (await totals(store, WINDOW)).cells == [16, 15]

    law = (await pool.report_counts())[WINDOW]
    assert (law["acknowledged"], law["pooled"], law["in_flight"]) == (30, 10, 20)
    [(batch_id, owner)] = (await pool.batches(WINDOW)).items()
    flying = await pool.claim(WINDOW, batch_id, owner)
    assert len(set(flying)) == 20
    assert set(flying) < {b"sealed %d" % number for number in range(30)}
    await pool.delivered(WINDOW, batch_id)
    assert (await pool.report_counts())[WINDOW]["in_flight"] == 0
    await server.close()


def test_counted_pooled_and_sent_reports_of_version_0_1_stay_so(tmp_path: Path) -> None:
    folder = tmp_path / "redis"
    folder.mkdir()
    shutil.copy(OLD_FILE, folder / "appendonly.aof")
    with redis_server(folder, appendonly="yes") as port:
        asyncio.run(_goes_on(f"redis://127.0.0.1:{port}/0"))
