"""Marks: days on which something happened, set by analysts, for every face that draws a trend.

They are a hash of Redis, `aggregator:marks`: METRIC/NAME -> its JSON, where METRIC is empty for a
mark of all metrics. Earlier versions wrote NAME as the field; saving such a mark anew moves it.
A name is free in every metric, so that no name is refused because of a metric that is hidden.
"""

import json
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from datetime import date
from typing import Final, Protocol

from hubbub.aggregator.text_rules import check_words
from hubbub.bundles import Bundle
from hubbub.errors import BadParameter, UnknownMark
from hubbub.fields.rules import NAME
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
        """Save a mark, in place of the metric's mark of that name.

        Raises:
            BadParameter: there are too many.
        """
        ...

    async def remove(self, name: str, metric: str = "") -> None:
        """Remove the mark that `mark_named` finds. Raises UnknownMark or BadParameter."""
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


def mark_named(marks: Iterable[Mark], name: str, metric: str) -> Mark:
    """The mark of this name and metric; without a metric, also the only mark of this name.

    Raises:
        UnknownMark: no mark has this name.
        BadParameter: several metrics have a mark of this name, and none was chosen.
    """
    candidates = list(marks)
    named = [mark for mark in candidates if mark.name == name]
    for mark in named:
        if mark.metric == metric:
            return mark
    if metric or not named:
        there = ", ".join(sorted({mark.name for mark in candidates})[:20]) or "none"
        raise UnknownMark(f'no mark is called "{name[:60]}"; set are: {there}')
    if len(named) > 1:
        metrics = ", ".join(sorted(mark.metric for mark in named)[:20])
        raise BadParameter(f'several marks are called "{name[:60]}"; name the metric: {metrics}')
    return named[0]


class MemoryMarks:
    """Marks in this process's memory. Passes the same tests."""

    def __init__(self) -> None:
        self._marks: dict[str, Mark] = {}

    async def all(self, metric: str = "") -> list[Mark]:
        """Every mark, or those that a metric's trend has; by date."""
        return _of(self._marks.values(), metric)

    async def save(self, mark: Mark) -> Mark:
        """Save a mark, in place of the metric's mark of that name."""
        _refuse_more(self._marks, _field(mark))
        self._marks[_field(mark)] = mark
        return mark

    async def remove(self, name: str, metric: str = "") -> None:
        """Remove the mark that `mark_named` finds. Raises UnknownMark or BadParameter."""
        del self._marks[_field(mark_named(self._marks.values(), name, metric))]


class RedisMarks:
    """Marks in the aggregator's Redis."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server

    async def all(self, metric: str = "") -> list[Mark]:
        """Every mark, or those that a metric's trend has; unreadable marks are left out."""
        return _of((await self._read()).values(), metric)

    async def save(self, mark: Mark) -> Mark:
        """Save a mark, in place of the metric's mark of that name."""
        marks = await self._read()
        _refuse_more({_field(other) for other in marks.values()}, _field(mark))
        writes: list[tuple[str, ...]] = [("HSET", _KEY, _field(mark), json.dumps(asdict(mark)))]
        if mark.name in marks and _field(marks[mark.name]) == _field(mark):
            writes.append(("HDEL", _KEY, mark.name))
        await self._server.durable(writes)
        return mark

    async def remove(self, name: str, metric: str = "") -> None:
        """Remove the mark that `mark_named` finds. Raises UnknownMark or BadParameter."""
        marks = await self._read()
        removed = _field(mark_named(marks.values(), name, metric))
        fields = [field for field, mark in marks.items() if _field(mark) == removed]
        await self._server.durable([("HDEL", _KEY, *fields)])

    async def _read(self) -> dict[str, Mark]:
        """Marks by the hash's field."""
        reply = await self._server.ask("HGETALL", _KEY)
        pairs = (
            reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2], strict=True)
        )
        marks = ((field.decode(errors="replace"), _mark(text)) for field, text in pairs)
        return {field: mark for field, mark in marks if mark}


def _mark(text: bytes) -> Mark | None:
    try:
        document = json.loads(text)
        return Mark(**{name: str(document[name]) for name in ("name", "date", "text", "metric")})
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _field(mark: Mark) -> str:
    return f"{mark.metric}/{mark.name}"


def _of(marks: Iterable[Mark], metric: str) -> list[Mark]:
    own_marks = [mark for mark in marks if not metric or mark.metric in {"", metric}]
    return sorted(own_marks, key=lambda mark: (mark.date, mark.name))


def _refuse_more(fields: Collection[str], field: str) -> None:
    if field not in fields and len(fields) >= _MAX_MARKS:
        raise BadParameter(f"{_MAX_MARKS} marks are set, and no more may be; remove one")
