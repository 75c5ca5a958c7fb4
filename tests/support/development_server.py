"""`hubbub up --dev` as a developer runs it, in a folder of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

from hubbub.client import Client, Outcome
from hubbub.installation.child_process import free_port
from hubbub.installation.local_run import Ports
from hubbub.installation.running_endpoints import Endpoints, read_endpoints
from tests.support.moment import far_from_midnight
from tests.support.waiting import eventually

MORE_PORTS = range(1, len(fields(Ports)))
"""That `hubbub up` needs behind its first one."""


@dataclass(frozen=True)
class Developing:
    """A folder where it runs, and what it says."""

    folder: Path

    @property
    def bundle(self) -> Path:
        """What an app ships."""
        return self.folder / ".hubbub" / "app.hubbub"

    @property
    def said(self) -> str:
        return (self.folder / "up.log").read_text()

    @property
    def endpoints(self) -> Endpoints:
        return read_endpoints(self.folder / ".hubbub")

    def report(self, metric: str, value: str, device: str) -> None:
        """What an app does: a device of this name reports."""
        with Client.from_bundle(self.bundle, state_dir=self.folder / device) as client:
            assert client.report(metric, value) is Outcome.QUEUED


@contextmanager
def developing(folder: Path, catalog: str) -> Iterator[Developing]:
    """It runs, with this catalog; it ends as Ctrl-C ends it."""
    far_from_midnight()
    (folder / "metrics.toml").write_text(catalog)
    server = Developing(folder)
    with (folder / "up.log").open("w") as log:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "hubbub.cli",
                "up",
                "--dev",
                "--port",
                str(free_port(*MORE_PORTS)),
            ],
            cwd=folder,
            env=dict(os.environ),
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            eventually(lambda: "Ctrl-C ends it" in server.said or process.poll() is not None)
            yield server
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()
    assert process.returncode == 0, server.said
