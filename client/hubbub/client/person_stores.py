"""Stores of persons' records: the contract, the app's own database, and the app's own Redis."""

import contextlib
from collections.abc import Callable
from typing import Any, Final, Protocol

from hubbub.errors import BadParameter


class PersonStore(Protocol):
    """Where records are, by the keyed hash of a person. Both methods may raise anything."""

    def read(self, person: bytes) -> bytes | None:
        """The record of a person; None if there is none."""

    def replace(self, person: bytes, before: bytes | None, after: bytes) -> bool:
        """Store a record durably if it is still `before`; returns whether it was."""


class SQLStore:
    """Records in a table of the app's own database, over any driver of DB-API 2.0.

    The table has the columns `person` and `record`, of bytes (BLOB, BYTEA, VARBINARY); `person` is
    its primary key.

    Args:
        connect: opens a connection, or takes it from a pool; it is closed after each call.
        placeholder: of an argument in the driver's SQL: "?" or "%s".
        table: its name.
    """

    def __init__(
        self, connect: Callable[[], Any], *, placeholder: str = "?", table: str = "hubbub_persons"
    ) -> None:
        if placeholder not in {"?", "%s"} or not table.isidentifier():
            raise BadParameter('placeholder is not "?" or "%s", or table is not a plain name')
        if not callable(connect):
            raise BadParameter('"connect" is not a function; give one that opens a connection')
        self._connect = connect
        words = {
            "read": f"SELECT record FROM {table} WHERE person = ?",  # noqa: S608 a plain name
            "add": f"INSERT INTO {table} (person, record) VALUES (?, ?)",  # noqa: S608 as above
            "change": f"UPDATE {table} SET record = ? WHERE person = ? AND record = ?",  # noqa: S608 as above
        }
        self._words = {name: sql.replace("?", placeholder) for name, sql in words.items()}

    def read(self, person: bytes) -> bytes | None:
        """The record of a person; None if there is none."""
        with contextlib.closing(self._connect()) as connection:
            cursor = connection.cursor()
            cursor.execute(self._words["read"], (person,))
            row = cursor.fetchone()
            return bytes(row[0]) if row else None

    def replace(self, person: bytes, before: bytes | None, after: bytes) -> bool:
        """Store a record if it is still `before`; returns whether it was."""
        with contextlib.closing(self._connect()) as connection:
            cursor = connection.cursor()
            if before is not None:
                cursor.execute(self._words["change"], (after, person, before))
                connection.commit()
                return bool(cursor.rowcount)
            try:
                cursor.execute(self._words["add"], (person, after))
                connection.commit()
            except Exception:
                connection.rollback()
                if self.read(person) is None:
                    raise
                return False  # another process has added it meanwhile
            return True


class RedisStore:
    """Records in the app's own Redis, which must keep them: `appendfsync always`, no eviction.

    Args:
        redis: a client of redis-py, which returns bytes.
        prefix: of each key.
    """

    _REPLACE: Final = (
        "if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end "
        "redis.call('SET', KEYS[1], ARGV[2]) return 1"
    )

    def __init__(self, redis: Any, *, prefix: bytes = b"hubbub:person:") -> None:
        self._redis, self._prefix = redis, prefix

    def read(self, person: bytes) -> bytes | None:
        """The record of a person; None if there is none."""
        record = self._redis.get(self._prefix + person)
        return None if record is None else bytes(record)

    def replace(self, person: bytes, before: bytes | None, after: bytes) -> bool:
        """Store a record if it is still `before`; returns whether it was."""
        place = self._prefix + person
        return bool(self._redis.eval(self._REPLACE, 1, place, before or b"", after))
