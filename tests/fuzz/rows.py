"""A device's database, row by row: as JSON, so that any of it can be something else."""

import json
import random
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from typing import Any

from tests.fuzz.devices import Base
from tests.fuzz.documents import varied

LONGEST_ROWS = 30_000
TABLES = {
    "meta": ("name", "value"),
    "ledger": ("metric", "account"),
    "counts": ("name", "number"),
    "journals": ("name", "done"),
    "reports": (
        "id",
        "stream",
        "epoch",
        "key_id",
        "payload",
        "sealed",
        "late",
        "made",
        "claimed",
        "claimer",
        "fate",
    ),
}


def tables_of(base: Base) -> dict[str, Any]:
    """What a base's database holds, as JSON."""
    with closing(_loaded(base.database)) as rows:
        return {
            table: [
                [_cell_to_json(cell) for cell in row]
                for row in rows.execute(f"SELECT {', '.join(columns)} FROM {table}")  # noqa: S608 ours
            ]
            for table, columns in TABLES.items()
        }


def _cell_to_json(cell: Any) -> Any:
    if isinstance(cell, bytes):
        return {"blob": cell.hex()}
    if isinstance(cell, str) and cell.startswith("{"):
        return {"json": json.loads(cell)}
    return cell


def _cell_from_json(cell: Any) -> Any:
    match cell:
        case {"blob": str(text)} | {"text": str(text)}:
            return bytes.fromhex(text)
        case {"json": document}:
            return json.dumps(document)
        case dict() | list():
            return json.dumps(cell)
        case bool():
            return int(cell)
        case int() if not -(1 << 63) <= cell < 1 << 63:
            return str(cell)
    return cell


def _place(cell: Any) -> str:
    """Text of any bytes, as damage leaves it, or the value itself."""
    return "CAST(? AS TEXT)" if isinstance(cell, dict) and "text" in cell else "?"


def rewritten(chance: random.Random, examples: Sequence[bytes]) -> bytes:
    """Other rows; sometimes with a text that is no UTF-8."""
    content = varied(chance, examples, LONGEST_ROWS)
    old = chance.choice((b"null", b'"blob"', b'"on"'))
    if chance.random() < 0.1 and old in content:
        parts = content.split(old)
        at = chance.randrange(1, len(parts))
        new = b'"text"' if old == b'"blob"' else b'{"text":"41ff80"}'
        content = old.join(parts[:at]) + new + old.join(parts[at:])
    return content


def _loaded(database: bytes) -> sqlite3.Connection:
    """In memory; its header says no longer that there is a log beside it."""
    rows = sqlite3.connect(":memory:", isolation_level=None)
    rows.deserialize(database[:18] + b"\1\1" + database[20:])
    return rows


def database_of(base: Base, tables: Mapping[str, Any]) -> bytes:
    """A base's database with other rows."""
    with closing(_loaded(base.database)) as rows:
        for table, columns in TABLES.items():
            table_rows = tables.get(table)
            if table_rows == _document_of(base).get(table) or not isinstance(table_rows, list):
                continue
            rows.execute(f"DELETE FROM {table}")  # noqa: S608 ours
            for row in table_rows:
                told_cells = [*row, *[None] * len(columns)] if isinstance(row, list) else [None]
                told_cells = told_cells[: len(columns)]
                cells = [_cell_from_json(cell) for cell in told_cells]
                places = ", ".join(map(_place, told_cells))
                with suppress(sqlite3.Error, UnicodeEncodeError):
                    rows.execute(
                        f"INSERT OR REPLACE INTO {table} VALUES ({places})",  # noqa: S608 ours
                        cells,
                    )
        return rows.serialize()


_DOCUMENTS: dict[bytes, dict[str, Any]] = {}


def _document_of(base: Base) -> dict[str, Any]:
    if base.database not in _DOCUMENTS:
        _DOCUMENTS[base.database] = tables_of(base)
    return _DOCUMENTS[base.database]


def has_turned(base: Base, database: bytes) -> bool:
    """Whether the database says plainly that the person has turned to something else since."""
    try:
        with closing(_loaded(database)) as rows:
            facts = dict(rows.execute("SELECT name, value FROM meta").fetchall())
            before = dict(_loaded(base.database).execute("SELECT name, value FROM meta").fetchall())
    except (sqlite3.Error, ValueError, OverflowError):
        return False
    later = facts.get("generation")
    preference = facts.get("preference")
    return (isinstance(later, int) and later > before["generation"]) or (
        isinstance(preference, (int, float)) and preference != before.get("preference")
    )
