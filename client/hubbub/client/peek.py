"""Looking at a state folder from outside: what left this device, without changing anything."""

import contextlib
import sqlite3
import time
import zlib
from pathlib import Path

from hubbub.catalog import open_bundle
from hubbub.client import facts, tables
from hubbub.client.database import FILE_NAME, as_text
from hubbub.client.ledger import FOREIGN
from hubbub.client.view import LedgerView, view
from hubbub.errors import BundleRefused, StateUnusable

__all__ = ["peek"]


def peek(folder: Path) -> LedgerView:
    """What the state in this folder says, in the words of the last bundle that used it.

    Raises:
        StateUnusable: there is no state, or it cannot be read.
    """
    path = folder / FILE_NAME
    remedy = "give the --state-dir of an app that has reported"
    if not path.exists():
        raise StateUnusable(f"{path}: there is none; {remedy}")
    try:
        uri = f"{path.absolute().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as rows:
            rows.text_factory = as_text
            rows.execute("BEGIN")
            packed = tables.meta(rows, "bundle")
            if packed is None:
                raise StateUnusable(f"{path}: no app has used it with a bundle; {remedy}")
            facts.check(rows)
            standing, kept = facts.standing(rows), tables.kept(rows)
        bundle = open_bundle(zlib.decompress(packed), str(path))
    except (sqlite3.Error, zlib.error, BundleRefused, *FOREIGN) as error:
        raise StateUnusable(f"{path}: cannot be read: {error}; {remedy}") from error
    return view(bundle, standing, kept, time.time())
