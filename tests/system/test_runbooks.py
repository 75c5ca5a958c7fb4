"""The runbooks of docs/operate: a shell runs each line to the letter, or a test named here does."""

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Final

import pytest

from hubbub.authoring import Catalog
from hubbub.installation.local_run import LocalRun, Ports
from tests.conftest import CATALOG, CatalogFiles
from tests.support.programs import run_program

pytestmark = pytest.mark.thorough

ROOT: Final = Path(__file__).parents[2]
OPERATE: Final = ROOT / "docs" / "operate"
# Of each line that is not run here, by how it begins: where it is, or why nowhere.
ELSEWHERE: Final = {
    "hubbub aggregator ...": "tests/interfaces/test_rights.py, with all of its settings",
    "hubbub shuffler ": "tests/services/test_proxied_door.py, tests/services/test_relay.py",
    "hubbub relay ": "tests/services/test_relay.py",
    "hubbub issuer ": "tests/services/test_issuer_logins.py",
    "HUBBUB_REDIS_URL=redis:": "tests/services/test_issuer_logins.py",
    "hubbub load ": "tests/system/test_load_command.py; of an engine's ports",
    "hubbub status ": "tests/system/test_command_line.py; of an engine's ports",
    "hubbub forget ": "tests/system/test_retention_walk.py",
    "hubbub up ": "tests/system/test_backup.py, which restores and starts",
    "curl --cacert": "tests/services/test_http_door.py, of a running shuffler",
    "curl --silent": "tests/interfaces/test_rights.py; of a provider",
    "python3 -m venv": "tests/system/test_bare_install.py, which builds what an index has",
    ".venv/bin/pip": "tests/system/test_bare_install.py",
    ". .venv/bin": "tests/system/test_bare_install.py",
    "docker buildx": "tests/deploy/test_files.py, by hand; needs a registry",
    "buildah": "tests/deploy/test_files.py, by hand; needs a registry",
    "Client.from_bundle(": "tests/services/test_relay.py, tests/system/test_examples.py",
}
# Lines of other files: what reads them.
CONFIGURATION: Final = {
    "HUBBUB_REDIS_URL='rediss": "tests/system/test_cluster.py",
    "appendonly": "tests/system/test_cluster.py",
    "maxmemory-policy": "tests/system/test_cluster.py",
    "min-replicas-to-write": "tests/system/test_cluster.py",
    "server {": "tests/services/test_proxied_door.py",
    "}": "tests/services/test_proxied_door.py",
    "[Service]": "tests/deploy/test_files.py",
    "LoadCredential": "tests/deploy/test_files.py",
}
# No engine runs here: these programs check that every file that a line gives them is there.
ENGINE: Final = r"""#!/bin/bash
for word; do
  case $before:$word in
    *:--from-file=*|*:--from-env-file=*) test -f "${word##*=}" ;;
    --project-directory:*|--file:*|-f:*|upgrade:*) test -e "$word" ;;
    *:*/helm/hubbub) test -f "$word/Chart.yaml" ;;
    --now:*) ls $(grep -oP '^(Load.*:|EnvironmentFile=)/\K.*' etc/systemd/system/$word.*) ;;
  esac || { echo "$word is not there" >&2; exit 1; }
  before=$word
done
"""
# What a page says in words before a line, by how the line begins.
BEFORE: Final = {
    "hubbub init deploy/compose --catalog metrics.toml --tokens": """
        cp -r deploy/compose issuer; cp issuer/keys/tokens.{key,pub} .; rm -r deploy/compose
        cp -r compose deploy/compose
    """,
    "docker compose --project-directory deploy/compose --file deploy/compose/issuer": """
        mkdir -p deploy/compose/issuer
        hubbub keys account deploy/compose/issuer/accounts --name alice
        cp streams.json deploy/compose/issuer/
    """,
    "kubectl create secret generic hubbub-token-key": """
        cd issuer; mkdir -p issuer; cp -r ../deploy/compose/issuer/accounts issuer/
        cp ../streams.json .; ln -s ../deploy .
        cp ../tls/shuffler.pem tls/issuer.pem; cp ../tls/shuffler.key tls/issuer.key
    """,
    "hubbub keys tls tls --party shuffler": "mkdir there; cd there",
    "hubbub keys tls tls --party aggregator": "mkdir ../here; cd ../here",
    "hubbub keys trust tls": "cp ../there/tls/ca.pem THEIR-ca.pem",
    "hubbub init deploy/compose --party aggregator": """
        mkdir there; mv deploy/compose there/; cp -r compose deploy/compose
        cp there/compose/tls/ca.pem THEIR-ca.pem
    """,
    "hubbub keys trust deploy/compose/tls": """
        cp deploy/compose/tls/ca.pem THEIR-ca.pem; rm -r deploy/compose; mv there/compose deploy/
    """,
    "kubectl create secret generic hubbub-access ": "touch access/oidc.secret",
    "mkdir relay": "rm -r relay",
    "kubectl create secret generic hubbub-relay-tls": "mkdir relay; touch relay/relay.{pem,key}",
    "hubbub log audit https://log.example.org/app/ --bundle app.hubbub --known": "LOGGED",
    "hubbub keys witness": "LOGGED",
    "hubbub log cosign https://log.example.org/app/ --key LOGKEY --keys witness --first": """
        KEY=$(hubbub log audit log --bundle app.hubbub | grep -o 'log.example.org/app+.*')
    """,
    "hubbub log publish": """
        hubbub keys witness second --name second.example.org
        hubbub log cosign log --key $KEY --keys second --first
        cp witness/*.checkpoint w1.checkpoint; cp second/*.checkpoint w2.checkpoint
        W1=$(cat witness/witness.pub) W2=$(cat second/witness.pub)
    """,
}
PLACES: Final = {
    "LOGGED": "hubbub catalog build --keys keys --roots tls/ca.pem",
    "https://log.example.org/app/": "log",
    "LOGKEY ": "$KEY ",
    "--witness W": "--witness $W",
    "/etc/": "etc/",
}


def _lines(text: str) -> list[str]:
    """The lines that a page indents, in their order; a continued line as a whole."""
    unfenced = re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"^    (\S(?:.*\\\n)*.*)$", unfenced, re.MULTILINE)


def _is_elsewhere(line: str) -> bool:
    return line.startswith((*ELSEWHERE, *CONFIGURATION)) or bool(_of_catalog(line))


def _of_catalog(line: str) -> list[str]:
    """The line, if it belongs at the top of metrics.toml."""
    return re.findall(r"^(?:tokens|log|runs) = .*", line)


def _run(lines: list[str], folder: Path, places: dict[str, str]) -> str:
    """What a shell prints that runs the lines in the folder, and stops at the first that fails."""
    programs = folder / "bin"
    programs.mkdir()
    engines = ("docker", "kubectl", "helm", "systemctl")
    hubbub = f'#!/bin/bash\nexec {sys.executable} -m hubbub.cli "$@"\n'
    for name, content in {**dict.fromkeys(engines, ENGINE), "hubbub": hubbub}.items():
        (programs / name).write_text(content)
        (programs / name).chmod(0o700)
    script = "set -euxo pipefail"
    for line in lines:
        before = [more for beginning, more in BEFORE.items() if line.startswith(beginning)]
        script = "\n".join((script, *before, line))
    for place, path in places.items():
        script = script.replace(place, path)
    paths = f"{programs}:{os.environ['PATH']}"
    done = run_program("bash", "-c", script, cwd=folder, env={**os.environ, "PATH": paths})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """By hand, as the README makes it, beside a checkout's deploy/."""
    folder = tmp_path_factory.mktemp("runbooks") / "installation"
    shutil.copytree(ROOT / "deploy", folder / "deploy", ignore=shutil.ignore_patterns("hubbub"))
    shutil.copytree(ROOT / "deploy/helm/hubbub", folder / "deploy/helm/hubbub")
    shutil.copytree(folder / "deploy/compose", folder / "compose")
    (folder / "metrics.toml").write_text(CATALOG)
    made = (
        "hubbub keys new keys",
        "hubbub keys tls tls --host shuffler=shuffler.example.org",
        "hubbub catalog build --keys keys --roots tls/ca.pem",
        "mkdir -p etc/systemd/system; rm -r bin",
    )
    _run(list(made), folder, {})
    return folder


SECTIONS: Final = {
    f"{page.stem}-{number}": _lines(section)
    for page in sorted(OPERATE.glob("*.md"))
    if page.name != "restore.md"
    for number, section in enumerate(page.read_text().split("\n## "))
    if any(not _is_elsewhere(line) for line in _lines(section))
}


@pytest.mark.parametrize("section", SECTIONS)
def test_the_lines_of_a_runbook_run_to_the_letter(
    section: str, installation: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "a"
    shutil.copytree(installation, folder)
    page = (OPERATE / f"{section.rpartition('-')[0]}.md").read_text()
    top = [more for line in _lines(page) for more in _of_catalog(line)][:1]
    (folder / "metrics.toml").write_text("\n".join((*top, CATALOG)))
    _run([line for line in SECTIONS[section] if not _is_elsewhere(line)], folder, PLACES)


def test_a_backup_and_its_restore_run_to_the_letter(
    catalog_files: CatalogFiles, tmp_path: Path
) -> None:
    catalog = Catalog(shuffler="127.0.0.1:1", metrics=dict(catalog_files.bundle.metrics))
    lines = _lines((OPERATE / "restore.md").read_text())
    places = {
        "/backups": f"{tmp_path}/backups",
        "/safe": str(tmp_path),
        "INSTALLATION": f"{tmp_path}/home",
        "AGAIN": f"{tmp_path}/again",
    }
    with LocalRun(tmp_path / "home", catalog, Ports.free()):
        output = _run([line for line in lines if not _is_elsewhere(line)], tmp_path, places)
    assert re.search(r"shuffler.rdb: verify and restore need \w+ [\d.]+ or newer here", output)
    assert "restored to" in output


def test_every_line_of_a_runbook_is_run_somewhere() -> None:
    """An entry that no page has any more is taken out."""
    every = [line for page in OPERATE.glob("*.md") for line in _lines(page.read_text())]
    assert len(every) > 100
    for beginning, where in {**ELSEWHERE, **CONFIGURATION}.items():
        assert any(line.startswith(beginning) for line in every), beginning
        tests = re.findall(r"tests/\S+\.py", where)
        assert tests
        for test in tests:
            assert (ROOT / test).exists(), test
    for beginning in BEFORE:
        assert any(line.startswith(beginning) for line in every), beginning
