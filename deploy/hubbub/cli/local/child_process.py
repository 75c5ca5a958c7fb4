"""A child process: started with a log file, watched, told to reload, and stopped."""

import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from hubbub.errors import ServiceUnavailable

_STOP_SECONDS: Final = 15.0
_LAST_LINES: Final = 5
_LOOK_SECONDS: Final = 0.05
_RELOAD_SECONDS: Final = 30.0


class Child:
    """A program of ours in its own session, so that Ctrl-C reaches only us.

    It starts when constructed; `start()` runs it again after it has ended.
    """

    def __init__(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], log: Path
    ) -> None:
        self.name = name
        self._command = list(command)
        self._environment = dict(environment)
        self._log = log
        self.start()

    def start(self) -> None:
        """Runs the program."""
        with self._log.open("ab") as output:
            self._first = output.tell()
            self.process = subprocess.Popen(
                self._command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def reload(self) -> None:
        """Makes a service read its files anew, and waits until it has.

        Raises ServiceUnavailable if it refuses them, ends, or does not say either.
        """
        before = self._log.stat().st_size
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
            f"{self.name} did not confirm that it reloaded its files; see {self._log}"
        )

    def check(self) -> None:
        """Raises ServiceUnavailable with its last log lines if it has ended."""
        code = self.process.poll()
        if code is not None:
            lines = self._lines(self._first)
            raise ServiceUnavailable(
                f"{self.name} ended with code {code}; its last lines in {self._log}:\n"
                + "\n".join(lines[-_LAST_LINES:])
            )

    def _lines(self, first: int) -> list[str]:
        """The lines it has logged from this byte on."""
        return self._log.read_bytes()[first:].decode(errors="replace").splitlines()

    def stop(self) -> None:
        """Terminates it and waits; kills it if it does not end."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
