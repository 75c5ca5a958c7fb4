"""What the documents say is so: their code runs, their files and tests exist."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hubbub.catalog import read_catalog
from hubbub.cli.local_run import LocalRun, Ports
from hubbub.cli.remote import law
from hubbub.cli.up import demo_catalog

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BLOCKS = [
    pytest.param(
        match[1],
        id=f"{path.relative_to(ROOT)}:{path.read_text()[: match.start()].count(chr(10)) + 1}",
    )
    for path in DOCUMENTS
    for match in re.finditer(r"```python\n(.*?)```", path.read_text(), re.DOTALL)
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRun]:
    with LocalRun(
        tmp_path_factory.mktemp("docs") / "home", demo_catalog(), Ports.free()
    ) as running:
        yield running


def _python(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "XDG_STATE_HOME": str(folder / "state"), "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("code", BLOCKS)
def test_code_in_a_document_runs(code: str, run: LocalRun, tmp_path: Path) -> None:
    (tmp_path / "app.hubbub").write_bytes(run.bundle_path.read_bytes())
    _python(tmp_path, "-c", code)


def test_the_example_reports_and_is_acknowledged(run: LocalRun, tmp_path: Path) -> None:
    before = sum(window["acknowledged"] for window in law(run.endpoints).values())
    example = str(ROOT / "examples" / "settings_survey.py")
    printed = _python(tmp_path, example, str(run.bundle_path), str(tmp_path / "device"))
    assert printed == "education: queued\nhomepage: queued\nstill waiting: 0\n"
    again = _python(tmp_path, example, str(run.bundle_path), str(tmp_path / "device"))
    assert "education: already_reported" in again
    after = sum(window["acknowledged"] for window in law(run.endpoints).values())
    assert after == before + 2


def test_the_readmes_catalog_is_one(tmp_path: Path) -> None:
    found = re.search(r"```toml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert found
    (tmp_path / "metrics.toml").write_text(found[1])
    assert set(read_catalog(tmp_path / "metrics.toml").metrics) == {"theme"}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), target


def test_every_test_that_the_threat_model_names_is_there() -> None:
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    named = re.findall(r"`(test_\w+)`", (ROOT / "docs" / "threat-model.md").read_text())
    assert len(named) > 25
    for name in named:
        assert f"def {name}(" in tests, name


def test_every_command_that_the_readme_types_is_one() -> None:
    text = (ROOT / "README.md").read_text()
    typed = r"^ {4}(?:\S+=\S+ )?hubbub (\w+(?: (?:new|rotate|tls|check|build))?)"
    commands = set(re.findall(typed, text, re.MULTILINE))
    assert commands >= {"up", "status", "query", "keys new", "keys tls", "catalog build"}
    for command in commands:
        assert "usage: hubbub" in _python(ROOT, "-m", "hubbub.cli", *command.split(), "--help")


def test_the_mechanisms_page_has_every_mechanism() -> None:
    from hubbub.mechanisms import REGISTRY

    page = (ROOT / "docs" / "mechanisms.md").read_text()
    for name in REGISTRY:
        assert f"`{name}`" in page
