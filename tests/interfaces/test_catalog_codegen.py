"""`hubbub catalog codegen`: mypy knows the values, and a check keeps the file current."""

import runpy
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hubbub.cli.main import main
from hubbub.client import Client, Outcome, default_client, init
from hubbub.client.testing import capture
from hubbub.errors import ValueOutOfDomain
from tests.architecture.test_house import ROOT, ROOTS
from tests.support.bundles import DAY, make_signed
from tests.support.catalogs import catalog_toml
from tests.support.commands import Capture
from tests.unit.test_value_kinds import CATALOG, metric_of

RIGHT = """
from datetime import timedelta
import metrics
from hubbub.client import Client, Outcome

outcome: Outcome = metrics.plain.report("vi")
metrics.seen.report(True)
metrics.tabs.report(3)
metrics.wait.report(timedelta(seconds=1))
metrics.wait.report(12.5)
metrics.file.report(3)
metrics.editor.report("nano")
def shown(client: Client) -> bool:
    return metrics.arm_menu(client) == "new"
"""
WRONG = """
import metrics

metrics.plain.report("nano")
metrics.seen.report("yes")
metrics.tabs.report(3.5)
metrics.wait.report("soon")
metrics.colour.report("red")
metrics.plain.report("vi", client=3)
metrics.arm_menu("here")
"""
TRIED = metric_of("tried", 'kind = "boolean"\nexperiment = "menu"')
ARMS = "[experiments.menu]\narms = { old = 1, new = 1 }\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root: Path = tmp_path_factory.mktemp("codegen")
    (root / "metrics.toml").write_text(CATALOG + TRIED + ARMS)
    assert _codegen(root) == 0
    return root


def _codegen(folder: Path, *options: str) -> int:
    catalog, module = str(folder / "metrics.toml"), str(folder / "metrics.py")
    return main(["catalog", "codegen", catalog, "--python", module, *options])


def test_mypy_finds_each_mistake_and_no_other(folder: Path) -> None:
    (folder / "right.py").write_text(RIGHT)
    (folder / "wrong.py").write_text(WRONG)
    options = (
        "--strict --config-file= --namespace-packages --explicit-package-bases"
        " --follow-imports=silent --no-error-summary"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options.split(), "right.py", "wrong.py"],
        cwd=folder,
        env={"MYPYPATH": ":".join([str(folder), *(str(ROOT / root) for root in ROOTS)])},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert [line.split(":")[:2] for line in lines] == [
        ["wrong.py", str(number)] for number in range(4, 11)
    ], done.stdout + done.stderr


def test_the_module_reports_by_the_client_there_is(folder: Path, tmp_path: Path) -> None:
    metrics = runpy.run_path(str(folder / "metrics.py"))
    now = int(time.time()) // DAY * DAY
    signed = make_signed(tmp_path, CATALOG, start=now - DAY)
    with capture() as captured:
        init(signed.path)
        assert metrics["plain"].report("vi") is Outcome.QUEUED
        with Client.from_bundle(signed.path) as client:
            assert metrics["tabs"].report(3, client=client) is Outcome.QUEUED
        with pytest.raises(ValueOutOfDomain):
            metrics["plain"].report("nano")
        default_client.end()
    assert (captured.values("plain"), captured.values("tabs")) == (["vi"], [3])


def test_an_outdated_or_other_generated_file_is_named(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "metrics.toml").write_text(CATALOG)
    assert _codegen(tmp_path, "--check") == 2
    assert "run: hubbub catalog codegen" in capsys.readouterr().err
    assert _codegen(tmp_path) == _codegen(tmp_path, "--check") == 0
    (tmp_path / "metrics.toml").write_text(CATALOG.replace('"vi"', '"vim"'))
    before = (tmp_path / "metrics.py").read_text()
    assert _codegen(tmp_path, "--check") == 2
    assert (tmp_path / "metrics.py").read_text() == before
    (tmp_path / "metrics.py").write_text("my = 'own'\n")
    assert _codegen(tmp_path) == 2
    assert "was not made by codegen" in capsys.readouterr().err
    assert (tmp_path / "metrics.py").read_text() == "my = 'own'\n"


def test_names_that_python_forbids_are_converted(tmp_path: Path, capsys: Capture) -> None:
    setting = 'kind = "boolean"'
    texts = [metric_of(name, setting) for name in ('"on.time"', "class", "timedelta")]
    (tmp_path / "metrics.toml").write_text(catalog_toml(*texts))
    assert _codegen(tmp_path) == 0
    namespace = runpy.run_path(str(tmp_path / "metrics.py"))
    assert [namespace[name].name for name in ("on_time", "class_", "timedelta")] == [
        "on.time",
        "class",
        "timedelta",
    ]
    twice = metric_of('"on-time"', setting)
    (tmp_path / "metrics.toml").write_text(catalog_toml(*texts, twice))
    assert _codegen(tmp_path) == 2
    assert 'metrics "on.time" and "on-time" would both be called on_time' in capsys.readouterr().err


def test_typescript_has_every_metric_with_what_it_takes(folder: Path) -> None:
    catalog, module = str(folder / "metrics.toml"), folder / "metrics.ts"
    words = ["catalog", "codegen", catalog, "--typescript", str(module)]
    assert main(words) == 0
    assert main([*words, "--check"]) == 0
    text = module.read_text()
    for line in (
        '  "plain": "vi" |',
        '  "seen": boolean;',
        '  "tabs": number;',
        '  "editor": string;',
        '  "menu": "old" | "new" | "";',
    ):
        assert line in text
    module.write_text(text.replace("boolean", "string"))
    assert main([*words, "--check"]) == 2
    module.write_text("export {};")
    assert main(words) == 2
