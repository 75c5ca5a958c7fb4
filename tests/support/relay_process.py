"""`hubbub relay` as a third party runs it, before a shuffler's HTTP door."""

import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from ssl import create_default_context

from hubbub.client import Transport
from hubbub.client.transport.transport_by_address import relay_to
from hubbub.oblivious.key_config import REQUEST_TYPE
from tests.support.waiting import HANG_SECONDS, eventually

__all__ = ["Relay"]


class Relay:
    """`hubbub relay` before a door on this machine.

    folder: of a service's certificate, which it shows as its own.
    """

    def __init__(self, folder: Path, gateway: str, port: int) -> None:
        self.folder, self.gateway, self.port = folder, gateway, port
        self._own = folder / "relay"
        self._own.mkdir()
        for end in ("pem", "key"):
            shutil.copy(folder / f"shuffler.{end}", self._own / f"relay.{end}")
        self.roots = (folder / "ca.pem").read_text()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}/"

    def transport(self, key: bytes) -> Transport:
        options = {"gateway": key, "shuffler": "shuffler.example.org:443", "roots": self.roots}
        return relay_to(self.url, **options)  # type: ignore[arg-type]

    def ask(self, body: bytes, kind: str = REQUEST_TYPE) -> tuple[int, str]:
        request = urllib.request.Request(self.url, body, {"Content-Type": kind})  # noqa: S310 https
        trust = create_default_context(cadata=self.roots)
        try:
            with urllib.request.urlopen(request, timeout=HANG_SECONDS, context=trust) as answer:  # noqa: S310 https
                return answer.status, answer.headers["Content-Type"]
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers["Content-Type"]

    @contextmanager
    def running(self, *words: str) -> Iterator["Relay"]:
        command = [sys.executable, "-m", "hubbub.cli", "relay", "--gateway", self.gateway]
        command += ["--roots", str(self.folder / "ca.pem"), "--tls", str(self._own), *words]
        command += ["--listen", f"127.0.0.1:{self.port}", "--metrics-listen", "127.0.0.1:0"]
        with (self.folder / "relay.log").open("w") as log:
            process = subprocess.Popen(command, stderr=log, env=dict(os.environ))
            try:
                eventually(lambda: "started" in self.said or process.poll() is not None)
                yield self
            finally:
                process.terminate()
                process.wait()
        assert process.returncode == 0, self.said

    @property
    def said(self) -> str:
        return (self.folder / "relay.log").read_text()
