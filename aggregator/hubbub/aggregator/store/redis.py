"""Totals in Redis: one Lua script commits a batch, whole or not at all.

Keys, for a window W = STREAM:EPOCH, behind the prefix "aggregator:":

    totals:{W}    hash: cells (packed little-endian int64), batches (first 8 bytes of the id of each
                  of the newest that are in them), law (JSON: counted, duplicate, rejected:REASON),
                  crowd (of the smallest batch), at (when reports were last counted)
    batches:{W}   set: the same of all batches before those
    seen:{W}      hash: tag -> the batch that it was counted in, and "+"
    windows       hash: every W -> its number of shards
    remembered    hash: every W whose tags and batch ids are held -> until when, for housekeeping.py

A window of several shards has {W#1}, {W#2}, ... beside {W}; on a Redis Cluster they spread over the
nodes. A report's tag says which one is its own, so it can be counted in no other.
"""

import json
import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import numpy as np
from redis.exceptions import NoPermissionError

from hubbub.accounting import Window
from hubbub.aggregator.store.contract import Commit, Outcome, WindowTotals
from hubbub.catalog import TAG_BYTES
from hubbub.errors import StoreUnavailable, TotalsUnreadable
from hubbub.runtime import RedisServer, lua, script

__all__ = ["RedisStore"]

_log: Final = logging.getLogger("hubbub.aggregator")

_COMMIT: Final = lua(__package__, "commit")
if TAG_BYTES != 16:  # noqa: PLR2004 what the script cuts by
    raise AssertionError("commit.lua cuts tags of 16 bytes")
# Of a batch id, which is random, so many bytes are kept.
_ID_BYTES: Final = 8
# What is forgotten once a window takes no more.
_MEMORY: Final = ("seen", "batches")
# Beyond any batch, and beyond any window.
_NOBODY: Final = 1 << 40
# A tag's first byte chooses.
_MAX_SHARDS: Final = 256
# The last moment that a date has.
_LATEST: Final = 253_402_300_799
# Whatever the script adds up is below.
_MAX: Final = 1 << 53
# Of what is there but not as it should be. TypeError and AttributeError: of another type.
_NOT_READ: Final = (ValueError, TypeError, AttributeError, OverflowError, RecursionError)


class RedisStore:
    """The aggregator's Redis. Every method raises StoreUnavailable if it cannot be asked.

    shards: of windows to come; those that exist keep theirs. unreadable: what was found in Redis
    that nobody can read; it is left out of every answer, whole, and said once.
    """

    def __init__(self, server: RedisServer, shards: int = 1) -> None:
        self._server = server
        self._shards = shards
        self.unreadable: set[str] = set()

    async def check(self) -> None:
        """Raises StoreUnavailable if our Redis user may not all that we need."""
        try:
            await self._server.ask("PERSIST", "aggregator:windows")  # which changes nothing
        except StoreUnavailable as error:
            if isinstance(error.__cause__, NoPermissionError):
                raise StoreUnavailable(
                    "Redis: the aggregator's user may less than this version needs; as the user "
                    "operator: ACL SETUSER aggregator +hdel +sadd +sismember +persist +unlink, and "
                    "the same in users.acl (docs/operate/upgrade.md)"
                ) from error
            raise

    async def shards(self, window: Window) -> int:
        """How many shards a window has: decided once, when it is first asked about."""
        first = ("HSETNX", "aggregator:windows", window.name, str(self._shards))
        _, shards = await self._server.durable([first, ("HGET", *first[1:3])])
        try:
            return _number(shards, 1, _MAX_SHARDS)
        except ValueError as error:
            raise self._unreadable(window) from error

    async def add(self, window: Window, commit: Commit) -> tuple[Outcome, frozenset[bytes]]:
        """Apply a commit whole or not at all; with SEEN, tags that were counted before."""
        terms: dict[str, int] = {"counted": len(commit.tags), "duplicate": commit.duplicates}
        terms |= {f"rejected:{reason}": number for reason, number in commit.rejected.items()}
        step = script(
            _COMMIT,
            [_key(what, window, commit.shard) for what in ("totals", *_MEMORY)],
            [
                commit.batch_id[:_ID_BYTES],
                b"".join(commit.tags),
                commit.cells.astype("<i8").tobytes() if len(commit.tags) else b"",
                _NOBODY if commit.max_reports is None else commit.max_reports,
                # What counts nothing leaves the smallest crowd as it is.
                commit.batch_reports if len(commit.tags) else _NOBODY,
                commit.at,
                *(part for item in terms.items() if item[1] for part in item),
            ],
        )
        until = ("HSETNX", "aggregator:remembered", window.name, commit.seen_until)
        _, [kind, *seen] = await self._server.durable([until, step])
        return Outcome(kind.decode()), frozenset(seen)

    async def remembered(self) -> Mapping[Window, int]:
        """Every window whose tags are held, and until when they are needed."""
        return self._numbers(await self._server.ask("HGETALL", "aggregator:remembered"), 0, _MAX)

    async def forget(self, window: Window) -> None:
        """Forget a window's tags, and ids but the newest: it counts no report any more."""
        for shard in range(await self.shards(window)):
            await self._server.durable(
                [("UNLINK", *(_key(what, window, shard) for what in _MEMORY))]
            )
        await self._server.durable([("HDEL", "aggregator:remembered", window.name)])

    async def counted_by_window(self) -> Mapping[Window, int]:
        """How many tags every window holds that holds any."""
        names = [window.name for window in await self.remembered()]
        if not names:
            return {}
        # Not all that ever were: this is asked for several times a second.
        shards = await self._server.ask("HMGET", "aggregator:windows", *names)
        known = {name.encode(): n for name, n in zip(names, shards, strict=True) if n}
        found = await self._laws(self._numbers(known, 1, _MAX_SHARDS))
        return {window: terms["counted"] for window, terms in found.items()}

    async def room(self) -> float:
        """How many bytes more Redis may take; endless without a maxmemory."""
        return await self._server.memory_left()

    async def read(self, windows: Sequence[Window]) -> list[WindowTotals]:
        """What each of these windows holds, in their order."""
        if not windows:
            return []
        known = await self._known()
        shards = [known.get(window, 0) for window in windows]
        answers = await self._server.each(
            [
                ("HMGET", _key("totals", window, shard), "cells", "law", "crowd", "at")
                for window, number in zip(windows, shards, strict=True)
                for shard in range(number)
            ]
        )
        parts = iter(answers)
        return [
            self._held(window, [next(parts) for _ in range(number)])
            for window, number in zip(windows, shards, strict=True)
        ]

    async def counted(self, streams: Collection[str]) -> Mapping[Window, int]:
        """How many reports every window of these streams holds, where it holds any."""
        known = await self._known()
        found = await self._laws({w: n for w, n in known.items() if w.stream in streams})
        return {window: terms["counted"] for window, terms in found.items() if terms["counted"]}

    async def report_counts(self) -> Mapping[Window, Mapping[str, int]]:
        """Per window, the aggregator's terms of the conservation law."""
        return await self._laws(await self._known())

    async def _known(self) -> dict[Window, int]:
        """Every window, and the number of its shards."""
        found = await self._server.ask("HGETALL", "aggregator:windows")
        return self._numbers(found, 1, _MAX_SHARDS)

    async def _laws(self, known: Mapping[Window, int]) -> dict[Window, Counter[str]]:
        shards = [
            (window, shard) for window, number in sorted(known.items()) for shard in range(number)
        ]
        answers = await self._server.each(
            [("HGET", _key("totals", window, shard), "law") for window, shard in shards]
        )
        terms: dict[Window, Counter[str]] = {}
        broken = set[Window]()
        for (window, _), law in zip(shards, answers, strict=True):
            try:
                terms.setdefault(window, Counter()).update(_law(law))
            except _NOT_READ:
                broken.add(window)
                self._leave_out(window.name)
        return {window: found for window, found in terms.items() if window not in broken}

    def _held(self, window: Window, shards: Sequence[Sequence[bytes | None]]) -> WindowTotals:
        try:
            return _held(shards)
        except _NOT_READ as error:
            raise self._unreadable(window) from error

    def _unreadable(self, window: Window) -> TotalsUnreadable:
        self._leave_out(window.name)
        return TotalsUnreadable(
            f"the totals of {window.name} cannot be read; ask for other epochs, or restore "
            "them from a backup (docs/operate/restore.md)"
        )

    def _numbers(self, held: Mapping[bytes, bytes], low: int, high: int) -> dict[Window, int]:
        """Windows and a number of each in [low, high], as Redis has them in a hash."""
        found: dict[Window, int] = {}
        for name, number in held.items():
            try:
                found[Window.parse(name)] = _number(number, low, high)
            except ValueError:
                self._leave_out(repr(name))
        return found

    def _leave_out(self, what: str) -> None:
        if what not in self.unreadable:
            self.unreadable.add(what)
            _log.warning("%s cannot be read in Redis and is left out of every answer", what)


def _held(shards: Sequence[Sequence[bytes | None]]) -> WindowTotals:
    """A window from cells, law, crowd and time of each of its shards."""
    counts = [_law(law).get("counted", 0) for _, law, _, _ in shards]
    cells = [np.frombuffer(packed, dtype="<i8") for packed, _, _, _ in shards if packed]
    summed = np.stack(cells).sum(axis=0) if cells else np.zeros(0, dtype=np.int64)
    # Totals of before crowds and times were kept have none: nothing is known of them.
    batch_sizes = [
        _number(shard[2] or 0, 0, _MAX)
        for shard, counted in zip(shards, counts, strict=True)
        if counted
    ]
    times = [_number(at or 0, 0, _LATEST) for _, _, _, at in shards]
    return WindowTotals(summed, sum(counts), min(batch_sizes, default=0), max(times, default=0))


def _law(text: bytes | None) -> dict[str, int]:
    law: dict[str, int] = json.loads(text or b"{}")
    if not all(term.isascii() and term.isprintable() for term in law):
        raise ValueError("no term of the law")
    return {term: _number(number, 0, _MAX) for term, number in law.items()}


def _number(told: bytes | float, low: int, high: int) -> int:
    """A whole number, as Redis or its Lua tells it. Raises ValueError or OverflowError."""
    number = int(told)
    if not low <= number <= high:
        raise ValueError(f"outside [{low}, {high}]")
    return number


def _key(what: str, window: Window, shard: int) -> str:
    return window.key(f"aggregator:{what}", f"#{shard}" if shard else "")
