"""Reads text files that people wrote, whatever editor or system they come from.

A byte order mark of UTF-8 is dropped, and CR LF and CR end a line as LF does. Text that might be
misread is refused with file, line and remedy: other encodings, NULs, and, where each line is one
string, blanks around it and characters that some programs treat as the end of a line.

The path - is standard input. A pipe can be read once only, so each file is opened once.
"""

import codecs
import csv
import errno
import gzip
import re
import sys
import tomllib
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from pathlib import Path
from typing import Any, Final

from hubbub.errors import BadParameter

_MAX_BYTES: Final = 1 << 28
_SAVE: Final = "save it as UTF-8 text"
# The mark of little-endian UTF-32 begins like that of UTF-16.
_WIDE: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)

# tomllib takes quadratic time for a dotted key. Host names in strings have 127 parts at most.
_MAX_KEY_PARTS: Final = 256
_PART: Final = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY: Final = re.compile(rf"(?<![\w-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{_MAX_KEY_PARTS}}}")

# Of tomllib's error about a table or a field that stands there twice.
_REPEATED: Final = re.compile(r"Cannot (?:declare|overwrite) .*\(at line (\d+), ")
# Of tomllib's other errors, and what often is wrong in the line that they name.
_PLACE: Final = re.compile(r"at line (\d+)")
_TOML_REMEDIES: Final = {
    r"^[^\"']*=\s*[-+]?\d+,\d": "write a decimal point, as 2.0",
    r"[=\[,{]\s*[\u201c-\u201f\u2018-\u201b]": 'write straight quotes, "',
}
_NAME: Final = re.compile(r"\s*(?:\[+[\w.-]+\]+|[\w.-]+(?=\s*=))", re.ASCII)


def lines_of(path: Path) -> Iterator[str]:
    """Yields the lines of a file, plain or .gz, without line ends, reading lazily.

    Raises ValueError if the file cannot be read, or is no text; the message names file, line and
    remedy.
    """
    number = 0
    try:
        for raw in _raw_lines(path):
            number += 1
            line = raw.decode()
            if "\0" in line:
                raise ValueError(f"{path}: line {number}: contains a NUL; {_SAVE}")
            if line.startswith("\ufeff"):  # of a file that was appended to another
                raise ValueError(f"{path}: line {number}: begins with a byte order mark; remove it")
            yield line
    except UnicodeDecodeError as error:
        location = f"{path}: line {number}: byte {error.start + 1}"
        raise ValueError(f"{location} is not UTF-8; {_SAVE}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: cannot be read: {unreadable(error)}") from error


def read_text(path: Path) -> str:
    """The text of a file, plain or .gz, with LF line ends. Raises ValueError like `lines_of`."""
    lines, size = [], 0
    for line in lines_of(path):
        lines.append(line)
        size += len(line) + 1
        if size > _MAX_BYTES:
            raise ValueError(f"{path}: is larger than {_MAX_BYTES >> 20} MiB")
    return "\n".join([*lines, ""])


def csv_rows(path: Path, option: str = "") -> Iterator[tuple[int, list[str]]]:
    """Yields line number and cells of each line that is not empty, of a CSV file, plain or .gz.

    `option` is the option that named the file, for error messages. Raises BadParameter if it is no
    text, or no CSV; the message names file, line and remedy.
    """
    called = f"{option} " if option else ""
    reader = csv.reader((f"{line}\n" for line in lines_of(path)), strict=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        location = f"{called}{path}: line {reader.line_num}"
        raise BadParameter(f"{location}: not CSV: {error}; correct it") from error
    except ValueError as error:
        raise BadParameter(f"{called}{error}") from error


def first_row_and_rest(
    rows: Iterator[tuple[int, list[str]]],
) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """The cells of the first row, empty if there is none, and an iterator over all rows."""
    first_row = next(rows, None)
    return ([], rows) if first_row is None else (first_row[1], chain([first_row], rows))


def parse_toml(text: str) -> dict[str, Any]:
    """Parses TOML; -0.0 is read as 0.0.

    Raises ValueError if the text is no TOML, nests too deeply, or has a key of too many dotted
    parts.
    """
    if match := _LONG_KEY.search(text):
        line = text.count("\n", 0, match.start()) + 1
        raise ValueError(
            f"line {line}: more than {_MAX_KEY_PARTS} parts joined by dots; shorten the key"
        )
    try:
        # Adding 0 removes negative zero, which languages write differently: -0.0, -0 and 0.
        return tomllib.loads(f"{text}\n", parse_float=lambda digits: float(digits) + 0.0)
    except RecursionError:
        raise ValueError("nested too deeply; use fewer levels") from None
    except tomllib.TOMLDecodeError as error:
        if repeated := _REPEATED.match(str(error)):
            # PRIVACY: a name alone is shown, as a value may be a secret.
            name = _NAME.match(text.split("\n")[int(repeated[1]) - 1])
            subject = name[0].strip()[:80] if name else "what ends here"
            raise ValueError(
                f"line {repeated[1]}: {subject} is there twice; rename or delete one"
            ) from error
        if place := _PLACE.search(str(error)):
            row = text.split("\n")[int(place[1]) - 1]
            for pattern, remedy in _TOML_REMEDIES.items():
                if re.search(pattern, row):
                    raise ValueError(f"line {place[1]}: {remedy}") from error
        raise
    except OverflowError as error:
        raise ValueError(str(error)) from error


def read_list(path: Path) -> list[str]:
    """Reads a file, plain or .gz, with one string per line; blank lines are skipped.

    Raises ValueError as `lines_of`; or if a string begins or ends with a blank, or contains a
    character that some programs treat as the end of a line.
    """
    strings = []
    for number, line in enumerate(lines_of(path), start=1):
        if not line.strip():
            continue
        if line != line.strip():
            raise ValueError(f"{path}: line {number}: begins or ends with a blank; remove it")
        if [line] != line.splitlines():
            raise ValueError(
                f"{path}: line {number}: contains a character that some programs read as the end "
                "of a line, such as U+2028; write one string a line"
            )
        strings.append(line)
    return strings


def unreadable(error: Exception) -> str:
    """Says why a file of text, perhaps gzip, could not be read, without quoting its content."""
    match error:
        case UnicodeDecodeError():
            return f"byte {error.start + 1} is not UTF-8 text"
        case gzip.BadGzipFile() | zlib.error():
            return "no gzip file, or a damaged one"
        case EOFError():
            return "the gzip file ends too early"
        case FileNotFoundError():
            return f"{error.strerror}; check the path"
        case OSError() if error.strerror:
            return error.strerror
        case _:
            return str(error)


def _raw_lines(path: Path) -> Iterator[bytes]:
    """Yields lines as bytes, ended in any of three ways, the first without a byte order mark."""
    if "\0" in str(path):
        raise ValueError(f"{str(path)!a}: is not a path")
    with _open_file(path) as file:
        is_first = True
        while raw := file.readline(_MAX_BYTES + 1):
            if len(raw) > _MAX_BYTES:
                raise OSError(errno.EFBIG, f"a line has more than {_MAX_BYTES >> 20} MiB")
            if is_first and raw.startswith(_WIDE):
                raise ValueError(f"{path}: line 1: is UTF-16 or UTF-32; {_SAVE}")
            if is_first:
                raw = raw.removeprefix(codecs.BOM_UTF8)
            is_first = False
            yield from raw.removesuffix(b"\n").removesuffix(b"\r").split(b"\r")


def _open_file(path: Path) -> AbstractContextManager[Any]:
    if path == Path("-"):
        return nullcontext(sys.stdin.buffer)
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")
