"""Packs an installation's files into one encrypted archive, and lists parts with checksums.

The format is age (https://age-encryption.org/v1) around tar, so that `age --decrypt` opens it, too.
"""

import errno
import hashlib
import io
import json
import posixpath
import re
import tarfile
import time
import zlib
from collections.abc import Callable, Mapping
from copy import copy
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import pyrage

from hubbub.errors import BackupUnusable, StateUnusable
from hubbub.errors.message_words import visible
from hubbub.programs.atomic_write import refusal_with_remedy
from hubbub.sealing.digests import checksum

Encryption = Callable[[bytes], bytes]
Opener = Callable[[bytes], bytes]

# Files that services write, and those of Redis.
_NOT_OURS: Final = frozenset({"redis-shuffler", "redis-aggregator", "log", "lock", "data"})
_LOG: Final = re.compile(r"\.log(\.\d+)?(\.gz)?$")
# First bytes of files that no archive contains: Redis' data, which come from a snapshot, and a
# private key of age, which must not lie in the archive that it opens.
_BEGINNINGS: Final = (b"REDIS0", b"VALKEY0", b"*2\r\n$6\r\nSELECT", b"AGE-SECRET-KEY-")
_SHORTEST_PASSPHRASE: Final = 12
_REMEDY: Final = "use the backup as hubbub backup made it, or make another"
_LONGEST_NAME: Final = 1000  # bytes: far below where a system cuts paths
_MODE: Final = 0o755  # writable by the owner only
_TRIES: Final = 40
_PAUSE_SECONDS: Final = 0.5


def encryption_by(passphrase: str) -> Encryption:
    """Encrypts to a passphrase. Raises BackupUnusable if it is easily guessed."""
    if len(passphrase) < _SHORTEST_PASSPHRASE:
        raise BackupUnusable(
            f"the passphrase has fewer than {_SHORTEST_PASSPHRASE} characters; use a longer one, "
            "from: openssl rand -base64 24"
        )
    return lambda clear: pyrage.passphrase.encrypt(clear, passphrase)


def encryption_to(recipient: str) -> Encryption:
    """Encrypts to a public key, age1... Raises BackupUnusable if `recipient` is not one."""
    try:
        key = pyrage.x25519.Recipient.from_str(recipient)
    except pyrage.RecipientError:
        raise BackupUnusable(
            "--for must be a public key of age (age1...), as age-keygen prints it"
        ) from None
    return lambda clear: pyrage.encrypt(clear, [key])


def passphrase_opener(passphrase: str) -> Opener:
    """Decrypts with a passphrase.

    age refuses parameters that would take too long, judged by this machine's speed over some
    milliseconds: on a busy machine that is chance, so it is asked again before it is believed.
    """

    def open_sealed(sealed: bytes) -> bytes:
        for _ in range(_TRIES):
            try:
                clear: bytes = pyrage.passphrase.decrypt(sealed, passphrase)
            except pyrage.DecryptError as error:
                if not str(error).startswith("Excessive work"):
                    raise
            else:
                return clear
            time.sleep(_PAUSE_SECONDS)
        raise BackupUnusable(
            "installation.age: this machine is too slow or too busy to derive the key from "
            "the passphrase; try again later, or on the machine that made the backup"
        )

    return open_sealed


def key_opener(identity: str) -> Opener:
    """Decrypts with a private key, AGE-SECRET-KEY-1... Raises BackupUnusable if it is not one."""
    lines = [line for line in identity.splitlines() if line.startswith("AGE-SECRET-KEY-")]
    try:
        keys = [pyrage.x25519.Identity.from_str(line) for line in lines]
    except pyrage.IdentityError:
        keys = []
    if not keys:
        raise BackupUnusable("--identity must be a file of age-keygen, with AGE-SECRET-KEY-1...")
    return lambda sealed: pyrage.decrypt(sealed, keys)


def pack(folder: Path, out: Path, encryption: Encryption, secret: Path | None = None) -> list[str]:
    """Writes the files of an installation into an encrypted archive; returns what was left out.

    These are Redis' data, logs, secrets of backups and backups, the folder of `out`, and `secret`,
    the file of the passphrase. Raises StateUnusable if a file cannot be read.
    """
    packed, absent = io.BytesIO(), []

    def selected_member(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        path = folder / member.name
        # Following a link to a folder that contains it would not end.
        if (
            _is_of_redis_or_backup(path)
            or (path.is_symlink() and path.parent.resolve().is_relative_to(path.resolve()))
            or path.resolve() in {out.parent.resolve(), secret and secret.resolve()}
        ):
            absent.append(member.name)
            return None
        return _file_or_folder(member)

    try:
        # The target of a link is archived in its place, since links are never restored.
        with tarfile.open(fileobj=packed, mode="w:gz", dereference=True) as archive:
            for path in sorted(folder.iterdir()):
                if path.name not in _NOT_OURS:
                    archive.add(path, path.name, filter=selected_member)
            for path in sorted((folder / "data").glob("*")):
                archive.add(path, f"data/{path.name}", recursive=False)
    except OSError as error:
        raise StateUnusable(
            f"{error.filename}: cannot be read: {error.strerror}; run this as the owner of the "
            "installation"
        ) from error
    out.write_bytes(encryption(packed.getvalue()))
    return absent


def unpack(sealed: Path, opener: Opener, folder: Path | None) -> int:
    """Extracts the files into a folder, or nowhere; returns their number.

    Raises BackupUnusable if passphrase or key do not fit, the archive is incomplete, or it contains
    something other than plain files and folders; StateUnusable if the folder's disk is full.
    """
    try:
        clear = opener(sealed.read_bytes())
    except pyrage.DecryptError:
        raise BackupUnusable(
            f"{sealed}: this passphrase or key does not open it; give the one it was made with"
        ) from None
    try:
        with tarfile.open(fileobj=io.BytesIO(clear), mode="r:gz") as archive:
            files = {member.name: member for member in archive.getmembers() if member.isfile()}
            members = [_checked_member(member, files, sealed) for member in archive.getmembers()]
            if folder is not None:
                # Python 3.11.3 and before have no filters of their own.
                archive.extraction_filter = lambda member, _: member
                archive.extractall(folder, members)  # noqa: S202 only files and folders inside
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            problem = f"{folder}: cannot be written: {refusal_with_remedy(error)}"
            raise StateUnusable(problem) from error
        raise BackupUnusable(
            f"{sealed}: is not a complete archive ({type(error).__name__}); {_REMEDY}"
        ) from error
    return sum(member.isfile() for member in members)


def _is_of_redis_or_backup(path: Path) -> bool:
    if path.is_dir():
        return path.name == "appendonlydir" or (path / "installation.age").exists()
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(4096)
    # age-keygen writes comments before the key.
    lines = head.splitlines() if head.startswith(b"#") else [head]
    return bool(_LOG.search(path.name)) or any(line.startswith(_BEGINNINGS) for line in lines)


def _file_or_folder(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """The member if it is a file or folder; None for others, such as sockets of a service."""
    return member if member.isfile() or member.isdir() else None


def _checked_member(
    member: tarfile.TarInfo, files: Mapping[str, tarfile.TarInfo], sealed: Path
) -> tarfile.TarInfo:
    """The member with its owner, if it is a file or folder inside the archive's root.

    Links are not restored, since later files could be written through them. Archives of earlier
    versions contain links: one to a file of the archive becomes that file.
    """
    content: tarfile.TarInfo | None = _file_or_folder(member)
    if member.issym():
        target = posixpath.join(posixpath.dirname(member.name), member.linkname)
        content = files.get(posixpath.normpath(target))
    parts = member.name.split("/")
    is_within = ".." not in parts and parts[0] and len(member.name.encode()) <= _LONGEST_NAME
    if content is None or not is_within:
        raise BackupUnusable(
            f"{sealed}: {visible(member.name[:60])} is not a file or folder in it; {_REMEDY}"
        )
    info = copy(content)
    info.name, info.mode, info.uname, info.gname = member.name, content.mode & _MODE, "", ""
    return info


FILES: Final = ("shuffler.rdb", "aggregator.rdb", "installation.age")
_NAME: Final = "manifest.json"
PARTS: Final = (*FILES, _NAME)
_FORMAT: Final = 1


def write_manifest(folder: Path) -> None:
    """Writes the list of parts, last of all: a backup without it is incomplete."""
    created_at = datetime.fromtimestamp(int(time.time()), UTC).isoformat()
    parts = {
        name: {"bytes": (folder / name).stat().st_size, "sha256": _digest(folder / name)}
        for name in FILES
    }
    body = {"format": _FORMAT, "hubbub": version("hubbub"), "made": created_at, "files": parts}
    text = json.dumps(body | {"sha256": checksum(body)}, indent=2)
    (folder / _NAME).write_text(text + "\n", encoding="utf-8")


def read_checked(folder: Path) -> dict[str, Any]:
    """Reads a backup's manifest, and checks that all its parts are unchanged.

    It has the version of `hubbub`, and when it was `made`, in ISO 8601 and UTC. Raises
    BackupUnusable if a part is missing, damaged, or of a format that is not known.
    """
    path = folder / _NAME
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BackupUnusable(
            f"{path}: {error.strerror}; an unfinished backup lacks it: make the backup again"
            if folder.is_dir()
            else f"{folder}: is not a folder; give that of a backup"
        ) from error
    except ValueError:
        raise _broken_error(path, "is damaged") from None
    if not isinstance(body, dict):
        raise _broken_error(path, "is damaged")
    if body.get("format") != _FORMAT:
        raise BackupUnusable(
            f"{folder}: its format is newer than this version; use the version of hubbub "
            "that made it, or newer"
        )
    digest = body.pop("sha256", None)
    if digest != checksum(body):
        raise _broken_error(path, "is damaged")
    files: Mapping[str, Mapping[str, Any]] = body["files"]
    for name in FILES:
        path = folder / name
        if not path.is_file():
            raise _broken_error(path, "is missing")
        size = path.stat().st_size
        if size != files[name]["bytes"]:
            written = files[name]["bytes"]
            raise _broken_error(path, f"has {size:,} bytes, but {written:,} were written")
        if _digest(path) != files[name]["sha256"]:
            raise _broken_error(path, "is damaged")
    return body


def _broken_error(path: Path, problem: str) -> BackupUnusable:
    return BackupUnusable(f"{path}: {problem}; use another copy of this backup")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
