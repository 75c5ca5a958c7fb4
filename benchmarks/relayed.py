"""What one report costs a relay and the gateway behind it, beside the door of HTTP without them.

What devices seal for the gateway is sealed before the clock runs, and its answers are opened. The
relay keeps its connections to the gateway, as everywhere.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from benchmarks.door import cost, dial_http, dial_posts, pid_of, sealed
from benchmarks.measure import Row
from benchmarks.own import own_hubbub
from hubbub.client import SealedReport
from hubbub.client.transport.http_connection import REPORTS_PATH, REPORTS_TYPE
from hubbub.client.transport.messages import request_of
from hubbub.installation.child_process import free_port
from hubbub.installation.local_run import LocalRun
from hubbub.oblivious.binary_http import Request, read_response, write_request
from hubbub.oblivious.encapsulation import encapsulate
from hubbub.oblivious.key_config import REQUEST_TYPE

_STEP_BYTES: Final = 1024  # as the SDK pads


def relayed() -> Iterator[Row]:
    """Of the relay and the gateway, on a device's fresh and on its kept connection."""
    with own_hubbub() as run, _relay(run) as (pid, address):
        reports = sealed(run, costs=2)
        roots = run.bundle.roots or ""
        door = pid_of(run.http_door)
        direct = cost([door], lambda: dial_http(run.http_door, roots), reports)
        within = (_encapsulated(run, report) for report in reports)
        through = cost([pid, door], lambda: _dial(address, roots), within)
    for kind, [alone], [relay, gateway] in zip(("fresh", "kept"), direct, through, strict=True):
        for who, microseconds in (("relay", relay), ("gateway behind it", gateway)):
            yield Row(
                f"{who}, a report on a device's {kind} connection",
                f"{microseconds:,.0f} us",
                f"the door of HTTP without a relay {alone:,.0f} us",
                microseconds / alone,
                "what it costs",
            )


@dataclass(frozen=True)
class _Within:
    """A report as a relay takes it, and what opens the answer."""

    message: bytes
    opened: Callable[[bytes], bytes]


def _encapsulated(run: LocalRun, report: SealedReport) -> _Within:
    request = Request(
        method=b"POST",
        scheme=b"https",
        authority=run.bundle.shuffler.encode(),
        path=REPORTS_PATH.encode(),
        headers=((b"content-type", REPORTS_TYPE.encode()),),
        content=request_of([report]),
    )
    return _Within(*encapsulate(run.bundle.gateway, write_request(request, padded_to=_STEP_BYTES)))


def _dial(address: str, roots: str) -> tuple[Callable[[_Within], None], Callable[[], object]]:
    post, close = dial_posts(address, roots)

    def send(request: _Within) -> None:
        answer = read_response(request.opened(post("/", REQUEST_TYPE, request.message)))
        if answer.status != HTTPStatus.OK:
            raise AssertionError(answer.status)

    return send, close


@contextmanager
def _relay(run: LocalRun) -> Iterator[tuple[int, str]]:
    """`hubbub relay` before a run's door, with the shuffler's certificate for its own."""
    folder, address = run.home / "relay", f"127.0.0.1:{free_port()}"
    folder.mkdir()
    for end in ("pem", "key"):
        shutil.copy(run.home / "tls" / f"shuffler.{end}", folder / f"relay.{end}")
    command = [sys.executable, "-m", "hubbub.relay", "--gateway", f"https://{run.http_door}"]
    command += ["--roots", str(run.home / "tls" / "ca.pem"), "--tls", str(folder)]
    command += ["--listen", address, "--metrics-listen", "127.0.0.1:0"]
    command += ["--peer-rate", "0"]  # every device is this machine
    with subprocess.Popen(command) as server:
        try:
            yield pid_of(address), address
        finally:
            server.terminate()
