"""What it costs to do nothing: each process, the client, and connections that say nothing."""

import re
import resource
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from benchmarks.door import dial_grpc, dial_http
from benchmarks.measure import Row
from benchmarks.overload import Measured
from benchmarks.stock import METRIC, sealed_stock
from hubbub.cli.commands.up import demo_catalog
from hubbub.client import SealedReport
from hubbub.installation.local_run import Ports

_SIZES: Final = Path(__file__).parents[1] / "docs" / "operate" / "size.md"
_CONNECTIONS: Final = 10_000
_OF_ADDRESS: Final = 50  # fewer than --peer-calls
_HONEST: Final = 20
_DEVICE: Final = """
import sys
if len(sys.argv) > 1:
    from hubbub.client import Client
    client = Client.from_bundle(sys.argv[1], state_dir=sys.argv[2], transport=sys.argv[3])
    client.report("education", "Bachelors")
    client.flush(60)
with open("/proc/self/statm") as told:
    print(told.read())
"""


def idle() -> Iterator[Row]:
    """Beside the budgets of docs/operate/size.md; no test compares them, since machines differ."""
    rows = r"^\| ([^|]+) \| [\d.]+ MB \| (\d+) MB \|$"
    with measured() as run, tempfile.TemporaryDirectory() as folder:
        memory = {what: size / 1e6 for what, size in run.resident_bytes().items()}
        bare = _device()
        for transport in ("gRPC", "HTTP"):
            where = (str(run.bundle_path), f"{folder}/{transport}", transport.lower())
            memory[f"client over {transport}"] = _device(*where) - bare
    for what, most in re.findall(rows, _SIZES.read_text(), re.MULTILINE):
        yield Row(
            f"idle memory, {what}",
            f"{memory[what]:.0f} MB",
            f"budget {most} MB",
            memory[what] / int(most),
            "<= 1",
        )


def silent() -> Iterator[Row]:
    """Connections from many addresses that say nothing, with honest reports beside them."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 2 * _CONNECTIONS), hard))
    for door in ("HTTP", "gRPC"):
        with measured() as run:
            stock = sealed_stock(run.bundle_path, _HONEST)
            before = run.resident_bytes()["shuffler"] / 1e6
            with ExitStack() as stack:
                for number in range(_CONNECTIONS):
                    address = run.http_door if door == "HTTP" else run.bundle.shuffler
                    stack.enter_context(_connection(address, number))
                for sealed in stock.reports(0, _HONEST):
                    report = SealedReport(
                        stream=METRIC, epoch=stock.epoch, key_id=stock.key_id, sealed=sealed
                    )
                    send, close = (
                        dial_http(run.http_door, run.bundle.roots or "")
                        if door == "HTTP"
                        else dial_grpc(run)
                    )
                    send(report)  # which fails if it is not taken
                    close()
                during = run.resident_bytes()["shuffler"] / 1e6
        yield Row(
            f"{_CONNECTIONS:,} silent connections to the door of {door}, reports beside them taken",
            f"{during:,.0f} MB",
            f"without them {before:,.0f} MB",
            during / before,
            "<= 512 MB",
        )


def _connection(address: str, number: int) -> socket.socket:
    """From one of many addresses of this machine."""
    host, _, port = address.rpartition(":")
    third, fourth = divmod(number // _OF_ADDRESS, 250)
    source = (f"127.0.{1 + third}.{1 + fourth}", 0)
    return socket.create_connection((host, int(port)), source_address=source)


@contextmanager
def measured() -> Iterator[Measured]:
    with (
        tempfile.TemporaryDirectory() as home,
        Measured(Path(home), demo_catalog(), Ports.free()) as run,
    ):
        yield run


def _device(*arguments: str) -> float:
    """Megabytes of Python, or of a device that has sent one report."""
    command = [sys.executable, "-c", _DEVICE, *arguments]
    process = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return int(process.split()[1]) * resource.getpagesize() / 1e6
