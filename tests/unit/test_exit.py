"""A program that ends without a word: what it queued is sent, or waits for the next start."""

import itertools
import sys
from pathlib import Path

import grpc
import pytest

from hubbub.client import Client, Outcome
from hubbub.client.testing import FakeServer
from tests.support.bundles import Signed
from tests.support.client_parts import disconnect, store_reports
from tests.support.moment import far_from_midnight
from tests.support.programs import run_program
from tests.support.waiting import HANG_SECONDS, eventually

pytestmark = pytest.mark.slow

PROGRAM = """
import sys
import grpc

from hubbub.client import Client

bundle, folder, shuffler = sys.argv[1:]
client = Client.from_bundle(
    bundle, state_dir=folder, shuffler=shuffler, insecure=True, hold_seconds=3600
)
print(client.report("theme", "dark").value)
"""


def _run(signed: Signed, folder: Path, shuffler: str) -> str:
    """A program that reports once, and ends; it ends, whoever does not answer."""
    done = run_program(
        sys.executable, "-c", PROGRAM, str(signed.path), str(folder), shuffler, check=True
    )
    return done.stdout.strip()


def test_a_program_that_ends_sends_what_it_can(signed: Signed, tmp_path: Path) -> None:
    """It has two seconds for it, which a busy machine may need to load gRPC: then another tries."""
    folders = (tmp_path / str(number) for number in itertools.count())
    with FakeServer() as server:

        def has_received() -> bool:
            assert _run(signed, next(folders), server.address) == "queued"
            return bool(server.received)

        eventually(has_received)


def test_a_program_that_ends_leaves_the_rest_to_the_next_start(
    signed: Signed, tmp_path: Path
) -> None:
    with FakeServer() as server:
        server.failing = grpc.StatusCode.UNAVAILABLE
        assert _run(signed, tmp_path / "state", server.address) == "queued"
        assert not server.received
        server.failing = None
        client = Client.from_bundle(
            signed.path,
            state_dir=tmp_path / "state",
            shuffler=server.address,
            insecure=True,
            hold_seconds=3600,
        )
        assert client.waiting == 1
        assert client.flush(HANG_SECONDS)
        client.close()
        assert len({report.sealed for report in server.received}) == 1


INTERRUPTED = """
import signal
import sys

from hubbub.client import Client

bundle, folder, shuffler = sys.argv[1:]
client = Client.from_bundle(bundle, state_dir=folder, shuffler=shuffler, hold_seconds=3600)
client.report("theme", "dark")


def interrupt(seconds, **_):
    signal.raise_signal(signal.SIGINT)
    raise AssertionError


client._sender.flush = interrupt
"""


def test_an_interrupt_at_exit_prints_nothing_and_keeps_waiting_reports(
    signed: Signed, tmp_path: Path
) -> None:
    far_from_midnight(1)
    arguments = [str(signed.path), str(tmp_path / "state"), "http://127.0.0.1:1"]
    done = run_program(sys.executable, "-c", INTERRUPTED, *arguments, check=True)
    assert not done.stdout + done.stderr
    again = Client.from_bundle(signed.path, state_dir=tmp_path / "state", hold_seconds=None)
    store_reports(again)
    assert again.report("theme", "dark") is Outcome.ALREADY_REPORTED
    disconnect(again)
    again.close(0)
