"""A local run: its processes end with it."""

import subprocess
import sys
from pathlib import Path

import pytest

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
