"""A backup of an installation that runs, restored into a fresh one that goes on."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyrage
import pytest

from hubbub.authoring import Catalog
from hubbub.cli.main import main
from hubbub.installation.child_process import free_port
from hubbub.installation.embedded_redis import EmbeddedRedis
from hubbub.installation.local_run import LocalRun, Ports
from hubbub.installation.running_endpoints import Endpoints
from tests.conftest import CatalogFiles
from tests.support.law_terms import total_counts
from tests.support.waiting import eventually

pytestmark = pytest.mark.thorough

WORDS = "six words that nobody guesses"


@dataclass(frozen=True)
class BackupSetting:
    """Where a backup goes, what it is made with, and the catalog."""

    folder: Path
    passphrase: Path
    catalog: Catalog


def _law(endpoints: Endpoints) -> dict[str, int]:
    return dict(total_counts(endpoints))


def _sum(law: dict[str, int]) -> int:
    return sum(number for term, number in law.items() if term != "acknowledged")


def _estimates(home: Path, capfd: pytest.CaptureFixture[str]) -> str:
    capfd.readouterr()
    assert main(["query", "theme", "--home", str(home), "--format", "json"]) == 0
    rows = json.loads(capfd.readouterr().out)["values"]
    assert rows
    return json.dumps(rows)


def _load(home: Path, metric: str, seconds: int) -> list[str]:
    return ["load", "--home", str(home), "--devices", "30000", "--rate", "100", "--metric", metric,
            "--seconds", str(seconds), "--processes", "1", "--format", "json"]  # fmt: skip


@pytest.fixture(scope="module")
def backup_and_run(
    catalog_files: CatalogFiles, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[BackupSetting, LocalRun]]:
    folder = tmp_path_factory.mktemp("backup")
    passphrase = folder / "passphrase"
    passphrase.write_text(WORDS + "\n")
    catalog = Catalog(shuffler="127.0.0.1:1", metrics=dict(catalog_files.bundle.metrics))
    with LocalRun(folder / "home", catalog, Ports.free()) as run:
        yield BackupSetting(folder / "kept", passphrase, catalog), run


def test_a_running_installation_is_restored_and_continues(
    backup_and_run: tuple[BackupSetting, LocalRun],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    backup, run = backup_and_run
    folder, passphrase = str(backup.folder), str(backup.passphrase)
    assert main(_load(run.home, "theme", 3)) == 0
    eventually(lambda: _law(run.endpoints)["counted"] > 260)  # of the rest none leaves the pool
    eventually(lambda: not _law(run.endpoints).get("in_flight"))
    before = _estimates(run.home, capfd)
    with subprocess.Popen(
        [sys.executable, "-m", "hubbub.cli", *_load(run.home, "crashed", 900)],
        stdout=subprocess.DEVNULL,
    ) as busy:
        eventually(lambda: _law(run.endpoints)["acknowledged"] > 320)
        assert main(["backup", folder, "--home", str(run.home), "--passphrase", passphrase]) == 0
        after = _law(run.endpoints)["acknowledged"]
        eventually(lambda: _law(run.endpoints)["acknowledged"] > after)
        busy.send_signal(signal.SIGINT)
    assert main(["verify", folder, "--passphrase", passphrase]) == 0
    assert "complete and unchanged, made" in capfd.readouterr().out
    home = tmp_path / "again"
    assert main(["restore", folder, "--home", str(home), "--passphrase", passphrase]) == 0
    key = Path("keys/operator.key")
    assert (home / key).read_bytes() == (run.home / key).read_bytes()
    run.stop()
    with LocalRun(home, backup.catalog, Ports.free()) as again:
        # What was between the two Redis is neither lost nor counted twice.
        eventually(lambda: _law(again.endpoints)["acknowledged"] == _sum(_law(again.endpoints)))
        law = _law(again.endpoints)
        assert 320 < law["acknowledged"] <= after
        assert law.get("duplicate", 0) == 0
        assert _estimates(home, capfd) == before
        assert main(_load(home, "crashed", 1)) == 0
        eventually(lambda: _sum(_law(again.endpoints)) == law["acknowledged"] + 100)
        assert _law(again.endpoints)["acknowledged"] == law["acknowledged"] + 100


def test_a_damaged_backup_or_one_that_would_overwrite_is_refused(
    backup_and_run: tuple[BackupSetting, LocalRun],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    backup, run = backup_and_run
    passphrase = str(backup.passphrase)
    home = tmp_path / "home"

    def refused(*arguments: str) -> str:
        capfd.readouterr()
        assert main(arguments) == 2
        return capfd.readouterr().err

    assert "is not empty" in refused(
        "restore", str(backup.folder), "--home", str(run.home), "--passphrase", passphrase
    )
    other = tmp_path / "other"
    other.write_text("another passphrase altogether")
    message = refused(
        "restore", str(backup.folder), "--home", str(home), "--passphrase", str(other)
    )
    assert "this passphrase or key does not open it" in message
    assert WORDS not in message
    assert not home.exists()
    damaged = tmp_path / "damaged"
    shutil.copytree(backup.folder, damaged)
    (damaged / "notes.txt").touch()
    assert main(["verify", str(damaged)]) == 0
    assert f"{damaged / 'notes.txt'}: is no part of the backup" in capfd.readouterr().out
    for name, remedy in [
        ("shuffler.rdb", "is damaged"),
        ("installation.age", "is damaged"),
        ("manifest.json", "is damaged"),
    ]:
        shutil.copytree(backup.folder, damaged, dirs_exist_ok=True)
        whole = bytearray((damaged / name).read_bytes())
        whole[len(whole) // 2] ^= 1
        (damaged / name).write_bytes(whole)
        assert remedy in refused("verify", str(damaged))
    shutil.copytree(backup.folder, damaged, dirs_exist_ok=True)
    (damaged / "aggregator.rdb").write_bytes(b"")
    assert "0 bytes" in refused("verify", str(damaged))
    (damaged / "aggregator.rdb").unlink()
    assert "missing" in refused("verify", str(damaged))


def test_a_redis_that_contains_data_is_not_changed(
    backup_and_run: tuple[BackupSetting, LocalRun],
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    backup, run = backup_and_run
    shared = EmbeddedRedis(tmp_path)
    request.addfinalizer(shared.stop)
    for role in ("SHUFFLER", "AGGREGATOR"):
        monkeypatch.setenv(f"HUBBUB_{role}_REDIS_URL", shared.url)
    # Both roles in one server, which is empty; the second time it is not.
    assert main(["restore", str(backup.folder), "--redis"]) == 0
    assert main(["restore", str(backup.folder), "--redis"]) == 2
    assert "keys, but a backup is only restored into an empty Redis" in capfd.readouterr().err
    # Nobody answers: half a backup is not left where the next one is to go.
    with monkeypatch.context() as away:
        away.setenv("HUBBUB_AGGREGATOR_REDIS_URL", f"redis://127.0.0.1:{free_port()}/0")
        half = ["backup", str(tmp_path / "half"), "--passphrase", str(backup.passphrase)]
        assert main([*half, "--home", str(backup.passphrase.parent)]) == 2
        assert not (tmp_path / "half").exists()
    # And a backup of a server that both share, to a public key.
    identity = pyrage.x25519.Identity.generate()
    key, folder, files = (tmp_path / name for name in ("identity", "shared", "files"))
    shutil.copytree(run.home / "keys", files / "keys")
    key.write_text(f"# made by age-keygen\n{identity}\n")
    arguments = ["backup", str(folder), "--home", str(files), "--for", str(identity.to_public())]
    assert main(arguments) == 0
    assert main(["verify", str(folder), "--identity", str(key)]) == 0
    assert b"PRIVATE KEY" not in (folder / "installation.age").read_bytes()
    assert (folder / "shuffler.rdb").read_bytes() == (folder / "aggregator.rdb").read_bytes()
