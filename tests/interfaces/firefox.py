"""Debian's Firefox, driven by Marionette, the protocol that it listens to itself.

Playwright drives no Firefox but builds of its own.
"""

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from tests.interfaces.tab import WISHES, Tab
from tests.support.waiting import HANG_SECONDS, eventually

FIREFOX: Final = shutil.which("firefox-esr") or shutil.which("firefox")
# Marionette's port is a free one, which it writes into the profile; its makers are asked nothing.
_SETTINGS: Final = """
user_pref("marionette.port", 0);
user_pref("app.update.disabledForTesting", true);
user_pref("browser.safebrowsing.update.enabled", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("extensions.systemAddon.update.enabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("services.settings.server", "data:,");
"""

needs_firefox = pytest.mark.skipif(
    FIREFOX is None, reason="no Firefox on this machine: apt-get install firefox-esr"
)


class Firefox(Tab):
    """A browser with one tab. port: Marionette's."""

    def __init__(self, port: int) -> None:
        self._line = socket.create_connection(("127.0.0.1", port), HANG_SECONDS)
        self._reader = self._line.makefile("rb")
        self._message_number = 0
        self._hear()  # who it is
        self.ask("NewSession", **WISHES)

    def ask(self, command: str, **arguments: Any) -> Any:
        answer = self._ask(f"WebDriver:{command}", **arguments)
        # What is no record of its own is told in one.
        return answer["value"] if isinstance(answer, dict) and set(answer) == {"value"} else answer

    def quit(self) -> None:
        """End the browser, as closing its last window does."""
        self._ask("Marionette:Quit", flags=["eAttemptQuit"])
        self._reader.close()
        self._line.close()

    def _ask(self, what: str, **arguments: Any) -> Any:
        self._message_number += 1
        words = json.dumps([0, self._message_number, what, arguments]).encode()
        self._line.sendall(b"%d:%b" % (len(words), words))
        _, number, error, result = self._hear()
        assert number == self._message_number
        assert error is None, f"{what}: {error}"
        return result

    def _hear(self) -> Any:
        size = b""
        while (digit := self._reader.read(1)) != b":":
            assert digit, "Firefox has gone"
            size += digit
        return json.loads(self._reader.read(int(size)))


def _port(process: "subprocess.Popen[bytes]", profile: Path) -> int:
    """Marionette's, once it listens; 0 before."""
    assert process.poll() is None, (profile / "said").read_text()
    port_file = profile / "MarionetteActivePort"
    return int(port_file.read_text() or 0) if port_file.exists() else 0


@contextmanager
def firefox(profile: Path) -> Iterator[Firefox]:
    """A browser with a profile that has seen nothing. profile: an empty folder."""
    assert FIREFOX is not None
    (profile / "user.js").write_text(_SETTINGS)
    command = [FIREFOX, "--headless", "--marionette", "--no-remote", "--profile", str(profile)]
    with (profile / "said").open("w") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            session = Firefox(eventually(partial(_port, process, profile)))
            yield session
            session.quit()
        finally:
            process.terminate()
