"""Bytes as text, and JSON that is read strictly: how keys and bundles stand in files."""

import base64
import errno
import gzip
import io
import json
import math
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

from hubbub.errors.unreadable import unreadable

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
_MAX_BYTES: Final = 1 << 28


def to_text(raw: bytes) -> str:
    """The text of some bytes."""
    return base64.b64encode(raw).decode()


def from_text(text: str) -> bytes:
    """The bytes of a text. Raises ValueError if it is none of ours."""
    return base64.b64decode(text, validate=True)


def is_writable(text: str) -> bool:
    """Whether a text has bytes: a lone half of a surrogate pair has none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_json(raw: bytes) -> Any:
    """What JSON says, if it says it once: in UTF-8, each name once, every number finite.

    Raises one of MALFORMED otherwise; the message quotes nothing.
    """
    found = json.loads(
        raw.decode(),
        object_pairs_hook=_once,
        parse_int=_whole,
        parse_float=_finite,
        parse_constant=_no_number,
    )
    _look(found, 0)
    return found


def read_text(path: Path) -> str:
    """The text of a file, plain or .gz. Raises ValueError with path and reason if it has none."""
    try:
        with path.open("rb") as file:
            raw = _bounded(file)
        if path.suffix == ".gz":
            raw = _unpacked(raw)
        return raw.decode()
    except (OSError, UnicodeDecodeError, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: cannot be read as text: {unreadable(error)}") from error
    except ValueError as error:  # a path with NUL in it
        raise ValueError(f"{path}: is no path: {error}") from error


def _unpacked(raw: bytes) -> bytes:
    with gzip.open(io.BytesIO(raw)) as file:
        return _bounded(file)


def _bounded(file: BinaryIO | gzip.GzipFile) -> bytes:
    """All of a file; a small one, or one that never ends, must not fill the memory. OSError."""
    raw = file.read(_MAX_BYTES + 1)
    if len(raw) > _MAX_BYTES:
        raise OSError(errno.EFBIG, f"it holds more than {_MAX_BYTES >> 20} MiB")
    return raw


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return table


def _whole(digits: str) -> int:
    if len(digits) > _LONGEST_NUMBER:
        raise ValueError(f"a number has more than {_LONGEST_NUMBER} digits")
    return int(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("a number is beyond all that can be reckoned with")
    return number


def _no_number(_name: str) -> float:
    raise ValueError("NaN and Infinity are no numbers here")


def _look(thing: object, depth: int) -> None:
    if depth > _DEEPEST:
        raise ValueError(f"it is nested more than {_DEEPEST} deep")
    if isinstance(thing, dict):
        for name, inner in thing.items():
            _look(name, depth)
            _look(inner, depth + 1)
    elif isinstance(thing, list):
        for inner in thing:
            _look(inner, depth + 1)
    elif isinstance(thing, str) and not is_writable(thing):
        raise ValueError("a text holds half of a surrogate pair")
