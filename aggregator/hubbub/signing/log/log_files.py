"""Reads and checks a whole transparency log, and adds bundles and notices as they are made.

Signed content is appended, and nothing ever changed. The last signed checkpoint is kept beside the
log's key: the key signs no other log.
"""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hubbub.authoring import Catalog
from hubbub.bundles import Bundle
from hubbub.bundles.encoding import to_text
from hubbub.bundles.transparency_log import (
    KINDS,
    Checkpoint,
    LogProof,
    NoteKey,
    entry_of,
    leaf_hash,
)
from hubbub.errors import BadParameter, BundleRefused, KeysUnusable, LogBroken
from hubbub.keys.operator import read_signing_key, signing_pem
from hubbub.programs.atomic_write import refuse_unwritable, replace_file
from hubbub.signing.log.tree import (
    CHECKPOINT,
    MAX_ENTRIES,
    content_path,
    entries_in,
    entry_tiles,
    hash_tiles,
    packed_entries,
    prove,
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


LOG: Final = "log"
"""What the log's folder is called, beside the app's bundle."""
LOG_KEY: Final = "log.key"


def log_key(keys: Path) -> Ed25519PrivateKey:
    """The log's signing key, made if there is none. Raises KeysUnusable if that fails."""
    path = keys / LOG_KEY
    if path.exists():
        return read_signing_key(path)
    key = Ed25519PrivateKey.generate()
    with refuse_unwritable(path, KeysUnusable):
        replace_file(path, signing_pem(key), mode=0o600)
    return key


def append(
    folder: Path, name: str, key: Ed25519PrivateKey, things: Sequence[tuple[str, bytes]]
) -> ReadLog:
    """Appends things, each with a kind of KINDS, to a folder's log, which is made if need be.

    The checkpoint is written last: until then the log is unchanged. Raises LogBroken if the folder
    holds another log, or one that was changed, or cannot be written.
    """
    log_note_key = NoteKey(name, key.public_key().public_bytes_raw())
    begun = (folder / CHECKPOINT).exists()
    before = read_log(folder_fetch(folder), log_note_key).raw if begun else ()
    entries = (*before, *(entry_of(kind, content) for kind, content in things))
    leaves = tuple(map(leaf_hash, entries))
    checkpoint = Checkpoint.sign(name, len(entries), tree_root(leaves), key)
    files = [
        *((content_path(sha256(content).hexdigest()), content) for _, content in things),
        *packed_entries(entries, since=len(before)),
        *hash_tiles(leaves, since=len(before)),
        (CHECKPOINT, checkpoint.note.encode()),
    ]
    with refuse_unwritable(folder, LogBroken):
        for path, content in files:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            replace_file(folder / path, content)
    return read_log(folder_fetch(folder), log_note_key)


def prove_bundle(log: ReadLog) -> LogProof:
    """Proves the log's last entry, a bundle, to devices that had any earlier bundle."""
    last = len(log.leaves) - 1
    return prove(log.leaves, last, log.checkpoint, bundle_sizes(log.entries[:-1]))


def folder_fetch(folder: Path) -> Fetch:
    """A function that reads the paths of a log from a folder."""

    def fetch(path: str) -> bytes:
        try:
            return (folder / path).read_bytes()
        except OSError as error:
            raise LogBroken(f"{folder / path}: cannot be read: {error.strerror}") from error

    return fetch


def log_of(catalog: Catalog, keys: Path, old: Bundle | None, previous: Path) -> NoteKey | None:
    """The catalog's log. Raises BundleRefused if it differs from the previous bundle's."""
    before = old.log if old else None
    current = (
        NoteKey(catalog.log, log_key(keys).public_key().public_bytes_raw()) if catalog.log else None
    )
    if before and current != before:
        raise BundleRefused(
            f"{previous}: is in the log {before}, and its devices accept no bundle outside that "
            f"log; keep log = {before.name!r} in the catalog and its key in {keys}"
        )
    return current


def add_to_log(
    folder: Path, keys: Path, log: NoteKey, things: Sequence[tuple[str, bytes]]
) -> ReadLog:
    """Appends things, each with a kind of KINDS, to the log that the folder's key has signed.

    Raises LogBroken if it is gone, shorter or another, or cannot be written.
    """
    state_path = keys / f"log.{sha256(log.name.encode()).hexdigest()[:16]}.checkpoint"
    if state_path.exists():
        try:
            checkpoint = Checkpoint.open(state_path.read_text(), log)
        except (OSError, ValueError, BadParameter) as error:
            raise LogBroken(f"{state_path}: {error}; restore this file and the log") from error
        _refuse_lost(folder, log, checkpoint, str(state_path))
    result = append(folder, log.name, log_key(keys), things)
    with refuse_unwritable(state_path, LogBroken):
        replace_file(state_path, result.checkpoint.note.encode())
    return result


def refuse_lost_log(folder: Path, previous: Bundle | None) -> None:
    """Raises LogBroken unless the folder's log continues the one that has the previous bundle."""
    if previous and previous.log and previous.proof:
        _refuse_lost(folder, previous.log, previous.proof.checkpoint, "the bundle before")


def _refuse_lost(folder: Path, key: NoteKey, checkpoint: Checkpoint, whose: str) -> None:
    if not (folder / CHECKPOINT).exists():
        raise LogBroken(
            f"{folder}: the log is missing, and devices accept no other; restore the served "
            "files, or give their place: --log"
        )
    read_log(folder_fetch(folder), key).refuse_other(checkpoint, whose)


def append_to_log(
    signed: bytes, bundle: Bundle, folder: Path, keys: Path, old: Bundle | None
) -> bytes:
    """Appends a bundle to the log; returns it with the line that proves that.

    The keys that devices must trust are logged before it, if they changed. `old` is the previous
    bundle. Raises LogBroken if the log does not continue that of `old`, or cannot be written.
    """
    assert bundle.log is not None  # noqa: S101 who calls has looked
    refuse_lost_log(folder, old)
    # The keys whose signatures devices accept, and those that they seal to.
    document = {
        "operator": to_text(bundle.operator),
        "handovers": [handover.words() for handover in bundle.handovers],
        "keys": [key.words() for key in bundle.keys],
    }
    trusted = json.dumps(document, separators=(",", ":")).encode()
    things = [("keys", trusted), ("bundle", signed)]
    if (folder / CHECKPOINT).exists():
        raw_entries = read_log(folder_fetch(folder), bundle.log).raw
        last = next(
            (raw for raw in reversed(raw_entries) if raw.startswith(b"hubbub/1 keys\n")), b""
        )
        if last == entry_of("keys", trusted):
            things = things[1:]
    log = add_to_log(folder, keys, bundle.log, things)
    return signed + prove_bundle(log).dump() + b"\n"
