"""The runbooks of docs/operate: each command is run here to the letter, or in a test named here."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from hubbub.authoring import Catalog
from hubbub.cli.main import main
from hubbub.installation.local_run import LocalRun, Ports
from tests.conftest import CATALOG, CatalogFiles
from tests.support.programs import run_program

pytestmark = pytest.mark.thorough

OPERATE: Final = Path(__file__).parents[2] / "docs" / "operate"
# Of each command that is not run here, by how it begins: where it is, or why nowhere.
ELSEWHERE: Final = {
    "hubbub aggregator ...": "tests/interfaces/test_rights.py, with all of its settings",
    "hubbub shuffler ": "tests/services/test_proxied_door.py, tests/services/test_relay.py",
    "hubbub relay ": "tests/services/test_relay.py",
    "hubbub issuer ": "tests/services/test_issuer_logins.py",
    "hubbub init ": "tests/deploy/test_compose.py, tests/deploy/test_chart.py",
    "hubbub load ": "tests/system/test_load_command.py; of an engine's ports",
    "hubbub status ": "tests/system/test_command_line.py; of an engine's ports",
    "hubbub forget ": "tests/system/test_retention_walk.py",
    "hubbub log ": "tests/unit/test_witnesses.py, tests/unit/test_log.py; of a log that is served",
    "hubbub keys tls tls --party ": "tests/unit/test_party_authorities.py, in two folders",
    "hubbub keys trust ": "tests/unit/test_party_authorities.py, in two folders",
    "hubbub up ": "tests/system/test_backup.py, which restores and starts",
}


def _commands(page: Path) -> list[str]:
    """The commands of a page as it has them, in their order; a continued line as a whole."""
    return re.findall(r"^    (hubbub (?:.*\\\n)*.*)$", page.read_text(), re.MULTILINE)


def _is_elsewhere(command: str) -> bool:
    return command.startswith(tuple(ELSEWHERE))


def _run(command: str, folder: Path) -> int:
    """What a shell makes of the line, run as `hubbub` there."""
    words = run_program(
        "bash", "-c", f"hubbub() {{ printf '%s\\0' \"$@\"; }}; {command}", cwd=folder, check=True
    ).stdout
    return main(words.removesuffix("\0").split("\0"))


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """By hand, as the README makes it."""
    folder = tmp_path_factory.mktemp("runbooks") / "installation"
    folder.mkdir()
    (folder / "metrics.toml").write_text(CATALOG)
    with pytest.MonkeyPatch.context() as there:
        there.chdir(folder)
        assert main(["keys", "new", "keys"]) == 0
        assert main(["keys", "tls", "tls", "--host", "shuffler.example.org"]) == 0
        assert main(["catalog", "build", "--keys", "keys", "--roots", "tls/ca.pem"]) == 0
    return folder


PAGES: Final = {
    page: [command for command in _commands(page) if not _is_elsewhere(command)]
    for page in sorted(OPERATE.glob("*.md"))
    if page.name != "restore.md"
}


@pytest.mark.parametrize("page", [page for page in PAGES if PAGES[page]], ids=lambda p: p.name)
def test_the_commands_of_a_runbook_run_to_the_letter(
    page: Path, installation: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (installation, installation.with_name("tls-authorities")):
        if name.exists():
            shutil.copytree(name, tmp_path / name.name)
    folder = tmp_path / "installation"
    monkeypatch.chdir(folder)
    for line in re.findall(r"^    (tokens = .*)$", page.read_text(), re.MULTILINE)[:1]:
        (folder / "metrics.toml").write_text(f"{line}\n{CATALOG}")
    for command in PAGES[page]:
        assert _run(command, folder) == 0, command


def test_a_backup_and_its_restore_run_to_the_letter(
    catalog_files: CatalogFiles, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    catalog = Catalog(shuffler="127.0.0.1:1", metrics=dict(catalog_files.bundle.metrics))
    page = OPERATE / "restore.md"
    [secret] = re.findall(r"^    (head .*)$", page.read_text(), re.MULTILINE)
    places = {
        "/backups": f"{tmp_path}/backups",
        "/safe": str(tmp_path),
        "INSTALLATION": f"{tmp_path}/home",
        "AGAIN": f"{tmp_path}/again",
    }

    def here(command: str) -> str:
        for place, path in places.items():
            command = command.replace(place, path)
        return command

    subprocess.run(["bash", "-c", here(secret)], check=True)
    with LocalRun(tmp_path / "home", catalog, Ports.free()):
        for command in (command for command in _commands(page) if not _is_elsewhere(command)):
            assert _run(here(command), tmp_path) == 0, command
    output = capfd.readouterr().out
    assert re.search(r"shuffler.rdb: verify and restore need \w+ [\d.]+ or newer here", output)
    assert "restored to" in output


def test_every_command_of_a_runbook_is_run_somewhere() -> None:
    """A line of ELSEWHERE that no page has any more is taken out."""
    every = [command for page in OPERATE.glob("*.md") for command in _commands(page)]
    assert len(every) > 40
    for beginning, where in ELSEWHERE.items():
        assert any(command.startswith(beginning) for command in every), beginning
        named = re.findall(r"tests/\S+\.py", where)
        assert named
        for test in named:
            assert (OPERATE.parents[1] / test).exists(), test
