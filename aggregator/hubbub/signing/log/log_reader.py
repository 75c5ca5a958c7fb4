"""Reads and checks a whole log: every entry, and their tree."""

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from hubbub.bundles.transparency_log import KINDS, Checkpoint, NoteKey, leaf_hash
from hubbub.errors import BadParameter, LogBroken
from hubbub.signing.log.tree import (
    CHECKPOINT,
    MAX_ENTRIES,
    content_path,
    entries_in,
    entry_tiles,
    hash_tiles,
    tree_root,
)

_ENTRY: Final = re.compile(rf"hubbub/1 ({'|'.join(KINDS)})\n([0-9a-f]{{64}})\n")

Fetch = Callable[[str], bytes]
"""What a path of the log holds. Raises LogBroken where there is nothing."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: `kind` is one of KINDS, `digest` the SHA-256 of its content in hexadecimal."""

    kind: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLog:
    """A log that agrees with its checkpoint. `leaves` are the entries' hashes, in order."""

    checkpoint: Checkpoint
    raw: tuple[bytes, ...]
    leaves: tuple[bytes, ...]
    entries: tuple[Entry, ...]
    fetch: Fetch

    def content(self, entry: Entry) -> bytes:
        """The content of an entry. Raises LogBroken if it is missing or differs."""
        raw = self.fetch(content_path(entry.digest))
        if hashlib.sha256(raw).hexdigest() != entry.digest:
            raise LogBroken(f"{content_path(entry.digest)}: differs from what was logged")
        return raw

    def refuse_other(self, checkpoint: Checkpoint, whose: str) -> None:
        """Raises LogBroken unless the log grew from this checkpoint, which `whose` names."""
        size = checkpoint.size
        if size > len(self.leaves):
            raise LogBroken(
                f"the log has {len(self.leaves)} entries, and {whose} has seen {size}: it was cut "
                "short, or this is another log"
            )
        if tree_root(self.leaves[:size]) != checkpoint.root:
            raise LogBroken(
                f"the log has forked: its first {size} entries differ from those that {whose} has "
                "seen"
            )


def bundle_sizes(entries: Sequence[Entry]) -> list[int]:
    """The log's sizes at which each bundle among its first entries was shipped."""
    return [index + 1 for index, entry in enumerate(entries) if entry.kind == "bundle"]


def read_log(fetch: Fetch, key: NoteKey) -> ReadLog:
    """Reads a whole log, and checks it against its checkpoint and its own tiles.

    Raises LogBroken if something is missing, malformed, or not what the log signed.
    """
    try:
        checkpoint = Checkpoint.open(fetch(CHECKPOINT).decode(), key)
        paths = entry_tiles(min(checkpoint.size, MAX_ENTRIES))
    except (BadParameter, UnicodeDecodeError) as error:
        raise LogBroken(f"{CHECKPOINT}: {error}") from error
    raw = tuple(entry for path in paths for entry in _entries(fetch, path))
    leaves = tuple(map(leaf_hash, raw))
    if len(leaves) != checkpoint.size or tree_root(leaves) != checkpoint.root:
        raise LogBroken("the log's entries differ from those of its signed checkpoint")
    for path, tile in hash_tiles(leaves):
        if fetch(path) != tile:
            raise LogBroken(f"{path}: its hashes differ from those of the entries")
    return ReadLog(
        checkpoint=checkpoint, raw=raw, leaves=leaves, entries=tuple(map(_entry, raw)), fetch=fetch
    )


def _entries(fetch: Fetch, path: str) -> list[bytes]:
    try:
        return entries_in(fetch(path))
    except BadParameter as error:
        raise LogBroken(f"{path}: {error}") from error


def _entry(raw: bytes) -> Entry:
    match = _ENTRY.fullmatch(raw.decode(errors="replace"))
    if match is None:
        raise LogBroken("the log has an entry of a kind new to this version; upgrade hubbub")
    return Entry(match[1], match[2])
