"""`hubbub ledger`: what a person sees of what left their device."""

import json
from pathlib import Path

import pytest

from hubbub.client import Client, FolderState
from hubbub.client.testing import FakeShuffler
from tests.support.bundles import Signed
from tests.support.client_parts import store_reports
from tests.support.moment import far_from_midnight
from tests.support.waiting import HANG_SECONDS
from tests.system.conftest import Hubbub


def test_the_ledger_uses_the_state_folder_of_the_environment(
    hubbub: Hubbub, tmp_path: Path, signed: Signed
) -> None:
    _device(signed, tmp_path / "own").close(0)
    done = hubbub("ledger", HUBBUB_STATE_DIR=str(tmp_path / "own"))
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, str(tmp_path / "own"))


def _device(signed: Signed, folder: Path) -> Client:
    """A device that reported three things today, one of which the shuffler refused."""
    far_from_midnight(minutes=1)
    state = FolderState(folder)
    state.remember(signed.bundle.operator, signed.bundle.signed)
    shuffler = FakeShuffler({}, {0: "refused_expired"})
    client = Client(signed.bundle, state, shuffler, hold_seconds=None)
    client.report("theme", "dark")
    client.flush(HANG_SECONDS)
    client.report("homepage", "a.example")
    client.flush(HANG_SECONDS)
    client.report("editor", "vi")
    store_reports(client)
    return client


@pytest.fixture
def folder(signed: Signed, tmp_path: Path) -> Path:
    _device(signed, tmp_path / "state").close(0)
    return tmp_path / "state"


def test_a_person_sees_sent_payloads_with_their_possible_values(
    hubbub: Hubbub, folder: Path
) -> None:
    done = hubbub("ledger", "--state-dir", str(folder))
    assert done.returncode == 0, done.stderr
    for words in (
        "Through hubbub this device reports only what the table below lists",
        "Colour theme in use at the end of the day",
        "1 of 1",
        "refused expired",
        "any string",
        "dark",
        "%",
        "1 refused expired",
    ):
        assert words in done.stdout
    rows = [line.split() for line in done.stdout.splitlines() if " sent " in line]
    assert any("theme" in row for row in rows)


def test_strings_are_weighed_against_candidates(
    hubbub: Hubbub, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "c.txt").write_text("a.example\nb.example\n")
    done = hubbub(
        "ledger",
        "--state-dir",
        str(folder),
        "--candidates",
        str(tmp_path / "c.txt"),
        "--format",
        "json",
    )
    ((ledger,),) = [list(json.loads(done.stdout).values())]
    homepage = next(payload for payload in ledger["payloads"] if payload["metric"] == "homepage")
    assert set(homepage["meanings"]) == {"a.example", "b.example"}
    assert abs(sum(homepage["meanings"].values()) - 1) < 1e-9
    assert homepage["fate"] == "refused_expired"
    assert ledger["counts"] == {"refused_expired": 1}
    spent = {metric["name"]: metric["spent"] for metric in ledger["metrics"]}
    assert 0.99 < spent["theme"] <= 1
    assert ledger["on"]


def test_the_ledger_command_changes_nothing_while_the_app_runs(
    hubbub: Hubbub, signed: Signed, tmp_path: Path
) -> None:
    client = _device(signed, tmp_path / "state")
    before = {path.name for path in (tmp_path / "state").iterdir()}
    assert hubbub("ledger", "--state-dir", str(tmp_path / "state")).returncode == 0
    assert {path.name for path in (tmp_path / "state").iterdir()} == before
    client.disable()
    assert (
        "Reporting is switched off"
        in hubbub("ledger", "--state-dir", str(tmp_path / "state")).stdout
    )
    client.close(0)


def test_ledger_without_a_folder_shows_all_folders_of_this_user(
    hubbub: Hubbub, signed: Signed, tmp_path: Path
) -> None:
    home = tmp_path / "xdg"
    _device(signed, home / "hubbub" / "0123456789abcdef").close(0)
    done = hubbub("ledger", XDG_STATE_HOME=str(home))
    assert "0123456789abcdef" in done.stdout
    done = hubbub("ledger", XDG_STATE_HOME=str(tmp_path / "nobody"))
    assert done.returncode == 2
    assert "no app has reported for this user; give --state-dir" in done.stderr


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "does not exist; give the --state-dir of an app that has reported"),
        ("state.7", "a program in Node has the folder, and client.ledger() there shows it"),
        (b"not a database at all, but long enough to look like one" * 100, "cannot be read"),
        (b"", "cannot be read"),
    ],
)
def test_a_wrong_folder_is_named_with_the_remedy(
    hubbub: Hubbub, tmp_path: Path, content: bytes | str | None, problem: str
) -> None:
    if isinstance(content, str):
        (tmp_path / content).touch()
    elif content is not None:
        (tmp_path / "hubbub.sqlite3").write_bytes(content)
    done = hubbub("ledger", "--state-dir", str(tmp_path))
    assert done.returncode == 2
    assert problem in done.stderr
    assert "Traceback" not in done.stderr
