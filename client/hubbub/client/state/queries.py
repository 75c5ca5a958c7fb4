"""What the state's tables say of payloads, inside a transaction that the caller holds.

A row that cannot be what hubbub wrote is left out, and what waited in it is given up: the others
have nothing to do with it.
"""

import secrets
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from hubbub.client.cover import NOTHING, Held
from hubbub.client.state.contract import (
    DAMAGED,
    DISABLED,
    HISTORY,
    SENT,
    Bounds,
    Dropped,
    OutboxEntry,
    OutboxReport,
    PayloadRecord,
    excess,
)
from hubbub.client.state.device_state import Event

Rows = sqlite3.Connection

_MAX_WHOLE: Final = 1 << 32  # epochs and key ids on the wire
_MAX_SEALED_BYTES: Final = 64 << 20  # what a whole batch may be
_MAX_SECONDS: Final = 2.5e11  # the year 9892: what datetime still knows
_LONGEST_TEXT: Final = 255


def meta(rows: Rows, name: str) -> Any:
    """One of the single facts; None if it is not there."""
    row = rows.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return row[0] if row else None


def read_facts(rows: Rows) -> dict[str, Any]:
    """All single facts, by name."""
    return dict(rows.execute("SELECT name, value FROM meta"))


def set_meta(rows: Rows, **facts: Any) -> None:
    """Keep single facts."""
    rows.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", facts.items())


def done(rows: Rows, journal: str) -> int:
    """The number of the last payload of a process that was entered."""
    row = rows.execute("SELECT done FROM journals WHERE name = ?", (journal,)).fetchone()
    return row[0] if row and type(row[0]) is int else 0


def bury(rows: Rows, journal: str) -> None:
    """A process that ended has no more to enter, and sends nothing of what it took."""
    rows.execute("DELETE FROM journals WHERE name = ?", (journal,))
    rows.execute("UPDATE reports SET claimed = NULL WHERE claimer = ?", (journal,))


def count(rows: Rows, names: Iterable[str]) -> None:
    """Count what was given up, or what befell the state."""
    _change(rows, Counter(names))


def count_own(rows: Rows, counts: Mapping[str, int]) -> None:
    """Keep what local mode counted; of too many values the most frequent."""
    _change(rows, Counter(counts))
    rows.execute(
        "DELETE FROM counts WHERE name IN (SELECT name FROM counts WHERE instr(name, ': ')"
        " ORDER BY number DESC LIMIT -1 OFFSET ?)",
        (HISTORY,),
    )


def count_events(
    rows: Rows, counts: Mapping[Event, int], settled: Iterable[tuple[str, int]]
) -> None:
    """Add events, and forget those of metrics in epochs that are settled."""
    rows.executemany(
        "INSERT INTO events VALUES (?, ?, ?, ?)"
        " ON CONFLICT (metric, epoch, event) DO UPDATE SET number = number + excluded.number",
        [(*event, number) for event, number in counts.items()],
    )
    rows.executemany("DELETE FROM events WHERE metric = ? AND epoch = ?", [*settled])


def events(rows: Rows) -> dict[Event, int]:
    """How often each event happened that is remembered."""
    return {
        (metric, epoch, event): number
        for metric, epoch, event, number in rows.execute("SELECT * FROM events")
        if isinstance(metric, str)
        and type(epoch) is int
        and 0 <= epoch < _MAX_WHOLE
        and isinstance(event, str)
        and type(number) is int
        and number > 0
    }


def insert(rows: Rows, entries: Iterable[OutboxEntry]) -> None:
    """Let reports wait to be sent."""
    rows.executemany(
        "INSERT INTO reports (stream, epoch, key_id, payload, sealed, late, made)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (d.stream, d.epoch, e.key_id, d.payload, e.sealed, e.late, d.made)
            for e in entries
            for d in (e.drawn,)
        ],
    )


def purged_in_flight(rows: Rows, now: float, claim_seconds: float) -> int:
    """How many reports were purged while a process had them in its hands, and may have still."""
    row = rows.execute(
        "SELECT count(*) FROM reports WHERE fate = ? AND abs(? - claimed) < ?",
        (DISABLED, now, claim_seconds),
    ).fetchone()
    return int(row[0])


def record_results(rows: Rows, fates: Mapping[int, str]) -> None:
    """Give reports that wait their fate.

    Those that have one keep it; but what was purged while it was on its way, and arrived, is told
    as sent.
    """
    changes: Counter[str] = Counter()
    for id_, fate in fates.items():
        row = rows.execute("SELECT fate FROM reports WHERE id = ?", (id_,)).fetchone()
        if row and (row[0] is None or (row[0] == DISABLED and fate == SENT)):
            rows.execute("UPDATE reports SET fate = ?, sealed = NULL WHERE id = ?", (fate, id_))
            changes[fate] += 1
            changes[row[0] or fate] -= bool(row[0])
    del changes[SENT]
    _change(rows, changes)


def waiting(rows: Rows, exclusions: Held = NOTHING) -> int:
    """How many reports wait to be sent, but for what is held."""
    free, arguments = _free(exclusions)
    row = rows.execute(
        f"SELECT count(*) FROM reports WHERE fate IS NULL{free}",  # noqa: S608 our own words
        arguments,
    ).fetchone()
    return int(row[0])


def purge(rows: Rows, fate: str) -> list[Dropped]:
    """Give up everything that waits, and forget the events of which there is no report yet."""
    rows.execute("DELETE FROM events")
    reports = rows.execute("SELECT id, stream FROM reports WHERE fate IS NULL").fetchall()
    record_results(rows, dict.fromkeys((id_ for id_, _ in reports), fate))
    return [Dropped(_text(stream), fate) for _, stream in reports]


def give_up_late(rows: Rows, now: float) -> list[Dropped]:
    """Give up what the shuffler takes no more."""
    late = rows.execute(
        "SELECT id, stream FROM reports WHERE fate IS NULL AND late <= ?", (now,)
    ).fetchall()
    record_results(rows, dict.fromkeys((id_ for id_, _ in late), "expired"))
    return [Dropped(_text(stream), "expired") for _, stream in late]


def draw(
    rows: Rows, most: int, now: float, claim_seconds: float, exclusions: Held = NOTHING
) -> tuple[list[OutboxReport], list[Dropped]]:
    """Reports that wait and nobody has claimed, in random order; and those that never can go."""
    # A claim of the future is one of a clock that has been set back since.
    clause, arguments = _free(exclusions)
    words = (
        "SELECT id FROM reports WHERE fate IS NULL AND (claimed IS NULL OR abs(? - claimed) > ?)"
    )
    free = rows.execute(words + clause, (now, claim_seconds, *arguments)).fetchall()
    drawn = secrets.SystemRandom().sample(free, min(most, len(free)))
    reports = [_waiting(rows, id_) for (id_,) in drawn]
    return (
        [report for report in reports if isinstance(report, OutboxReport)],
        [report for report in reports if isinstance(report, Dropped)],
    )


def overflow(rows: Rows, bounds: Bounds) -> list[Dropped]:
    """Give up the oldest of too many that wait; but not what is on its way at this moment."""
    reports = rows.execute(
        "SELECT id, stream, length(sealed) FROM reports"
        " WHERE fate IS NULL AND claimed IS NULL ORDER BY id"
    ).fetchall()
    gone = reports[: excess([size or 0 for _, _, size in reports], bounds)]
    rows.executemany(
        "UPDATE reports SET fate = 'outbox_full', sealed = NULL WHERE id = ?",
        [(id_,) for id_, _, _ in gone],
    )
    return [Dropped(_text(stream), "outbox_full") for _, stream, _ in gone]


def payload_records(rows: Rows) -> list[PayloadRecord]:
    """The payloads of the past that are still remembered, oldest first."""
    records = rows.execute("SELECT stream, epoch, payload, made, fate FROM reports ORDER BY id")
    return [
        PayloadRecord(stream=stream, epoch=epoch, payload=payload, made=created_at, fate=fate or "")
        for stream, epoch, payload, created_at, fate in records
        if _text(stream) == stream
        and type(epoch) is int
        and isinstance(payload, bytes)
        and isinstance(created_at, float)
        and 0 <= created_at < _MAX_SECONDS
        and (fate is None or _text(fate) == fate)
    ]


def prune(rows: Rows) -> None:
    """Of payloads that have met their fate, remember the last."""
    rows.execute(
        "DELETE FROM reports WHERE fate IS NOT NULL AND id <= (SELECT id FROM reports"
        " WHERE fate IS NOT NULL ORDER BY id DESC LIMIT 1 OFFSET ?)",
        (HISTORY,),
    )


def _change(rows: Rows, counts: Mapping[str, int]) -> None:
    rows.executemany(
        "INSERT INTO counts VALUES (?, ?)"
        " ON CONFLICT (name) DO UPDATE SET number = number + excluded.number",
        list(counts.items()),
    )


def _waiting(rows: Rows, id_: int) -> OutboxReport | Dropped:
    stream, epoch, key_id, sealed, late = rows.execute(
        "SELECT stream, epoch, key_id, sealed, late FROM reports WHERE id = ?", (id_,)
    ).fetchone()
    if (
        _text(stream) == stream
        and all(type(number) is int and 0 <= number < _MAX_WHOLE for number in (epoch, key_id))
        and isinstance(sealed, bytes)
        and 0 < len(sealed) <= _MAX_SEALED_BYTES
        and isinstance(late, float)
    ):
        return OutboxReport(id=id_, stream=stream, epoch=epoch, key_id=key_id, sealed=sealed)
    record_results(rows, {id_: DAMAGED})
    return Dropped(_text(stream), DAMAGED)


def _free(exclusions: Held) -> tuple[str, list[Any]]:
    """The words of SQL, with what they take, for what is not held."""
    return (
        " AND NOT (stream = ? AND epoch BETWEEN ? AND ?)" * len(exclusions),
        [value for part in exclusions for value in part],
    )


def _text(thing: Any) -> str:
    """A stream or a fate; "?" for what is none."""
    good = isinstance(thing, str) and thing.isprintable() and 0 < len(thing) <= _LONGEST_TEXT
    return thing if good else "?"
