"""FolderState: a device's state in a folder of its user, shared by all processes of the app.

One SQLite file holds the secret, the ledger and the outbox. Beside it a journal per process, and
outside the folder a witness of what was spent.
"""

import contextlib
import secrets
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from hubbub.client import tables
from hubbub.client.consent import turned
from hubbub.client.database import FILE_NAME, Database
from hubbub.client.journal import orphans
from hubbub.client.notes import Notes
from hubbub.client.state import (
    DISABLED,
    Bounds,
    Drawn,
    Dropped,
    Entry,
    Kept,
    Standing,
    Waiting,
    admit,
    fitting,
)
from hubbub.client.witness import Witness
from hubbub.errors import StateUnusable

__all__ = ["FolderState"]

# A process that took reports and was killed is waited for this long; then others send them.
_CLAIM_SECONDS: Final = 60.0
_HOLD_SECONDS: Final = 1.0


class FolderState:
    """As the State protocol says.

    Raises:
        StateUnusable: the folder or the file in it cannot be made, read or written.
    """

    def __init__(self, folder: Path, bounds: Bounds | None = None) -> None:
        self._folder = folder
        self._bounds = bounds or Bounds()
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise StateUnusable(f"{folder}: {error.strerror}; give a writable state_dir") from error
        self._database = Database(folder / FILE_NAME)
        self._witness = Witness.beside(folder)
        try:
            self._check()
        except BaseException:
            self._database.close()
            raise
        self._notes = Notes(folder, self._bounds.reports)

    def remember(self, operator: bytes, signed: bytes = b"") -> None:
        """Keep whose bundle uses this state now, and the bundle: who has the folder can read it."""
        with self._transaction() as rows:
            if tables.meta(rows, "operator") != operator:
                tables.set_meta(rows, operator=operator)
            if tables.meta(rows, "bundle") != (packed := zlib.compress(signed)):
                tables.set_meta(rows, bundle=packed)

    def inherit(self, former: Standing, now: float) -> None:
        """Take over what a person said and spent under another operator: the stricter of both."""
        with self._transaction(durable=True) as rows:
            tables.inherit(rows, former)
            self._bear_witness(rows)
        if not former.on:
            self.consent(on=False, forget=False, now=now)

    def part(self) -> None:
        """Another operator uses this state from now on: what waits for the former is given up."""
        with self._transaction(durable=True) as rows:
            tables.part(rows)

    def standing(self) -> Standing:
        """Where the device stands now, over all processes of the app."""
        with self._transaction() as rows:
            return tables.standing(rows)

    def has_room(self, size_bytes: int) -> bool:
        """Whether another payload of this size can be noted."""
        return self._notes.has_room(size_bytes)

    def note(self, drawn: Drawn) -> int:
        """Hold a payload in memory that outlives this process: its number."""
        return self._notes.add(drawn)

    def enter(
        self, entries: Sequence[Entry], lost: Sequence[Dropped], upto: int, owner: str = ""
    ) -> list[Dropped]:
        """Charge and keep payloads, whole or not at all; says which were given up."""
        name = owner or self._notes.owner
        with self._transaction(durable=True) as rows:
            standing, done = tables.standing(rows), tables.done(rows, name)
            kept, refused = admit([e for e in entries if e.number > done], standing)
            rows.executemany(
                "INSERT INTO reports (stream, epoch, key_id, payload, sealed, late, made)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    (d.stream, d.epoch, e.key_id, d.payload, e.sealed, e.late, d.made)
                    for e in kept
                    for d in (e.drawn,)
                ],
            )
            tables.save(rows, {e.metric.family: standing.account(e.metric) for e in kept})
            dropped = [*lost, *refused, *tables.overflow(rows, self._bounds)]
            tables.count(rows, (one.reason for one in dropped))
            tables.prune(rows)
            rows.execute("INSERT OR REPLACE INTO journals VALUES (?, ?)", (name, upto))
        if not owner:
            self._notes.entered(upto)
        return dropped

    def orphans(self) -> Iterator[tuple[str, list[tuple[int, Drawn]]]]:
        """What processes that were killed had noted and not entered."""
        for path, records in orphans(self._folder):
            with self._transaction() as rows:
                done = tables.done(rows, path.name)
            fresh = [(number, drawn) for number, drawn in records if number > done]
            if fresh:
                yield path.name, fresh
            path.unlink(missing_ok=True)
            with self._transaction() as rows:
                tables.bury(rows, path.name)

    def take(self, most: int, most_bytes: int, now: float) -> tuple[list[Waiting], list[Dropped]]:
        """Reports to send now, in random order, ours alone for a while; and those now too late."""
        with self._transaction() as rows:
            late = rows.execute(
                "SELECT id, stream FROM reports WHERE fate IS NULL AND late <= ?", (now,)
            ).fetchall()
            tables.settle(rows, dict.fromkeys((id_ for id_, _ in late), "expired"))
            # A claim of the future is one of a clock that has been set back since.
            free = rows.execute(
                "SELECT id FROM reports WHERE fate IS NULL"
                " AND (claimed IS NULL OR abs(? - claimed) > ?)",
                (now, _CLAIM_SECONDS),
            ).fetchall()
            drawn = secrets.SystemRandom().sample(free, min(most, len(free)))
            reports = [
                Waiting(
                    *rows.execute(
                        "SELECT id, stream, epoch, key_id, sealed FROM reports WHERE id = ?", id_
                    ).fetchone()
                )
                for id_ in drawn
            ]
            reports = fitting(reports, most_bytes)
            rows.executemany(
                "UPDATE reports SET claimed = ?, claimer = ? WHERE id = ?",
                [(now, self._notes.owner, r.id) for r in reports],
            )
            if reports:
                self._bear_witness(rows)
        return reports, [Dropped(stream, "expired") for _, stream in late]

    def settle(self, fates: Mapping[int, str]) -> None:
        """Reports that were taken have met their fate."""
        with self._transaction() as rows:
            tables.settle(rows, fates)

    def release(self, ids: Iterable[int]) -> None:
        """Reports that were taken could not be sent: others may try."""
        with self._transaction() as rows:
            rows.executemany(
                "UPDATE reports SET claimed = NULL WHERE id = ?",
                [(id_,) for id_ in ids],
            )

    def leaving(self, now: float) -> int:
        """How many reports that were purged are on their way at this moment, in any process."""
        with self._transaction() as rows:
            return tables.leaving(rows, now, _CLAIM_SECONDS)

    def waiting(self) -> int:
        """How many reports wait to be sent."""
        with self._transaction() as rows:
            found = rows.execute("SELECT count(*) FROM reports WHERE fate IS NULL").fetchone()
            return int(found[0])

    def kept(self) -> list[Kept]:
        """The payloads of the past that are still remembered, oldest first."""
        with self._transaction() as rows:
            return tables.kept(rows)

    def consent(self, *, on: bool, forget: bool, now: float) -> None:
        """Switch reporting. Off purges what waits; `forget` the secret and the ledger too."""
        with self._transaction(durable=True) as rows:
            tables.set_meta(rows, generation=turned(tables.meta(rows, "generation"), on=on))
            if not on:
                waiting = rows.execute("SELECT id FROM reports WHERE fate IS NULL").fetchall()
                tables.settle(rows, dict.fromkeys((id_ for (id_,) in waiting), DISABLED))
            if forget:
                tables.forget(rows, now)
                self._bear_witness(rows)
        if forget:
            self._database.scrub()
            self._notes.wipe()

    def prefer(self, epsilon: float) -> None:
        """Keep the most epsilon that the person allows a report."""
        with self._transaction(durable=True) as rows:
            tables.set_meta(rows, preference=epsilon)

    def close(self) -> None:
        """Let go; what waits stays for the next start."""
        self._notes.close()
        self._database.close()

    def hold(self) -> None:
        """Before a fork: nobody is inside SQLite now."""
        self._database.hold(_HOLD_SECONDS)

    def unhold(self) -> None:
        """After a fork, in the parent."""
        self._database.unhold()

    def abandon(self) -> None:
        """After a fork, in the child: a journal and a connection of its own, the same file."""
        self._notes.abandon()
        self._database.abandon()

    def _transaction(
        self, *, durable: bool = False
    ) -> contextlib.AbstractContextManager[sqlite3.Connection]:
        self._check()
        return self._database.transaction(durable=durable)

    def _check(self) -> None:
        """Look at a file that is new to us: name it, and ask the witness what became of the old."""
        if not self._database.is_new:
            return
        self._witness = Witness.beside(self._folder)
        elsewhere = Witness.elsewhere(self._folder)
        with self._database.transaction(durable=True) as rows:
            tables.start(rows)
            for witness in (self._witness, elsewhere):
                tables.notice(rows, witness)
            tables.count(rows, ["state_damaged"] * self._database.damaged)
            self._database.damaged = 0
            self._bear_witness(rows)
        with contextlib.suppress(OSError):
            elsewhere.remove()

    def _bear_witness(self, rows: sqlite3.Connection) -> None:
        name, commits = tables.meta(rows, "state"), tables.meta(rows, "commits")
        if (self._witness.state, self._witness.commits) != (name, commits):
            self._witness.write(name, commits, tables.standing(rows).accounts)
