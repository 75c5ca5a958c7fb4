"""The walk of docs/tutorial/first-minute.md: from the built wheel to a number of one's own."""

import contextlib
import http.client
import json
import re
import shutil
import signal
import subprocess
import sysconfig
from pathlib import Path

import pytest

from hubbub.installation.child_process import free_port
from tests.support.clean_environment import CALLER
from tests.support.development_server import MORE_PORTS
from tests.support.moment import far_from_midnight
from tests.support.programs import build_wheels
from tests.support.waiting import HANG_SECONDS, eventually

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorial" / "first-minute.md"
BLOCK = re.compile(r'^```(\w+)(?: title="(.*?)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
FIRST_PORT = 7000 + 70


def _without_checkout(folder: Path) -> Path:
    """A folder with the packages that are installed here, but for hubbub: a warm cache."""
    folder.mkdir()
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        if "hubbub" not in package.name and package.suffix != ".pth":
            (folder / package.name).symlink_to(package)
    return folder


def _shell(lines: str, folder: Path, home: Path) -> str:
    done = subprocess.run(
        ["/bin/sh", "-ec", lines],
        cwd=folder,
        env={**CALLER, "HOME": str(home), "XDG_STATE_HOME": str(home), "COLUMNS": "140"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{lines}\n{done.stdout}"
    return done.stdout


def _shape(text: str) -> str:
    return re.sub(r"\d[\d,.-]*", "0", " ".join(text.split()))


def test_the_first_minute_works_as_it_stands(tmp_path: Path) -> None:
    far_from_midnight()
    port, home = free_port(*MORE_PORTS), tmp_path / "home"
    (client, wheel), here = build_wheels(tmp_path), tmp_path / "empty"
    home.mkdir()
    here.mkdir()
    text = PAGE.read_text().replace("../hubbub[local]", f"{wheel}[local]")
    text = text.replace("../hubbub/client", str(client))
    for distance in range(8):
        text = text.replace(f":{FIRST_PORT + distance}", f":{port + distance}")
    steps = BLOCK.findall(text)
    install, added, up, begun, app, ask, answered = (body for _, _, body in steps)
    # What pip would download is there already; that it is enough, pip itself sees.
    make, *rest = install.splitlines()
    _shell(make, here, home)
    python = next((here / ".venv" / "lib").glob("python3.*"))
    there = _without_checkout(tmp_path / "packages")
    (python / "site-packages" / "warm.pth").write_text(f"{there}\n")
    assert _shape(added) in _shape(_shell("\n".join(rest), here, home))
    metrics = here / "metrics.toml"
    metrics.write_text(metrics.read_text().replace(f":{FIRST_PORT}", f":{port}"))
    (here / "app.py").write_text(app)
    log_path = here / "up.log"
    with log_path.open("w") as log:
        program, *arguments = up.split()
        process = subprocess.Popen(
            [str(here / ".venv" / "bin" / program), *arguments, "--port", str(port)],
            cwd=here,
            env={**CALLER, "HOME": str(home)},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            eventually(
                lambda: "Ctrl-C ends it" in log_path.read_text() or process.poll() is not None
            )
            for line in begun.splitlines():
                assert _shape(line) in _shape(log_path.read_text())
            report, question = ask.splitlines()
            _shell(f". .venv/bin/activate\n{report}", here, home)
            matches = re.findall(r"http://(127\.0\.0\.1:\d+)/", log_path.read_text())[-1]
            eventually(lambda: _reports(matches) == 1)
            output = _shell(f". .venv/bin/activate\n{question}", here, home)
            assert _shape(answered) in _shape(output)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()
    shutil.rmtree(here / ".venv")
    assert process.returncode == 0, log_path.read_text()


def _reports(place: str) -> int:
    """How many the page has of the metric; 0 before the first."""
    with contextlib.closing(http.client.HTTPConnection(place, timeout=HANG_SECONDS)) as page:
        page.request("GET", "/v1/metrics/theme/estimates")
        document = json.load(page.getresponse())
    return int(document.get("reports", 0))
