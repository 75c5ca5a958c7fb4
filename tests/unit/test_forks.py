"""A process that forks: the child draws other coins, and sends nothing that is its parent's."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hubbub.client.testing import FakeServer
from hubbub.signing.testing import make_bundle
from tests.conftest import CATALOG
from tests.support.bundles import Signed
from tests.support.http_shuffler import http_shuffler
from tests.support.programs import run_program

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows does not fork"),
]

APP = """
import json, os, sys, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of Python itself: a fork beside a thread
from pathlib import Path
from hubbub.bundles import read_bundle
from hubbub.client import Client, FolderState, SystemClock
from hubbub.client.testing import FakeShuffler
from tests.support.client_parts import drawn_reports

bundle, folder = read_bundle(Path(sys.argv[1])), Path(sys.argv[2])
hold = float(sys.argv[3]) if sys.argv[3] != "none" else None
shuffler = FakeShuffler()
now = time.time()  # no epoch ends meanwhile
clock = SystemClock(lambda: now)
client = Client(bundle, FolderState(folder), shuffler, hold_seconds=hold, clock=clock)

def tell(who, **what):  # each into a file of its own: a pipe mixes what two processes write
    (folder.parent / f"{who}.json").write_text(json.dumps(what))

def drawn():
    return [one.payload.hex() for _, one in drawn_reports(client)]

def sent():
    assert client.close(900)
    return [report.sealed.hex() for report in shuffler.reports()]

said = [client.report("homepage", "a.example").value for _ in range(30)]
said.append(client.report("theme", "dark").value)
if not (pid := os.fork()):
    inherited = len(drawn_reports(client))
    said = [client.report("homepage", "a.example").value for _ in range(30)]
    said.append(client.report("theme", "dark").value)
    tell("child", outcomes=said, inherited=inherited, drawn=drawn(), sent=sent())
    os._exit(0)
before = drawn()
assert os.waitpid(pid, 0)[1] == 0
tell("parent", outcomes=said, drawn=before, sent=sent())
"""


WHO = ("parent", "child")


def _run(signed: Signed, folder: Path, hold: str) -> dict[str, dict[str, Any]]:
    done = run_program(sys.executable, "-c", APP, str(signed.path), str(folder), hold)
    assert done.returncode == 0, done.stderr
    return {who: json.loads((folder.parent / f"{who}.json").read_text()) for who in WHO}


@pytest.mark.parametrize("hold", ["none", "30"])
def test_a_child_repeats_no_coin_and_sends_nothing_of_its_parents(
    signed: Signed, tmp_path: Path, hold: str
) -> None:
    output = _run(signed, tmp_path / "state", hold)
    parent, child = output["parent"], output["child"]
    assert child["inherited"] == 0
    assert parent["outcomes"] == ["queued"] * 31
    assert child["outcomes"] == ["queued"] * 30 + ["already_reported"]
    assert parent["drawn"][:30] != child["drawn"]
    sent, sent_by_parent = child["sent"], parent["sent"]
    assert len(set(sent) | set(sent_by_parent)) == len(sent) + len(sent_by_parent) == 61
    assert not list((tmp_path / "state").glob("*.journal"))


def test_a_child_shares_its_parents_permanent_response(signed: Signed, tmp_path: Path) -> None:
    """Same device, same secret: one cohort, one permanent response."""
    output = _run(signed, tmp_path / "state", "none")
    payloads = output["parent"]["drawn"][:30] + output["child"]["drawn"]
    assert len({payload[:4] for payload in payloads}) == 1


LEAVES = """
import os, sys, time, warnings
from pathlib import Path
warnings.simplefilter("ignore", DeprecationWarning)
from hubbub.client import Client
from hubbub.client.delivery import background
from tests.support.client_parts import send_once, store_reports
from tests.support.waiting import eventually

background._LOOK_SECONDS = 0.2
client = Client.from_bundle(
    sys.argv[1], state_dir=sys.argv[2], shuffler=sys.argv[3], insecure=True, hold_seconds=0
)
client.report("theme", "dark")
assert client.flush(900)  # gRPC has been used: a child must not
if not (pid := os.fork()):
    for n in range(7):
        client.report("homepage", "a.example")
    store_reports(client)
    assert send_once(client, 900) == 60, "it leaves them to its parent, for all its life"
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
eventually(lambda: not client.waiting and not list(Path(sys.argv[2]).glob("*.journal"))[1:])
assert client.close(900)
"""


def test_a_child_whose_parent_has_used_grpc_leaves_its_reports_to_it(tmp_path: Path) -> None:
    (tmp_path / "metrics.toml").write_text(CATALOG)
    with FakeServer() as nobody:
        bundle = make_bundle(tmp_path / "metrics.toml", shuffler=nobody.address)
    (tmp_path / "app.hubbub").write_bytes(bundle.signed)
    with FakeServer(bundle.opening) as server:
        arguments = [str(tmp_path / "app.hubbub"), str(tmp_path / "state"), server.address]
        done = run_program(sys.executable, "-c", LEAVES, *arguments, cwd=ROOT)
        assert done.returncode == 0, done.stderr
        assert len(server.payloads("homepage")) == 7
        assert len(server.received) == 8


UNSEEN = """
import ctypes, os, signal, sys, threading
from hubbub.client import Client
from tests.support.client_parts import drawn_reports
start = dict(state_dir=sys.argv[2], shuffler=sys.argv[3], hold_seconds=0)
fork = ctypes.PyDLL(None).fork  # as a program that embeds Python does: nobody tells Python
client = Client.from_bundle(sys.argv[1], **start)
step, idle = client._background._step, threading.Event()
def stepped(due):
    due = step(due)
    if due is None and drawn_reports(client) == [] and client.outcomes:
        idle.set()
    return due
client._background._step = stepped
for _ in range(2):
    assert client.report("homepage", "a.example").value == "queued"
idle.wait()  # a fork that nobody is told of copies SQLite's own locks as they are
for ends in (True, False, True, False):
    if not (pid := fork()):
        outcomes = {client.report("homepage", "a.example").value for _ in range(5)}
        assert outcomes == {"queued"} and not client.dropped
        if ends:
            os._exit(not client.close(900))
        os.kill(os.getpid(), signal.SIGKILL)
    ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert ended == (0 if ends else -signal.SIGKILL), ended
assert client.close(900)
assert Client.from_bundle(sys.argv[1], **start).close(900)  # what the killed ones left
"""


def test_a_child_of_an_unseen_fork_starts_again(signed: Signed, tmp_path: Path) -> None:
    with http_shuffler() as server:
        arguments = [str(signed.path), str(tmp_path / "state"), server.address]
        subprocess.run([sys.executable, "-c", UNSEEN, *arguments], check=True)
        assert len(server.received) == 2 + 4 * 5, "each is there once"
        assert len({report.sealed for report in server.received}) == 2 + 4 * 5


STARTING = """
import os, sys, threading
from hubbub.client import default_client
from hubbub.client.client import Client
starting, may_start = threading.Event(), threading.Event()
from_bundle = Client.from_bundle
def start_slowly(*path, **settings):
    starting.set()
    may_start.wait()
    return from_bundle(*path, **settings)
start = dict(state_dir=sys.argv[2], shuffler=sys.argv[3], hold_seconds=None)
Client.from_bundle = start_slowly
other = threading.Thread(target=default_client.init, args=[sys.argv[1]], kwargs=start)
other.start()
starting.wait()
Client.from_bundle = from_bundle
if not (pid := os.fork()):
    default_client.init(sys.argv[1], **start)
    default_client.report("theme", "dark")
    default_client.end()
    os._exit(0)
may_start.set()
assert os.waitpid(pid, 0)[1] == 0
other.join()
"""


def test_a_child_starts_its_client_although_its_parent_was_starting_one(
    signed: Signed, tmp_path: Path
) -> None:
    with http_shuffler() as server:
        arguments = [str(signed.path), str(tmp_path / "state"), server.address]
        subprocess.run([sys.executable, "-c", STARTING, *arguments], check=True)
        assert len(server.received) == 1


# An import in a call that is under way may need the lock of `logging`, which a fork takes.
WAITING = """
import os, threading
from hubbub.client import reentry_and_forks
import logging

class Call:
    def before_fork(self):
        thread = threading.Thread(target=logging.getLogger, args=("new",), daemon=True)
        thread.start()
        thread.join(10)
        print(thread.is_alive())

call = Call()
reentry_and_forks.follow(call, [call])
if not os.fork():
    os._exit(0)
os.wait()
"""


def test_a_call_that_delays_a_fork_may_load_the_logging_module() -> None:
    assert run_program(sys.executable, "-c", WAITING, check=True).stdout == "False\n"
