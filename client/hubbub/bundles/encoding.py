"""Text encoding of bytes, and strict reading of JSON, for keys and bundles."""

import binascii
import json
import math
from collections.abc import Sequence
from typing import Any, Final

from hubbub.fields.rules import is_writable

MALFORMED: Final = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
)
"""What reading JSON of another shape than ours raises."""

_LONGEST_NUMBER: Final = 40
_DEEPEST: Final = 32


def to_text(raw: bytes) -> str:
    """Encodes bytes as text."""
    return binascii.b2a_base64(raw, newline=False).decode()


def from_text(text: str) -> bytes:
    """Decodes bytes from text. Raises ValueError if it is malformed."""
    raw = binascii.a2b_base64(text, strict_mode=True)
    if to_text(raw) != text:
        raise ValueError("the base64 text is not in its standard form")
    return raw


def read_json(raw: bytes) -> Any:
    """Reads JSON: UTF-8, no repeated names, finite numbers. Raises MALFORMED, quoting nothing."""
    document = json.loads(
        raw.decode(),
        object_pairs_hook=_refuse_repeated_keys,
        parse_int=_whole_number,
        parse_float=_finite_number,
        parse_constant=_finite_number,
    )
    _look(document, 0)
    return document


def _refuse_repeated_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("a name occurs twice in an object")
    return table


def _whole_number(digits: str) -> int:
    if len(digits) > _LONGEST_NUMBER:
        raise ValueError(f"a number has more than {_LONGEST_NUMBER} digits")
    return int(digits)


def _finite_number(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("a number is not finite")
    return number


def _look(value: object, depth: int) -> None:
    if depth > _DEEPEST:
        raise ValueError(f"its nesting is deeper than {_DEEPEST}")
    if isinstance(value, dict):
        for name, inner in value.items():
            _look(name, depth)
            _look(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            _look(inner, depth + 1)
    elif isinstance(value, str) and not is_writable(value):
        raise ValueError("a text contains half a surrogate pair")
