"""The record of releases: entries with costs, purposes and answers; append-only.

One Redis list, "aggregator:releases", of JSON. A caller that has read the whole list looks up a
release and checks its budget; the script appends if nobody else has appended since. Spent budget is
never stored apart from its entries. An unreadable entry is skipped and logged, and its possible
cost counts for every purpose and year that it may belong to.
"""

import json
import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from hubbub.aggregator.text_rules import check_words, mended
from hubbub.errors import BadParameter, BudgetExhausted
from hubbub.errors.message_words import at_least
from hubbub.mechanisms import is_number
from hubbub.privacy.central_releases import Released
from hubbub.runtime.redis.command_sender import RedisServer, lua, script

LONGEST_NAME: Final = 200
LONGEST_VALUE: Final = 65_536
_NAMES: Final = ("id", "purpose", "by", "metric", "query", "mechanism")
_DIGITS: Final = 64  # largest number of digits
_MAX: Final = 1e300


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One release of the record, without its numbers.

    Args:
        id: digest of the query: the same query has the same id.
        at: seconds since 1970.
        promised, promised_delta: for a release without added noise, the central promise of each of
            its epochs; 0 for a release paid for by `epsilon` and `delta`.
    """

    id: str
    at: int
    purpose: str
    by: str
    metric: str
    query: str
    value: str
    epochs: tuple[int, ...]
    mechanism: str
    epsilon: float
    delta: float
    promised: float
    promised_delta: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry(Recorded):
    """A recorded release with its numbers. Raises BadParameter if a field is invalid."""

    year: int
    answer: tuple[Released, ...]
    promised: float = 0.0
    promised_delta: float = 0.0

    def __post_init__(self) -> None:
        """Validates it, so that every interface can show it."""
        for name in _NAMES:
            check_words(name, _text(name, getattr(self, name)), LONGEST_NAME)
        check_words("value", _text("value", self.value), LONGEST_VALUE)
        for name, most in (("at", 2**53), ("year", 10_000)):
            if type(getattr(self, name)) is not int or not 0 <= getattr(self, name) < most:
                raise BadParameter(f"{name} of a release is outside [0, {most})")
        if not all(type(epoch) is int and 0 <= epoch < 2**32 for epoch in self.epochs):
            raise BadParameter("an epoch of a release is outside [0, 2**32)")
        for name in ("epsilon", "delta", "promised", "promised_delta"):
            if not (_is_within(getattr(self, name)) and getattr(self, name) >= 0):
                raise BadParameter(f"{name} of a release is not a number of 0 or more")
        for value in self.answer:
            numbers = [
                getattr(value, field.name) for field in fields(value) if field.name != "value"
            ]
            _text("a value", value.value).encode()  # raises ValueError for a malformed one
            if not all(number is None or _is_within(number) for number in numbers):
                raise BadParameter("an answer of a release is not a number")

    def text(self) -> str:
        """The entry as JSON."""
        return json.dumps(asdict(self), separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Readable remains of a broken entry: None for unknown fields; unknown costs are 0."""

    purpose: str | None
    year: int | None
    epsilon: float
    delta: float


def read_entry(text: bytes) -> tuple[Entry | Unreadable, bool]:
    """The entry in a text, or its remains; and whether characters were replaced."""
    try:
        document = json.loads(text)
        mended = _printable_document(document)
        table = dict(mended)
        table["epochs"] = tuple(table["epochs"])
        table["answer"] = tuple(Released(**value) for value in table["answer"])
        return Entry(**table), mended != document
    except (BadParameter, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        purpose = re.search(rb'"purpose":\s*"([^"\\]{1,800})"', text)
        year = _next_hash("year", text)
        # An invalid cost, such as 1e999, exhausts the budget instead of bypassing it.
        costs = [max(float(_next_hash(name, text) or 0), 0.0) for name in ("epsilon", "delta")]
        unreadable = Unreadable(
            purpose[1].decode(errors="replace") if purpose else None,
            int(year) if year.isdigit() else None,
            *costs,
        )
        return unreadable, False


def _next_hash(name: str, text: bytes) -> bytes:
    match = re.search(rb'"%s":\s*(-?[0-9][0-9.eE+-]{0,%d})' % (name.encode(), _DIGITS), text)
    try:
        return match[1] if match and float(match[1]) is not None else b""
    except ValueError:
        return b""


def _printable_document(document: Any) -> Any:
    """The document with unprintable characters replaced in every text."""
    if isinstance(document, str):
        return mended(document)
    if isinstance(document, list):
        return [_printable_document(item) for item in document]
    if isinstance(document, dict):
        return {name: _printable_document(value) for name, value in document.items()}
    return document


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise BadParameter(f"{name} of a release is not a text")
    return value


def _is_within(value: Any) -> bool:
    return is_number(value) and abs(value) < _MAX


_log: Final = logging.getLogger("hubbub.aggregator")

_KEY: Final = "aggregator:releases"
# Tolerance for rounding in sums of many floats.
_ROUNDING: Final = 1e-9

_APPEND: Final = lua(__package__, "append")


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of a record, oldest first.

    Args:
        lost: remains of unreadable entries.
        mended: number of entries in `read` with replaced characters.
    """

    read: Sequence[Entry]
    lost: Sequence[Unreadable] = ()
    mended: int = 0

    def __iter__(self) -> Iterator[Entry]:
        """The readable entries."""
        return iter(self.read)

    @property
    def unreadable(self) -> int:
        """Number of entries that could not be read exactly."""
        return len(self.lost) + self.mended

    def spent(self, purpose: str, year: int) -> tuple[float, float]:
        """Upper bounds on the epsilon and delta that a purpose has spent in a year."""
        every_entry: list[Entry | Unreadable] = [*self.read, *self.lost]
        entries = [
            entry
            for entry in every_entry
            if entry.purpose in {None, purpose} and entry.year in {None, year}
        ]
        return sum(entry.epsilon for entry in entries), sum(entry.delta for entry in entries)

    def check(self, entry: Entry, allowance: tuple[float, float]) -> None:
        """Raises BudgetExhausted if the entry's purpose does not have enough left in its year."""
        used, costs = self.spent(entry.purpose, entry.year), (entry.epsilon, entry.delta)
        for before, cost, most in zip(used, costs, allowance, strict=True):
            if not before + cost <= most * (1 + _ROUNDING):
                raise BudgetExhausted(
                    f'purpose "{entry.purpose}" has epsilon '
                    f"{at_least(max(allowance[0] - used[0], 0), '.6g')} and delta "
                    f"{at_least(max(allowance[1] - used[1], 0), '.3g')} left in {entry.year}, and "
                    f"this release costs {entry.epsilon:g} and {entry.delta:g}; wait for the next "
                    "year, use another purpose, or have the budget changed in the catalog"
                )


class ReleaseLog:
    """Releases, each entered once, within the yearly budget of its purpose.

    Both methods raise StoreUnavailable if Redis does not answer.
    """

    def __init__(self, server: RedisServer) -> None:
        self._server = server
        self._reported_unreadable = 0

    async def spend(self, entry: Entry, allowance: tuple[float, float]) -> tuple[Entry, bool]:
        """Enters a release; returns the valid entry, and whether it already existed.

        Raises BudgetExhausted if its purpose would exceed this epsilon or delta in its year.
        """
        texts: list[bytes] = await self._texts()
        while True:
            entries = self._read(texts)
            before = next((earlier for earlier in entries.read if earlier.id == entry.id), None)
            if before is not None:
                return before, True
            entries.check(entry, allowance)
            later_texts = await self._append(len(texts), entry.text())
            if not later_texts:
                return entry, False
            texts += later_texts

    async def entries(self) -> Entries:
        """All entries."""
        return self._read(await self._texts())

    async def _texts(self) -> list[bytes]:
        return list(await self._server.ask("LRANGE", _KEY, 0, -1))

    async def _append(self, length: int, text: str) -> list[bytes]:
        """Appends to a record of this length; otherwise returns what follows."""
        [later_texts] = await self._server.durable([script(_APPEND, [_KEY], [length, text])])
        return list(later_texts)

    def _read(self, texts: Sequence[bytes]) -> Entries:
        items = [read_entry(text) for text in texts]
        entries = Entries(
            [item for item, _ in items if isinstance(item, Entry)],
            [item for item, _ in items if isinstance(item, Unreadable)],
            sum(mended for _, mended in items),
        )
        if entries.unreadable > self._reported_unreadable:
            self._reported_unreadable = entries.unreadable
            _log.warning(
                "%d entries of the record of releases are unreadable; their largest possible cost "
                "is counted (docs/operate/restore.md)",
                entries.unreadable,
            )
        return entries
