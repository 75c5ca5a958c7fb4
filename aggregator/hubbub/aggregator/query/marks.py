"""Marks: days on which something happened, set by analysts, for every face that draws a trend.

They are a hash of Redis, `aggregator:marks`: NAME -> its JSON.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from typing import Final, Protocol

from hubbub.aggregator.text_rules import check_words
from hubbub.catalog import Bundle
from hubbub.catalog.fields.rules import NAME
from hubbub.errors import BadParameter, UnknownMark
from hubbub.runtime import RedisServer

_KEY: Final = "aggregator:marks"
_MAX_MARKS: Final = 1000
_LONGEST: Final = 400


@dataclass(frozen=True, slots=True)
class Mark:
    """A day, and what happened. date: YYYY-MM-DD, UTC. metric: "" where it is for all of them."""

    name: str
    date: str
    text: str = ""
    metric: str = ""


class Marks(Protocol):
    """Marks by name. Every method raises StoreUnavailable without Redis."""

    async def all(self, metric: str = "") -> list[Mark]:
        """Every mark, or those that a metric's trend has; by date."""
        ...

    async def save(self, mark: Mark) -> Mark:
        """Save a mark, in place of one of its name. Raises BadParameter if there are too many."""
        ...

    async def remove(self, name: str) -> None:
        """Forget one. Raises UnknownMark."""
        ...


def check_mark(mark: Mark, bundle: Bundle) -> None:
    """Refuse a mark that cannot be.

    Raises:
        BadParameter: its name, day or text is none.
        UnknownMetric: it is of a metric that the bundle does not have.
    """
    if not NAME.fullmatch(mark.name):
        raise BadParameter(f"a mark's name must match {NAME.pattern}")
    try:
        whole = date.fromisoformat(mark.date).isoformat() == mark.date
    except ValueError:
        whole = False
    if not whole:
        raise BadParameter("a mark's date is none; write it as 2026-11-22")
    check_words("a mark's text", mark.text, _LONGEST)
    if mark.metric:
        bundle.metric(mark.metric)


class MemoryMarks:
    """Marks in this process's memory. Passes the same tests."""

    def __init__(self) -> None:
        self._held: dict[str, Mark] = {}

    async def all(self, metric: str = "") -> list[Mark]:
        """Every mark, or those that a metric's trend has; by date."""
        return _of(self._held, metric)

    async def save(self, mark: Mark) -> Mark:
        """Save a mark, in place of one of its name."""
        _refuse_more(self._held, mark.name)
        self._held[mark.name] = mark
        return mark

    async def remove(self, name: str) -> None:
        """Forget one. Raises UnknownMark."""
        if self._held.pop(name, None) is None:
            raise _unknown(self._held, name)


class RedisMarks:
    """Marks in the aggregator's Redis."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server

    async def all(self, metric: str = "") -> list[Mark]:
        """Every mark, or those that a metric's trend has; those that nobody can read are not."""
        return _of(await self._read(), metric)

    async def save(self, mark: Mark) -> Mark:
        """Save a mark, in place of one of its name."""
        _refuse_more(await self._read(), mark.name)
        await self._server.durable([("HSET", _KEY, mark.name, json.dumps(asdict(mark)))])
        return mark

    async def remove(self, name: str) -> None:
        """Forget one. Raises UnknownMark."""
        held = await self._read()
        if name not in held:
            raise _unknown(held, name)
        await self._server.durable([("HDEL", _KEY, name)])

    async def _read(self) -> dict[str, Mark]:
        held = await self._server.ask("HGETALL", _KEY)
        pairs = held.items() if isinstance(held, dict) else zip(held[::2], held[1::2], strict=True)
        found = (_mark(text) for _, text in pairs)
        return {mark.name: mark for mark in found if mark}


def _mark(text: bytes) -> Mark | None:
    try:
        held = json.loads(text)
        return Mark(**{name: str(held[name]) for name in ("name", "date", "text", "metric")})
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _of(held: Mapping[str, Mark], metric: str) -> list[Mark]:
    found = [mark for mark in held.values() if not metric or mark.metric in {"", metric}]
    return sorted(found, key=lambda mark: (mark.date, mark.name))


def _refuse_more(held: Mapping[str, Mark], name: str) -> None:
    if name not in held and len(held) >= _MAX_MARKS:
        raise BadParameter(f"{_MAX_MARKS} marks are set, and no more may be; remove one")


def _unknown(held: Mapping[str, Mark], name: str) -> UnknownMark:
    there = ", ".join(sorted(held)[:20]) or "none"
    return UnknownMark(f'no mark is called "{name[:60]}"; set are: {there}')
