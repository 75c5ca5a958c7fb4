"""A transparency log: its Merkle tree and files (C2SP tlog-tiles), read, checked and appended to.

Signed content is appended, and nothing ever changed. The last signed checkpoint is kept beside the
log's key: the key signs no other log.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
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
    node_hash,
)
from hubbub.errors import BadParameter, BundleRefused, KeysUnusable, LogBroken
from hubbub.keys.operator_key import read_signing_key, signing_pem
from hubbub.programs.atomic_write import refuse_unwritable, replace_file

CHECKPOINT: Final = "checkpoint"
MAX_ENTRIES: Final = 1 << 20
"""More than any operator signs; whoever reads a stranger's log reads no more."""
_WIDTH: Final = 256
_LENGTH_BYTES: Final = 2
_ENTRY: Final = re.compile(rf"hubbub/1 ({'|'.join(KINDS)})\n([0-9a-f]{{64}})\n")

Fetch = Callable[[str], bytes]
"""What a path of the log holds. Raises LogBroken where there is nothing."""


def tree_root(leaves: Sequence[bytes]) -> bytes:
    """The root of the tree over these leaf hashes. RFC 6962, section 2.1."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    split = _left_size(len(leaves))
    return node_hash(tree_root(leaves[:split]), tree_root(leaves[split:]))


def inclusion_proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """The hashes beside a leaf's path, from the leaf to the root. RFC 6962, section 2.1.1."""
    if len(leaves) == 1:
        return []
    split = _left_size(len(leaves))
    if index < split:
        return [*inclusion_proof(leaves[:split], index), tree_root(leaves[split:])]
    return [*inclusion_proof(leaves[split:], index - split), tree_root(leaves[:split])]


def consistency_proof(leaves: Sequence[bytes], before: int, *, whole: bool = True) -> list[bytes]:
    """Proves that the tree grew from its first `before` leaves. RFC 6962, section 2.1.2.

    `whole` is whether the verifier has the former hash of this tree; of a part it may not.
    """
    if before == len(leaves):
        return [] if whole else [tree_root(leaves)]
    split = _left_size(len(leaves))
    if before <= split:
        return [*consistency_proof(leaves[:split], before, whole=whole), tree_root(leaves[split:])]
    former = consistency_proof(leaves[split:], before - split, whole=False)
    return [*former, tree_root(leaves[:split])]


def _left_size(size: int) -> int:
    """The largest power of two below `size`, which is at least 2."""
    return 1 << (size - 1).bit_length() - 1


def prove(
    leaves: Sequence[bytes], index: int, checkpoint: Checkpoint, sizes: Sequence[int]
) -> LogProof:
    """Proves an entry of a log; `sizes` are the log's sizes when earlier bundles were shipped."""
    return LogProof(
        index,
        checkpoint,
        tuple(inclusion_proof(leaves, index)),
        {size: tuple(consistency_proof(leaves, size)) for size in sizes},
    )


def hash_tiles(leaves: Sequence[bytes], *, since: int = 0) -> Iterator[tuple[str, bytes]]:
    """Yields path and content of the hash tiles that changed since the log had `since` entries."""
    level, hashes = 0, list(leaves)
    while hashes:
        first = since // _WIDTH ** (level + 1)
        for number in range(first, -(-len(hashes) // _WIDTH)):
            tile = hashes[number * _WIDTH : (number + 1) * _WIDTH]
            yield _path(str(level), number, len(tile)), b"".join(tile)
        full_tiles = len(hashes) // _WIDTH
        hashes = [tree_root(hashes[n * _WIDTH : (n + 1) * _WIDTH]) for n in range(full_tiles)]
        level += 1


def entry_tiles(size: int) -> list[str]:
    """The paths of the entry files of a log of this size, in order."""
    return [
        _path("entries", first // _WIDTH, min(_WIDTH, size - first))
        for first in range(0, size, _WIDTH)
    ]


def packed_entries(entries: Sequence[bytes], *, since: int = 0) -> Iterator[tuple[str, bytes]]:
    """Yields path and content of the entry files that changed since there were `since` entries."""
    paths = entry_tiles(len(entries))
    for number in range(since // _WIDTH, len(paths)):
        members = entries[number * _WIDTH : (number + 1) * _WIDTH]
        yield (
            paths[number],
            b"".join(len(entry).to_bytes(_LENGTH_BYTES, "big") + entry for entry in members),
        )


def entries_in(packed: bytes) -> list[bytes]:
    """The entries in one entry file. Raises BadParameter if it is cut off."""
    entries, position = [], 0
    while position < len(packed):
        start = position + _LENGTH_BYTES
        position = start + int.from_bytes(packed[position:start], "big")
        if len(packed) < max(position, start):
            raise BadParameter("the file of entries is cut off; copy the log again")
        entries.append(packed[start:position])
    return entries


def content_path(digest: str) -> str:
    """The path of an entry's content, by its SHA-256 in hexadecimal: our own extension."""
    return f"content/{digest}"


def _path(level: str, number: int, width: int) -> str:
    """A tile's path: its number in groups of three digits, and its width if it is not full."""
    groups = [f"{number % 1000:03d}"]
    while number := number // 1000:
        groups.append(f"x{number % 1000:03d}")
    partial = "" if width == _WIDTH else f".p/{width}"
    return f"tile/{level}/{'/'.join(reversed(groups))}{partial}"


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
        if sha256(raw).hexdigest() != entry.digest:
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
    return prove(log.leaves, len(log.leaves) - 1, log.checkpoint, bundle_sizes(log.entries[:-1]))


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
            f"{previous}: devices with this bundle accept no bundle outside the log {before}; "
            f"keep log = {before.name!r} in the catalog and the log's key in {keys}"
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
    return signed + prove_bundle(add_to_log(folder, keys, bundle.log, things)).dump() + b"\n"
