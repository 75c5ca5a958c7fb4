"""Files that other programs read: CSV and Parquet, in a folder or a prefix of an object store.

Writes are atomic: a file is complete or absent, even if a process is killed.
"""

import csv
import io
import os
import secrets
import unicodedata
import urllib.parse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any, Final, NamedTuple, Self

from hubbub.errors import BadParameter, StoreUnavailable
from hubbub.errors.message_words import UNSEEN, needs
from hubbub.query_results.answer_table import Row

_LONGEST: Final = 300  # of a reason that an object store gives


def arrow(feature: str) -> tuple[ModuleType, ModuleType]:
    """Pyarrow and pyarrow.parquet, which `feature` needs. Raises MissingDependency without them."""
    with needs(f"{feature} needs pyarrow", "tables"):
        import pyarrow as pa  # noqa: PLC0415 40 MB that few need
        from pyarrow import parquet  # noqa: PLC0415
    return pa, parquet


class Entry(NamedTuple):
    """A file or folder of a place.

    Args:
        modified: seconds since 1970; 0 if unknown.
    """

    name: str
    is_file: bool
    modified: float


class Place:
    """Files by their paths below one root. Every method raises StoreUnavailable.

    A path consists of names joined by "/". A missing file raises FileNotFoundError.
    """

    def __init__(self, files: Any, root: str, name: str) -> None:
        self._files = files
        self._root = root
        self.name = name

    @classmethod
    def of(cls, text: str) -> Self:
        """The place at a path, or at an address such as s3://BUCKET/PREFIX.

        The credentials of an object store come from its own environment variables or files.

        Raises:
            BadParameter: an address that pyarrow does not know, or that has a password in it.
            MissingDependency: pyarrow is not installed.
        """
        arrow("a folder of totals or estimates")
        from pyarrow import fs  # noqa: PLC0415 as above

        if not text:
            raise BadParameter(
                "no place is given; name a folder, or an address such as s3://BUCKET/PREFIX"
            )
        if "://" not in text:
            return cls(fs.LocalFileSystem(), str(Path(text).absolute()), text)
        parts = urllib.parse.urlsplit(text)
        name = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        if "@" in parts.netloc or "secret" in parts.query:
            raise BadParameter(
                f"{name}: leave the credentials out of the address, and set the variables of the "
                "object store, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            )
        try:
            files, root = fs.FileSystem.from_uri(text)
        except (ValueError, OSError) as error:
            raise BadParameter(f"{name}: cannot store files: {_reason(error)}") from error
        if not root:
            raise BadParameter(f"{name}: names no bucket; write it as s3://BUCKET/PREFIX")
        return cls(files, root, name)

    @property
    def is_local(self) -> bool:
        """Whether it is a folder of this machine."""
        return bool(self._files.type_name == "local")

    def display(self, path: str = "") -> str:
        """A path below it, for messages."""
        return f"{self.name.rstrip('/')}/{path}" if path else self.name

    def read(self, path: str) -> bytes:
        """Content of a file. Raises FileNotFoundError if it is missing."""
        with self._refusing(path, "read"), self._files.open_input_file(self._path(path)) as file:
            content: bytes = file.read()
            return content

    def write(self, path: str, content: bytes, *, owner_only: bool = False) -> None:
        """Writes a file atomically and durably, replacing any file of this name.

        With `owner_only`, in a local folder nobody else may read it, nor folders created for it.
        For an object store, the bucket's own rules apply.
        """
        target = self._path(path)
        with self._refusing(path, "written"):
            if self.is_local:
                _replace(Path(target), content, 0o077 if owner_only else 0)
                return
            # An object appears when its upload ends, and not before.
            with self._files.open_output_stream(target) as stream:
                stream.write(content)

    def entries(self, folder: str = "") -> list[Entry]:
        """Entries of a folder, by name; empty if it does not exist.

        Files whose names are not UTF-8 are left out, since hubbub did not write them.
        """
        from pyarrow import fs  # noqa: PLC0415 installed, as `at` needed it

        selector = fs.FileSelector(self._path(folder), allow_not_found=True)
        with self._refusing(folder, "read"):
            listing = self._files.get_file_info(selector)
        entries = []
        for info in listing:
            with suppress(UnicodeDecodeError):
                name = PurePosixPath(info.path).name
                modified = info.mtime.timestamp() if info.mtime else 0.0
                entries.append(Entry(name, info.type == fs.FileType.File, modified))
        return sorted(entries)

    def delete(self, path: str) -> None:
        """Deletes a file, if it exists."""
        with suppress(FileNotFoundError), self._refusing(path, "deleted"):
            self._files.delete_file(self._path(path))

    def _path(self, path: str) -> str:
        return f"{self._root.rstrip('/')}/{path}".rstrip("/")

    @contextmanager
    def _refusing(self, path: str, done: str) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError) as error:
            if isinstance(error, FileNotFoundError) and done != "written":
                raise
            raise StoreUnavailable(
                f"{self.display(path)}: cannot be {done}: {_reason(error)}"
            ) from error


def _reason(error: Exception) -> str:
    system_text = error.strerror if isinstance(error, OSError) else None
    return (system_text or str(error)).partition("\n")[0][:_LONGEST]


def _replace(target: Path, content: bytes, withheld: int) -> None:
    """Writes beside the target and renames, durably, without the mode bits `withheld`."""
    for parent in reversed(target.parents):
        if not parent.exists():
            parent.mkdir(mode=0o777 & ~withheld, exist_ok=True)
    # Two processes that write the same file use different temporary files.
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        part.touch(mode=0o666 & ~withheld, exist_ok=False)
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


_CONTROLS: Final = frozenset(map(chr, range(0x20)))

# Characters at the begin of a cell that make a spreadsheet read a formula, with their full-width
# and small forms, which it normalizes.
_FORMULA: Final = frozenset("=+-@\N{MINUS SIGN}")


def to_csv(table: Sequence[Row]) -> str:
    """Rows as CSV (RFC 4180) with a header; numbers with all digits.

    A ' precedes a text that a spreadsheet would run as a formula, since devices supply the values.
    """
    lines = _Rows()
    # With this line end, csv quotes values that contain either character, so that no value can
    # begin a row of its own.
    writer = csv.DictWriter(lines, list(table[0]) if table else [], lineterminator="\r\n")
    writer.writeheader()
    for row in table:
        inert_row = {n: inert(cell) if isinstance(cell, str) else cell for n, cell in row.items()}
        writer.writerow(inert_row)
    return "".join(f"{line[:-2]}\n" for line in lines)


class _Rows(list[str]):
    """The output of csv, one entry per row."""

    write = list.append


def to_parquet(table: Sequence[Row], schema: Any = None) -> bytes:
    """Rows as Apache Parquet, by default with types as the rows have them.

    Raises MissingDependency without pyarrow.
    """
    pa, parquet = arrow("Parquet")
    out = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(list(table), schema), out)
    return out.getvalue()


def inert(text: str) -> str:
    """A text that no spreadsheet runs as a formula: a ' precedes it if one might.

    Ignores what programs skip before they look: spaces, line ends, and invisible characters.
    """
    if text[:1] in _CONTROLS:
        return "'" + text
    lead = next((c for c in text if c.isprintable() and not c.isspace() and c not in UNSEEN), "")
    return "'" + text if _FORMULA & set(unicodedata.normalize("NFKC", lead)) else text
