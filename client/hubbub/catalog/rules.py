"""What each field of a metric may hold: asked where a Metric is born, and told of metrics.toml."""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any, Final

from hubbub.catalog.encoding import is_writable
from hubbub.catalog.epochs import EPOCH_SECONDS
from hubbub.errors import BadParameter
from hubbub.mechanisms.probability import MAX_EPSILON, MIN_EPSILON

__all__ = [
    "MAX_LIFETIME_EPSILON",
    "MAX_MIN_BATCH",
    "MAX_REPORTS_PER_EPOCH",
    "MIN_MIN_BATCH",
    "NAME",
    "RULES",
    "check",
    "is_address",
    "is_number",
    "is_text",
    "is_whole",
    "what_is_wrong_with_values",
]

# A batch hides a report among its others; below ten there is nobody to hide among.
MIN_MIN_BATCH: Final = 10
MAX_MIN_BATCH: Final = 1_000_000
MAX_REPORTS_PER_EPOCH: Final = 1000
# A lifetime of reports at the largest epsilon, one a second: above it there is no limit at all.
MAX_LIFETIME_EPSILON: Final = 1e12
# One device in a million; fewer are asked by asking in fewer places.
_MIN_SAMPLING: Final = 1e-6
_MAX_VALUE_BYTES: Final = 1024
_MAX_TEXT: Final = 10_000

NAME: Final = re.compile(r"[a-z][a-z0-9_.-]{0,63}")
_ADDRESS: Final = re.compile(r"[!-.0-9;-~]{1,253}:[0-9]{1,5}")


def is_number(thing: Any) -> bool:
    """Whether it is a finite number that a float can hold."""
    return (
        isinstance(thing, int | float)
        and not isinstance(thing, bool)
        and -sys.float_info.max <= thing <= sys.float_info.max
    )


def is_whole(thing: Any) -> bool:
    """Whether it is an integer."""
    return isinstance(thing, int) and not isinstance(thing, bool)


def is_text(thing: Any) -> bool:
    """Whether it is a text of some length that can be written down."""
    return (
        isinstance(thing, str)
        and bool(thing.strip())
        and len(thing) <= _MAX_TEXT
        and is_writable(thing)
    )


def is_address(thing: Any) -> bool:
    """Whether it is HOST:PORT, in the letters that a name can be dialled by."""
    found = isinstance(thing, str) and _ADDRESS.fullmatch(thing)
    return bool(found) and int(thing.rpartition(":")[2]) < 1 << 16


def what_is_wrong_with_values(values: Any) -> str:
    """Why these can be no values of a metric, with the remedy; "" if they can."""
    if not (isinstance(values, list | tuple) and all(isinstance(v, str) and v for v in values)):
        return "must be a list of texts, none empty"
    if not all(map(is_writable, values)):
        return "a value holds half of a surrogate pair; write it as text"
    if any(len(v.encode()) > _MAX_VALUE_BYTES for v in values):
        return f"a value is longer than {_MAX_VALUE_BYTES} bytes; shorten it"
    if len(set(values)) != len(values):
        return "holds a value twice; remove one"
    return ""


def _are_numbers(thing: Any) -> bool:
    return isinstance(thing, Mapping) and all(
        isinstance(name, str) and is_number(number) for name, number in thing.items()
    )


def _is_bounded(thing: Any, least: float, most: float) -> bool:
    return is_number(thing) and least <= thing <= most


RULES: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    "description": (is_text, "must be a text that says what is asked; write one"),
    "owner": (is_text, "must be a text that says who answers for it; write one"),
    "expires": (
        # A datetime is a date too, but not a day; and there is no day after the last one.
        lambda given: type(given) is date and given < date.max,
        "must be a date, after which clients stop reporting; write YYYY-MM-DD",
    ),
    "epoch": (
        lambda given: isinstance(given, str) and given in EPOCH_SECONDS,
        f"must be one of {', '.join(EPOCH_SECONDS)}",
    ),
    "epsilon": (
        lambda given: _is_bounded(given, MIN_EPSILON, MAX_EPSILON),
        f"must be a number of nats in [{MIN_EPSILON}, {MAX_EPSILON}]",
    ),
    "min_batch": (
        lambda given: is_whole(given) and MIN_MIN_BATCH <= given <= MAX_MIN_BATCH,
        f"must be a whole number in [{MIN_MIN_BATCH}, {MAX_MIN_BATCH}]",
    ),
    "sampling": (
        lambda given: _is_bounded(given, _MIN_SAMPLING, 1),
        f"must be a chance in [{_MIN_SAMPLING}, 1]; write sampling = 0.1",
    ),
    "parameters": (_are_numbers, "must be numbers by name"),
    "reports_per_epoch": (
        lambda given: is_whole(given) and 1 <= given <= MAX_REPORTS_PER_EPOCH,
        f"must be in [1, {MAX_REPORTS_PER_EPOCH}]",
    ),
    "lifetime_epsilon": (
        lambda given: _is_bounded(given, 0, MAX_LIFETIME_EPSILON),
        f"must be a number of nats in [0, {MAX_LIFETIME_EPSILON:g}]",
    ),
}
"""Of each field: whether it may hold something, and what it must hold."""


def check(thing: object, fields: Sequence[str]) -> None:
    """Raises BadParameter for the first of an object's fields that holds what it may not."""
    for name in fields:
        is_right, remedy = RULES[name]
        if not is_right(getattr(thing, name)):
            raise BadParameter(f"{name} {remedy}")
