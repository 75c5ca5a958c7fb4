"""SQL on the payloads of a state, inside a transaction of the caller.

A row that hubbub cannot have written is skipped, and a report in it is discarded.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from hubbub.client.epochs_to_cover import NOTHING, WaitingEpochs
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
    in_random_order,
)
from hubbub.client.state.device_state import Event

Rows = sqlite3.Connection

_MAX_WHOLE: Final = 1 << 32  # epochs and key ids on the wire
_MAX_SEALED_BYTES: Final = 64 << 20  # largest size of a whole batch
_MAX_SECONDS: Final = 2.5e11  # the year 9892, within the range of datetime
_LONGEST_TEXT: Final = 255


def meta(rows: Rows, name: str) -> Any:
    """Returns one single fact; None if it is missing."""
    row = rows.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return row[0] if row else None


def read_facts(rows: Rows) -> dict[str, Any]:
    """Returns all single facts, by name."""
    return dict(rows.execute("SELECT name, value FROM meta"))


def set_meta(rows: Rows, **facts: Any) -> None:
    """Stores single facts."""
    rows.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", facts.items())


def entry_number(rows: Rows, journal: str) -> int:
    """Returns the number of the last entered payload of a process."""
    row = rows.execute("SELECT done FROM journals WHERE name = ?", (journal,)).fetchone()
    return row[0] if row and type(row[0]) is int else 0


def count(rows: Rows, names: Iterable[str]) -> None:
    """Counts discarded payloads and events of the state."""
    _change(rows, Counter(names))


def count_own(rows: Rows, counts: Mapping[str, int]) -> None:
    """Adds counts of local mode; of too many values the most frequent stay."""
    _change(rows, Counter(counts))
    rows.execute(
        "DELETE FROM counts WHERE name IN (SELECT name FROM counts WHERE instr(name, ': ')"
        " ORDER BY number DESC LIMIT -1 OFFSET ?)",
        (HISTORY,),
    )


def count_events(
    rows: Rows, counts: Mapping[Event, int], settled: Iterable[tuple[str, int]]
) -> None:
    """Adds events, and deletes those of settled metrics and epochs."""
    rows.executemany(
        "INSERT INTO events VALUES (?, ?, ?, ?)"
        " ON CONFLICT (metric, epoch, event) DO UPDATE SET number = number + excluded.number",
        [(*event, number) for event, number in counts.items()],
    )
    rows.executemany("DELETE FROM events WHERE metric = ? AND epoch = ?", [*settled])


def events(rows: Rows) -> dict[Event, int]:
    """Returns the number of occurrences of each stored event."""
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
    """Adds reports to the outbox."""
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
    """Returns the number of purged reports that a process may be sending now."""
    row = rows.execute(
        "SELECT count(*) FROM reports WHERE fate = ? AND abs(? - claimed) < ?",
        (DISABLED, now, claim_seconds),
    ).fetchone()
    return int(row[0])


def record_results(rows: Rows, fates: Mapping[int, str]) -> None:
    """Records the first fates of reports; only a purged report that arrived becomes "sent"."""
    changes: Counter[str] = Counter()
    for id_, fate in fates.items():
        row = rows.execute("SELECT fate FROM reports WHERE id = ?", (id_,)).fetchone()
        if row and (row[0] is None or (row[0] == DISABLED and fate == SENT)):
            rows.execute("UPDATE reports SET fate = ?, sealed = NULL WHERE id = ?", (fate, id_))
            rows.execute("DELETE FROM persons WHERE report = ?", (id_,))
            changes[fate] += 1
            changes[row[0] or fate] -= bool(row[0])
    del changes[SENT]
    _change(rows, changes)


def waiting(rows: Rows, exclusions: WaitingEpochs = NOTHING) -> int:
    """Returns the number of reports that wait, without those held back."""
    free, arguments = _exclusion_condition(exclusions)
    row = rows.execute(
        f"SELECT count(*) FROM reports WHERE fate IS NULL{free}",  # noqa: S608 our own words
        arguments,
    ).fetchone()
    return int(row[0])


def purge(rows: Rows, fate: str, late: float | None = None) -> list[Dropped]:
    """Discards waiting reports: those late at a moment, or all, with events not reported yet."""
    if late is None:
        rows.execute("DELETE FROM events")
    reports = rows.execute(
        "SELECT id, stream FROM reports WHERE fate IS NULL AND (? IS NULL OR late <= ?)",
        (late, late),
    ).fetchall()
    record_results(rows, dict.fromkeys((id_ for id_, _ in reports), fate))
    return [Dropped(_text(stream), fate) for _, stream in reports]


def draw(
    rows: Rows, most: int, now: float, claim_seconds: float, exclusions: WaitingEpochs = NOTHING
) -> tuple[list[OutboxReport], list[Dropped]]:
    """Returns unclaimed waiting reports, in random order; and damaged ones, which are discarded."""
    # abs(): the clock may have been set back since the claim.
    clause, arguments = _exclusion_condition(exclusions)
    words = (
        "SELECT id FROM reports WHERE fate IS NULL AND (claimed IS NULL OR abs(? - claimed) > ?)"
    )
    free = rows.execute(words + clause, (now, claim_seconds, *arguments)).fetchall()
    reports = [_outbox_report(rows, id_) for (id_,) in in_random_order(free)[:most]]
    return (
        [report for report in reports if isinstance(report, OutboxReport)],
        [report for report in reports if isinstance(report, Dropped)],
    )


def overflow(rows: Rows, bounds: Bounds) -> list[Dropped]:
    """Discards the oldest of too many waiting reports, without those being sent now."""
    reports = rows.execute(
        "SELECT id, stream, length(sealed) FROM reports"
        " WHERE fate IS NULL AND claimed IS NULL ORDER BY id"
    ).fetchall()
    gone = reports[: excess([size or 0 for _, _, size in reports], bounds)]
    ids = [(id_,) for id_, _, _ in gone]
    rows.executemany("UPDATE reports SET fate = 'outbox_full', sealed = NULL WHERE id = ?", ids)
    rows.executemany("DELETE FROM persons WHERE report = ?", ids)
    return [Dropped(_text(stream), "outbox_full") for _, stream, _ in gone]


def payload_records(rows: Rows) -> list[PayloadRecord]:
    """Returns the records of past payloads that are still stored, oldest first."""
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
    """Deletes all but the last records of payloads with a fate."""
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


def _outbox_report(rows: Rows, id_: int) -> OutboxReport | Dropped:
    stream, epoch, key_id, sealed, late, person, generation = rows.execute(
        "SELECT stream, epoch, key_id, sealed, late, person, generation FROM reports"
        " LEFT JOIN persons ON report = id WHERE id = ?",
        (id_,),
    ).fetchone()
    if (
        _text(stream) == stream
        and all(type(number) is int and 0 <= number < _MAX_WHOLE for number in (epoch, key_id))
        and isinstance(sealed, bytes)
        and 0 < len(sealed) <= _MAX_SEALED_BYTES
        and isinstance(late, float)
        and isinstance(person, bytes | None)
        and isinstance(generation, int | None)
    ):
        return OutboxReport(
            id=id_,
            stream=stream,
            epoch=epoch,
            key_id=key_id,
            sealed=sealed,
            person=person or b"",
            generation=generation or 0,
        )
    record_results(rows, {id_: DAMAGED})
    return Dropped(_text(stream), DAMAGED)


def _exclusion_condition(exclusions: WaitingEpochs) -> tuple[str, list[Any]]:
    """Returns a condition that leaves out what is held back, and its arguments."""
    return (
        " AND NOT (stream = ? AND epoch BETWEEN ? AND ?)" * len(exclusions),
        [value for part in exclusions for value in part],
    )


def _text(value: Any) -> str:
    """Returns a stream or a fate; "?" for anything else."""
    good = isinstance(value, str) and value.isprintable() and 0 < len(value) <= _LONGEST_TEXT
    return value if good else "?"
