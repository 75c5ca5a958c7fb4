"""The client in what apps are put into: a folder that PyInstaller froze, and gevent's greenlets.

Both come from the package index, as `locks/foreign.lock` has them, into a folder of the test's own.
"""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from hubbub.client.testing import FakeServer
from tests.support.bundles import Signed
from tests.support.clean_environment import CALLER
from tests.support.http_shuffler import http_shuffler
from tests.support.programs import run_program

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]

FROZEN = """
import sys
from hubbub.client import Client
bundle, folder, *addresses = sys.argv[1:]
for transport, address in zip(("grpc", "http"), addresses):
    client = Client.from_bundle(
        bundle, state_dir=folder + transport, shuffler=address, transport=transport, insecure=True
    )
    print(client.report("theme", "dark").value, client.close(900))
"""
GREENLETS = """
from gevent import monkey
monkey.patch_all()
import os, sys, threading
import gevent
from hubbub.client import Client
bundle, folder, address, transport = sys.argv[1:]
client = Client.from_bundle(
    bundle, state_dir=folder, shuffler=address, transport=transport, insecure=True, hold_seconds=0
)
called, turns = threading.Event(), 0
transported = client._transport.submit
def submit(reports, seconds):
    called.set()
    return transported(reports, seconds)
client._transport.submit = submit
client.report("theme", "dark")
called.wait()
while client._transport._calls and turns < 20:
    gevent.sleep(0)
    turns += 1
print(turns, flush=True)
os._exit(0)
"""


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a program that has them beside us."""
    folder = tmp_path_factory.mktemp("foreign")
    lock = ["--require-hashes", "-r", str(ROOT / "locks" / "foreign.lock")]
    install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--target", str(folder)]
    subprocess.run([*install, "--python", sys.executable, *lock], check=True, env=CALLER)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT / "client")])}


def test_a_frozen_app_sends_over_grpc_and_http(
    foreign: dict[str, str], signed: Signed, tmp_path: Path
) -> None:
    (tmp_path / "app.py").write_text(FROZEN)
    freeze = [sys.executable, "-m", "PyInstaller", "--log-level", "ERROR", "app.py"]
    subprocess.run(
        [*freeze, "--paths", str(ROOT / "client")], cwd=tmp_path, env=foreign, check=True
    )
    with FakeServer() as grpc, http_shuffler() as http:
        app = [str(tmp_path / "dist" / "app" / "app"), str(signed.path), str(tmp_path / "state")]
        addresses = [grpc.address, http.address]
        done = subprocess.run([*app, *addresses], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines() == ["queued True"] * 2
        assert (len(grpc.received), len(http.received)) == (1, 1)


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_a_silent_shuffler_stops_no_greenlet(
    transport: str, foreign: dict[str, str], signed: Signed, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        where = f"http://{address}" if transport == "http" else address
        program = [sys.executable, "-c", GREENLETS, str(signed.path), str(tmp_path / "state")]
        done = run_program(*program, where, transport, env=foreign, check=True)
        assert int(done.stdout) == 20, "others had their turns while the call waited"
