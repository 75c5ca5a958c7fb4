"""FolderState: a device's state in a folder of its user, shared by all processes of the app.

One SQLite file holds the secret, the ledger and the outbox. Beside it lies a journal per process;
outside the folder lies a witness of what was spent and of the person's decisions.
"""

import contextlib
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hubbub.catalog import Metric
from hubbub.client.epochs_to_cover import NOTHING, WaitingEpochs
from hubbub.client.files import resolved_folder
from hubbub.client.state import ledger_tables, payload_queries
from hubbub.client.state.consent import is_on, turned
from hubbub.client.state.contract import (
    DISABLED,
    OPERATOR_CHANGED,
    UNSTORED,
    Bounds,
    Dropped,
    OutboxEntry,
    OutboxReport,
    PayloadRecord,
    PendingPayload,
    Result,
    admit,
    fitting,
    settled_by,
)
from hubbub.client.state.database import FILE_NAME, Damaged, Database
from hubbub.client.state.device_state import DeviceState, Event
from hubbub.client.state.payload_journal import Notes, orphans
from hubbub.client.state.payload_queries import Rows
from hubbub.client.state.rollback_check import Watch
from hubbub.errors import StateUnusable

if TYPE_CHECKING:
    from hubbub.client.state.token_wallet import Wallet

# After this time other processes send reports that a killed process had claimed.
_CLAIM_SECONDS: Final = 60.0
# After so many reports of persons the outbox is searched for too many: it takes milliseconds.
_TIDY_REPORTS: Final = 64


class FolderState:
    """As the State protocol defines. Raises StateUnusable if the folder cannot be used."""

    def __init__(
        self,
        folder: Path,
        bounds: Bounds | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder = folder = resolved_folder(folder)
        self._bounds = bounds or Bounds()
        self._operators: float = inf  # number of changes of operator when `remember` was called
        self._watch = Watch(folder, clock)
        self._database = Database(folder / FILE_NAME, self._watch.alone)
        try:
            with contextlib.suppress(Damaged):
                self.device_state()
            self.device_state()
        except BaseException:
            self._database.close()
            raise
        self._notes = Notes(folder, self._bounds.reports)
        self.has_room, self.note = self._notes.has_room, self._notes.note
        lock = self._database.lock  # a fork waits until no thread is inside SQLite
        self.before_fork, self.after_fork_in_parent = lock.before_fork, lock.after_fork_in_parent

    def remember(self, operator: bytes, signed: bytes = b"") -> None:
        """Stores the operator and bundle that use this state, for readers of the folder."""
        with self._transaction() as rows:
            self._operators = _operators(rows)
            if payload_queries.meta(rows, "operator") != operator:
                payload_queries.set_meta(rows, operator=operator)
            if payload_queries.meta(rows, "bundle") != (packed := zlib.compress(signed)):
                payload_queries.set_meta(rows, bundle=packed)

    def inherit(self, former: DeviceState) -> None:
        """Merges decisions and spending under another operator: the stricter of both holds."""
        self._decide(lambda rows: ledger_tables.inherit(rows, former), careful=True)

    def part(self) -> None:
        """Discards what waits for the former operator: another one uses this state from now on."""
        self._decide(ledger_tables.part, careful=True)
        with self._transaction() as rows:
            self._operators = _operators(rows)

    def device_state(self) -> DeviceState:
        with self._transaction() as rows:
            return self._device_state(rows)

    def _device_state(self, rows: Rows) -> DeviceState:
        """Returns the device's state. PRIVACY: it sends nothing once another operator uses it."""
        device = ledger_tables.device_state(rows)
        device.may_send = _operators(rows) <= self._operators
        return device

    def enter(
        self, entries: Sequence[OutboxEntry], lost: Sequence[Dropped], upto: int, owner: str = ""
    ) -> tuple[list[Dropped], DeviceState]:
        name = owner or self._notes.owner
        with self._transaction(durable=True) as rows:
            device, done = self._device_state(rows), payload_queries.entry_number(rows, name)
            new_entries = [entry for entry in entries if entry.number > done]
            if not device.may_send:
                lost = [*lost, *(Dropped(e.drawn.stream, OPERATOR_CHANGED) for e in new_entries)]
                new_entries = []
            admissions, refused = admit(new_entries, device)
            payload_queries.insert(rows, admissions)
            payload_queries.count_events(rows, {}, settled := settled_by(new_entries, device))
            device.settle(settled)
            ledger_tables.save(
                rows, {entry.metric.base_name: device.account(entry.metric) for entry in admissions}
            )
            dropped = [*lost, *refused, *payload_queries.overflow(rows, self._bounds)]
            payload_queries.count(rows, (report.reason for report in dropped))
            device.counts.update(report.reason for report in dropped)
            payload_queries.prune(rows)
            rows.execute("INSERT OR REPLACE INTO journals VALUES (?, ?)", (name, upto))
        if not owner:
            self._notes.mark_entered(upto)
        return [*self._watch.given_up(), *dropped], device

    def adopt(self, entries: Sequence[OutboxEntry]) -> list[Dropped]:
        with self._transaction() as rows:
            is_theirs = _operators(rows) > self._operators
            if is_theirs or not is_on(int(payload_queries.meta(rows, "generation"))):
                reason = OPERATOR_CHANGED if is_theirs else DISABLED
                dropped = [Dropped(entry.drawn.stream, reason) for entry in entries]
            else:
                for entry in entries:
                    payload_queries.insert(rows, [entry])
                    last = rows.execute(  # whose the report is, until it has left
                        "INSERT INTO persons VALUES (last_insert_rowid(), ?, ?)",
                        (entry.person, entry.drawn.generation),
                    ).lastrowid
                if (last or 0) % _TIDY_REPORTS >= len(entries):
                    return []
                dropped = payload_queries.overflow(rows, self._bounds)
            payload_queries.count(rows, (report.reason for report in dropped))
            payload_queries.prune(rows)
        return dropped

    def orphans(self) -> Iterator[tuple[str, list[tuple[int, PendingPayload]]]]:
        for path, records in orphans(self._folder):
            with self._transaction() as rows:
                done = payload_queries.entry_number(rows, path.name)
            new_records = [(number, drawn) for number, drawn in records if number > done]
            if new_records:
                yield path.name, new_records
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise StateUnusable(f"{path}: {error.strerror}; delete it") from error
            with self._transaction() as rows:
                # The entries of the ended process are complete, and its claims are free.
                rows.execute("DELETE FROM journals WHERE name = ?", (path.name,))
                rows.execute("UPDATE reports SET claimed = NULL WHERE claimer = ?", (path.name,))

    def note_run(self, running: Sequence[tuple[Metric, int]]) -> None:
        with self._transaction(durable=True) as rows:
            device = ledger_tables.device_state(rows)
            for metric, epoch in running:
                device.account(metric).note_run(epoch)
            ledger_tables.save(rows, {m.base_name: device.account(m) for m, _ in running})

    def take(
        self, most: int, max_bytes: int, now: float, exclusions: WaitingEpochs = NOTHING
    ) -> tuple[list[OutboxReport], list[Dropped]]:
        with self._transaction() as rows:
            if _operators(rows) > self._operators:
                return [], self._watch.given_up()
            dropped = payload_queries.purge(rows, "expired", now)
            drawn, damaged = payload_queries.draw(rows, most, now, _CLAIM_SECONDS, exclusions)
            dropped += damaged
            reports = fitting(drawn, max_bytes)
            rows.executemany(
                "UPDATE reports SET claimed = ?, claimer = ? WHERE id = ?",
                [(now, self._notes.owner, r.id) for r in reports],
            )
            if reports:
                self._watch.bear(rows)
        return reports, [*self._watch.given_up(), *dropped]

    def record_results(self, fates: Mapping[int, str]) -> int:
        with self._transaction() as rows:
            payload_queries.record_results(rows, fates)
            return payload_queries.waiting(rows)

    def release(self, ids: Iterable[int]) -> None:
        with self._transaction() as rows:
            rows.executemany(
                "UPDATE reports SET claimed = NULL WHERE id = ?",
                [(id_,) for id_ in ids],
            )

    def purged_in_flight(self, now: float) -> int:
        with self._transaction() as rows:
            return payload_queries.purged_in_flight(rows, now, _CLAIM_SECONDS)

    def waiting(self, exclusions: WaitingEpochs = NOTHING) -> int:
        with self._transaction() as rows:
            return payload_queries.waiting(rows, exclusions)

    def payload_records(self) -> list[PayloadRecord]:
        with self._transaction() as rows:
            return payload_queries.payload_records(rows)

    def consent(self, *, on: bool, forget: bool, now: float) -> list[Dropped]:
        purged: list[Dropped] = []

        def change(rows: Rows) -> None:
            ledger_tables.commit(
                rows, generation=turned(ledger_tables.device_state(rows).consent.generation, on=on)
            )
            if not on:
                purged[:] = payload_queries.purge(rows, DISABLED)
            if forget:
                ledger_tables.forget(rows, now)

        self._decide(change, careful=not on)
        if forget:
            self._database.scrub()
            try:
                self._notes.wipe()
                self._watch.forget()
            except OSError as error:
                raise StateUnusable(f"{self._folder}: {error.strerror}; delete it") from error
        return purged

    def prefer(self, epsilon: float, max_local: float) -> None:
        now = self.device_state().consent
        careful = epsilon <= now.preference and max_local <= now.local
        preferences = {"preference": epsilon, "max_local": max_local}
        self._decide(lambda rows: ledger_tables.commit(rows, **preferences), careful=careful)

    def keep_notice(self, notice: bytes, follows: Callable[[bytes], bool]) -> None:
        with self._transaction() as rows:
            if follows(ledger_tables.notice(payload_queries.read_facts(rows))):
                payload_queries.set_meta(rows, notice=notice)

    def count(self, counts: Mapping[str, int]) -> None:
        with self._transaction() as rows:
            payload_queries.count_own(rows, counts)

    def count_events(
        self, events: Mapping[Event, int], settled: Iterable[tuple[str, int]], generation: int
    ) -> DeviceState:
        with self._transaction() as rows:
            if payload_queries.meta(rows, "generation") == generation:
                payload_queries.count_events(rows, events, settled)
            return self._device_state(rows)

    def wallet(self, change: "Callable[[Wallet], Result]") -> Result:
        from hubbub.client.state.token_wallet import Wallet  # noqa: PLC0415 of bundles with tokens

        with self._transaction(durable=True) as rows:
            old_data = payload_queries.meta(rows, "tokens")
            wallet = Wallet.load(old_data)
            result = change(wallet)
            if (data := wallet.data()) != old_data:
                payload_queries.set_meta(rows, tokens=data)
            return result

    def unstored(self, drawn: Sequence[tuple[int, PendingPayload]]) -> list[Dropped]:
        return [
            Dropped(report.stream, UNSTORED)
            for number, report in drawn
            if not self._notes.outlives(number)
        ]

    def close(self) -> None:
        self._notes.close()
        self._database.close()

    def after_fork_in_child(self) -> None:
        """Gives a child its own journal and connection to the same file."""
        self._notes.after_fork_in_child()
        self._database.after_fork_in_child()

    def _decide(self, change: Callable[[Rows], None], *, careful: bool) -> None:
        """Stores a decision of the person in both places.

        `careful` writes the witness first, so that no crash in between undoes the decision;
        otherwise last, so that a decision that cannot be stored here is not in the witness either.
        """
        try:
            self._keep(change, careful=careful)
        except Damaged:
            self._keep(change, careful=careful)  # with a new file: the damaged one was renamed
        with self._transaction() as rows:
            self._watch.bear(rows)

    def _keep(self, change: Callable[[Rows], None], *, careful: bool) -> None:
        with self._transaction(durable=True) as rows:
            change(rows)
            if careful:
                with contextlib.suppress(StateUnusable):  # the next transaction tries again
                    self._watch.bear(rows)

    @contextlib.contextmanager
    def _transaction(self, *, durable: bool = False) -> Iterator[Rows]:
        """Opens a transaction. PRIVACY: the watch checks the file before anything in it is used."""
        try:
            with self._database.transaction(durable=durable) as rows:
                before = rows.total_changes
                self._watch.look(rows, damaged_files=self._database.damaged_files)
                yield rows
                if rows.total_changes != before:
                    ledger_tables.update_checksum(rows)
        except Damaged as error:
            self._watch.salvaged = error.consent or self._watch.salvaged
            raise
        self._database.damaged_files = 0


def _operators(rows: Rows) -> int:
    """Returns how often the operator has changed; 0 in a state of version 0.2 or earlier."""
    return int(payload_queries.meta(rows, "operators") or 0)
