"""Watch: compares a state's file with its witnesses before its content is trusted."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from hubbub.client.files import refuse_other_than_file
from hubbub.client.lazy_log import warn
from hubbub.client.state import ledger_tables, payload_queries
from hubbub.client.state.consent import CONSENT_UNKNOWN, Consent, agreed, unknown
from hubbub.client.state.contract import PUT_BACK, Dropped
from hubbub.client.state.payload_journal import orphans
from hubbub.client.state.payload_queries import Rows
from hubbub.client.state.state_witness import LOCK_NAME, StateMoment, Witnesses, agree, is_continued


class Watch:
    """A process's checks of a state folder; `salvaged` is a damaged file's consent, if any."""

    def __init__(self, folder: Path, clock: Callable[[], float]) -> None:
        self._witnesses = Witnesses(folder)
        self._clock = clock
        self.salvaged: Consent | None = None
        self._first = True
        self._last_moment: StateMoment | None = None
        self._purged: list[Dropped] = []
        self._given_up: list[Dropped] = []

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Excludes all other processes, whatever replaces SQLite's files. Raises StateUnusable."""
        elsewhere = self._witnesses.elsewhere
        with self._witnesses.writable.alone(), elsewhere.alone(always=False):
            yield
            # Committed: the folder now holds what was only in the temporary witness.
            self._given_up += self._purged
            if self._first:
                # A trace in the folder that there was a state.
                path = self._witnesses.folder / LOCK_NAME
                with contextlib.suppress(OSError):
                    refuse_other_than_file(path)
                    if not path.stat().st_size:
                        path.write_bytes(b"There was a state here.\n")
            self.salvaged, self._first = None, False
            if self._last_moment and elsewhere.read() is self._last_moment:
                with contextlib.suppress(OSError):
                    elsewhere.remove()

    def look(self, rows: Rows, *, damaged_files: int) -> None:
        """Accepts the file, or merges the witness into it. Raises Damaged or StateUnusable."""
        self._purged, self._last_moment = [], self._witnesses.elsewhere.read()
        payload_queries.count(rows, ["state_damaged"] * damaged_files)
        chosen = self._witnesses.writable
        witness = chosen.read()
        payload_queries.count(rows, ["witness_damaged"] * chosen.is_damaged)
        if payload_queries.meta(rows, "secret") is None:  # nothing was stored yet
            changed = self._begin(rows, damaged_files=damaged_files)
        else:
            mine = ledger_tables.check(rows)
            changed = ledger_tables.bring_up(rows)
            if changed or not mine.head:
                mine = ledger_tables.state_moment(rows)
            changed = self._compare(rows, mine) or changed
        if changed or self._first or witness is None:
            self.bear(rows)
        elif witness.head and witness.head != payload_queries.meta(rows, "witnessed"):
            payload_queries.set_meta(rows, witnessed=witness.head)

    def bear(self, rows: Rows) -> None:
        """Records the file's version in the witness. Raises StateUnusable."""
        mine, witness = ledger_tables.state_moment(rows), self._witnesses.writable
        moment = witness.read()
        if moment is None or moment._replace(accounts={}, merged=()) != mine._replace(accounts={}):
            witness.write(mine)
            payload_queries.set_meta(rows, witnessed=mine.head)

    def given_up(self) -> list[Dropped]:
        """Returns, once, the reports that waited in a replaced file and were discarded."""
        given_up, self._given_up = self._given_up, []
        return given_up

    def forget(self) -> None:
        """Deletes records outside the file and its witness. Raises OSError."""
        for witness in (*self._witnesses.beside, self._witnesses.elsewhere):
            if witness is self._witnesses.writable:
                witness.forget_damaged()
            else:
                witness.remove()
        for path in self._witnesses.folder.glob("damaged.*"):
            path.unlink(missing_ok=True)
        for path, _ in orphans(self._witnesses.folder):
            path.unlink(missing_ok=True)

    def _begin(self, rows: Rows, *, damaged_files: int) -> bool:
        """Starts a file from its witnesses, or as a refusal if a state was lost without any."""
        moments = self._witnesses.read_all()
        ledger_tables.start(rows)
        mine = ledger_tables.state_moment(rows)
        if moments:
            mine = mine._replace(state=moments[-1].state)
        for moment in moments:
            mine = agree(mine, moment)
        if self.salvaged:
            mine = mine._replace(consent=agreed(_consent_of(mine), self.salvaged, ordered=False))
        lost = damaged_files or self._witnesses.damaged() or self._witnesses.traces()
        names = ["state_lost"] * bool(moments)
        if (moments or lost) and not any(moment.consent for moment in moments):
            mine = mine._replace(consent=unknown(_consent_of(mine), self._clock()))
            names.append(CONSENT_UNKNOWN)
            warn(
                "%s: a state was lost, and with it the person's opt-in or opt-out: reporting is "
                "off until enable()",
                self._witnesses.folder,
            )
        if names:
            ledger_tables.adopt(rows, mine)
            payload_queries.count(rows, names)
        return True

    def _compare(self, rows: Rows, mine: StateMoment) -> bool:
        """Merges what the file, at version `mine`, lacks; returns whether there was anything."""
        now = mine
        names = []
        put_back = False
        moments = [moment for witness in self._witnesses.beside if (moment := witness.read())]
        newest = max(moments, key=lambda moment: moment.commits, default=None)
        if newest and not is_continued(newest, mine, str(payload_queries.meta(rows, "witnessed"))):
            put_back = True
            names = ["state_rolled_back" if newest.state == mine.state else "state_lost"]
            now = agree(now, newest)
        if self._last_moment:
            names.append("state_lost")
            now = agree(now, self._last_moment)
        if self.salvaged:
            now = now._replace(consent=agreed(_consent_of(now), self.salvaged, ordered=False))
        if now != mine:
            ledger_tables.adopt(rows, now)
            payload_queries.count(rows, names)
        if put_back:
            self._purged = payload_queries.purge(rows, PUT_BACK)
        return now != mine


def _consent_of(moment: StateMoment) -> Consent:
    return moment.consent or Consent()
