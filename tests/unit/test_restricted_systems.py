"""A client starts and runs wherever its app does: what the system refuses raises out of nothing."""

import errno
import fcntl
import os
import pwd
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from math import inf, nan
from pathlib import Path
from types import SimpleNamespace

import pytest

from hubbub.client import Client, Outcome, TryAgain, default_client, files, transport_to
from hubbub.client import client as sdk
from hubbub.client.state.payload_journal import Journal
from hubbub.errors import BundleRefused, StateUnusable
from tests.support.bundles import Signed
from tests.support.http_shuffler import http_shuffler
from tests.support.programs import run_program
from tests.support.waiting import HANG_SECONDS, eventually

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("home", [None, "", "relative", "/" + "a" * 5000])
@pytest.mark.parametrize("has_folder", [False, True])
def test_a_user_without_a_home_reports(
    home: str | None,
    *,
    has_folder: bool,
    signed: Signed,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A container that runs as some number: docker run --user 12345."""

    def nobody(number: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {number}")

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("HOME", raising=False)
    if home is not None:
        monkeypatch.setenv("HOME", home)
    folder = tmp_path / "state" if has_folder else None
    with http_shuffler() as server:
        for _ in range(2):
            client = default_client.init(
                signed.path, strict=False, state_dir=folder, shuffler=server.address
            )
            assert client is not None
            default_client.report("theme", "dark")
            assert client.close(HANG_SECONDS)
        assert len(server.received) == 1, "the second run knows of the first"


def _reports_nothing(client: Client) -> None:
    assert client.report("theme", "dark") is Outcome.DISABLED
    assert client.flush(HANG_SECONDS)
    with pytest.raises(StateUnusable, match="no state of this device"):
        client.disable()
    assert client.close(HANG_SECONDS)


@pytest.mark.parametrize("fault", ["trust is a folder", "trust is newer", "no bundle", "no files"])
def test_a_start_that_the_system_prevents_raises_nothing(
    fault: str, signed: Signed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path, trust = None if fault == "no bundle" else signed.path, tmp_path / "state.trust.json"
    if fault == "trust is a folder":
        trust.mkdir()
    elif fault == "trust is newer":
        trust.write_text('{"version": 2}')
    elif fault == "no files":

        def refuse(*_: object) -> int:
            raise OSError(errno.EMFILE, "Too many open files")

        monkeypatch.setattr("hubbub.bundles.signed_bundle._open_at_once", refuse)
    for start in (Client.from_bundle, default_client.init):
        client = start(path, strict=False, state_dir=tmp_path / "state")
        assert client
        _reports_nothing(client)
        with pytest.raises(BundleRefused):
            start(path, strict=True, state_dir=tmp_path / "state")
    assert not (tmp_path / "state").exists()


WITHOUT_SQLITE = """
import logging, sys
sys.modules["sqlite3"] = sys.modules["_sqlite3"] = None
import hubbub.client
logging.basicConfig()
client = hubbub.client.Client.from_bundle(sys.argv[1], strict=False)
print(client.report("theme", "dark").value, client.flush(9), client.close(9))
print(hubbub.client.init(sys.argv[1]).report("theme", "dark").value)
"""


def test_a_python_without_sqlite_reports_nothing(signed: Signed) -> None:
    done = run_program(sys.executable, "-c", WITHOUT_SQLITE, str(signed.path), check=True)
    assert done.stdout.split() == ["disabled", "True", "True", "disabled"]
    assert "nothing is reported: import of sqlite3" in done.stderr


_LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
from hubbub.client import Client
client = Client.from_bundle(sys.argv[1], strict=False, insecure=True, shuffler="127.0.0.1:1")
print(client.report("theme", "dark").value, client.flush(0), client.close(0))
"""


def test_a_file_size_limit_of_zero_does_not_end_the_app(signed: Signed, tmp_path: Path) -> None:
    """A limit of zero bytes (ulimit -f 0): the system kills who writes, unless it ignores that."""
    surroundings = {**os.environ, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
    command = [sys.executable, "-c", _LIMITED, str(signed.path)]
    done = subprocess.run(command, capture_output=True, text=True, env=surroundings, check=False)
    assert (done.returncode, done.stdout) == (0, "no_state False True\n"), done.stderr


class _NoThreads:
    """The system starts no thread while `refused`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.refused = True
        start = threading.Thread.start

        def refuse(thread: threading.Thread) -> None:
            if self.refused and "process_request" not in thread.name:  # not the other end's
                raise RuntimeError("can't start new thread")
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", refuse)


def test_without_threads_flush_sends_and_a_thread_starts_later(
    signed: Signed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with http_shuffler() as server:
        threads = _NoThreads(monkeypatch)
        client = Client.from_bundle(
            signed.path, state_dir=tmp_path / "state", shuffler=server.address, hold_seconds=0
        )
        assert client.report("theme", "dark") is Outcome.QUEUED
        assert client.flush(HANG_SECONDS)
        assert len(server.received) == 1
        threads.refused = False
        assert client.report("homepage", "a.example") is Outcome.QUEUED
        assert eventually(lambda: len(server.received) == 2)
        threads.refused = True
        assert client.report("homepage", "b.example") is Outcome.QUEUED
        assert client.close(HANG_SECONDS)
        assert len(server.received) == 3


FEW = """
import os, resource
from hubbub.client import SealedReport, TryAgain, transport_to
from hubbub.client.transport import grpc_connection  # loaded while there are files for it
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
files = []
try:
    while True:
        files.append(os.open(os.devnull, os.O_RDONLY))
except OSError:
    pass
for free in range(4):
    transport = transport_to("127.0.0.1:1", roots=None, insecure=True, transport="grpc")
    try:
        transport.submit([], 900)
    except TryAgain as error:
        print(error.reason)
    os.close(files.pop())
"""


def test_grpc_is_not_started_if_it_would_abort_the_process() -> None:
    """It does where the first descriptors, or threads of its own, are not to be had."""
    done = run_program(sys.executable, "-c", FEW, check=True, env=os.environ)
    assert done.stdout.split() == ["no_descriptors"] * 4


def test_grpc_is_not_started_without_a_free_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    _NoThreads(monkeypatch)
    transport = transport_to("127.0.0.1:1", roots=None, insecure=True, transport="grpc")
    with pytest.raises(TryAgain, match="no_threads"):
        transport.submit([], HANG_SECONDS)


_DAEMON = """
import os, sys
from hubbub.client import Client
client = Client.from_bundle(
    sys.argv[1], strict=False, shuffler=sys.argv[2], state_dir=sys.argv[3], hold_seconds=None
)
client.report("theme", "dark")
client.ledger()
if "fork" in sys.argv and os.fork():
    os.wait()
    os._exit(0)
os.closerange(3, 256)
logs = [open(f"{sys.argv[3]}.{number}.log", "w") for number in range(8 * ("open" in sys.argv))]
outcome = client.report("homepage", "a.example")
print(outcome.value, client.flush(60), client.close(60), client.waiting, client.dropped)
for log in logs:
    log.write("mine")
    log.close()
"""


def _closed_descriptors(signed: Signed, address: str, folder: Path, *words: str) -> str:
    command = [sys.executable, "-c", _DAEMON, str(signed.path), address, str(folder), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("fork", [(), ("fork",)])
def test_a_daemon_that_closes_all_descriptors_sends_what_it_reports(
    fork: tuple[str, ...], signed: Signed, tmp_path: Path
) -> None:
    with http_shuffler() as server:
        line = _closed_descriptors(signed, server.address, tmp_path / "state", *fork)
        assert line == "queued True True 0 {}\n"
        assert len(server.received) == 2


@pytest.mark.parametrize("fork", [(), ("fork",)])
def test_a_daemon_that_reuses_all_descriptors_damages_no_file_and_sends_later(
    fork: tuple[str, ...], signed: Signed, tmp_path: Path
) -> None:
    """SQLite would write or lock the daemon's files, whose numbers were its own."""
    folder = tmp_path / "state"
    with http_shuffler() as server:
        line = _closed_descriptors(signed, server.address, folder, "open", *fork)
        assert line == "queued False False 1 {}\n"
        assert [path.read_text() for path in tmp_path.glob("*.log")] == ["mine"] * 8
        with Client.from_bundle(signed.path, state_dir=folder, shuffler=server.address) as client:
            assert client.flush(HANG_SECONDS)
        assert len(server.received) == 2


@pytest.mark.parametrize(
    ("file", "hold_seconds"),
    [
        ("hubbub.sqlite3", 3600),
        ("state.lock", None),
        pytest.param("hubbub.sqlite3", None, marks=pytest.mark.thorough),
        pytest.param("state.lock", 3600, marks=pytest.mark.thorough),
    ],
)
def test_flush_and_close_end_while_another_process_locks_the_state(
    file: str,
    hold_seconds: float | None,
    signed: Signed,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a process of the app that is stopped in the middle of a write, or a backup's tool."""
    monkeypatch.setattr(files, "_USUAL_SECONDS", HANG_SECONDS)
    monkeypatch.setattr(sdk, "_STOP_SECONDS", 0.1)
    folder = tmp_path / "state"
    with http_shuffler() as server:

        def start() -> Client:
            return Client.from_bundle(
                signed.path, state_dir=folder, shuffler=server.address, hold_seconds=hold_seconds
            )

        client, ended = start(), list[bool]()

        def end() -> None:
            ended.extend([client.flush(0), client.close(0)])

        with _locked(folder / file if file.endswith("3") else tmp_path / file):
            assert client.report("theme", "dark") is Outcome.QUEUED
            ending = threading.Thread(target=end, daemon=True)
            ending.start()
            ending.join(HANG_SECONDS / 2)
            assert ended == [False, False]
            monkeypatch.setattr(files, "_USUAL_SECONDS", 0.01)
            assert client.waiting == 1
        if client._background and client._background._thread:
            client._background._thread.join()
        with start() as again:
            assert again.flush(HANG_SECONDS)
        assert len(server.received) == 1


@pytest.mark.parametrize("is_entered", [False, True])
def test_reports_in_memory_that_cannot_be_sent_are_dropped_at_close(
    signed: Signed, tmp_path: Path, *, is_entered: bool
) -> None:
    """As on a disk that is full from start to end: there is no next start that could send it."""
    (tmp_path / "file").touch()
    drops: list[tuple[str, str]] = []
    client = Client.from_bundle(
        signed.path,
        state_dir=tmp_path / "file" / "state",
        shuffler="127.0.0.1:9",
        transport="http",
        hold_seconds=None,
        strict=False,
        on_drop=lambda *drop: drops.append(drop),
    )
    assert client.report("theme", "dark") is Outcome.QUEUED
    if is_entered:
        assert not client.flush(0)
    assert client.waiting == 1
    assert not client.close(0)
    assert (client.waiting, client.dropped) == (0, {"unstored": 1})
    assert drops == [("theme", "unstored")]


@pytest.mark.parametrize("has_journal", [False, True])
def test_reports_without_a_journal_that_cannot_be_stored_are_dropped_at_close(
    signed: Signed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_journal: bool
) -> None:
    def no_room(_folder: Path, _number: int) -> Journal:
        raise OSError(errno.ENOSPC, "no space left on device")

    if not has_journal:
        monkeypatch.setattr("hubbub.client.state.payload_journal.Journal", no_room)
    monkeypatch.setattr(files, "_SHORTEST_SECONDS", 0.01)
    folder = tmp_path / "state"
    client = Client.from_bundle(
        signed.path, state_dir=folder, shuffler="127.0.0.1:9", hold_seconds=None
    )
    with _locked(folder / "hubbub.sqlite3"):
        assert client.report("theme", "dark") is Outcome.QUEUED
        assert not client.close(0)
    assert client.waiting == has_journal
    assert client.dropped == ({} if has_journal else {"unstored": 1})


def test_a_pausing_background_entry_continues_when_a_thread_flushes(
    signed: Signed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At exit the background may be entering a thousand reports, and pauses after each."""
    client = Client.from_bundle(
        signed.path, state_dir=tmp_path, shuffler="127.0.0.1:9", hold_seconds=None
    )
    flushing = threading.Thread(target=lambda: client.flush(HANG_SECONDS))
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        flushing.start()
        eventually(lambda: client._sender.entering.is_flushing)

    for metric, value in (("theme", "dark"), ("homepage", "a.example")):
        assert client.report(metric, value) is Outcome.QUEUED
    with monkeypatch.context() as patch:
        patch.setattr(
            "hubbub.client.delivery.sealing_into_outbox.time", SimpleNamespace(sleep=pause)
        )
        client._sender.entering.enter(gently=True)
    assert len(pauses) == 1
    client._sender.stop()
    flushing.join(HANG_SECONDS)
    client.close(0)


@pytest.mark.parametrize(("timeout", "is_sent"), [(inf, True), (1e300, True), (nan, False)])
def test_a_flush_takes_any_number_of_seconds(
    signed: Signed, tmp_path: Path, timeout: float, *, is_sent: bool
) -> None:
    """No number of seconds is none."""
    with http_shuffler() as server:
        with Client.from_bundle(
            signed.path, state_dir=tmp_path, shuffler=server.address, hold_seconds=None
        ) as client:
            assert client.report("theme", "dark") is Outcome.QUEUED
            assert client.flush(timeout) is is_sent
        assert len(server.received) == 1


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    if path.suffix == ".lock":
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        return
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
