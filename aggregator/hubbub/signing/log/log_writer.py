"""Writes a log in the operator's folder: signed content is appended, and nothing ever changed."""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hubbub.bundles.log.merkle import leaf_hash
from hubbub.bundles.log.notes import Checkpoint, NoteKey
from hubbub.bundles.log.proof import LogProof, entry_of
from hubbub.errors import KeysUnusable, LogBroken
from hubbub.keys.secret_files import read_signing_key, signing_pem, write_secret
from hubbub.programs.atomic_write import refuse_unwritable, replace_file
from hubbub.signing.log.log_reader import Fetch, ReadLog, bundle_sizes, read_log
from hubbub.signing.log.tiles import CHECKPOINT, content_path, hash_tiles, packed_entries
from hubbub.signing.log.tree import prove, tree_root

LOG_KEY: Final = "log.key"


def log_key(keys: Path) -> Ed25519PrivateKey:
    """The log's signing key, in the folder of the operator's; made if there is none.

    Raises KeysUnusable if it cannot be read or written.
    """
    path = keys / LOG_KEY
    if path.exists():
        return read_signing_key(path)
    key = Ed25519PrivateKey.generate()
    with refuse_unwritable(path, KeysUnusable):
        write_secret(path, signing_pem(key))
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
