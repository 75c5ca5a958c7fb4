"""Witnesses of a log, who cosign its growth, and audits: what no honest operator's log contains.

A cosignature (C2SP tlog-cosignature, Ed25519 form, cosignature/v1) is eight bytes of time, and a
signature of time and text.
"""

import fcntl
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hubbub.bundles import Bundle
from hubbub.bundles.transparency_log import (
    COSIGNATURE,
    Checkpoint,
    NoteKey,
    merge_notes,
    note_text,
    refuse_inconsistent,
    refuse_unfit,
    signatures,
    signed_note,
)
from hubbub.errors import BadParameter, KeysUnusable, LogBroken
from hubbub.keys.operator_key import read, read_signing_key, signing_pem
from hubbub.programs.atomic_write import refuse_unwritable, replace_file
from hubbub.programs.http_calls import HttpCalls
from hubbub.programs.text_files import unreadable
from hubbub.signing.log.log_files import (
    CHECKPOINT,
    Fetch,
    ReadLog,
    bundle_sizes,
    folder_fetch,
    read_log,
    tree_root,
)

WITNESS_KEY: Final = "witness.key"
_PUBLIC: Final = "witness.pub"
_CLOCKS_DIFFER: Final = 300
"""Seconds by which a witness's clock may be ahead of an auditor's."""
_TIME_BYTES: Final = 8
_SIGNATURE_BYTES: Final = 64
_LAST_SECOND: Final = (1 << 63) - 1


def make_witness(folder: Path, name: str) -> NoteKey:
    """Makes a witness's key in a folder that has none; returns its verification key.

    Raises BadParameter if the name cannot sign notes, KeysUnusable if there is a key or no access.
    """
    path = folder / WITNESS_KEY
    if path.exists():
        raise KeysUnusable(f"{path}: exists, and audits use it; choose another folder")
    key = Ed25519PrivateKey.generate()
    public_key = witness_key(name, key)
    with refuse_unwritable(folder, KeysUnusable):
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(path, signing_pem(key), mode=0o600)
        replace_file(folder / _PUBLIC, f"{public_key}\n".encode())
    return public_key


def cosigned_file(folder: Path, log: NoteKey) -> Path:
    """The default file in which a witness keeps the checkpoint of a log that it last cosigned."""
    return folder / f"witness.{sha256(log.name.encode()).hexdigest()[:16]}.checkpoint"


def cosign_newest(
    fetch: Fetch, log: NoteKey, folder: Path, state: Path, *, first: bool, now: float
) -> Checkpoint:
    """Cosigns a log's newest checkpoint if all of it grew from that in `state`, which it replaces.

    `folder` holds the witness's key. `first` means that there is no `state`, and the log is
    accepted as it is found. Raises KeysUnusable if the key cannot be read; LogBroken if the log is
    not what it signed, forked, or shows an older checkpoint than before; BadParameter if `state` is
    lost, unreadable or of others, or the clock went back.
    """
    witness, key = _read_witness(folder)
    while True:
        before = _last_cosigned(state, log, witness, first=first)
        # Before the lock: a slow log would keep the witness from cosigning others.
        read_now = read_log(fetch, log)
        with _lock_cosigning(folder):
            if _last_cosigned(state, log, witness, first=first) != before:
                continue  # it may have grown past what was read
            if before:
                checkpoint, signed_at = before
                read_now.refuse_other(checkpoint, str(state))
                if signed_at > now:
                    raise BadParameter(
                        f"{state}: was cosigned later than this machine's clock, {_utc(now)}; "
                        "correct the clock"
                    )
            note = cosign(read_now.checkpoint.note, witness.name, key, int(now))
            with refuse_unwritable(state, BadParameter):
                replace_file(state, note.encode())
        return read_now.checkpoint


def publish_cosigned(folder: Path, log: NoteKey, sources: Sequence[Path]) -> str:
    """Adds the lines of cosigned checkpoints to the one that a log's folder serves; returns it.

    Raises LogBroken if the folder's own is not the log's, or cannot be read or written;
    BadParameter if a given one cannot be read, or is of another checkpoint.
    """
    path = folder / CHECKPOINT
    served = _read_checkpoint(path, log, LogBroken)
    note = served.note
    for source in sources:
        cosigned = _read_checkpoint(source, log, BadParameter)
        if cosigned.size != served.size:
            raise BadParameter(
                f"{source}: has {cosigned.size} entries, but {path} has {served.size}; the "
                f"witness must cosign {path}"
            )
        try:
            note = merge_notes(note, cosigned.note)
        except BadParameter as error:
            raise BadParameter(f"{source}: beside {path}, {error}") from error
    with refuse_unwritable(path, LogBroken):
        replace_file(path, note.encode())
    return note


def refuse_unwitnessed(
    checkpoint: Checkpoint, log: NoteKey, witnesses: Sequence[NoteKey], needed: int, now: float
) -> list[str]:
    """Sentences about each witness's signature of a checkpoint.

    `needed` is how many must have cosigned it, in [1, witnesses]. Raises BadParameter if two
    witnesses, or one and the log, are the same; LogBroken, naming the missing ones, if fewer did.
    """
    publics = [log.public, *(witness.public for witness in witnesses)]
    if len(set(publics)) < len(publics):
        raise BadParameter(
            "two witnesses, or the log and a witness, have the same key: name others"
        )
    lines, wrong = [], []
    for witness in witnesses:
        try:
            signed_at = cosigning_time(checkpoint.note, witness)
        except BadParameter as error:
            wrong.append(str(error))
            continue
        if signed_at > now + _CLOCKS_DIFFER:
            wrong.append(f"the time of {witness.name} is ahead of this machine's clock")
        else:
            lines.append(f"{witness.name}: cosigned it at {_utc(signed_at)}")
    if len(lines) < needed:
        raise LogBroken(
            f"{CHECKPOINT}: {len(lines)} of {needed} required cosignatures; {'; '.join(wrong)}; "
            "wait until it is cosigned, or contact the witness"
        )
    return [*lines, *wrong]


def _read_witness(folder: Path) -> tuple[NoteKey, Ed25519PrivateKey]:
    path = folder / _PUBLIC
    if not path.exists():
        raise KeysUnusable(
            f"{path}: is missing; make a key: hubbub keys witness FOLDER --name NAME"
        )
    key = read_signing_key(folder / WITNESS_KEY)
    try:
        witness = NoteKey.read(read(path).decode().strip(), COSIGNATURE)
    except (UnicodeDecodeError, BadParameter) as error:
        raise KeysUnusable(
            f"{path}: {error}; put it back as hubbub keys witness made it"
        ) from error
    if witness != witness_key(witness.name, key):
        raise KeysUnusable(
            f"{path}: does not belong to the key beside it; restore the file of that key"
        )
    return witness, key


@contextmanager
def _lock_cosigning(folder: Path) -> Iterator[None]:
    """Locks cosigning during the block: two at once could sign two forks of one checkpoint."""
    with (folder / WITNESS_KEY).open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _last_cosigned(
    state: Path, log: NoteKey, witness: NoteKey, *, first: bool
) -> tuple[Checkpoint, int] | None:
    if first and state.exists():
        raise BadParameter(f"{state}: exists, so this log was cosigned before; leave out --first")
    if first:
        return None
    if not state.exists():
        raise BadParameter(
            f"{state}: is missing; restore it, or, if this log was never cosigned here: --first"
        )
    checkpoint = _read_checkpoint(state, log, BadParameter)
    try:
        return checkpoint, cosigning_time(checkpoint.note, witness)
    except BadParameter as error:
        raise BadParameter(f"{state}: {error}; restore the last cosigned state") from error


def _read_checkpoint(
    path: Path, log: NoteKey, refusal: type[BadParameter | LogBroken]
) -> Checkpoint:
    try:
        return Checkpoint.open(path.read_bytes().decode(), log)
    except (OSError, UnicodeDecodeError) as error:
        raise refusal(f"{path}: cannot be read: {unreadable(error)}") from error
    except BadParameter as error:
        raise refusal(f"{path}: {error}") from error


def _utc(seconds: float) -> str:
    return f"{datetime.fromtimestamp(int(seconds), UTC):%Y-%m-%d %H:%M:%S} UTC"


def witness_key(name: str, key: Ed25519PrivateKey) -> NoteKey:
    """The verification key of a witness."""
    return NoteKey(name, key.public_key().public_bytes_raw(), COSIGNATURE)


def cosign(note: str, name: str, key: Ed25519PrivateKey, time: int) -> str:
    """Adds a witness's line to a checkpoint's note, in place of an earlier one.

    `time` is in seconds since 1970, below 2^63. The caller must have checked that the log grew.
    Raises BadParameter if it is no note, or one with too many lines.
    """
    text = note_text(note)
    signature = time.to_bytes(_TIME_BYTES, "big") + key.sign(_message(text, time).encode())
    return merge_notes(note, signed_note(text, witness_key(name, key), signature))


def cosigning_time(note: str, witness: NoteKey) -> int:
    """When a witness last cosigned a checkpoint's note, in seconds since 1970.

    Raises BadParameter if it is no note, the witness did not sign it, or a line of it does not fit.
    """
    text = note_text(note)
    return max(_signature_time(signed, text, witness) for signed in signatures(note, witness))


def _signature_time(signed: bytes, text: str, witness: NoteKey) -> int:
    time = int.from_bytes(signed[:_TIME_BYTES], "big")
    if len(signed) != _TIME_BYTES + _SIGNATURE_BYTES or time > _LAST_SECOND:
        raise BadParameter(f"the signature of {witness.name} is not of type cosignature/v1")
    refuse_unfit(signed[_TIME_BYTES:], _message(text, time), witness)
    return time


def _message(text: str, time: int) -> str:
    return f"cosignature/v1\ntime {time}\n{text}"


_SECONDS: Final = 30.0
_MAX_BYTES: Final = 64 << 20
_TILE_BYTES: Final = 64 << 10  # 256 entries of less than 100 bytes; hashes are shorter


def gaps(log: ReadLog, bundle: Bundle, path: Path) -> Iterator[str]:
    """Yields which devices with an earlier bundle would refuse this one, or trust it wrongly."""
    if bundle.proof is None:
        return
    proofs, now = bundle.proof.grown, bundle.proof.checkpoint
    shipped = bundle_sizes(log.entries[: bundle.proof.index])
    for size in sorted({*proofs, *shipped}):
        if size not in proofs:
            yield f"{path}: it has no proof that the log grew from {size} entries, of a bundle"
            continue
        try:
            before = size, tree_root(log.leaves[: max(size, 0)])
            refuse_inconsistent(before, (now.size, now.root), proofs[size])
        except BadParameter as error:
            yield f"{path}: its proof that the log grew from {size} entries is wrong: {error}"


def misfits(former: Bundle | None, bundle: Bundle, log: ReadLog) -> Iterator[str]:
    """Yields why a bundle of the log does not continue the one before it, if there is one."""
    if bundle.log is None or bundle.log.name != log.checkpoint.origin:
        yield "it names another log, or none"
    if former is None:
        return
    if former.operator not in bundle.line:
        yield "another operator signed it, without a handover"
    if bundle.serial <= former.serial:
        yield f"two bundles at once: its serial {bundle.serial} is not above {former.serial}"


def fetch_from(source: str) -> Fetch:
    """Reads a log at an address or in a folder. Raises BadParameter if the folder has none."""
    if not source.startswith(("http://", "https://")):
        if not (Path(source) / CHECKPOINT).exists():
            raise BadParameter(f"{source}: contains no log; give its folder or its URL")
        return folder_fetch(Path(source))

    calls = HttpCalls(_SECONDS)

    def fetch(path: str) -> bytes:
        url = f"{source.rstrip('/')}/{path}"
        most = _MAX_BYTES if path.startswith("content/") else _TILE_BYTES
        try:
            answer = calls.answer(urllib.request.Request(url), most)  # noqa: S310 as checked
        except (OSError, ValueError) as error:
            raise LogBroken(f"{url}: cannot be read: {error}") from error
        if not answer.is_success:
            raise LogBroken(
                f"{url}: cannot be read: the log answered {answer.status} {answer.reason}"
            )
        return answer.body

    return fetch
