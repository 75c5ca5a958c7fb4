"""A local run: its processes end with it, and a command that looks at its folder is no run."""

import fcntl
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hubbub.installation.local_run import _lock
from tests.support.waiting import eventually

KILLED = """
import os, pathlib, sys
from hubbub.installation.child_process import Child
print(Child("sleeper", ["sleep", "600"], {}, pathlib.Path(sys.argv[1])).process.pid, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone ends children with a parent")
def test_the_children_of_a_killed_run_end(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path / "log")]
    process_id = int(subprocess.run(command, capture_output=True, check=False).stdout)
    command_line = Path(f"/proc/{process_id}/cmdline")  # empty of a process that nobody waited for
    eventually(lambda: not command_line.exists() or not command_line.read_bytes())


def test_a_folder_that_a_command_looks_at_is_not_in_use(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("w") as probe, path.open("w") as lock:
        fcntl.flock(probe, fcntl.LOCK_SH)
        release = threading.Timer(0.05, probe.close)
        release.start()
        _lock(tmp_path, lock)
        release.join()
