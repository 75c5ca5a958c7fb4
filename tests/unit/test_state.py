"""What a device keeps: one suite for both keepers, then what only a folder can suffer."""

import contextlib
import errno
import math
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from hubbub.catalog import epoch_at
from hubbub.client import Bounds, FolderState, MemoryState, State
from hubbub.client.ledger import Account
from hubbub.client.state.consent import Consent
from hubbub.client.state.contract import SENT, Dropped, OutboxEntry, PendingPayload
from hubbub.client.state.payload_journal import Journal, orphans
from hubbub.client.state.state_witness import StateMoment, Witnesses
from hubbub.errors import StateUnusable
from tests.support.bundles import Signed
from tests.support.devices import state_in

NOW = 1_800_000_000.0
TODAY = epoch_at(NOW, "day")

Make = Callable[..., State]
EntryOf = Callable[..., OutboxEntry]


@pytest.fixture(params=["memory", "folder"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Opens the same device again and again."""
    opened: list[State] = []
    memory: dict[str, State] = {}

    def open_state(name: str = "state", bounds: Bounds | None = None) -> State:
        if request.param == "folder":
            state: State = FolderState(tmp_path / name, bounds)
        else:
            state = memory.setdefault(name, MemoryState(bounds=bounds))
        opened.append(state)
        return state

    yield open_state
    for state in opened:
        state.close()


@pytest.fixture
def entry_of(signed: Signed) -> EntryOf:
    def make_entry(
        stream: str = "crashed", epoch: int = 0, payload: bytes = b"\1", **changes: object
    ) -> OutboxEntry:
        tag = "t" * (stream == "homepage")  # of an unchanged value, which costs once
        fields = {"tag": tag, "generation": 0, "made": NOW, "late": math.inf} | changes
        late = float(str(fields.pop("late")))
        drawn = PendingPayload(stream=stream, epoch=epoch, payload=payload, **fields)  # type: ignore[arg-type]
        return OutboxEntry(
            number=0,
            drawn=drawn,
            metric=signed.bundle.metric(stream),
            key_id=1,
            sealed=b"sealed" + payload,
            late=late,
        )

    return make_entry


def _enter(state: State, *entries: OutboxEntry) -> list[Dropped]:
    noted = []
    for entry in entries:
        assert state.has_room(len(entry.drawn.payload))
        noted.append(replace(entry, number=state.note(entry.drawn)))
    return state.enter(noted, [], noted[-1].number)[0]


def test_entries_stored_by_a_call_that_raised_are_not_stored_again(
    make: Make, entry_of: EntryOf
) -> None:
    state = make()
    entries = [replace(entry_of(epoch=n), number=state.note(entry_of().drawn)) for n in (1, 2, 3)]
    state.enter(entries[:2], [], entries[1].number)
    state.enter(entries, [], entries[2].number)
    assert state.waiting() == 3


def test_a_stored_entry_is_taken_once_and_settled(make: Make, entry_of: EntryOf) -> None:
    state = make()
    assert _enter(state, entry_of(epoch=1, payload=b"a"), entry_of(epoch=2, payload=b"b")) == []
    assert state.waiting() == 2
    payloads, late = state.take(10, 1 << 20, NOW)
    assert late == []
    assert {(w.stream, w.epoch, w.key_id, w.sealed) for w in payloads} == {
        ("crashed", 1, 1, b"sealeda"),
        ("crashed", 2, 1, b"sealedb"),
    }
    state.record_results({payloads[0].id: SENT, payloads[1].id: "refused_expired"})
    assert state.waiting() == 0
    assert state.take(10, 1 << 20, NOW) == ([], [])
    assert {payload_record.fate for payload_record in state.payload_records()} == {
        SENT,
        "refused_expired",
    }
    assert state.device_state().counts == {"refused_expired": 1}


def test_the_ledger_has_the_last_word(make: Make, entry_of: EntryOf) -> None:
    """theme: one report a day. Two processes drew one each; the second is given up, and counted."""
    state = make()
    dropped = _enter(state, entry_of("theme", TODAY), entry_of("theme", TODAY))
    assert dropped == [Dropped("theme", "already_reported")]
    assert make().device_state().accounts["theme"].epochs == {TODAY: 1}
    assert state.device_state().counts["already_reported"] == 1


def test_the_lifetime_limit_is_kept_at_the_door(make: Make, entry_of: EntryOf) -> None:
    """crashed: epsilon 2 a report, 10 for life."""
    state = make()
    dropped = _enter(state, *(entry_of(epoch=n) for n in range(7)))
    assert dropped == [Dropped("crashed", "over_budget")] * 2
    assert state.device_state().accounts["crashed"].spent <= 10


def test_more_than_the_bounds_drops_the_oldest(make: Make, entry_of: EntryOf) -> None:
    state = make(bounds=Bounds(reports=3))
    entries = [entry_of("homepage", TODAY, bytes([n]) * 4) for n in range(5)]
    dropped = [drop for entry in entries for drop in _enter(state, entry)]
    assert dropped == [Dropped("homepage", "outbox_full")] * 2
    assert {w.sealed[-1] for w in state.take(9, 1 << 20, NOW)[0]} == {2, 3, 4}
    small = make("other", bounds=Bounds(size_bytes=25))
    assert len(_enter(small, *entries)) == 3, "each is ten bytes"


def test_a_message_is_bounded_and_its_order_is_random(make: Make, entry_of: EntryOf) -> None:
    state = make()
    _enter(state, *(entry_of("homepage", TODAY, bytes([n]) * 14) for n in range(40)))
    assert len(state.take(7, 1 << 20, NOW)[0]) == 7
    assert len(make("b").take(7, 1 << 20, NOW)[0]) == 0
    few = state.take(40, 100, NOW)[0]
    assert len(few) == 5
    state.release(w.id for w in few)
    orders = set()
    for _ in range(4):
        payloads = state.take(20, 1 << 20, NOW)[0]
        orders.add(tuple(w.id for w in payloads))
        state.release(w.id for w in payloads)
    assert len(orders) == 4
    alone = state.take(5, 1, NOW)[0]
    assert len(alone) == 1, "a long report goes alone"


def test_a_report_too_late_for_the_shuffler_is_dropped(make: Make, entry_of: EntryOf) -> None:
    state = make()
    _enter(state, entry_of(epoch=1, late=NOW - 1), entry_of(epoch=2, late=NOW + 1))
    payloads, late = state.take(9, 1 << 20, NOW)
    assert [w.epoch for w in payloads] == [2]
    assert late == [Dropped("crashed", "expired")]
    assert state.device_state().counts == {"expired": 1}


def test_opt_out_deletes_waiting_reports_and_earlier_ones_are_never_sent(
    make: Make, entry_of: EntryOf
) -> None:
    state = make()
    _enter(state, entry_of(epoch=1))
    state.consent(on=False, forget=False, now=NOW)
    state.consent(on=False, forget=False, now=NOW)
    assert state.waiting() == 0
    assert state.device_state().consent.generation == 1
    state.consent(on=True, forget=False, now=NOW)
    assert state.device_state().consent.generation == 2
    assert _enter(state, entry_of(epoch=2)) == [Dropped("crashed", "disabled")]
    assert _enter(state, entry_of(epoch=2, generation=2)) == []
    assert state.device_state().counts == {"disabled": 2}
    assert make().device_state().accounts["crashed"].epochs == {1: 1, 2: 1}, "it stays spent"


def test_a_report_in_flight_during_a_purge_shows_its_fate(make: Make, entry_of: EntryOf) -> None:
    state = make()
    _enter(state, entry_of(epoch=1))
    payloads, _ = state.take(9, 1 << 20, NOW)
    state.consent(on=False, forget=False, now=NOW)
    state.record_results({payloads[0].id: SENT})
    assert [payload_record.fate for payload_record in state.payload_records()] == [SENT]
    assert state.device_state().counts["disabled"] == 0


@pytest.mark.parametrize(
    ("now", "tomorrow"), [(NOW, 0), (NOW - 9 * 86_400, 0), (-1.0, 0), (1e18, None)]
)
def test_forgetting_leaves_no_secret_no_ledger_and_no_second_report_today(
    make: Make, entry_of: EntryOf, signed: Signed, now: float, tomorrow: int | None
) -> None:
    state = make()
    secret = state.device_state().secret
    _enter(state, entry_of("theme", TODAY))
    before = state.device_state()
    state.consent(on=False, forget=True, now=now)
    after = state.device_state()
    assert after.secret != secret
    assert not after.is_on
    [day] = after.accounts["theme"].days
    spent, floor = before.accounts["theme"].spent, TODAY if now < NOW else -1
    forgotten = Account(spent=spent, days={day: spent}, central=spent, floor=floor)
    assert after.accounts == {"theme": forgotten}
    assert day >= TODAY
    assert state.payload_records() == []
    assert after.account(signed.bundle.metric("theme")).reported(TODAY) is None
    assert after.account(signed.bundle.metric("theme")).reported(TODAY + 1) == tomorrow


def test_the_preference_and_the_secret_stay(make: Make) -> None:
    state = make()
    assert state.device_state().consent.preference == math.inf
    state.prefer(0.5, 0.5)
    again = make()
    assert again.device_state().consent.preference == 0.5
    assert again.device_state().secret == state.device_state().secret
    assert len(again.device_state().secret) == 32


def test_a_lost_payload_is_counted(make: Make) -> None:
    state = make()
    assert state.enter([], [Dropped("gone", "unknown_metric")], 0)[0] == [
        Dropped("gone", "unknown_metric")
    ]
    assert state.device_state().counts == {"unknown_metric": 1}


@pytest.mark.slow
def test_only_the_last_thousand_are_remembered(make: Make, entry_of: EntryOf) -> None:
    state = make(bounds=Bounds(reports=50))
    for first in range(0, 1200, 40):
        _enter(state, *(entry_of("homepage", first + n, b"abcd") for n in range(40)))
        payloads, _ = state.take(100, 1 << 20, NOW)
        state.record_results(dict.fromkeys((w.id for w in payloads), SENT))
    assert 1000 <= len(state.payload_records()) <= 1090


def test_every_file_is_its_owners_and_holds_no_value(tmp_path: Path, entry_of: EntryOf) -> None:
    state = FolderState(tmp_path / "state")
    _enter(state, entry_of("theme", TODAY))
    state.take(1, 100, NOW)
    files = [*(tmp_path / "state").iterdir(), tmp_path / "state.witness"]
    assert len(files) == 6
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    for path in files:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    state.close()
    assert sorted(path.name for path in (tmp_path / "state").iterdir()) == [
        "hubbub.sqlite3",
        "lock",
    ]


def test_two_processes_share_one_outbox_and_none_takes_what_the_other_has(
    tmp_path: Path, entry_of: EntryOf
) -> None:
    state, other = FolderState(tmp_path / "s"), FolderState(tmp_path / "s")
    _enter(state, *(entry_of("homepage", TODAY, bytes([n])) for n in range(10)))
    _enter(other, *(entry_of("homepage", TODAY, bytes([n])) for n in range(10, 20)))
    first, _ = state.take(12, 1 << 20, NOW)
    second, _ = other.take(20, 1 << 20, NOW)
    assert len(first) == 12
    assert len(second) == 8
    assert not {w.id for w in first} & {w.id for w in second}
    assert other.take(20, 1 << 20, NOW + 30)[0] == []
    assert len(other.take(20, 1 << 20, NOW + 61)[0]) == 20, "the first was killed"
    assert len(state.take(20, 1 << 20, NOW - 86_400)[0]) == 20, "the clock was set back"
    state.close()
    other.close()


def test_a_killed_process_leaves_its_notes_to_the_next(tmp_path: Path, entry_of: EntryOf) -> None:
    state = FolderState(tmp_path / "s")
    entries = [entry_of("homepage", TODAY, bytes([n])) for n in range(9)]
    _enter(state, *entries[:4])
    for entry in entries[4:]:
        state.note(entry.drawn)
    assert state._notes._journal
    assert list(state.orphans()) == [], "its owner is alive"
    # As if it had been killed: the lock is gone, the file is not.
    state._notes._journal.after_fork_in_child()
    state._database.close()
    after = FolderState(tmp_path / "s")
    orphan_notes = [(owner, [drawn for _, drawn in records]) for owner, records in after.orphans()]
    assert [drawn for _, drawn in orphan_notes] == [[entry.drawn for entry in entries[4:]]]
    assert list(after.orphans()) == []
    after.close()


def test_a_stored_orphan_entry_is_not_stored_again(tmp_path: Path, entry_of: EntryOf) -> None:
    """Killed between the commit and the removal of the journal."""
    state = FolderState(tmp_path / "s")
    entries = [entry_of("homepage", TODAY, bytes([n])) for n in range(3)]
    _enter(state, *entries)
    for entry in entries:
        state.note(entry.drawn)
    assert state._notes._journal
    state._notes._journal.after_fork_in_child()
    state._database.close()
    after = FolderState(tmp_path / "s")
    for owner, records in after.orphans():
        again = [replace(e, number=n) for e, (n, _) in zip(entries, records, strict=True)]
        after.enter(again, [], records[-1][0], owner)
        break  # killed here: the file is still there
    assert list(after.orphans()) == []
    assert after.waiting() == 6
    after.close()


def test_a_journal_is_read_up_to_what_was_torn_or_is_old(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    drawn = [
        PendingPayload(
            stream="s", epoch=n, tag="t" * n, payload=bytes([n]) * 20, generation=2, made=NOW
        )
        for n in range(6)
    ]
    for note in drawn[:4]:
        journal.append(note)
    journal.rewind(3)
    assert journal.append(drawn[4]) == 5, "not everything was done: nothing is overwritten"
    journal.rewind(5)
    journal.append(drawn[5])
    journal.path.rename(path := journal.path.with_name("1-a.journal"))
    journal.after_fork_in_child()
    assert [records for _, records in orphans(tmp_path)] == [[(6, drawn[5])]]
    with path.open("r+b") as file:
        file.seek(30)
        file.write(b"torn")
    assert [records for _, records in orphans(tmp_path)] == [[]]


def test_records_that_a_shorter_journal_left_behind_are_not_read(tmp_path: Path) -> None:
    """They begin where the new one ends, and are whole."""
    journal = Journal(tmp_path)
    drawn = [
        PendingPayload(stream="s", epoch=n, tag="t", payload=bytes(20), generation=2, made=NOW)
        for n in range(4)
    ]
    for member in drawn[:3]:
        journal.append(member)
    journal.rewind(3)
    journal.append(drawn[3])
    journal.path.rename(journal.path.with_name("1-a.journal"))
    journal.after_fork_in_child()
    assert [records for _, records in orphans(tmp_path)] == [[(4, drawn[3])]]


def test_a_full_journal_has_no_room(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    while journal.has_room(90_000):
        journal.append(
            PendingPayload(
                stream="s", epoch=1, tag="", payload=bytes(90_000), generation=0, made=NOW
            )
        )
    assert journal.has_room(10)
    journal.close()
    (orphan,) = orphans(tmp_path)
    assert len(orphan[1]) == 11


def test_an_app_that_closes_all_descriptors_loses_no_note_and_no_file_of_its_own(
    tmp_path: Path, entry_of: EntryOf
) -> None:
    """As a daemon does once it has forked: the number of ours is another file's then."""
    state = FolderState(tmp_path / "s")
    journal = state._notes._journal
    assert journal
    drawn = [entry_of("homepage", TODAY, bytes([n])).drawn for n in range(3)]
    state.note(drawn[0])
    closed = journal._file
    os.close(closed)
    app_log = os.open(tmp_path / "app.log", os.O_RDWR | os.O_CREAT)
    os.dup2(app_log, closed)  # the same number already, as a rule
    for note in drawn[1:]:
        state.note(note)
    assert journal._file != closed
    journal.after_fork_in_child()  # as if it had been killed
    state._database.close()
    after = FolderState(tmp_path / "s")
    notes = [note for _, records in after.orphans() for _, note in records]
    assert notes == drawn
    after.close()
    assert os.fstat(closed).st_size == 0
    for number in {app_log, closed}:
        os.close(number)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cuts off no file that is mapped")
@pytest.mark.parametrize("size", [0, 5000])
def test_a_truncated_sqlite_index_ends_no_process(tmp_path: Path, size: int) -> None:
    code = """
import contextlib, os, sys
from pathlib import Path
from hubbub.client.state.database import Database
path, size = Path(sys.argv[1]), int(sys.argv[2])
database = Database(path, contextlib.nullcontext)
for number in range(3):
    with database.transaction() as connection:
        connection.execute("INSERT INTO counts VALUES (?, 1)", (str(number),))
    os.truncate(f"{path}-shm", size)
database.scrub()
os.truncate(f"{path}-shm", size)
database.close()
print(database.damaged_files)
"""
    path = tmp_path / "hubbub.sqlite3"
    words = [sys.executable, "-c", code, str(path), str(size)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT name FROM counts").fetchall() == [("0",), ("1",), ("2",)]


def _truncate_journal(journal: Journal, path: Path) -> None:
    del journal
    os.truncate(path, 0)


def _overwrite(journal: Journal, path: Path) -> None:
    del journal
    path.write_bytes(b"x" * 100)


def _lose(journal: Journal, path: Path) -> None:
    os.close(journal._file)
    path.unlink()


@pytest.mark.parametrize("harm", [_truncate_journal, _overwrite, _lose])
def test_a_journal_that_others_cut_or_delete_ends_no_process_and_loses_nothing(
    harm: Callable[[Journal, Path], None],
    tmp_path: Path,
    entry_of: EntryOf,
) -> None:
    state = FolderState(tmp_path / "s")
    entries = [entry_of("homepage", TODAY, bytes([n])) for n in range(2)]
    for round_ in range(1, 3):
        journal = state._notes._journal
        assert journal
        first = state.note(entries[0].drawn)
        harm(journal, tmp_path / "s" / journal.name)
        numbers = [first, state.note(entries[1].drawn)]
        assert numbers == [2 * round_ - 1, 2 * round_]
        again = [replace(e, number=n) for e, n in zip(entries, numbers, strict=True)]
        assert state.enter(again, [], numbers[-1])[0] == []
        assert state.waiting() == 2 * round_
    assert state._notes._journal
    assert state._notes.outlives(numbers[-1] + 1), "there is a new one"
    state.close()
    assert list((tmp_path / "s").glob("*.journal")) == []


def test_without_a_journal_no_entry_is_taken_for_another_processs(
    tmp_path: Path, entry_of: EntryOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each start counts from one: as on Windows, or on a disk that has no room for a journal."""

    def no_room(_folder: Path, _number: int) -> Journal:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr("hubbub.client.state.payload_journal.Journal", no_room)
    for start in range(1, 4):
        state = FolderState(tmp_path / "s")
        assert _enter(state, entry_of("homepage", TODAY + start)) == []
        assert state.waiting() == start, "what was noted is entered, or told as given up"
        state.close()


def test_two_paths_to_one_folder_share_one_state(
    tmp_path: Path, entry_of: EntryOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two ways to one file have one witness: neither takes the other's work for put back."""
    (tmp_path / "s").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "s")
    monkeypatch.chdir(tmp_path)
    states = [FolderState(Path(way)) for way in (tmp_path / "s", tmp_path / "link", "s")]
    monkeypatch.chdir("/")
    for day in range(2):
        for number, state in enumerate(states):
            assert _enter(state, entry_of("homepage", TODAY + 3 * day + number)) == []
    assert {state.waiting() for state in states} == {6}
    assert not states[0].device_state().counts
    assert not (tmp_path / "link.witness").exists()
    for state in states:
        state.close()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are none here")
@pytest.mark.parametrize("name", ["hubbub.sqlite3", "0-a.journal", "lock", "witness"])
def test_a_pipe_or_folder_in_place_of_a_state_file_blocks_nobody(
    signed: Signed, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    (tmp_path / "s").mkdir()
    os.mkfifo(tmp_path / "s" / name)
    state = state_in(tmp_path / "s", signed.bundle)
    assert isinstance(state, MemoryState if name == "hubbub.sqlite3" else FolderState)
    assert list(state.orphans()) == []
    state.close()


def test_a_damaged_state_file_is_kept_apart_and_the_spent_budget_stays(
    tmp_path: Path, entry_of: EntryOf
) -> None:
    state = FolderState(tmp_path / "s")
    _enter(state, entry_of("theme", TODAY))
    state.take(1, 100, NOW)
    secret = state.device_state().secret
    state.close()
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            (tmp_path / "s" / f"hubbub.sqlite3{suffix}").unlink()
    (tmp_path / "s" / "hubbub.sqlite3").write_bytes(b"not a database, " * 1000)
    after = FolderState(tmp_path / "s")
    assert (tmp_path / "s" / "damaged.hubbub.sqlite3").read_bytes().startswith(b"not a database")
    device = after.device_state()
    assert device.counts == {"state_damaged": 1, "state_lost": 1}
    assert device.secret != secret
    assert _enter(after, entry_of("theme", TODAY)) == [Dropped("theme", "already_reported")]
    after.close()


def test_damage_found_in_the_middle_of_work_starts_a_new_file(
    tmp_path: Path, entry_of: EntryOf
) -> None:
    state = FolderState(tmp_path / "s")
    _enter(state, *(entry_of("homepage", TODAY, bytes([n]) * 200) for n in range(90)))
    state.take(1, 100, NOW)
    rows = state._database._open_connection()
    rows.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    rows.execute("PRAGMA cache_size = 1")
    rows.execute("PRAGMA shrink_memory")
    path = tmp_path / "s" / "hubbub.sqlite3"
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))
    failures = 0
    for _ in range(4):
        try:
            state.payload_records()
            assert state.device_state().counts["state_damaged"] == 1
        except StateUnusable:
            failures += 1
    assert failures == 1, "told once, and gone on with a new file"
    state.close()


@pytest.mark.parametrize("account", ["{", "[]", '{"spent": 1}', "null", '{"spent": "x"}'])
def test_a_foreign_ledger_is_kept_apart_too(
    tmp_path: Path, entry_of: EntryOf, account: str
) -> None:
    state = FolderState(tmp_path / "s")
    _enter(state, entry_of("theme", TODAY))
    state.take(9, 1000, NOW)
    with state._database.transaction() as rows:
        rows.execute("UPDATE ledger SET account = ?", (account,))
    with pytest.raises(StateUnusable, match="data that hubbub never wrote"):
        state.device_state()
    assert state.device_state().counts == {"state_damaged": 1, "state_lost": 1}
    assert _enter(state, entry_of("theme", TODAY)) == [Dropped("theme", "already_reported")]
    state.close()


@pytest.mark.parametrize("lost", ["file", "folder", "rolled back"])
def test_a_lost_or_rolled_back_state_cannot_spend_twice(
    lost: str, tmp_path: Path, entry_of: EntryOf
) -> None:
    folder = tmp_path / "s"
    state = FolderState(folder)
    _enter(state, entry_of("crashed", 1))
    state.take(9, 1000, NOW)
    state.close()
    shutil.copytree(folder, tmp_path / "backup")
    state = FolderState(folder)
    _enter(state, entry_of("theme", TODAY), entry_of("crashed", 2), entry_of("crashed", 3))
    state.take(9, 1000, NOW)
    state.close()
    if lost == "file":
        (folder / "hubbub.sqlite3").unlink()
    else:
        shutil.rmtree(folder)
    if lost == "rolled back":
        shutil.copytree(tmp_path / "backup", folder)
    after = FolderState(folder)
    name = "state_rolled_back" if lost == "rolled back" else "state_lost"
    given_up = {"put_back": 1} if lost == "rolled back" else {}  # what waited may have been sent
    assert after.device_state().counts == {name: 1, **given_up}, "noticed"
    refused = _enter(
        after,
        entry_of("theme", TODAY),
        *(entry_of("crashed", epoch) for epoch in (4, 5, 6)),
    )
    assert refused == [
        *(Dropped("crashed", reason) for reason in given_up),
        Dropped("theme", "already_reported"),
        Dropped("crashed", "over_budget"),
    ]
    after.close()
    again = FolderState(folder)
    assert again.device_state().counts[name] == 1, "noticed once"
    again.close()


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_file_deleted_under_a_running_app_is_noticed_too(
    tmp_path: Path, entry_of: EntryOf, *, is_folder: bool
) -> None:
    state = FolderState(tmp_path / "s")
    _enter(state, entry_of("theme", TODAY))
    state.take(9, 1000, NOW)
    if is_folder:
        shutil.rmtree(tmp_path / "s")
    else:
        for suffix in ("", "-wal", "-shm"):
            (tmp_path / "s" / f"hubbub.sqlite3{suffix}").unlink()
    assert _enter(state, entry_of("theme", TODAY)) == [Dropped("theme", "already_reported")]
    assert state.device_state().counts["state_lost"] == 1
    state.close()


def test_budget_spent_in_memory_is_known_after_a_restart(
    tmp_path: Path, entry_of: EntryOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    folder = tmp_path / "s"
    state = MemoryState(witnesses=Witnesses(folder))
    assert state.device_state().may_send
    _enter(state, entry_of("theme", TODAY))
    state.take(9, 1000, NOW)
    for start in (
        lambda: MemoryState(witnesses=Witnesses(folder)),
        lambda: FolderState(folder),
    ):
        after: State = start()
        assert after.device_state().counts["state_lost"] == 1
        assert _enter(after, entry_of("theme", TODAY)) == [Dropped("theme", "already_reported")]
    after.close()
    assert Witnesses(folder).elsewhere.read() is None, "the folder knows now"


def test_without_a_writable_place_no_report_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry_of: EntryOf
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "not" / "there"))
    state = MemoryState(witnesses=Witnesses(tmp_path / "s"))
    assert not state.device_state().may_send
    for leave in (
        lambda: _enter(state, entry_of("theme", TODAY)),
        lambda: state.take(9, 1000, NOW),
        lambda: state.consent(on=True, forget=False, now=NOW),
    ):
        with pytest.raises(StateUnusable, match="free space there"):
            leave()


def test_a_witness_folder_that_others_can_write_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    witness = Witnesses(tmp_path / "s").elsewhere
    witness.path.parent.mkdir()
    assert witness.usable()
    for content in (
        b"{",
        StateMoment(
            state="planted", commits=9, head="head", accounts={}, consent=Consent(generation=1)
        ).document(),
    ):
        witness.path.write_bytes(content)
        witness.path.parent.chmod(0o777)
        assert not witness.usable()
        assert Witnesses(tmp_path / "s").read_all() == []
        with contextlib.closing(FolderState(tmp_path / "s")) as state:
            assert state.device_state().is_on, "who may write there says nothing to us"
        witness.path.parent.chmod(0o700)
        for path in tmp_path.glob("s*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.rmtree(witness.path.parent)
    witness.path.parent.symlink_to(tmp_path)
    assert not witness.usable()


def test_a_killed_process_without_a_folder_never_leaves_too_little_charged(
    tmp_path: Path, entry_of: EntryOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    _enter(MemoryState(witnesses=Witnesses(tmp_path / "s")), entry_of("theme", TODAY))
    after = MemoryState(witnesses=Witnesses(tmp_path / "s"))
    assert _enter(after, entry_of("theme", TODAY)) == [Dropped("theme", "already_reported")]


def test_without_locks_and_a_usable_folder_no_report_leaves(
    tmp_path: Path, entry_of: EntryOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr("hubbub.client.state.state_witness.sys", SimpleNamespace(platform="win32"))
    state = MemoryState(witnesses=Witnesses(tmp_path / "s"))
    assert not state.device_state().may_send
    with pytest.raises(StateUnusable):
        _enter(state, entry_of("theme", TODAY))
    with pytest.raises(StateUnusable):
        state.consent(on=False, forget=False, now=NOW)
    assert not state.device_state().is_on


def test_an_impossible_state_folder_is_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateUnusable, match="give a writable state_dir"):
        FolderState(tmp_path / "file")
    (tmp_path / "s" / "hubbub.sqlite3").mkdir(parents=True)
    with pytest.raises(StateUnusable, match="give a writable state_dir"):
        FolderState(tmp_path / "s")


def test_a_newer_file_is_left_alone(tmp_path: Path) -> None:
    FolderState(tmp_path / "s").close()
    with contextlib.closing(sqlite3.connect(tmp_path / "s" / "hubbub.sqlite3")) as rows:
        rows.execute("PRAGMA user_version = 9")
    with pytest.raises(StateUnusable, match="written by a newer hubbub"):
        FolderState(tmp_path / "s")


@pytest.mark.slow
def test_many_threads_lose_nothing(make: Make, entry_of: EntryOf) -> None:
    state = make()
    entered = threading.Lock()

    def work(first: int) -> None:
        for n in range(20):
            entry = entry_of("homepage", TODAY + first * 100 + n, b"abcd")
            with entered:  # as the sender does; taking and settling go on meanwhile
                _enter(state, entry)
            payloads, _ = state.take(3, 1 << 20, NOW)
            state.record_results(dict.fromkeys((w.id for w in payloads), SENT))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    payloads, _ = state.take(100, 1 << 20, NOW)
    state.record_results(dict.fromkeys((w.id for w in payloads), SENT))
    assert [payload_record.fate for payload_record in state.payload_records()] == [SENT] * 80
