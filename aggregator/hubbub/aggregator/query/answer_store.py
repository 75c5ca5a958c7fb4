"""Finished answers in Redis: for all aggregators, for Grafana, for redis-cli.

Keys:

    aggregator:estimates             hash: METRIC -> JSON list of its RANGEs
    aggregator:estimates:METRIC:RANGE  hash: every field of an answer -> JSON; version, a digest of
                                     its inputs; written, last confirmation, ISO 8601, UTC

RANGE is an epoch's date, "newest", or a value of `last`: "7d". One command writes a whole answer,
so that none is a mixture of two.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final

from hubbub.aggregator.query.answer_types import Estimated, Shuffled
from hubbub.aggregator.query.cache import LruCache
from hubbub.aggregator.query.estimating import EstimateQuery
from hubbub.aggregator.query.totals import EpochSelection
from hubbub.analysis.answer import Twins, ValueAnswer
from hubbub.analysis.percentiles import Percentile, ShareBelow
from hubbub.analysis.strings.likely_strings import LikelyString
from hubbub.analysis.value_estimates import Mean
from hubbub.runtime.redis.command_sender import Hashes

# Answers expire unless confirmed: those of removed metrics, or of past ranges.
_SECONDS: Final = 3 * 86_400
# Number of values of all answers in memory.
_MAX_VALUES: Final = 200_000
_INDEX: Final = "aggregator:estimates"


class AnswerStore:
    """Finished answers by metric and range, with a cache of those read last.

    Every method raises StoreUnavailable without Redis.
    """

    def __init__(self, server: Hashes) -> None:
        self._server = server
        self._read: LruCache[str, tuple[str, Estimated]] = LruCache(_MAX_VALUES)

    async def find(self, metric: str, range_: str, version: str) -> Estimated | None:
        """The complete answer of exactly this version; None otherwise."""
        key = _key(metric, range_)
        if await self._server.ask("HGET", key, "version") != _json(version):
            return None
        entry = self._read.get(key)
        if entry and entry[0] == version:
            return entry[1]
        try:
            answer = _answer(await self._server.ask("HGETALL", key), version)
        except (ValueError, TypeError, KeyError, RecursionError):
            return None  # we did not write it
        if answer:
            self._read.keep(key, (version, answer), len(answer.values) + 1)
        return answer

    async def keep(self, answer: Estimated, range_: str, version: str, stored_at: str) -> None:
        """Stores an answer made at this time, replacing the current one."""
        # A tenth of the time of json, which stops this loop for 0.1 s where values are 5,000.
        from pydantic_core import to_json  # noqa: PLC0415 not with `hubbub simulate`

        key, document = _key(answer.metric, range_), {"version": version, "written": stored_at}
        document |= {field.name: getattr(answer, field.name) for field in fields(answer)}
        pairs = [part for name, value in document.items() for part in (name, to_json(value))]
        await self._server.execute([("HSET", key, *pairs), ("EXPIRE", key, _SECONDS)])

    async def confirm(self, metric: str, range_: str, version: str, stored_at: str) -> bool:
        """Records that the stored answer is still right; False if it has another version."""
        key = _key(metric, range_)
        stored_version, written_at = await self._server.ask("HMGET", key, "version", "written")
        if not written_at or stored_version != _json(version):
            return False
        await self._server.execute(
            [("HSET", key, "written", _json(stored_at)), ("EXPIRE", key, _SECONDS)]
        )
        return True

    async def ranges(self, metric: str, ranges: Sequence[str]) -> None:
        """Stores the list of a metric's ranges; deletes the answers that it no longer contains."""
        await self._delete(metric, kept=ranges)
        await self._server.ask("HSET", _INDEX, metric, _json(list(ranges)))

    async def drop(self, metric: str, ranges: Sequence[str] = ()) -> None:
        """Deletes the answers of a metric's listed ranges, and of `ranges`."""
        await self._delete(metric, ranges)
        await self._server.ask("HDEL", _INDEX, metric)

    async def _delete(
        self, metric: str, ranges: Sequence[str] = (), kept: Sequence[str] = ()
    ) -> None:
        """Deletes the answers of a metric's listed ranges and of `ranges`, except `kept`."""
        stored_ranges = await self._server.ask("HGET", _INDEX, metric)
        for name in {*(json.loads(stored_ranges) if stored_ranges else ()), *ranges}.difference(
            kept
        ):
            await self._server.ask("UNLINK", _key(metric, name))


def version_of(
    definition: str, selection: EpochSelection, query: EstimateQuery, *, final: bool
) -> str:
    """Digest of everything on which an answer depends; `definition` covers program and metric."""
    came_from: tuple[object, ...] = (
        definition,
        query.confidence,
        query.candidates,
        query.lists,
        tuple(sorted(selection.counted.items())),
        *(("anytime",) if query.anytime else ()),
        *(("likely", query.likely) if query.likely else ()),
        *(("ranks", query.percentiles, query.below) if query.percentiles or query.below else ()),
    )
    return hashlib.sha256(repr((*came_from, final)).encode()).hexdigest()[:32]


def _answer(hash_fields: Mapping[bytes, bytes], version: str) -> Estimated | None:
    """The answer in a hash; None if it has another version or other fields."""
    document = {name.decode(): json.loads(value) for name, value in hash_fields.items()}
    if document.pop("version", None) != version or document.pop("written", None) is None:
        return None
    if document.keys() != {field.name for field in fields(Estimated)}:
        return None
    bare = Estimated(**document)
    return replace(
        bare,
        values=[ValueAnswer(**row) for row in document["values"]],
        twins=[Twins(tuple(twin_group["values"])) for twin_group in document["twins"]],
        likely=[LikelyString(**row) for row in document["likely"]],
        percentiles=[Percentile(**row) for row in document["percentiles"]],
        below=[ShareBelow(**row) for row in document["below"]],
        mean=_table_value(Mean, document["mean"]),
        others=_table_value(Mean, document["others"]),
        shuffled=_table_value(Shuffled, document["shuffled"]),
        promised=Shuffled(**document["promised"]),
    )


def _table_value(kind: type[Any], table: Mapping[str, Any] | None) -> Any:
    return None if table is None else kind(**table)


def _key(metric: str, range_: str) -> str:
    return f"{_INDEX}:{metric}:{range_}"


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
