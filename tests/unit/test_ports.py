"""Free ports: whoever is given one is alone with it for as long as it lives."""

import secrets
import socket
import subprocess
import sys

import pytest

from hubbub.installation import child_process

OTHER = """
import sys
from hubbub.installation import child_process
child_process._FIRST, child_process._LAST = int(sys.argv[1]), int(sys.argv[1]) + 1
print(child_process.free_port(), flush=True)
sys.stdin.read()
"""


def _two() -> int:
    """The first of two neighbours that are nobody's, and in no range that ports are given from."""
    while True:
        first = 10_000 + secrets.randbelow(1_999)  # no connection is given one of these
        try:
            for port in (first, first + 1):
                for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                    with socket.socket(socket.AF_INET, kind) as probe:
                        probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first


def test_a_port_is_given_to_one_process_for_as_long_as_that_lives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not for a minute: a machine with much to do may need longer until it listens."""
    first = _two()
    monkeypatch.setattr(child_process, "_FIRST", first)
    monkeypatch.setattr(child_process, "_LAST", first + 2)
    monkeypatch.setattr("time.time", lambda: 4e9)  # whatever a clock says
    with subprocess.Popen(
        [sys.executable, "-c", OTHER, str(first)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout
        assert int(other.stdout.readline()) == first
        assert child_process.free_port() == first + 1
        other.communicate("")
    assert child_process.free_port() == first


def test_a_reserved_port_is_free_and_never_given_twice() -> None:
    port_numbers = [child_process.free_port() for _ in range(30)]
    assert len(set(port_numbers)) == len(port_numbers)
    with socket.create_server(("127.0.0.1", port_numbers[0])):
        pass


def test_a_row_of_ports_is_all_free() -> None:
    first = child_process.free_port(*range(1, 7))
    for port in range(first, first + 7):
        with socket.create_server(("127.0.0.1", port)):
            pass
