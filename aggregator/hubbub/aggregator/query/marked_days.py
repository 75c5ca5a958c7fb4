"""Marks: days of events, set by analysts, for every interface that draws a trend.

A Redis hash, `aggregator:marks`, maps METRIC/NAME to its JSON, where METRIC is empty for a mark of
all metrics. Earlier versions wrote NAME as the field; saving such a mark moves it. Each metric has
its own names, so that no name is refused because of a hidden metric.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from dataclasses import asdict, dataclass
from datetime import date
from typing import Final, Self

from hubbub.aggregator.access.tokens import EVERYONE, Caller
from hubbub.aggregator.text_rules import check_words
from hubbub.bundles import Bundle
from hubbub.errors import BadParameter, UnknownMark
from hubbub.errors.message_words import absent_date, did_you_mean
from hubbub.fields.rules import NAME
from hubbub.runtime.redis.command_sender import Hashes

_KEY: Final = "aggregator:marks"
_MAX_MARKS: Final = 1000
_LONGEST: Final = 400


@dataclass(frozen=True, slots=True)
class Mark:
    """A marked day (YYYY-MM-DD, UTC) with its text; `metric` is "" for all metrics."""

    name: str
    date: str
    text: str = ""
    metric: str = ""


def check_mark(mark: Mark, bundle: Bundle) -> None:
    """Raises BadParameter for an invalid name, day or text; UnknownMetric."""
    if not NAME.fullmatch(mark.name):
        raise BadParameter(f"a mark's name must match {NAME.pattern}, such as release-2")
    try:
        is_date = date.fromisoformat(mark.date).isoformat() == mark.date
    except ValueError:
        is_date = False
    if not is_date:
        problem = absent_date(mark.date) or f"{mark.date[:40]!a} is not a date"
        raise BadParameter(f"{problem}; write it as 2026-11-22")
    check_words("a mark's text", mark.text, _LONGEST)
    if mark.metric:
        bundle.metric(mark.metric)


def _mark_named(candidates: Sequence[Mark], name: str, metric: str) -> Mark:
    """The mark of this name and metric; without a metric, also the only mark of this name."""
    matches = [mark for mark in candidates if mark.name == name]
    for mark in matches:
        if mark.metric == metric:
            return mark
    if metric or not matches:
        names = sorted({mark.name for mark in candidates})
        raise UnknownMark(
            f'no mark is called "{name[:60]}"; there are: {", ".join(names[:20]) or "none"}'
            f"{did_you_mean(name, names)}"
        )
    if len(matches) > 1:
        metrics = ", ".join(sorted(mark.metric for mark in matches)[:20])
        raise BadParameter(f'several marks are called "{name[:60]}"; name the metric: {metrics}')
    return matches[0]


class Marks:
    """Marks by name. Every method raises StoreUnavailable without Redis."""

    def __init__(self, server: Hashes) -> None:
        self._server = server
        self._viewer = EVERYONE

    def for_viewer(self, viewer: Caller) -> Self:
        """The same for one caller: without marks of hidden metrics; publishers write marks."""
        marks = copy(self)
        marks._viewer = viewer  # noqa: SLF001 of the same class
        return marks

    async def visible_marks(self, metric: str = "") -> list[Mark]:
        """All readable and visible marks, or those in a metric's trend, by date."""
        own_marks = [
            mark
            for mark in (await self._read()).values()
            if (not metric or mark.metric in {"", metric})
            and (not mark.metric or self._viewer.sees(mark.metric))
        ]
        return sorted(own_marks, key=lambda mark: (mark.date, mark.name))

    async def save(self, mark: Mark) -> Mark:
        """Saves a mark, replacing the metric's mark of that name.

        Raises:
            BadParameter: there are too many.
            AccessRefused: the caller does not publish its metric.
        """
        self._viewer.check("publisher", mark.metric)
        marks = await self._read()
        fields = {_field(other) for other in marks.values()}
        if _field(mark) not in fields and len(fields) >= _MAX_MARKS:
            raise BadParameter(f"{_MAX_MARKS} marks exist, which is the limit; remove one")
        writes: list[tuple[str, ...]] = [("HSET", _KEY, _field(mark), json.dumps(asdict(mark)))]
        if mark.name in marks and _field(marks[mark.name]) == _field(mark):
            writes.append(("HDEL", _KEY, mark.name))
        await self._server.durable(writes)
        return mark

    async def remove(self, name: str, metric: str = "") -> None:
        """Removes a mark of this metric; without a metric, also the only mark of this name.

        Raises:
            UnknownMark: no mark has this name.
            BadParameter: several metrics have a mark of this name, and none was chosen.
            AccessRefused: the caller does not publish its metric.
        """
        self._viewer.check("publisher")
        mark = _mark_named(await self.visible_marks(), name, metric)
        self._viewer.check("publisher", mark.metric)
        marks = await self._read()
        fields = [field for field, other in marks.items() if _field(other) == _field(mark)]
        await self._server.durable([("HDEL", _KEY, *fields)])

    async def _read(self) -> dict[str, Mark]:
        """Readable marks by field of the hash."""
        marks = {}
        for field, text in (await self._server.ask("HGETALL", _KEY)).items():
            with suppress(ValueError, TypeError, KeyError, RecursionError):
                document = json.loads(text)
                mark_fields = {name: str(document[name]) for name in Mark.__slots__}
                marks[field.decode(errors="replace")] = Mark(**mark_fields)
        return marks


def _field(mark: Mark) -> str:
    return f"{mark.metric}/{mark.name}"
