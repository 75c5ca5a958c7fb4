"""Reads a state folder from outside, without changing it: what left this device."""

import contextlib
import sqlite3
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hubbub.bundles import Promise, open_bundle
from hubbub.client.files import refuse_other_than_file
from hubbub.client.ledger import FOREIGN
from hubbub.client.state import ledger_tables, payload_queries
from hubbub.client.state.database import AS_TEXT, FILE_NAME
from hubbub.client.trust import Vouched
from hubbub.errors import BundleRefused, StateUnusable

if TYPE_CHECKING:
    from hubbub.client.ledger_view import LedgerView


def peek(folder: Path) -> "LedgerView":
    """Returns the content of a state folder, with its last bundle's names. Raises StateUnusable."""
    from hubbub.client.ledger_view import view  # noqa: PLC0415 a starting app asks `read_vouched` alone

    path = folder / FILE_NAME
    remedy = "give the --state-dir of an app that has reported"
    with contextlib.suppress(OSError):  # as reading the file says
        if any(folder.glob("state.[0-9]*")):
            remedy = "a program in Node has the folder, and client.ledger() there shows it"
    with _open_for_reading(path, remedy) as rows:
        signed = _last_bundle(rows)
        if signed is None:
            raise StateUnusable(f"{path}: no app has used it with a bundle; {remedy}")
        ledger_tables.check(rows)
        device, payloads = ledger_tables.device_state(rows), payload_queries.payload_records(rows)
    try:
        return view(open_bundle(signed, str(path)), device, payloads, time.time())
    except BundleRefused as error:
        raise StateUnusable(f"{path}: cannot be read: {error}; {remedy}") from error


def state_folders(home: Path) -> list[Path]:
    """Returns this user's state folders, one per operator, in `home` (`startup.state_home()`)."""
    return sorted(path.parent for path in home.glob(f"*/{FILE_NAME}"))


def read_vouched(folder: Path) -> Vouched | None:
    """Returns the operator and promises recorded in a folder; None if they cannot be read."""
    path = folder / FILE_NAME
    try:
        with _open_for_reading(path, "") as rows:
            operator, signed = payload_queries.meta(rows, "operator"), _last_bundle(rows)
            names = {str(name) for (name,) in rows.execute("SELECT metric FROM ledger")}
    except StateUnusable:
        return None
    if not isinstance(operator, bytes):
        return None
    promises: dict[str, Promise] = {}
    with contextlib.suppress(BundleRefused):
        promises = open_bundle(signed or b"", str(path)).promises()
    return Vouched(folder.name, operator, frozenset(names | promises.keys()), promises)


def _last_bundle(rows: sqlite3.Connection) -> bytes | None:
    packed = payload_queries.meta(rows, "bundle")
    return None if packed is None else zlib.decompress(packed)


@contextlib.contextmanager
def _open_for_reading(path: Path, remedy: str) -> Iterator[sqlite3.Connection]:
    """Opens the file for reading. Raises StateUnusable for malformed content, too."""
    try:
        refuse_other_than_file(path)
        uri = f"{path.absolute().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as rows:
            rows.text_factory = AS_TEXT
            rows.execute("BEGIN")
            yield rows
    except (FileNotFoundError, NotADirectoryError) as error:
        raise StateUnusable(f"{path}: does not exist; {remedy}") from error
    except (OSError, sqlite3.Error, zlib.error, *FOREIGN) as error:
        raise StateUnusable(f"{path}: cannot be read: {error}; {remedy}") from error
