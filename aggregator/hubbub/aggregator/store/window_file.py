"""The totals of one closed window as a Parquet file, and the index of such files.

The column `count` has the cells in their order. The schema's metadata has, under "hubbub.totals", a
JSON object: the window, its reports and dummies, the digest of the definition by which its reports
were randomized, and a SHA-256 of everything. A file's name has the numbers that an overview needs:

    DATE.EPOCH.REPORTS.DUMMIES.SUM.parquet      SUM: the first 16 digits of the SHA-256

So a listing shows the counts, and two states of one window are two files.

The index says which windows have a file, so that a missing one is noticed:

    index/SUM.json      {"version": 1, "windows": {STREAM: {EPOCH: [REPORTS, DUMMIES]}}}

null instead of the numbers means that the window was deleted. SUM is of the content. A writer
merges all files of the index with its additions, writes the result under its own name, and then
deletes the files that it has read. So concurrent writers lose nothing of each other, and an
interrupted one only leaves an additional file.
"""

import hashlib
import json
import logging
import re
import urllib.parse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, Self

import numpy as np

from hubbub.aggregator.exported_files import Place, arrow
from hubbub.aggregator.store.contract import Counted, Integers, WindowTotals
from hubbub.catalog import EPOCH_SECONDS, Metric
from hubbub.conservation import Window
from hubbub.epochs import epoch_date
from hubbub.errors import StoreUnavailable, TotalsUnreadable
from hubbub.fields.rules import is_whole

_KEY: Final = b"hubbub.totals"
_VERSION: Final = 1
_SUM_DIGITS: Final = 16
_NAME: Final = re.compile(
    r"[0-9T-]{7,15}\.([0-9]{1,10})\.([0-9]{1,16})\.([0-9]{1,16})\.([0-9a-f]{16})\.parquet"
)
_COUNTS: Final = ("epoch", "reports", "dummies", "batch_reports", "at", "cells")


def folder_of(stream: str) -> str:
    """The folder of a stream's files: its name, quoted as in an address."""
    return f"totals/{urllib.parse.quote(stream, safe='')}"


def stream_of(folder: str) -> str | None:
    """The stream of a folder's name; None for other folders, such as lost+found."""
    stream = urllib.parse.unquote(folder)
    return stream if folder_of(stream) == f"totals/{folder}" else None


def definition_of(metric: Metric) -> str:
    """SHA-256 of what determines how to read totals: mechanism, parameters, values, epoch."""
    text = json.dumps(metric.definition(), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class FileName:
    """The window's data in a file's name.

    Args:
        counted: counts of its window; `last` is the SHA-256 of its content, so that it differs
            between two states.
    """

    window: Window
    counted: Counted
    name: str

    @classmethod
    def parse(cls, stream: str, name: str) -> Self | None:
        """The name of a file in a stream's folder; None for other files."""
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        epoch, reports, dummies = map(int, match.groups()[:3])
        return cls(Window(stream, epoch), Counted(reports, dummies, bytes.fromhex(match[4])), name)

    @property
    def path(self) -> str:
        """Path below the root of the place."""
        return f"{folder_of(self.window.stream)}/{self.name}"


def encode(window: Window, totals: WindowTotals, metric: Metric) -> tuple[FileName, bytes]:
    """A window's file: its name and content, the same bytes whoever writes it."""
    pa, parquet = arrow("a file of totals")
    cells = totals.cells.astype("<i8")
    facts = {
        "version": _VERSION,
        "stream": window.stream,
        "epoch": window.epoch,
        "reports": totals.counted,
        "dummies": totals.dummies,
        "batch_reports": totals.batch_reports,
        "at": totals.at,
        "last": totals.last.hex(),
        "cells": int(cells.size),
        "definition": definition_of(metric),
    }
    checksum = _checksum(facts, cells)
    table = pa.table({"count": cells}).replace_schema_metadata(
        {_KEY: json.dumps({**facts, "sha256": checksum})}
    )
    out = pa.BufferOutputStream()
    parquet.write_table(
        table,
        out,
        use_dictionary=False,
        compression="none",
        column_encoding={"count": "DELTA_BINARY_PACKED"},  # counts of one size: 2 bytes each
    )
    date = epoch_date(window.epoch, EPOCH_SECONDS[metric.epoch]).replace(":", "")
    counted = Counted(totals.counted, totals.dummies, bytes.fromhex(checksum[:_SUM_DIGITS]))
    name = f"{date}.{window.epoch}.{counted.reports}.{counted.dummies}.{counted.last.hex()}.parquet"
    return FileName(window, counted, name), out.getvalue().to_pybytes()


def decode(content: bytes, label: FileName, definition: str, place: str) -> WindowTotals:
    """Totals in the whole content of a file with this name; `place` names it in errors.

    `definition` is the digest that it must have, by definition_of; "" for any. Raises
    TotalsUnreadable if it is damaged, foreign, another window's, or of another definition.
    """
    pa, parquet = arrow("a file of totals")
    try:
        file = parquet.ParquetFile(pa.BufferReader(content))
        facts = json.loads((file.schema_arrow.metadata or {})[_KEY])
        if file.schema_arrow.names != ["count"] or facts["version"] != _VERSION:
            raise TotalsUnreadable(
                f"{place}: is of a version that this hubbub cannot read; install a newer hubbub"
            )
        cells = file.read(use_threads=False).column(0).to_numpy()
        checksum = facts.pop("sha256")
        is_whole_file = (
            all(is_whole(facts[name]) for name in _COUNTS)
            and cells.dtype == np.int64
            and cells.size == facts["cells"]
            and checksum == _checksum(facts, cells)
        )
    except KeyError as error:
        raise TotalsUnreadable(
            f"{place}: is a Parquet file without totals; move it elsewhere"
        ) from error
    except (pa.ArrowException, OSError, ValueError, TypeError, AttributeError) as error:
        raise _damage_error(place) from error
    if not is_whole_file:
        raise _damage_error(place)
    counted = Counted(facts["reports"], facts["dummies"], bytes.fromhex(checksum[:_SUM_DIGITS]))
    if (facts["stream"], facts["epoch"], counted) != (*label.window, label.counted):
        raise TotalsUnreadable(
            f"{place}: has the totals of {facts['stream']}:{facts['epoch']}, another window "
            "or state than in its name; restore its name"
        )
    if definition and facts["definition"] != definition:
        raise TotalsUnreadable(
            f"{place}: its reports were randomized by another definition of the metric than the "
            "bundle has; give the bundle of their time with --bundle"
        )
    return WindowTotals(
        cells=cells,
        counted=facts["reports"],
        batch_reports=facts["batch_reports"],
        at=facts["at"],
        dummies=facts["dummies"],
        last=bytes.fromhex(facts["last"]),
    )


def _checksum(facts: dict[str, Any], cells: Integers) -> str:
    head = json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()
    digest = hashlib.sha256(head + b"\n")
    digest.update(np.ascontiguousarray(cells, dtype="<i8").data)
    return digest.hexdigest()


def _damage_error(place: str) -> TotalsUnreadable:
    return TotalsUnreadable(
        f"{place}: is damaged or not a file of totals; delete it and run hubbub totals write, if "
        "Redis still has the epoch, or take it from a copy"
    )


_log: Final = logging.getLogger("hubbub.aggregator")

_FOLDER: Final = "index"
_INDEX_VERSION: Final = 1
_INDEX_NAME: Final = re.compile(rf"[0-9a-f]{{{_SUM_DIGITS}}}\.json")
_ATTEMPTS: Final = 5

Entries = Mapping[Window, Counted | None]
"""Of each window that has had a file how much it holds; None if it was deleted."""


class FileIndex:
    """The index of one place. Its methods raise StoreUnavailable if that cannot be read."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._files: dict[str, Entries] = {}

    def entries(self) -> Entries:
        """All entries; none from an earlier version. Raises TotalsUnreadable for a damaged file."""
        for _ in range(_ATTEMPTS):
            try:
                self._files = {
                    name: self._files[name] if name in self._files else self._read(name)
                    for name in self._names()
                }
            except FileNotFoundError:
                continue  # another writer has added it
            return _merged_entries(self._files.values())
        raise StoreUnavailable(
            f"{self._place.display(_FOLDER)}: changed while it was read; try again"
        )

    def update(self, changes: Entries) -> None:
        """Merges these entries into the index. Replaces a damaged file of it, and logs that."""
        names = self._names()
        try:
            entries = self.entries()
        except TotalsUnreadable as error:
            _log.warning("%s; the index is built again from the existing files", error)
            entries = {}
        windows: dict[str, dict[str, list[int] | None]] = {}
        for window, count in sorted(_merged_entries([entries, changes]).items()):
            state = [count.reports, count.dummies] if count else None
            windows.setdefault(window.stream, {})[str(window.epoch)] = state
        document = {"version": _INDEX_VERSION, "windows": windows}
        content = json.dumps(document, separators=(",", ":")).encode()
        index_name = _name(content)
        if names == [index_name]:
            return
        self._place.write(f"{_FOLDER}/{index_name}", content, owner_only=True)
        for name in names:
            if name != index_name:
                self._place.delete(f"{_FOLDER}/{name}")

    def _names(self) -> list[str]:
        entries = self._place.entries(_FOLDER)
        return [
            entry.name for entry in entries if entry.is_file and _INDEX_NAME.fullmatch(entry.name)
        ]

    def _read(self, name: str) -> Entries:
        path = f"{_FOLDER}/{name}"
        content = self._place.read(path)
        document = json.loads(content) if _name(content) == name else {}
        if document.get("version") != _INDEX_VERSION:
            raise TotalsUnreadable(
                f"{self._place.display(path)}: is damaged, or of a version that this hubbub does "
                "not read; delete it, and the aggregator or hubbub totals write creates it again"
            )
        return {
            Window(stream, int(epoch)): Counted(*counts) if counts else None
            for stream, epochs in document["windows"].items()
            for epoch, counts in epochs.items()
        }


def _merged_entries(parts: Iterable[Entries]) -> Entries:
    """All entries; a deletion outlasts every state, and of two states the larger one stays."""
    entries: dict[Window, Counted | None] = {}
    for part in parts:
        for window, count in part.items():
            former = entries.get(window, count)
            largest = max(former, count, key=lambda entry: entry.tags) if former and count else None
            entries[window] = largest
    return entries


def _name(content: bytes) -> str:
    return f"{sha256(content).hexdigest()[:_SUM_DIGITS]}.json"
