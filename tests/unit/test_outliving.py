"""What a person said, and what was spent, outlive whatever befalls the state."""

import contextlib
import json
import logging
import multiprocessing
import multiprocessing.queues
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from hubbub.client import Client, FolderState, MemoryState, Outcome
from hubbub.client.state.state_witness import Witness, Witnesses
from hubbub.client.testing import FakeClock, FakeShuffler
from hubbub.errors import StateUnusable
from tests.support.bundles import DAY, Signed
from tests.support.client_parts import client_state, refresh, store_reports
from tests.support.devices import DATABASE, Device, state_in
from tests.support.waiting import HANG_SECONDS

pytestmark = pytest.mark.slow

Writes = multiprocessing.queues.SimpleQueue[str]


def _forget_files(folder: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        (folder / f"{DATABASE}{suffix}").unlink(missing_ok=True)


def _overwrite(device: Device) -> None:
    _forget_files(device.folder)
    (device.folder / DATABASE).write_bytes(os.urandom(9000))


def _empty_database(device: Device) -> None:
    _forget_files(device.folder)
    (device.folder / DATABASE).write_bytes(b"")


def _delete_folder(device: Device) -> None:
    shutil.rmtree(device.folder)


def _rename_folder(device: Device) -> None:
    device.folder.rename(device.folder.with_name("away"))


def _delete_file(device: Device) -> None:
    _forget_files(device.folder)


def _delete_file_and_witness(device: Device) -> None:
    _forget_files(device.folder)
    device.witness.unlink()


def _overwrite_file_and_delete_witness(device: Device) -> None:
    _overwrite(device)
    device.witness.unlink()


def _overwrite_file_and_witness(device: Device) -> None:
    _overwrite(device)
    device.witness.write_bytes(os.urandom(300))


def _overwrite_witness(device: Device) -> None:
    device.witness.write_bytes(os.urandom(300))


def _delete_witness(device: Device) -> None:
    device.witness.unlink()


def _block(device: Device) -> None:
    """The folder is there, and cannot be used: also by root, who may do everything else."""
    device.folder.rename(device.folder.with_name("away"))
    device.folder.write_text("")


def _block_file(device: Device) -> None:
    _forget_files(device.folder)
    (device.folder / DATABASE).mkdir()


def _nothing(device: Device) -> None:
    assert device.folder.exists()


MISHAPS = [
    _nothing,
    _overwrite,
    _empty_database,
    _delete_folder,
    _rename_folder,
    _delete_file,
    _delete_file_and_witness,
    _overwrite_file_and_delete_witness,
    _overwrite_file_and_witness,
    _overwrite_witness,
    _delete_witness,
    _block,
    _block_file,
]


@pytest.mark.parametrize("happens", MISHAPS)
@pytest.mark.parametrize("running", [False, True])
def test_an_opt_out_survives_every_loss_of_the_state(
    device: Device, happens: Callable[[Device], None], *, running: bool
) -> None:
    client = device.start()
    client.disable()
    if not running:
        client.close(0)
    happens(device)
    if running and happens in {_delete_folder, _rename_folder, _block, _block_file}:
        with contextlib.suppress(StateUnusable):
            refresh(client)
        assert client.report("theme", "dark") is Outcome.DISABLED
    again = client if running else device.start()
    with contextlib.suppress(StateUnusable):  # damage under a running app is told once
        refresh(again)
    for started in (again, device.start()):
        assert started.report("theme", "dark") is Outcome.DISABLED
        assert started.flush(HANG_SECONDS) or running
    assert device.left() == []
    last = device.start()
    last.enable()
    device.now += DAY  # where all was lost today is over
    assert last.report("homepage", "a.example") is Outcome.QUEUED, "a yes is a yes"
    assert last.flush(HANG_SECONDS)
    again = device.start()
    assert again.report("homepage", "a.example") is Outcome.QUEUED, "and is kept"


@pytest.mark.parametrize("happens", MISHAPS)
def test_a_preference_survives_every_loss_of_the_state(
    device: Device, happens: Callable[[Device], None]
) -> None:
    client = device.start()
    client.prefer(0.7)
    client.close(0)
    happens(device)
    again = device.start()
    if again.report("crashed", "yes") is not Outcome.QUEUED:
        assert again.report("crashed", "yes") is Outcome.DISABLED, "nothing is known at all"
        return
    assert again.report("theme", "dark") is Outcome.DECLINED
    assert again.flush(HANG_SECONDS)
    assert device.left() == ["crashed/0.5"]


@pytest.mark.parametrize("happens", MISHAPS)
def test_spent_budget_survives_every_loss_of_the_state(
    device: Device, happens: Callable[[Device], None]
) -> None:
    for _ in range(3):
        client = device.start()
        client.enable()  # also where nothing is known any more
        client.report("theme", "dark")
        client.flush(HANG_SECONDS)
        client.close(0)
        happens(device)
        with contextlib.suppress(NotADirectoryError, FileNotFoundError, IsADirectoryError):
            if happens in {_block, _block_file, _rename_folder}:
                break
    client = device.start()
    client.enable()
    client.report("theme", "dark")
    client.flush(HANG_SECONDS)
    assert device.left() == ["theme"]


def test_a_state_lost_with_its_records_is_off_and_logged(
    device: Device, caplog: pytest.LogCaptureFixture
) -> None:
    device.start().close(0)
    _overwrite_file_and_witness(device)
    with caplog.at_level(logging.WARNING, "hubbub.client"):
        client = device.start()
    assert client.report("theme", "dark") is Outcome.DISABLED
    assert client.ledger().counts["consent_unknown"] == 1
    assert [r.message for r in caplog.records if "until enable()" in r.message]
    client.enable()
    assert client.report("theme", "dark") is Outcome.ALREADY_REPORTED, "today may have been"
    device.now += DAY
    assert client.report("theme", "dark") is Outcome.QUEUED


def test_a_first_start_without_storage_is_no_lost_state(device: Device) -> None:
    device.folder.write_text("a file")
    assert device.start().report("theme", "dark") is Outcome.QUEUED


def test_an_opt_out_is_stored_although_the_folder_was_never_usable(device: Device) -> None:
    device.folder.write_text("a file")
    client, other = device.start(), device.start()
    other.report("homepage", "a.example")
    store_reports(other)
    client.disable()
    assert device.start().report("theme", "dark") is Outcome.DISABLED
    other.report("homepage", "a.example")
    assert other.flush(HANG_SECONDS)
    assert other.report("homepage", "a.example") is Outcome.DISABLED
    assert device.left() == []
    client.enable()
    assert device.start().report("theme", "dark") is Outcome.QUEUED


def test_an_unstorable_decision_raises_and_holds_for_this_process(
    device: Device, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    device.folder.write_text("a file")
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "not" / "there"))
    client = device.start()
    assert client.report("theme", "dark") is Outcome.NO_STATE
    for say in (client.disable, client.enable, lambda: client.prefer(0.5)):
        with pytest.raises(StateUnusable, match="free space there"):
            say()
    assert client.report("theme", "dark") is Outcome.DISABLED
    assert not client_state(client).device_state().is_on


def test_decisions_in_memory_are_stored_once_the_folder_can_be_used(device: Device) -> None:
    device.folder.write_text("a file")
    client = device.start()
    client.report("theme", "dark")
    client.flush(HANG_SECONDS)
    client.prefer(0.7)
    client.disable()
    device.folder.unlink()
    again = device.start()
    assert isinstance(client_state(again), FolderState)
    assert again.report("theme", "dark") is Outcome.DISABLED
    again.enable()
    assert again.report("theme", "dark") is Outcome.DECLINED
    again.prefer(None)
    assert again.report("theme", "dark") is Outcome.ALREADY_REPORTED


def test_a_process_with_a_folder_and_one_in_memory_share_limits_and_consent(device: Device) -> None:
    device.start().close(0)
    _block(device)
    memory = device.start()
    assert isinstance(client_state(memory), MemoryState)
    device.folder.unlink()
    device.folder.with_name("away").rename(device.folder)
    folder = device.start()
    assert isinstance(client_state(folder), FolderState)
    for client in (memory, folder):
        client.report("theme", "dark")
    for client in (memory, folder):
        client.flush(HANG_SECONDS)
    assert device.left() == ["theme"]
    device.now += DAY
    for client in (memory, folder):
        refresh(client)
        client.report("theme", "dark")
    for client in (folder, memory):
        client.flush(HANG_SECONDS)
    assert device.left() == ["theme", "theme"]
    folder.disable()
    memory.report("homepage", "a.example")
    memory.flush(HANG_SECONDS)
    assert memory.report("homepage", "a.example") is Outcome.DISABLED
    folder.enable()
    refresh(memory)
    memory.disable()
    folder.report("homepage", "a.example")
    folder.flush(HANG_SECONDS)
    assert device.left() == ["theme", "theme"]


def test_an_opt_out_survives_a_kill_between_its_two_writes(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = device.start()
    client.report("theme", "dark")
    store_reports(client)
    write = Witness.write

    def killed(self: Witness, moment: object) -> None:
        write(self, moment)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Witness, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            client.disable()
    again = device.start()
    assert again.report("theme", "dark") is Outcome.DISABLED
    assert again.waiting == 0


def test_an_opt_out_is_stored_although_its_witness_cannot_be_written(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = device.start()

    def raise_full(*_: object) -> None:
        raise StateUnusable("no space left; free space there")

    with monkeypatch.context() as patched:
        patched.setattr(Witness, "write", raise_full)
        with pytest.raises(StateUnusable, match="no space left"):
            client.disable()
    assert device.start().report("theme", "dark") is Outcome.DISABLED
    _overwrite(device)
    assert device.start().report("theme", "dark") is Outcome.DISABLED, "the next start told it"


def test_forgetting_leaves_no_copy_that_remembers(device: Device) -> None:
    client = device.start()
    client.report("homepage", "a.example")
    client.flush(HANG_SECONDS)
    client.close(0)
    secret = FolderState(device.folder).device_state().secret
    path = device.folder / DATABASE
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as rows:
        rows.execute("UPDATE ledger SET account = 'none'")
        rows.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    client = device.start()
    assert (device.folder / f"damaged.{DATABASE}").exists()
    client.disable(forget=True)
    everything = b"".join(p.read_bytes() for p in device.folder.parent.rglob("*") if p.is_file())
    assert secret not in everything
    assert client_state(client).device_state().accounts["homepage"].responses == {}
    assert all(
        not account["epochs"]
        for account in json.loads(device.witness.read_bytes())["accounts"].values()
    )
    _overwrite(device)
    again = device.start()
    assert again.report("theme", "dark") is Outcome.DISABLED
    again.enable()
    assert again.report("theme", "dark") is Outcome.ALREADY_REPORTED, "today is over"


def test_forgetting_without_a_usable_folder_stops_and_names_the_failure(
    device: Device,
) -> None:
    device.start().close(0)
    _block_file(device)
    client = device.start()
    assert isinstance(client_state(client), MemoryState)
    with pytest.raises(StateUnusable, match="cannot be used, so its content cannot be deleted"):
        client.disable(forget=True)
    assert client.report("theme", "dark") is Outcome.DISABLED
    assert device.start().report("theme", "dark") is Outcome.DISABLED


def _copy(device: Device, to: str) -> None:
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            shutil.copy(
                device.folder / f"{DATABASE}{suffix}", device.folder.parent / f"{to}{suffix}"
            )


def _put_back(device: Device, copy: str) -> None:
    """Over the live file, in place, as `cp` does."""
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            shutil.copy(
                device.folder.parent / f"{copy}{suffix}", device.folder / f"{DATABASE}{suffix}"
            )


@pytest.mark.parametrize("processes", [1, 2])
def test_an_older_file_copied_over_the_live_one_is_never_trusted(
    device: Device, processes: int
) -> None:
    clients = [device.start() for _ in range(processes)]
    _copy(device, "before")
    for round_ in range(4):
        for client in clients:
            with contextlib.suppress(StateUnusable):
                refresh(client)
            client.report("theme", "dark")
            client.flush(HANG_SECONDS)
        _copy(device, f"round{round_}")
        _put_back(device, "before" if round_ % 2 else f"round{round_ // 2}")
    for client in clients:
        client.flush(HANG_SECONDS)
        client.close(0)
    _put_back(device, "before")
    last = device.start()
    last.report("theme", "dark")
    last.flush(HANG_SECONDS)
    assert device.left() == ["theme"]


def test_two_histories_of_one_file_send_one_report(device: Device) -> None:
    """The second is as long as the first, and the copy of each holds a report that waits."""
    client = device.start()
    _copy(device, "before")
    for history in ("one", "two"):
        with contextlib.suppress(StateUnusable):
            refresh(client)
        client.report("theme", "dark")
        with contextlib.suppress(StateUnusable):
            store_reports(client)
        _copy(device, history)
        _put_back(device, "before")
    for history in ("one", "two", "one", "two"):
        _put_back(device, history)
        client.flush(HANG_SECONDS)
    assert device.left() in ([], ["theme"])


def test_a_state_file_from_before_the_opt_out_is_not_trusted(device: Device) -> None:
    client = device.start()
    client.report("theme", "dark")
    store_reports(client)
    client.close(0)
    shutil.copytree(device.folder, device.folder.with_name("backup"))
    client = device.start()
    client.disable()
    client.close(0)
    shutil.rmtree(device.folder)
    shutil.copytree(device.folder.with_name("backup"), device.folder)
    again = device.start()
    assert again.waiting == 0
    assert again.report("theme", "dark") is Outcome.DISABLED
    again.enable()
    again.flush(HANG_SECONDS)
    assert device.left() == []


def test_a_witness_never_loses_spent_budget(device: Device) -> None:
    client = device.start()
    _copy(device, "before")
    client.report("theme", "dark")
    client.flush(HANG_SECONDS)
    _put_back(device, "before")
    with contextlib.suppress(StateUnusable):
        client_state(client).take(1, 1000, device.now)
    moment = Witnesses(device.folder).beside[0].read()
    assert moment
    assert sum(moment.accounts["theme"].epochs.values()) == 1


def _as_of_0_1(device: Device) -> None:
    """The state and the witness as version 0.1 left them."""
    with contextlib.closing(sqlite3.connect(device.folder / DATABASE)) as rows, rows:
        rows.execute("DELETE FROM meta WHERE name IN ('head', 'witnessed', 'sum')")
        (name,) = rows.execute("SELECT value FROM meta WHERE name = 'state'").fetchone()
        (commits,) = rows.execute("SELECT value FROM meta WHERE name = 'commits'").fetchone()
    accounts = json.loads(device.witness.read_bytes())["accounts"]
    document = {"state": name, "commits": commits, "accounts": accounts}
    device.witness.write_text(json.dumps(document))
    (device.folder / "lock").write_bytes(b"")


@pytest.mark.parametrize("on", [True, False])
def test_a_state_of_version_0_1_continues_with_its_own_consent(device: Device, *, on: bool) -> None:
    client = device.start()
    client.report("theme", "dark")
    client.flush(HANG_SECONDS)
    client.prefer(1.5)
    if not on:
        client.disable()
    client.close(0)
    _as_of_0_1(device)
    client = device.start()
    outcome = Outcome.ALREADY_REPORTED if on else Outcome.DISABLED
    assert client.report("theme", "dark") is outcome
    assert client.ledger().counts.keys() <= {"disabled"}
    assert client_state(client).device_state().consent.preference == 1.5
    client.close(0)
    _overwrite(device)
    assert device.start().report("theme", "dark") is outcome, "the new witness knows"


def test_budget_spent_in_version_0_1_survives_forgetting(device: Device) -> None:
    client = device.start()
    client.report("theme", "dark")
    client.report("homepage", "a.example")
    client.flush(HANG_SECONDS)
    spent = {metric.name: metric.spent for metric in client.ledger().metrics}
    client.close(0)
    _as_of_0_1(device)
    client = device.start()
    client.disable(forget=True)
    assert {metric.name: metric.spent for metric in client.ledger().metrics} == spent
    assert client.ledger().payloads == ()
    client.close(0)
    _overwrite(device)
    again = {metric.name: metric.spent for metric in device.start().ledger().metrics}
    assert again == spent, "the witness has the sums"


def test_a_lost_state_of_version_0_1_is_off_and_its_budget_is_spent(device: Device) -> None:
    client = device.start()
    client.report("theme", "dark")
    client.flush(HANG_SECONDS)
    client.close(0)
    _as_of_0_1(device)
    _overwrite(device)
    client = device.start()
    assert client.report("theme", "dark") is Outcome.DISABLED
    client.enable()
    assert client.report("theme", "dark") is Outcome.ALREADY_REPORTED
    spent = {metric.name: metric.spent for metric in client.ledger().metrics}
    assert spent["theme"] > 0.99


def test_version_0_1_beside_this_one_is_no_damage(device: Device) -> None:
    """An update while the app runs: the old process writes without sum and head."""
    client = device.start()
    client.report("homepage", "a.example")
    store_reports(client)
    with contextlib.closing(sqlite3.connect(device.folder / DATABASE)) as rows, rows:
        rows.execute("UPDATE meta SET value = value + 1 WHERE name = 'commits'")
        account = {"spent": 1.0, "floor": -1, "epochs": {}, "responses": {}, "losses": {}}
        rows.execute("INSERT INTO ledger VALUES ('theme', ?)", (json.dumps(account),))
    assert client.flush(HANG_SECONDS)
    assert client.ledger().counts == {}
    assert device.left() == ["homepage"]


@pytest.mark.parametrize("fact", ["generation", "preference"])
def test_a_change_by_version_0_1_is_read_and_not_taken_for_damage(
    device: Device, fact: str
) -> None:
    """It counts no commit for it. Taken for damage, the secret went, and all that waited."""
    client = device.start()
    client.report("homepage", "a.example")
    store_reports(client)
    before = client_state(client).device_state()
    client.close(0)
    with contextlib.closing(sqlite3.connect(device.folder / DATABASE)) as rows, rows:
        rows.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (fact, 1))
    again = device.start()
    expected = Outcome.DISABLED if fact == "generation" else Outcome.DECLINED
    assert again.report("homepage", "b.example") is expected
    after = client_state(again).device_state()
    assert after.secret == before.secret
    assert not {"state_damaged", "state_lost"} & after.counts.keys()
    assert client_state(again).waiting() == (0 if fact == "generation" else 1)


def test_an_opt_in_that_may_be_damage_does_not_count(device: Device) -> None:
    client = device.start()
    client.prefer(0.5)
    client.disable()
    client.close(0)
    with contextlib.closing(sqlite3.connect(device.folder / DATABASE)) as rows, rows:
        rows.execute("UPDATE meta SET value = 2 WHERE name IN ('generation', 'preference')")
    device.witness.unlink()
    again = device.start()
    assert again.report("theme", "dark") is Outcome.DISABLED
    again.enable()
    assert again.report("theme", "dark") is Outcome.DECLINED


def _report_on_and_on(  # noqa: PLR0917 another process gets all it needs
    path: Path,
    folder: Path,
    temporary: str,
    now: float,
    leave: str,
    rounds: int,
    done: "Writes | None" = None,
) -> None:
    import tempfile

    from hubbub.bundles import read_bundle

    tempfile.tempdir = temporary
    bundle, shuffler = read_bundle(path), FakeShuffler()
    client = Client(
        bundle, state_in(folder, bundle), shuffler, hold_seconds=None, clock=FakeClock(now)
    )
    for _ in range(rounds):
        with contextlib.suppress(StateUnusable):
            refresh(client)
        client.report("theme", "dark")
        client.report("crashed", "yes")
        client.flush(HANG_SECONDS)
        if done:
            done.put(leave)
    distinct = {report.sealed: report.stream for report in shuffler.reports()}
    Path(leave).write_text("\n".join(distinct.values()))


def test_processes_without_a_folder_share_one_budget(
    device: Device, signed: Signed, memory_folder: Path
) -> None:
    """theme: one report a day. crashed: three an hour, epsilon 2 of 10 for life."""
    device.folder.write_text("a file")
    spawn = multiprocessing.get_context("spawn")
    for hour in range(2):
        started = [
            spawn.Process(
                target=_report_on_and_on,
                args=(
                    signed.path,
                    device.folder,
                    str(memory_folder / "tmp"),
                    device.now + 3600 * hour,
                    str(memory_folder / f"left-{hour}-{n}"),
                    3,
                ),
            )
            for n in range(2)
        ]
        for process in started:
            process.start()
        for process in started:
            process.join()
            assert process.exitcode == 0
    stream_lists = [path.read_text().split() for path in memory_folder.glob("left-*")]
    streams = [stream for stream_list in stream_lists for stream in stream_list]
    assert streams.count("theme") == 1
    assert streams.count("crashed") == 5


def test_restored_files_under_two_processes_exceed_no_limit(
    device: Device, signed: Signed, memory_folder: Path
) -> None:
    """Again and again, by rename: each process may find itself on a file of its own."""
    device.start().close(0)
    _copy(device, "before")
    spawn = multiprocessing.get_context("spawn")
    places = [str(memory_folder / f"left-{n}") for n in range(2)]
    shared = (signed.path, device.folder, str(memory_folder / "tmp"), device.now)
    rounds: Writes = spawn.SimpleQueue()
    started = [
        spawn.Process(target=_report_on_and_on, args=(*shared, place, 25, rounds))
        for place in places
    ]
    for process in started:
        process.start()
    for _ in range(2 * 25):  # a round of either is over, and the other is in the middle of one
        rounds.get()
        for suffix in ("-wal", "-shm"):
            (device.folder / f"{DATABASE}{suffix}").unlink(missing_ok=True)
        shutil.copy(memory_folder / "before", memory_folder / "copy")
        (memory_folder / "copy").rename(device.folder / DATABASE)
    for process in started:
        process.join()
    assert [process.exitcode for process in started] == [0, 0]
    streams = [stream for place in places for stream in Path(place).read_text().split()]
    assert streams.count("theme") <= 1
    assert streams.count("crashed") <= 3
