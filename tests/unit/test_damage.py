"""Damage of any kind is set aside or dropped, and counted; limits hold, and no app is hurt."""

import contextlib
import json
import os
import random
import shutil
import sqlite3
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hubbub.client import FolderState, MemoryState, Outcome
from hubbub.client.state.contract import PendingPayload
from hubbub.client.state.payload_journal import Journal
from hubbub.client.state.state_witness import Witnesses
from hubbub.client.state_inspection import peek
from hubbub.errors import StateUnusable
from tests.support.client_parts import client_state, refresh, store_reports
from tests.support.devices import DATABASE, Device
from tests.support.waiting import HANG_SECONDS

pytestmark = pytest.mark.thorough

DEEP = "[" * 100_000
HOSTILE = (
    "",
    "{",
    "null",
    "[]",
    "7",
    DEEP,
    '{"a":' * 50_000,
    "1e999",
    "9" * 5000,
    '"\\ud800"',
    '{"spent": 1e999, "floor": -1, "epochs": {}, "responses": {}, "losses": {}}',
    '{"spent": NaN, "floor": -1, "epochs": {}, "responses": {}, "losses": {}}',
    '{"spent": -5.0, "floor": -1, "epochs": {}, "responses": {}, "losses": {}}',
    '{"spent": true, "floor": -1, "epochs": {}, "responses": {}, "losses": {}}',
    '{"spent": 1, "floor": 1e999, "epochs": {}, "responses": {}, "losses": {}}',
    '{"spent": 1, "floor": -9, "epochs": {}, "responses": {}, "losses": {}}',
    '{"spent": 1, "floor": -1, "epochs": {"1e999": 1}, "responses": {}, "losses": {}}',
    '{"spent": 1, "floor": -1, "epochs": {"٣": 1}, "responses": {}, "losses": {}}',
    '{"spent": 1, "floor": -1, "epochs": {"7": -1}, "responses": {}, "losses": {}}',
    '{"spent": 1, "floor": -1, "epochs": [], "responses": {}, "losses": {}}',
    '{"spent": 1, "floor": -1, "epochs": {}, "responses": {"\\ud800": 1}, "losses": {}}',
    '{"spent": 1, "floor": -1, "epochs": {}, "responses": {}, "losses": {"7": Infinity}}',
    '{"spent": 1, "floor": ' + "9" * 400 + ', "epochs": {}, "responses": {}, "losses": {}}',
)
CELLS: tuple[Any, ...] = (
    None,
    "",
    "x",
    b"",
    b"\xff\xfe",
    -1,
    0,
    1,
    10**18,
    -(2**63),
    1.5,
    float("inf"),
    DEEP[:99],
)


def _use(device: Device) -> None:
    """Everything that an app may do. Nothing but StateUnusable may come out, where it is told."""
    for _ in range(2):
        client = device.start()
        client.report("theme", "dark")
        client.report("crashed", "yes")
        client.report("homepage", "a.example")
        client.flush(HANG_SECONDS)
        for tells in (
            client.ledger,
            client.enable,
            lambda: client.prefer(2.0),  # noqa: B023 called at once
            client.disable,
            client.enable,
            lambda: client.prefer(None),  # noqa: B023 called at once
            lambda: [p.meanings(["a.example"]) for p in client.ledger().payloads],  # noqa: B023 called at once
            lambda: peek(device.folder),
        ):
            with contextlib.suppress(StateUnusable):
                tells()
        client.report("theme", "dark")
        client.flush(HANG_SECONDS)
        assert client.waiting >= 0
        client.close(HANG_SECONDS)


def _damaged_rows(device: Device, statement: str, *values: Any) -> None:
    with contextlib.closing(sqlite3.connect(device.folder / DATABASE)) as rows, rows:
        rows.execute(statement, values)


def _reported(device: Device) -> None:
    """One report of theme left; one of homepage waits."""
    client = device.start()
    client.report("theme", "dark")
    client.flush(HANG_SECONDS)
    client.report("homepage", "a.example")
    store_reports(client)
    client.close(0)
    with contextlib.closing(sqlite3.connect(device.folder / DATABASE)) as rows:
        rows.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@pytest.fixture
def reported(device: Device) -> Device:
    """As after a last run that sent one report, and left one in the outbox."""
    shuffler = device.shuffler
    _reported(device)
    assert device.left() in (["theme"], ["homepage", "theme"])
    assert shuffler is device.shuffler
    return device


def _limits_held(device: Device) -> bool:
    return device.left().count("theme") <= 1 and device.left().count("crashed") <= 5


@pytest.mark.parametrize("seed", range(20))
def test_flipped_bytes_in_the_file_hurt_nobody(reported: Device, seed: int) -> None:
    chance = random.Random(seed)
    path = reported.folder / DATABASE
    raw = bytearray(path.read_bytes())
    used = [i for i, byte in enumerate(raw) if byte] if seed % 2 else range(len(raw))
    for _ in range(chance.choice([1, 2, 8, 64, 512])):
        raw[chance.choice(used)] = chance.randrange(256)
    path.write_bytes(raw)
    _use(reported)
    assert _limits_held(reported)


@pytest.mark.parametrize("seed", range(15))
def test_flipped_bytes_in_the_witness_hurt_nobody(reported: Device, seed: int) -> None:
    chance = random.Random(seed)
    raw = bytearray(reported.witness.read_bytes())
    for _ in range(chance.choice([1, 2, 8, 64])):
        raw[chance.randrange(len(raw))] = chance.randrange(256)
    reported.witness.write_bytes(raw)
    if seed % 3 == 0:
        shutil.rmtree(reported.folder)
    _use(reported)
    assert _limits_held(reported)


@pytest.mark.parametrize("content", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("folder", [True, False])
def test_a_witness_with_any_content_raises_nothing(
    reported: Device, content: str, *, folder: bool
) -> None:
    witness = reported.witness
    shapes = [
        content,
        '{"state": "s", "commits": 1, "accounts": {"theme": %s}}' % content,  # noqa: UP031 braces
        '{"state": %s, "commits": 1, "accounts": {}}' % content,  # noqa: UP031 braces
        '{"state": "s", "commits": %s, "accounts": {}}' % content,  # noqa: UP031 braces
    ]
    for shape in shapes:
        witness.write_text(shape)
        if not folder:
            shutil.rmtree(reported.folder)
        reported.start().close(0)
        witness.write_text(shape)
        Witnesses(reported.folder).read_all()
        MemoryState(witnesses=Witnesses(reported.folder)).device_state()
    _use(reported)
    assert _limits_held(reported)


@pytest.mark.parametrize("account", HOSTILE, ids=range(len(HOSTILE)))
def test_a_ledger_with_any_damage_is_kept_apart(reported: Device, account: str) -> None:
    _damaged_rows(reported, "UPDATE ledger SET account = ? WHERE metric = 'theme'", account)
    client = reported.start()
    assert client.ledger().counts["state_damaged"] == 1
    assert client.report("theme", "dark") is Outcome.ALREADY_REPORTED
    client.close(0)
    _use(reported)
    assert _limits_held(reported)


def test_a_ledger_with_too_little_spent_is_kept_apart(reported: Device) -> None:
    fresh = json.dumps({"spent": 0.0, "floor": -1, "epochs": {}, "responses": {}, "losses": {}})
    _damaged_rows(reported, "UPDATE ledger SET account = ? WHERE metric = 'theme'", fresh)
    client = reported.start()
    assert client.ledger().counts["state_damaged"] == 1
    assert client.report("theme", "dark") is Outcome.ALREADY_REPORTED


def test_a_ledger_without_its_sum_is_kept_apart(reported: Device) -> None:
    """Only version 0.1 wrote none, and it named no moments."""
    _damaged_rows(reported, "DELETE FROM ledger WHERE metric = 'theme'")
    _damaged_rows(reported, "DELETE FROM meta WHERE name = 'sum'")
    client = reported.start()
    assert client.ledger().counts["state_damaged"] == 1
    assert client.report("theme", "dark") is Outcome.ALREADY_REPORTED


@pytest.mark.parametrize(
    "name", ["secret", "state", "commits", "head", "witnessed", "generation", "preference", "since"]
)
@pytest.mark.parametrize("value", CELLS, ids=range(len(CELLS)))
def test_any_altered_field_of_a_state_exceeds_no_limit(
    reported: Device, name: str, value: Any
) -> None:
    _damaged_rows(reported, "UPDATE meta SET value = ? WHERE name = ?", value, name)
    client = reported.start()
    assert client.report("theme", "dark") in {Outcome.ALREADY_REPORTED, Outcome.DISABLED}
    client.close(0)
    _use(reported)
    assert _limits_held(reported)


@pytest.mark.parametrize("sealed", [True, False])
@pytest.mark.parametrize("value", CELLS, ids=range(len(CELLS)))
def test_any_altered_bundle_sum_or_count_of_a_state_exceeds_no_limit(
    reported: Device, value: Any, *, sealed: bool
) -> None:
    _damaged_rows(reported, "UPDATE meta SET value = ? WHERE name = 'bundle'", value)
    for table in ("counts", "journals"):
        insert = f"INSERT OR REPLACE INTO {table} VALUES (ifnull(?, 'expired'), ?)"  # noqa: S608 our own names
        _damaged_rows(reported, insert, value, value)
    if not sealed:
        _damaged_rows(reported, "UPDATE meta SET value = ? WHERE name = 'sum'", value)
    with contextlib.suppress(StateUnusable):
        peek(reported.folder)
    _use(reported)
    assert _limits_held(reported)


@pytest.mark.parametrize(
    "column",
    [
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
    ],
)
@pytest.mark.parametrize("value", CELLS, ids=range(len(CELLS)))
def test_a_damaged_row_loses_no_other_row(device: Device, column: str, value: Any) -> None:
    client = device.start()
    for name in ("a", "b", "c"):
        client.report("homepage", f"{name}.example")
    store_reports(client)
    with contextlib.closing(sqlite3.connect(device.folder / DATABASE)) as rows:
        whole = {sealed for (sealed,) in rows.execute("SELECT sealed FROM reports WHERE id <> 2")}
    set_column = f"UPDATE reports SET {column} = ? WHERE id = 2"  # noqa: S608 our own names
    _damaged_rows(device, set_column, value)
    client.flush(HANG_SECONDS)
    view = client.ledger()
    for payload in view.payloads:
        payload.meanings(["a.example"])
    assert whole <= {report.sealed for report in device.shuffler.reports()}
    if len(device.shuffler.reports()) == len(whole):
        # It is late, or waits, or tells a fate; or it is counted as what it is.
        assert column in {"late", "fate", "claimed"} or client.dropped == {"damaged": 1}


@pytest.mark.parametrize("text", [b"\xff\xfe", b"\xed\xa0\x80"])
def test_an_invalid_text_loses_only_its_row(device: Device, text: bytes) -> None:
    client = device.start()
    client.report("homepage", "a.example")
    client.report("homepage", "b.example")
    store_reports(client)
    _damaged_rows(device, "UPDATE reports SET stream = CAST(? AS TEXT) WHERE id = 1", text)
    _damaged_rows(device, "INSERT INTO counts VALUES (CAST(? AS TEXT), 1)", text)
    assert client.flush(HANG_SECONDS)
    client.ledger()
    assert "homepage" in device.left()


@pytest.mark.parametrize("where", ["schema", "sequence", "newer", "index"])
def test_a_file_with_a_damaged_frame_is_kept_apart_or_left(reported: Device, where: str) -> None:
    path = reported.folder / DATABASE
    raw = path.read_bytes()
    if where == "schema":
        raw = raw.replace(b"CREATE TABLE reports", b"CREATE \xff\xfeBLE reports")
    elif where == "sequence":
        _damaged_rows(reported, "UPDATE sqlite_sequence SET seq = ?", 2**63 - 1)
        raw = path.read_bytes()
    elif where == "newer":
        raw = raw[:60] + struct.pack(">I", 77) + raw[64:]
    else:
        raw = raw.replace(b"WHERE fate IS NULL", b"WHERE fate IS NUL\xff")
    path.write_bytes(raw)
    _use(reported)
    assert _limits_held(reported)


def _hostile_journal(body: Callable[[Journal, PendingPayload], None]) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        journal = Journal(folder)
        body(
            journal,
            PendingPayload(
                stream="homepage", epoch=20_000, tag="", payload=b"abcd", generation=0, made=1.7e9
            ),
        )
        journal.after_fork_in_child()

    return write


def _odd(**changes: Any) -> Callable[[Journal, PendingPayload], None]:
    def append(journal: Journal, drawn: PendingPayload) -> None:
        from dataclasses import replace

        journal.append(replace(drawn, **changes))
        journal.append(drawn)

    return append


def _odd_text(journal: Journal, drawn: PendingPayload) -> None:
    body = struct.pack("<dIIBB", drawn.made, 1, 0, 2, 2) + b"\xff\xfe\xff\xfe"
    head = struct.pack("<IQI", len(body), 1, zlib.crc32(body, 1))
    os.pwrite(journal._file, head + body, 0)
    journal._end = len(head + body)


@pytest.mark.parametrize(
    "body",
    [
        _odd(made=float("nan")),
        _odd(made=float("inf")),
        _odd(made=-1e300),
        _odd(made=1e300),
        _odd(epoch=2**32 - 1),
        _odd(generation=2**32 - 1),
        _odd(stream="\0"),
        _odd(stream="no such metric"),
        _odd(stream="crashed", payload=b""),
        _odd(stream="editor", tag="\0" * 200),
        _odd(payload=bytes(90_000)),
        _odd_text,
    ],
)
def test_a_journal_with_any_content_raises_nothing(
    reported: Device, body: Callable[[Journal, PendingPayload], None]
) -> None:
    _hostile_journal(body)(reported.folder)
    _use(reported)
    assert list(reported.folder.glob("*.journal")) == []


@pytest.mark.parametrize("seed", range(10))
def test_flipped_bytes_in_a_journal_hurt_nobody(reported: Device, seed: int) -> None:
    chance = random.Random(seed)
    journal = Journal(reported.folder)
    for n in range(5):
        journal.append(
            PendingPayload(
                stream="homepage",
                epoch=int(reported.now // 86_400),
                tag="",
                payload=b"ab%d" % n,
                generation=0,
                made=1.7e9,
            )
        )
    for _ in range(chance.choice([1, 3, 20])):
        byte, place = chance.randrange(256), chance.randrange(journal._end)
        os.pwrite(journal._file, bytes([byte]), place)
    journal.after_fork_in_child()
    _use(reported)


def test_damage_under_several_processes_is_kept_apart_once(reported: Device) -> None:
    clients = [reported.start() for _ in range(3)]
    path = reported.folder / DATABASE
    with path.open("r+b") as file:
        file.write(bytes(range(256)) * (path.stat().st_size // 256))
    for suffix in ("-wal", "-shm"):
        path.with_name(DATABASE + suffix).write_bytes(b"\xff" * 5000)
    for client in clients * 3:
        with contextlib.suppress(StateUnusable):
            refresh(client)
        client.report("theme", "dark")
        client.flush(HANG_SECONDS)
    states = [client_state(client).device_state() for client in clients]
    assert len({device.secret for device in states}) == 1
    assert states[0].counts["state_damaged"] == 1
    assert _limits_held(reported)


def test_a_deleted_folder_raises_nothing(device: Device) -> None:
    client = device.start()
    client.report("theme", "dark")
    shutil.rmtree(device.folder)
    device.folder.write_text("a file")
    client.flush(HANG_SECONDS)
    for tells in (client.disable, client.enable, client.ledger):
        with pytest.raises(StateUnusable):
            tells()
    client.close(HANG_SECONDS)


def test_a_client_whose_state_cannot_be_read_at_first_waits_for_it(device: Device) -> None:
    state = FolderState(device.folder)
    with contextlib.closing(sqlite3.connect(device.folder / DATABASE, isolation_level=None)) as b:
        b.execute("BEGIN IMMEDIATE")
        client = device.start_with(state)
        assert client.report("theme", "dark") is Outcome.NO_STATE
    client.flush(HANG_SECONDS)
    assert client.report("theme", "dark") is Outcome.QUEUED


def test_while_the_disk_is_full_reports_wait_and_limits_hold(device: Device) -> None:
    client = device.start()
    state = client_state(client)
    assert isinstance(state, FolderState)
    rows = state._database._open_connection()
    (pages,) = rows.execute("PRAGMA page_count").fetchone()
    rows.execute(f"PRAGMA max_page_count = {pages}")  # as SQLite says it of a full disk
    with contextlib.suppress(sqlite3.OperationalError):
        while True:
            rows.execute("INSERT INTO reports (stream, fate) VALUES ('homepage', 'sent')")
    for n in range(10):
        assert client.report("homepage", f"{n}.example") is not Outcome.FAILED
    assert client.report("theme", "dark") is Outcome.QUEUED
    assert not client.flush(HANG_SECONDS)
    assert client.report("theme", "dark") is Outcome.ALREADY_REPORTED
    assert device.left() == []
    assert client.dropped == {}
    rows.execute("PRAGMA max_page_count = 1000000")
    assert client.flush(HANG_SECONDS)
    assert device.left().count("theme") == 1
    assert client.ledger().counts == {}


def test_a_state_locked_by_another_process_stops_no_report(device: Device) -> None:
    """Stopped in the middle of a write: for as long nothing leaves, and nothing is lost."""
    client = device.start()
    other = sqlite3.connect(device.folder / DATABASE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert client.report("theme", "dark") is Outcome.QUEUED
    assert not client.flush(1)
    assert device.left() == []
    other.execute("ROLLBACK")
    other.close()
    assert client.flush(HANG_SECONDS)
    assert device.left() == ["theme"]
