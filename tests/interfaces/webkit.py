"""Debian's WebKitGTK, driven by its own WebDriver, on a screen that nobody sees.

Playwright drives no WebKit but builds of its own. A session of WebDriver's keeps nothing on the
disk: it is what a private window is.
"""

import http.client
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from hubbub.installation.child_process import free_port
from tests.interfaces.tab import WISHES, Tab
from tests.support.waiting import HANG_SECONDS, eventually

DRIVER: Final = shutil.which("WebKitWebDriver")
SCREEN: Final = shutil.which("Xvfb")
_COMMANDS: Final = {
    "Navigate": ("POST", "/url"),
    "ExecuteScript": ("POST", "/execute/sync"),
    "NewWindow": ("POST", "/window/new"),
    "GetWindowHandle": ("GET", "/window"),
    "SwitchToWindow": ("POST", "/window"),
    "CloseWindow": ("DELETE", "/window"),
}

needs_webkit = pytest.mark.skipif(
    not (DRIVER and SCREEN),
    reason="no WebKitGTK on this machine: apt-get install webkit2gtk-driver xvfb",
)


class WebKit(Tab):
    """A browser with one tab. port: its driver's. features: as of `webkit`."""

    def __init__(self, port: int, features: str) -> None:
        self._line = http.client.HTTPConnection("127.0.0.1", port, timeout=HANG_SECONDS)
        arguments = ["--automation", *([f"--features={features}"] if features else [])]
        wishes = {**WISHES, "webkitgtk:browserOptions": {"args": arguments}}
        answer = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": wishes}})
        self._session = f"/session/{answer['sessionId']}"

    def ask(self, command: str, **arguments: Any) -> Any:
        method, path = _COMMANDS[command]
        return self._ask(method, self._session + path, arguments if method == "POST" else None)

    def quit(self) -> None:
        """End the browser, and forget what it kept."""
        self._ask("DELETE", self._session)
        self._line.close()

    def _ask(self, method: str, path: str, arguments: object = None) -> Any:
        body = None if arguments is None else json.dumps(arguments)
        self._line.request(method, path, body, {"content-type": "application/json"})
        answer = self._line.getresponse()
        result = json.load(answer)["value"]
        assert answer.status == http.HTTPStatus.OK, f"{path}: {result}"
        return result


@contextmanager
def _screen(folder: Path) -> Iterator[str]:
    """A display of this machine's that was free."""
    assert SCREEN is not None
    reader, tells = os.pipe()
    command = [SCREEN, "-displayfd", str(tells), "-nolisten", "tcp", "-screen", "0", "1200x900x24"]
    with (
        (folder / "screen").open("w") as log,
        subprocess.Popen(command, stderr=log, pass_fds=(tells,)) as process,
        os.fdopen(reader) as number,
    ):
        os.close(tells)
        try:
            display = number.readline().strip()
            assert display, (folder / "screen").read_text()
            yield f":{display}"
        finally:
            process.terminate()


def _listens(process: "subprocess.Popen[bytes]", port: int, folder: Path) -> bool:
    assert process.poll() is None, (folder / "said").read_text()
    socket.create_connection(("127.0.0.1", port)).close()
    return True


@contextmanager
def webkit(folder: Path, features: str = "") -> Iterator[WebKit]:
    """A browser that has seen nothing.

    folder: an empty one. features: what it has more or less than others of its version, as
    "+StorageAPI,-WebCryptoX25519".
    """
    assert DRIVER is not None
    with _screen(folder) as display, (folder / "said").open("w") as log:
        port = free_port()
        # Nothing of it goes into the folders, nor onto the screen, of who runs the tests.
        environment = {
            "HOME": str(folder),
            "DISPLAY": display,
            "GDK_BACKEND": "x11",
            "NO_AT_BRIDGE": "1",
        }
        for place in ("CACHE", "CONFIG", "DATA", "STATE"):
            environment[f"XDG_{place}_HOME"] = str(folder)
        with subprocess.Popen(
            [DRIVER, f"--port={port}"], env={**os.environ, **environment}, stderr=log
        ) as process:
            try:
                eventually(partial(_listens, process, port, folder), although=(OSError,))
                browser = WebKit(port, features)
                yield browser
                browser.quit()
            finally:
                process.terminate()
