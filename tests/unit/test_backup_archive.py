"""A backup's archive, and what is said where its passphrase takes this machine too long."""

import io
import re
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from hubbub.errors import BackupUnusable
from hubbub.installation import archive

# Keys made from words are meant to take long.
pytestmark = pytest.mark.slow

Entry = tuple[tarfile.TarInfo, bytes | None]

WORDS = "six words that nobody guesses"


def _packed(folder: Path, seal: Callable[[bytes], bytes]) -> bytes:
    (folder / "home").mkdir()
    (folder / "home" / "metrics.toml").write_text("metrics = {}\n")
    out = folder / "installation.age"
    archive.pack(folder / "home", out, seal)
    return out.read_bytes()


@pytest.fixture(scope="module")
def archive_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return _packed(tmp_path_factory.mktemp("sealed"), archive.encryption_by(WORDS))


@pytest.fixture
def sealed(tmp_path: Path, archive_bytes: bytes) -> Path:
    path = tmp_path / "installation.age"
    path.write_bytes(archive_bytes)
    return path


@pytest.mark.thorough
def test_a_passphrase_that_this_machine_would_take_long_for_is_not_called_wrong(
    sealed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A work factor far above what age allows here stands for one that it misjudged."""
    monkeypatch.setattr(archive, "_PAUSE_SECONDS", 0.0)
    assert archive.unpack(sealed, archive.passphrase_opener(WORDS), None) == 1
    much = re.sub(rb"(-> scrypt \S+) \d+", rb"\1 30", sealed.read_bytes(), count=1)
    sealed.write_bytes(much)
    with pytest.raises(BackupUnusable, match="too slow or too busy"):
        archive.unpack(sealed, archive.passphrase_opener(WORDS), None)


@pytest.mark.thorough
def test_another_passphrase_is_refused_at_once(sealed: Path) -> None:
    with pytest.raises(BackupUnusable, match="this passphrase or key does not open it"):
        archive.unpack(sealed, archive.passphrase_opener("another one altogether"), None)


@pytest.mark.parametrize(
    ("name", "leads_to"),
    [("../elsewhere", ""), ("/elsewhere", ""), ("out", "../elsewhere"), ("in/../../out", "")],
)
def test_no_file_of_an_archive_is_written_outside_its_folder(
    tmp_path: Path, name: str, leads_to: str
) -> None:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = (tarfile.SYMTYPE, leads_to) if leads_to else (b"0", "")
    product = io.BytesIO()
    with tarfile.open(fileobj=product, mode="w:gz") as made_elsewhere:
        made_elsewhere.addfile(member)
    (tmp_path / "sealed").write_bytes(product.getvalue())
    with pytest.raises(BackupUnusable, match="is not a file or folder in it; use the backup"):
        archive.unpack(tmp_path / "sealed", lambda clear: clear, tmp_path / "home")
    assert sorted(path.name for path in tmp_path.rglob("*")) in (["sealed"], ["home", "sealed"])


def test_a_restore_keeps_permissions_and_inner_links(tmp_path: Path) -> None:
    home, again = tmp_path / "home", tmp_path / "again"
    (home / "keys").mkdir(parents=True, mode=0o700)
    (home / "keys" / "secret").write_text("a key")
    (home / "keys" / "secret").chmod(0o600)
    (home / "newest").symlink_to("keys/secret")
    archive.pack(home, tmp_path / "sealed", lambda clear: clear)
    assert archive.unpack(tmp_path / "sealed", lambda clear: clear, again) == 2
    assert (again / "newest").read_text() == "a key"
    modes = [(again / name).stat().st_mode & 0o777 for name in ("keys", "keys/secret")]
    assert modes == [0o700, 0o600]


def test_a_backup_restores_the_targets_of_links_as_files(tmp_path: Path) -> None:
    home, again, elsewhere = tmp_path / "home", tmp_path / "again", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    (elsewhere / "operator.key").write_text("a key")
    (home / "keys").symlink_to(elsewhere)
    (home / "twin").hardlink_to(elsewhere / "operator.key")
    (home / "third").hardlink_to(elsewhere / "operator.key")
    (home / "loop").symlink_to(home)
    assert archive.pack(home, tmp_path / "sealed", lambda clear: clear) == ["loop"]
    assert archive.unpack(tmp_path / "sealed", lambda clear: clear, None) == 3
    assert archive.unpack(tmp_path / "sealed", lambda clear: clear, again) == 3
    for name in ("keys/operator.key", "twin", "third"):
        assert (again / name).read_text() == "a key"
        assert not (again / name).is_symlink()


def _entry(name: str, leads_to: str | None = None, content: bytes | None = None) -> Entry:
    member = tarfile.TarInfo(name)
    if leads_to is not None:
        member.type, member.linkname = tarfile.SYMTYPE, leads_to
    elif content is None:
        member.type, member.mode, member.uid = tarfile.DIRTYPE, 0o755, 12345
    member.size = len(content or b"")
    return member, content


def _past_path_max() -> list[Entry]:
    """Links so deep that a system stops following them where a check goes on by their names."""
    entries, path, letters = [], "", "abcdefghijklmnopqrs"
    for letter in letters:
        entries += [_entry(f"{path}{'d' * 200}"), _entry(f"{path}{letter}", "d" * 200)]
        path += "d" * 200 + "/"
    deep = "/".join(letters) + "/" + "l" * 254
    return [
        *entries,
        _entry(deep, "../" * len(letters)),
        _entry("escape", f"{deep}/../victim"),
        _entry("escape/authorized_keys", content=b"evil"),
    ]


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param(_past_path_max(), id="links past the longest path"),
        pytest.param(
            [
                *map(_entry, ("d1", "victim", "victim/sub")),
                _entry("q", "d1"),
                _entry("p", "q/.."),
                _entry("p/victim/sub"),
                _entry("q", "."),
            ],
            id="a link that is turned around",
        ),
        pytest.param(
            [_entry("a", content=b"x"), _entry("a/b", content=b"x")], id="a file as folder"
        ),
    ],
)
def test_no_archive_changes_anything_outside(tmp_path: Path, entries: list[Entry]) -> None:
    victim = tmp_path / "victim"
    (victim / "sub").mkdir(parents=True, mode=0o700)
    before = [path.stat() for path in (victim, victim / "sub")]
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as product:
        for member, content in entries:
            product.addfile(member, io.BytesIO(content or b""))
    (tmp_path / "sealed").write_bytes(packed.getvalue())
    with pytest.raises(BackupUnusable, match="use the backup"):
        archive.unpack(tmp_path / "sealed", lambda clear: clear, tmp_path / "home")
    assert [path.stat() for path in (victim, victim / "sub")] == before
    assert [path.name for path in victim.iterdir()] == ["sub"]


@pytest.mark.thorough
def test_a_truncated_archive_is_refused(tmp_path: Path) -> None:
    clear, part = _packed(tmp_path, lambda clear: clear), tmp_path / "part"
    part.write_bytes(clear[: len(clear) // 2])
    with pytest.raises(BackupUnusable, match="is not a complete archive"):
        archive.unpack(part, lambda raw: raw, None)


def test_a_backup_of_a_manual_folder_has_no_redis_data_logs_or_secrets(
    tmp_path: Path,
) -> None:
    """The folder itself is the installation: Redis, logs, backups lie in it as people left them."""
    home, again = tmp_path / "home", tmp_path / "again"
    absent = {
        "passphrase": WORDS,
        "backup-key.txt": "# created: today\n# public key: age1x\nAGE-SECRET-KEY-1X\n",
        "pool/appendonlydir/appendonly.aof.1.incr.aof": "*2\r\n",
        "totals/dump.rdb": "REDIS0010\xfa",
        "totals/renamed": "VALKEY080",
        "former.aof": "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n",
        "aggregator.log": "a line",
        "logs/shuffler.log.2.gz": "lines",
        "backups/sunday/installation.age": "sealed",
        "backups/monday/shuffler.rdb": "being written",
    }
    present = {
        "metrics.toml": "metrics = {}",
        "keys/operator.key": "a key",
        "pool/redis.conf": "port 6379",
        "lists/changelog": "a value",
        "catalog.rdb.txt": "a value",
    }
    for name, text in (absent | present).items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text, encoding="latin-1")
    out = home / "backups" / "monday" / "installation.age"
    left_out = archive.pack(home, out, lambda clear: clear, home / "passphrase")
    assert {"passphrase", "aggregator.log", "pool/appendonlydir"} <= set(left_out)
    assert archive.unpack(out, lambda clear: clear, again) == len(present)
    assert {str(p.relative_to(again)) for p in again.rglob("*") if p.is_file()} == set(present)
