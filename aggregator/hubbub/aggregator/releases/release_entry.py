"""Entries of the record of releases, validated on construction; and remains of unreadable ones."""

import json
import re
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from hubbub.aggregator.text_rules import check_words, mended
from hubbub.errors import BadParameter
from hubbub.mechanisms import is_number
from hubbub.privacy.releases import Released

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
                raise BadParameter(f"{name} of a release is not a number from 0 on")
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
        return _left_of(text), False


def _left_of(text: bytes) -> Unreadable:
    year, purpose = _next_hash("year", text), re.search(rb'"purpose":\s*"([^"\\]{1,800})"', text)
    # An invalid cost, such as 1e999, exhausts the budget instead of bypassing it.
    costs = [max(float(_next_hash(name, text) or 0), 0.0) for name in ("epsilon", "delta")]
    return Unreadable(
        purpose[1].decode(errors="replace") if purpose else None,
        int(year) if year.isdigit() else None,
        *costs,
    )


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
