"""A child process: started with a log file, watched, ended."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from hubbub.errors import ServiceUnavailable

__all__ = ["Child"]

_STOP_SECONDS: Final = 15.0
_LAST_LINES: Final = 5


class Child:
    """A program of ours, in a session of its own so that a Ctrl-C reaches only us.

    It runs once constructed; `start()` runs it again, as it was, after it has ended.
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
        """Run the program."""
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

    def check(self) -> None:
        """Raises ServiceUnavailable, with its last words, if it has ended."""
        code = self.process.poll()
        if code is not None:
            said = self._log.read_bytes()[self._first :].decode(errors="replace").splitlines()
            raise ServiceUnavailable(
                f"{self.name} ended with code {code}; its last words in {self._log}:\n"
                + "\n".join(said[-_LAST_LINES:])
            )

    def stop(self) -> None:
        """Ask it to end, and wait; kill it if it does not."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
