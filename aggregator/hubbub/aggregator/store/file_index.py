"""The index of files of totals: which windows have one, so that a missing file is noticed.

    index/SUM.json      {"version": 1, "windows": {STREAM: {EPOCH: [REPORTS, DUMMIES]}}}

null instead of the numbers means that the window was deleted. SUM: the first 16 digits of the
content's SHA-256. A writer merges all files of the index with its additions, writes the result
under its own name, and then deletes the files that it has read. So concurrent writers lose nothing
of each other, and an interrupted one only leaves an additional file.
"""

import json
import logging
import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final

from hubbub.aggregator.object_storage import Place
from hubbub.aggregator.store.contract import Counted
from hubbub.conservation import Window
from hubbub.errors import StoreUnavailable, TotalsUnreadable

_log: Final = logging.getLogger("hubbub.aggregator")

_FOLDER: Final = "index"
_VERSION: Final = 1
_SUM_DIGITS: Final = 16
_NAME: Final = re.compile(rf"[0-9a-f]{{{_SUM_DIGITS}}}\.json")
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
            f"{self._place.shown(_FOLDER)}: changed while it was read; try again"
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
        document = {"version": _VERSION, "windows": windows}
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
        return [entry.name for entry in entries if entry.is_file and _NAME.fullmatch(entry.name)]

    def _read(self, name: str) -> Entries:
        path = f"{_FOLDER}/{name}"
        content = self._place.read(path)
        document = json.loads(content) if _name(content) == name else {}
        if document.get("version") != _VERSION:
            raise TotalsUnreadable(
                f"{self._place.shown(path)}: is damaged, or of a version that this hubbub does not "
                "read; delete it, and the aggregator or hubbub totals write creates it again"
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
            largest = max(former, count, key=lambda own: own.tags) if former and count else None
            entries[window] = largest
    return entries


def _name(content: bytes) -> str:
    return f"{sha256(content).hexdigest()[:_SUM_DIGITS]}.json"
