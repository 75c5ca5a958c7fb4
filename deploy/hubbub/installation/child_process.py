"""Child processes, started with a log file, watched and stopped; and free ports for them.

A port is claimed by a UDP socket with its number, held until the process ends. It does not hinder
listening by TCP; other users and containers on the same network see it; and it leaves nothing
behind.
"""

import secrets
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

from hubbub.errors import ServiceUnavailable
from hubbub.runtime.memory import C_LIBRARY

_STOP_SECONDS: Final = 15.0
_LAST_LINES: Final = 5
_LOOK_SECONDS: Final = 0.05
_RELOAD_SECONDS: Final = 30.0
# On an idle machine services take about three seconds, and Redis reads its data first; a shorter
# limit would fail on a busy one.
_START_SECONDS: Final = 300.0
_PROBE_SECONDS: Final = 0.02
_PARENT_DEATH_SIGNAL: Final = 1  # PR_SET_PDEATHSIG of prctl(2)

Handler = Callable[[int, FrameType | None], None]


def handle_endings(handler: Handler) -> dict[int, Any]:
    """Handles the signals that end a program by `handler`; returns the former handlers.

    Under nohup a closed terminal's SIGHUP stays ignored. Other threads than the main one cannot
    change handlers.
    """
    if threading.current_thread() is not threading.main_thread():
        return {}
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    return {number: signal.signal(number, handler) for number in numbers}


@contextmanager
def endings_to(handler: Handler) -> Iterator[None]:
    """Handles the signals that end a program by `handler` during the block."""
    former = handle_endings(handler)
    try:
        yield
    finally:
        for number, former_handler in former.items():
            signal.signal(number, former_handler)


@contextmanager
def postponed_endings() -> Iterator[list[int]]:
    """Collects the signals that end a program during the block, and raises the first one after it.

    So whoever must stop a child knows it, even if it started just before an interruption.
    """
    numbers: list[int] = []
    try:
        with endings_to(lambda number, _frame: numbers.append(number)):
            yield numbers
    finally:
        if numbers:
            signal.raise_signal(numbers[0])


class Child:
    """A program of ours in its own session, so that Ctrl-C reaches only us.

    On Linux it ends with us, even if we are killed. It starts when constructed; `start()` runs it
    again after it has ended.
    """

    def __init__(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], log: Path
    ) -> None:
        self.name = name
        self._command = list(command)
        self._environment = dict(environment)
        self.log = log
        self.start()

    def start(self) -> None:
        """Runs the program."""
        # Linux sends the signal as soon as the thread that started the program ends.
        lasts = threading.current_thread() is threading.main_thread()
        with self.log.open("ab") as output:
            self._first = output.tell()
            self.process = subprocess.Popen(
                self._command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_end_with_parent if lasts else None,  # noqa: PLW1509 locks nothing
            )

    def reload(self) -> None:
        """Makes a service read its files anew, and waits until it has.

        Raises ServiceUnavailable if it refuses them, ends, or does not say either.
        """
        before = self.log.stat().st_size
        self.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + _RELOAD_SECONDS
        while time.monotonic() < deadline:
            self.check()
            for line in self._lines(before):
                if "why SIGHUP" in line and "not reloaded" in line:
                    raise ServiceUnavailable(f"{self.name}: {line}")
                if "why SIGHUP" in line:
                    return
            time.sleep(_LOOK_SECONDS)
        raise ServiceUnavailable(
            f"{self.name} did not confirm that it reloaded its files; see {self.log}"
        )

    def wait_for(
        self, call: Callable[[], object], faults: tuple[type[Exception], ...], problem: str
    ) -> None:
        """Repeats a call until it raises none of `faults`.

        Raises ServiceUnavailable with the `problem` after five minutes, or if the program ends.
        """
        deadline = time.monotonic() + _START_SECONDS
        while True:
            self.check()
            try:
                call()
            except faults as error:
                if time.monotonic() > deadline:
                    raise ServiceUnavailable(f"{problem}: {error}") from error
                time.sleep(_PROBE_SECONDS)
            else:
                return

    def check(self) -> None:
        """Raises ServiceUnavailable with its last log lines if it has ended."""
        code = self.process.poll()
        if code is not None:
            lines = self._lines(self._first)
            raise ServiceUnavailable(
                f"{self.name} ended with code {code}; its last lines in {self.log}:\n"
                + "\n".join(lines[-_LAST_LINES:])
            )

    def _lines(self, start: int) -> list[str]:
        return self.log.read_bytes()[start:].decode(errors="replace").splitlines()

    def stop(self) -> None:
        """Terminates it and waits; kills it if it does not end."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def _end_with_parent() -> None:
    if hasattr(C_LIBRARY, "prctl"):
        C_LIBRARY.prctl(_PARENT_DEATH_SIGNAL, signal.SIGTERM)


# Below those of outgoing connections (from 32768 on Linux, from 49152 elsewhere), which could take
# a port between our check and our start.
_FIRST: Final = 12_000
_LAST: Final = 32_000
_HERE: Final = "127.0.0.1"


def free_port(*used: int) -> int:
    """A free port of 127.0.0.1 that no other process is given while we live.

    `used` are offsets from it; the ports there are also free and ours.
    """
    while True:
        port = _FIRST + secrets.randbelow(_LAST - _FIRST - max(used, default=0))
        if _claim([port, *(port + distance for distance in used)]):
            return port


def _claim(ports: list[int]) -> bool:
    """Claims all of these ports; returns False, and claims none, if one is taken."""
    claims: list[socket.socket] = []
    try:
        for port in ports:
            claims.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            claims[-1].bind((_HERE, port))
            with socket.socket() as probe:
                probe.bind((_HERE, port))
    except OSError:
        for claim in claims:
            claim.close()
        return False
    for claim in claims:
        claim.detach()  # it is closed with the process
    return True
