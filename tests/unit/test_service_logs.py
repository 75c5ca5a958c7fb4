"""Logs of services whose reader stands still, or whose disk is full: nothing waits for them."""

import json
import logging
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hubbub.aggregator.access.audit_trail import AuditTrail, Seen
from hubbub.errors import ServiceUnavailable
from hubbub.installation.certificate_authorities import write_certificates
from hubbub.runtime.monitoring.logs import lost_lines, write_logs
from tests.support.programs import run_program
from tests.support.waiting import HANG_SECONDS

LOG = logging.getLogger("hubbub.runtime")
PROGRAM = """
import logging
from hubbub.runtime.monitoring.logs import lost_lines
from hubbub.runtime.monitoring.logs import write_logs
write_logs("json")
log = logging.getLogger("hubbub.runtime")
for number in range(3000):
    log.info("%d of many", number)
print(lost_lines(), flush=True)
input()
log.info("last")
"""

STRANGERS = """
import asyncio, socket, ssl, struct, sys
from pathlib import Path
import hubbub.{role}.__main__  # what the service loads, in its order
from hubbub.runtime.monitoring.logs import write_logs
from hubbub.runtime.rpc.server import Server
from hubbub.runtime.tls import TlsFolder

def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload

def field(name, value):
    return bytes([0, len(name)]) + name + bytes([len(value)]) + value

def no_text(port):
    trust = ssl._create_unverified_context()
    trust.set_alpn_protocols(["h2"])
    path, key = b"/hubbub.v1.Shuffler/Submit", b"\\xbe" * 100
    head = b"\\x83\\x87" + field(b":path", path) + field(b":authority", b"localhost")
    head += field(b"content-type", b"application/grpc") + field(b"te", b"trailers")
    call = frame(1, 4, 1, head + field(b"x-key", key)) + frame(0, 1, 1, bytes(5))
    with socket.create_connection(("127.0.0.1", port)) as plain:
        with trust.wrap_socket(plain) as sock:
            sock.sendall(b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n" + frame(4, 0, 0, b"") + call)
            received = b""
            while b"\\1\\5\\0\\0\\0\\1" not in received:  # the head and end of its answer
                received += sock.recv(1 << 16)

def no_handshake(port):
    with socket.create_connection(("127.0.0.1", port)) as plain:
        plain.sendall(b"GET / HTTP/1.1\\r\\n\\r\\n")
        while plain.recv(1 << 16):
            pass

async def live():
    write_logs("text")
    tls = TlsFolder(Path(sys.argv[1]), "{role}")
    server = Server("127.0.0.1:0", {{}}, tls=tls, callers=None)
    await server.start()
    for knock in (no_text, no_handshake):
        await asyncio.to_thread(knock, server._port)
    await server.stop(0)

asyncio.run(live())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "role", ["shuffler", pytest.param("aggregator", marks=pytest.mark.thorough)]
)
def test_no_stranger_writes_into_a_services_log_or_past_it(role: str, tmp_path: Path) -> None:
    """Neither by metadata that is no text nor by a handshake that fails."""
    write_certificates(tmp_path, {})
    surroundings = {name: text for name, text in os.environ.items() if name != "GRPC_VERBOSITY"}
    program = STRANGERS.format(role=role)
    done = run_program(sys.executable, "-c", program, str(tmp_path), env=surroundings)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """To which logs go instead of standard error."""
    root, path = logging.getLogger(), tmp_path / "log"
    before = list(root.handlers), root.level
    where = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    monkeypatch.setattr("hubbub.runtime.monitoring.logs._STDERR", where)
    write_logs("text")
    yield path
    os.close(where)
    root.handlers, root.level = before


def test_a_slow_reader_of_arrivals_blocks_nothing_and_learns_what_it_missed() -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert program.stdin
    assert program.stdout
    assert program.stderr
    lost = int(program.stdout.readline())
    assert lost > 0
    text = os.read(program.stderr.fileno(), 1 << 20)
    program.stdin.write(b"\n")
    text += program.communicate(timeout=HANG_SECONDS)[1]
    *_, notice, last = [
        json.loads(line)["message"] for line in text.splitlines() if line[-1:] == b"}"
    ]
    assert (notice.split()[0], last) == (str(lost), "last")


def test_a_log_line_cut_by_a_full_disk_is_counted_and_the_next_is_whole(file: Path) -> None:
    LOG.info("first")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size + 9, limits[1]))
    try:
        LOG.info("lost")
        LOG.info("lost")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert lost_lines() == 2
    LOG.info("last")
    first, cut, notice, last = file.read_text().splitlines()
    assert first.endswith("first")
    assert len(cut) == 9
    assert "2 lines of this log were lost" in notice
    assert last.endswith("last")


def test_a_request_that_a_full_log_cannot_record_is_not_answered(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = AuditTrail(None, set, time.time)
    state = {"caller": None, "seen": Seen()}
    question = {"method": "GET", "path": "/v1/metrics", "state": state}, "127.0.0.1", 200
    audit.note(*question)
    assert "/v1/metrics" in file.read_text()
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr("hubbub.runtime.monitoring.logs._STDERR", full.fileno())
        with pytest.raises(ServiceUnavailable, match="the log is full"):
            audit.note(*question)
