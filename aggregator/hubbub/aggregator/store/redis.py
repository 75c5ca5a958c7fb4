"""Totals in Redis: one Lua script commits a batch, whole or not at all.

Keys, for a window W = STREAM:EPOCH, behind the prefix "aggregator:":

    totals:{W}    hash: cells:0, cells:1, ... (chunks of packed little-endian int64; none is zeros),
                  size (how many cells), run (of Redis, when all chunks were last written), batches
                  (first 8 bytes of the id of each of the newest that are in them), law (JSON:
                  counted, duplicate, rejected:REASON), crowd (of the smallest batch), at (when
                  reports were last counted), last (first 8 bytes of the id of that batch; random if
                  the totals came from elsewhere). Version 0.1 had all cells in one field, cells.
                  Where a file has the cells, there are neither size nor run nor cells
    batches:{W}   set: the same of all batches before those
    tags:{W}      hash: generations ("BUCKETS=TAGS ..."), salt, of:BATCH (the tags of a batch that
                  may be half counted)
    tags:{W}:G.H  hash: the buckets of generation G from 16,384 H on -> the ends of their tags.
                  Earlier ("BUCKETS:TAGS") tags:{W}:G.B was a set, 64 bits of each
                  tag in bucket B of generation G; with "+" behind it 16 more
    seen:{W}      hash, of version 0.1: tag -> the batch that it was counted in, and "+"
    windows       hash: every W -> its number of shards
    remembered    hash: every W whose tags and batch ids are held -> until when, for housekeeping.py

A window of several shards has {W#1}, {W#2}, ... beside {W}; on a Redis Cluster they spread over the
nodes. A report's tag says which one is its own, so it can be counted in no other.
"""

import json
import logging
import secrets
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np

from hubbub.aggregator.store.contract import (
    DUMMIES,
    Commit,
    Counted,
    Integers,
    Outcome,
    WindowTotals,
    without_excess,
)
from hubbub.conservation import Window
from hubbub.errors import BadParameter, TotalsUnreadable
from hubbub.runtime.redis.command_sender import RedisServer, lua, script
from hubbub.sealing.hpke import TAG_BYTES

if TAG_BYTES != 16:  # noqa: PLR2004 what the script cuts by
    raise AssertionError("commit.lua cuts tags of 16 bytes")
# Bytes kept of each tag, and number of buckets per hash.
_END_BYTES: Final = 9
_BUCKETS: Final = 1 << 14
# Four numbers to multiply by and one to add, of 64 bits.
SALT_BYTES: Final = 40
_log: Final = logging.getLogger("hubbub.aggregator")

_COMMIT: Final = lua(__package__, "commit")
_FORGET: Final = lua(__package__, "forget")
# Bytes kept of each batch id, which is random.
_ID_BYTES: Final = 8
# Cells a field of the totals, unless that made more fields than one command takes.
_CHUNK: Final = 512
_MAX_CHUNKS: Final = 2048
# Number of keys deleted at a time.
_KEYS: Final = 5000
# Beyond any batch, and beyond any window.
_NOBODY: Final = 1 << 40
# A tag's first byte chooses.
_MAX_SHARDS: Final = 256
# The last moment that a date has.
_LATEST: Final = 253_402_300_799
# Upper bound of all sums of the script.
_MAX: Final = 1 << 53
# Beyond what any mechanism has.
_MAX_CELLS: Final = 1 << 26
# Errors from malformed data; TypeError and AttributeError if it has another type.
_NOT_READ: Final = (ValueError, TypeError, AttributeError, OverflowError, RecursionError)


class RedisStore:
    """Totals in Redis. Every method raises StoreUnavailable if Redis does not answer.

    Args:
        shards: number of shards of new windows; existing windows keep theirs.

    Attributes:
        unreadable: names of unreadable entries in Redis; answers leave them out, and each is logged
            once.
    """

    def __init__(self, server: RedisServer, shards: int = 1) -> None:
        self._server = server
        self._shards = shards
        self._expected: dict[Window, int] = {}
        self._salts: dict[str, bytes] = {}
        self.unreadable: set[str] = set()

    async def check(self) -> None:
        """Raises StoreUnavailable if our Redis user lacks a right."""
        rights = "+hdel +hkeys +sadd +sismember +smismember +persist +expire +unlink"
        trial = "SMISMEMBER", "aggregator:nothing", "0"
        await self._server.check_rights("aggregator", trial, rights)

    async def shards(self, window: Window) -> int:
        record_command = ("HSETNX", "aggregator:windows", window.name, str(self._shards))
        _, shards = await self._server.durable([record_command, ("HGET", *record_command[1:3])])
        try:
            return _number(shards, 1, _MAX_SHARDS)
        except ValueError as error:
            raise self._unreadable_error(window) from error

    async def add(self, window: Window, commit: Commit) -> tuple[Outcome, frozenset[bytes]]:
        keys = [_key(what, window, commit.shard) for what in ("totals", "seen", "batches", "tags")]
        head = [
            commit.batch_id[:_ID_BYTES],
            _NOBODY if commit.max_reports is None else commit.max_reports,
            # A commit without reports leaves the smallest crowd unchanged.
            commit.batch_reports if len(commit.tags) else _NOBODY,
            commit.at,
        ]
        tail = [
            *_chunks(commit.cells if len(commit.tags) else commit.cells[:0]),
            *(part for item in commit.terms.items() for part in item),
        ]
        expected = await self._expect(window)
        until = ("HSETNX", "aggregator:remembered", window.name, commit.seen_until)
        while True:
            salt = self._salts.setdefault(keys[-1], secrets.token_bytes(SALT_BYTES))
            arguments = [*head, salt, expected, *tags_by_place(b"".join(commit.tags), salt), *tail]
            _, [kind, *reply] = await self._server.durable(
                [until, script(_COMMIT, keys, arguments)]
            )
            if kind != b"salt":
                return Outcome(kind.decode()), frozenset(reply)
            self._salts[keys[-1]] = reply[0]

    async def restore(self, window: Window, totals: WindowTotals) -> None:
        """Stores totals made elsewhere in an empty window, which then accepts no reports.

        Raises BadParameter if reports were counted in it.
        """
        key = _key("totals", window, 0)
        if await self._server.ask("EXISTS", key):
            raise BadParameter(
                f"{window.name} already has totals; leave it out of what is restored"
            )
        # Its reports have no stored tags, as in a window whose tags were deleted.
        size, _, _, *parts = _chunks(totals.cells)
        chunks = [
            (f"cells:{place}", cells) for place, cells in zip(parts[::2], parts[1::2], strict=True)
        ]
        law = {"counted": totals.counted} | ({DUMMIES: totals.dummies} if totals.dummies else {})
        fields = [("size", size), ("law", json.dumps(law))]
        fields += [*chunks, ("crowd", totals.batch_reports), ("at", totals.at)]
        fields += [("last", secrets.token_bytes(_ID_BYTES))]
        write = ("HSET", key, *(part for pair in fields for part in pair))
        enter = ("HSETNX", "aggregator:windows", window.name, "1")
        await self._server.durable([write, enter])

    async def tag_ends(self) -> Mapping[Window, int]:
        return self._numbers(await self._server.ask("HGETALL", "aggregator:remembered"), 0, _MAX)

    async def forget(self, window: Window) -> None:
        for shard in range(await self.shards(window)):
            tags = _key("tags", window, shard)
            # The mark comes first: partly deleted tags must not be used.
            _, generations = await self._server.durable(
                [("HSET", tags, "forgotten", 1), ("HGET", tags, "generations")]
            )
            keys = [_key(kind, window, shard) for kind in ("seen", "batches")]
            keys += bucket_keys(tags, generations or b"")
            for start in range(0, len(keys), _KEYS):
                await self._server.durable([("UNLINK", *keys[start : start + _KEYS])])
            await self._server.durable([("UNLINK", tags)])
            self._salts.pop(tags, None)
        self._expected.pop(window, None)
        await self._server.durable([("HDEL", "aggregator:remembered", window.name)])

    async def delete(self, window: Window, reports_in_file: int = 0) -> int:
        commands = [
            script(_FORGET, [_key("totals", window, shard)], [-1 if shard else reports_in_file])
            for shard in range(await self.shards(window))
        ]
        return sum(map(int, await self._server.durable(commands)))

    async def drop_cells(self, window: Window) -> None:
        # One command per shard: Redis restores either all of its chunks or none.
        for shard in range(await self.shards(window)):
            key = _key("totals", window, shard)
            fields = await self._server.ask("HKEYS", key)
            cells = [field for field in fields if field.startswith((b"cells", b"size", b"run"))]
            if cells:
                await self._server.durable([("HDEL", key, *cells)])

    async def _expect(self, window: Window) -> int:
        """Expected number of tags in a shard, from the epoch before."""
        if window not in self._expected:
            former = Window(window.stream, max(window.epoch - 1, 0))
            law = await self._server.ask("HGET", _key("totals", former, 0), "law")
            try:
                self._expected[window] = Counted.of(_read_law(law)).tags
            except _NOT_READ:
                self._expected[window] = 0
        return self._expected[window]

    async def counted_by_window(self) -> Mapping[Window, int]:
        names = [window.name for window in await self.tag_ends()]
        if not names:
            return {}
        # Only current ones, since this is read several times a second.
        shards = await self._server.ask("HMGET", "aggregator:windows", *names)
        shard_counts = {name.encode(): n for name, n in zip(names, shards, strict=True) if n}
        laws = await self._law_rows(self._numbers(shard_counts, 1, _MAX_SHARDS))
        return {window: Counted.of(terms).tags for window, (terms, _) in laws.items()}

    async def room(self) -> float:
        # Infinite without a maxmemory.
        return (await self._server.room())[1]

    async def read(self, windows: Sequence[Window]) -> list[WindowTotals]:
        if not windows:
            return []
        shard_counts = await self._shard_counts()
        shards = [shard_counts.get(window, 0) for window in windows]
        commands = [
            ("HGETALL", _key("totals", window, shard))
            for window, number in zip(windows, shards, strict=True)
            for shard in range(number)
        ]
        parts = iter(await self._server.ask_each(commands))
        totals = []
        for window, number in zip(windows, shards, strict=True):
            try:
                totals.append(_window_totals([next(parts) for _ in range(number)]))
            except _NOT_READ as error:
                raise self._unreadable_error(window) from error
        return totals

    async def counted(self, streams: Collection[str]) -> Mapping[Window, Counted]:
        shard_counts = await self._shard_counts()
        rows = await self._law_rows({w: n for w, n in shard_counts.items() if w.stream in streams})
        counts = {window: Counted.of(*row) for window, row in rows.items()}
        return {window: count for window, count in counts.items() if count.reports}

    async def report_counts(self) -> Mapping[Window, Mapping[str, int]]:
        rows = await self._law_rows(await self._shard_counts())
        return {window: terms for window, (terms, _) in rows.items()}

    async def _shard_counts(self) -> dict[Window, int]:
        reply = await self._server.ask("HGETALL", "aggregator:windows")
        return self._numbers(reply, 1, _MAX_SHARDS)

    async def _law_rows(
        self, shard_counts: Mapping[Window, int]
    ) -> dict[Window, tuple[Counter[str], bytes]]:
        """Each window's terms of the law, and the last change of its cells."""
        shards = [(w, shard) for w, n in sorted(shard_counts.items()) for shard in range(n)]
        answers = await self._server.ask_each(
            [("HMGET", _key("totals", window, shard), "law", "last") for window, shard in shards]
        )
        terms: dict[Window, Counter[str]] = {}
        changed = defaultdict[Window, bytes](bytes)
        broken = set[Window]()
        for (window, _), answer in zip(shards, answers, strict=True):
            try:
                law, last = answer
                terms.setdefault(window, Counter()).update(_read_law(law))
                changed[window] += last or b""
            except _NOT_READ:
                broken.add(window)
                self._leave_out(window.name)
        return {
            window: (Counter(without_excess(shard_terms)), changed[window])
            for window, shard_terms in terms.items()
            if window not in broken
        }

    def _unreadable_error(self, window: Window) -> TotalsUnreadable:
        self._leave_out(window.name)
        return TotalsUnreadable(
            f"the totals of {window.name} cannot be read; request other epochs, or restore them "
            "from a backup (docs/operate/restore.md)"
        )

    def _numbers(self, reply: Mapping[bytes, bytes], low: int, high: int) -> dict[Window, int]:
        """Windows and their numbers in [low, high], from a Redis hash."""
        numbers: dict[Window, int] = {}
        for name, number in reply.items():
            try:
                numbers[Window.parse(name)] = _number(number, low, high)
            except ValueError:
                self._leave_out(repr(name))
        return numbers

    def _leave_out(self, what: str) -> None:
        if what not in self.unreadable:
            self.unreadable.add(what)
            _log.warning("%s cannot be read in Redis and is left out of every answer", what)


def _window_totals(shards: Sequence[Mapping[bytes, bytes]]) -> WindowTotals:
    laws = [_read_law(shard.get(b"law")) for shard in shards]
    counts = [Counted.of(law).tags for law in laws]
    cells = [_cells(shard) for shard in shards]
    # If one shard has dropped its cells, the file has those of all shards.
    is_whole = all(part.size for part, counted in zip(cells, counts, strict=True) if counted)
    parts = [part for part in cells if part.size]
    summed = np.stack(parts).sum(axis=0) if parts and is_whole else np.zeros(0, dtype=np.int64)
    # Totals from before crowds and times were stored have none.
    batch_sizes = [
        _number(shard.get(b"crowd", 0), 0, _MAX)
        for shard, counted in zip(shards, counts, strict=True)
        if counted
    ]
    times = [_number(shard.get(b"at", 0), 0, _LATEST) for shard in shards]
    terms = Counter[str]()
    for law in laws:
        terms.update(law)
    count = Counted.of(without_excess(terms), b"".join(shard.get(b"last", b"") for shard in shards))
    return WindowTotals(
        cells=summed,
        counted=count.reports,
        batch_reports=min(batch_sizes, default=0),
        at=max(times, default=0),
        dummies=count.dummies,
        last=count.last,
    )


def _cells(shard: Mapping[bytes, bytes]) -> Integers:
    """All cells of a shard: from chunks, or whole as version 0.1 stored them."""
    if b"size" not in shard:
        return np.frombuffer(shard.get(b"cells", b""), dtype="<i8")
    size = _number(shard[b"size"], 0, _MAX_CELLS)
    cells = np.zeros(size, dtype="<i8")
    length = _chunk(size)
    for place in range(-(-size // length)):
        packed = shard.get(b"cells:%d" % place)
        if packed is not None:
            chunk = cells[place * length : (place + 1) * length]
            if len(packed) != chunk.nbytes:
                raise ValueError("a chunk of another size")
            chunk[:] = np.frombuffer(packed, dtype="<i8")
    return cells


def _chunks(cells: Integers) -> list[Any]:
    """Arguments of the script: size, cells per chunk, number of chunks, and the non-zero chunks."""
    length = _chunk(cells.size)
    starts = range(0, cells.size, length)
    parts = [(place, cells[start : start + length]) for place, start in enumerate(starts)]
    chunks = [(place, part.astype("<i8").tobytes()) for place, part in parts if part.any()]
    return [cells.size, length, len(chunks), *(argument for pair in chunks for argument in pair)]


def _chunk(size: int) -> int:
    return max(_CHUNK, -(-size // _MAX_CHUNKS))


def _read_law(text: bytes | None) -> dict[str, int]:
    law: dict[str, int] = json.loads(text or b"{}")
    if not all(term.isascii() and term.isprintable() for term in law):
        raise ValueError("not a term of the conservation law")
    dummies = _number(law.get(DUMMIES, 0), 0, _MAX)
    return {
        term: _number(number, -dummies if term == "counted" else 0, _MAX)
        for term, number in law.items()
    }


def _number(value: bytes | float, low: int, high: int) -> int:
    """A whole number from Redis or its Lua. Raises ValueError or OverflowError."""
    number = int(value)
    if not low <= number <= high:
        raise ValueError(f"outside [{low}, {high}]")
    return number


def _key(kind: str, window: Window, shard: int) -> str:
    return window.key(f"aggregator:{kind}", f"#{shard}" if shard else "")


def tags_by_place(tags: bytes, salt: bytes) -> list[Any]:
    """Tags in the order of their places, the ends of tags, and the places.

    A place is a hash that is strongly universal for all tags and cannot be guessed without the
    salt. Source: Dietzfelbinger 1996, Universal hashing and k-wise independent random variables.
    """
    multipliers = np.frombuffer(salt, dtype="<u8")
    words = np.frombuffer(tags, dtype="<u4").reshape(-1, 4).astype(np.uint64)
    places = (((words * multipliers[:4]).sum(axis=1) + multipliers[4]) >> 32).astype("<u4")
    order = np.argsort(places, kind="stable")
    ordered = np.frombuffer(tags, dtype="V16")[order].tobytes()
    ends = np.frombuffer(ordered, dtype=np.uint8).reshape(-1, TAG_BYTES)[:, -_END_BYTES:].tobytes()
    return [ordered, ends, places[order].tobytes()]


def bucket_keys(tags: str, generations: bytes) -> list[str]:
    """Keys of all buckets, from the number of buckets of each generation."""
    keys = []
    for generation, part in enumerate(generations.split(), start=1):
        packed = b"=" in part
        buckets = int(part.split(b"=" if packed else b":")[0])
        key_numbers = range(-(-buckets // _BUCKETS) if packed else buckets)
        kinds = ("",) if packed else ("", "+")
        keys += [
            f"{tags}:{generation}.{key_number}{kind}"
            for key_number in key_numbers
            for kind in kinds
        ]
    return keys
