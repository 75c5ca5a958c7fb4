"""`pip install .` in an empty environment: the client alone, proven there by the contract suite."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUNS_THERE = [
    "tests/contract",
    "tests/vectors",
    "tests/property/test_client_floor.py",
    "tests/unit/test_client.py",
]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the bare distribution and a test runner."""
    environment = tmp_path_factory.mktemp("bare") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    python = environment / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    locked = ROOT / "locks" / "client.lock"
    runner = re.findall(
        r"^((?:pytest|pytest-timeout|hypothesis)==\S+)",
        (ROOT / "locks" / "dev.lock").read_text(),
        re.MULTILINE,
    )
    assert len(runner) == 3
    subprocess.run([*pip, "--require-hashes", "-r", str(locked)], check=True)
    subprocess.run([*pip, str(ROOT), *runner], check=True)
    return python


def _there(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(python), *arguments],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )


def test_the_client_needs_no_numpy_and_no_redis(python: Path) -> None:
    done = _there(
        python,
        "-c",
        "import importlib.util as u, hubbub.client, hubbub.catalog;"
        "print(hubbub.client.__file__);"
        "print([n for n in ('numpy', 'redis', 'scipy', 'rich') if u.find_spec(n)])",
    )
    assert done.stdout.splitlines()[1:] == ["[]"], done.stderr
    assert "site-packages" in done.stdout


def test_the_contract_suite_and_the_client_tests_pass_there(python: Path) -> None:
    done = _there(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *RUNS_THERE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped" not in done.stdout


def test_the_command_says_what_to_install(python: Path) -> None:
    done = _there(python, str(python.with_name("hubbub")), "demo")
    assert done.returncode == 2
    assert "pip install 'hubbub[all]'" in done.stderr
