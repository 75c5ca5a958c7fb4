"""A disk that is full: Redis ends, and after room is made and it is started all is there.

As docs/operate/redis-full.md has it, with each of the server programs of this machine.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import redis

from hubbub.cli.main import main
from hubbub.installation.child_process import Child, free_port
from hubbub.installation.embedded_redis import EmbeddedRedis, server_programs
from tests.support.servers import answering
from tests.support.waiting import eventually

pytestmark = pytest.mark.thorough


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MB, which takes root's rights."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here: run as root, where mounts are allowed")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.parametrize("program", server_programs(), ids=lambda path: path.name)
def test_redis_ends_on_a_full_disk_and_has_all_that_it_acknowledged(
    program: Path, small_disk: Path, tmp_path: Path
) -> None:
    port, more = free_port(), small_disk / "something-else"
    more.write_bytes(bytes(4 << 20))
    settings = {"bind": "127.0.0.1", "port": port, "dir": small_disk, "save": '""'}
    settings |= {"appendonly": "yes", "appendfsync": "always"}
    configuration = tmp_path / "redis.conf"
    configuration.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    log = tmp_path / "redis.log"
    child = Child("redis", [str(program), str(configuration)], dict(os.environ), log)
    try:
        answering(child, port, tls=False)
        acknowledged = _fill_disk(port)
        assert acknowledged
        eventually(lambda: child.process.poll() is not None)
        assert "AOF write error" in log.read_text()
        more.unlink()  # room is made
        child.start()  # and Redis is started again: nothing else brings it back
        answering(child, port, tls=False)
        with redis.Redis(port=port) as client:
            assert client.scard("pool") >= acknowledged
            client.sadd("pool", "goes on")
    finally:
        child.stop()


def test_backup_and_restore_name_the_full_disk(
    small_disk: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    passphrase, files = tmp_path / "passphrase", tmp_path / "files"
    passphrase.write_text("six words that nobody guesses")
    (files / "keys").mkdir(parents=True)
    server = EmbeddedRedis(tmp_path / "redis")
    try:
        with redis.Redis.from_url(server.url) as client:
            for number in range(12):
                client.set(f"shuffler:{number}", os.urandom(1 << 20))
        for role in ("SHUFFLER", "AGGREGATOR"):
            monkeypatch.setenv(f"HUBBUB_{role}_REDIS_URL", server.url)
        options = ["--home", str(files), "--passphrase", str(passphrase)]
        assert main(["backup", str(small_disk / "b"), *options]) == 2
        message = capfd.readouterr().err
        assert f"{small_disk / 'b'}" in message
        assert "cannot be written: No space left on device; make room" in message
        assert main(["backup", str(tmp_path / "b"), *options]) == 0
    finally:
        server.stop()
    home = str(small_disk / "home")
    capfd.readouterr()
    assert main(["restore", str(tmp_path / "b"), "--home", home, *options[2:]]) == 2
    message = capfd.readouterr().err
    assert f"{home}: its Redis ended while it was filled; its disk had" in message
    assert "make room there, and restore again" in message
    assert not Path(home).exists()


def _fill_disk(port: int) -> int:
    """How many members of a set Redis acknowledged before it could write no more."""
    acknowledged = 0
    with redis.Redis(port=port) as client, suppress(redis.RedisError):
        while True:
            client.sadd("pool", acknowledged.to_bytes(4, "big") * 4096)
            acknowledged += 1
    return acknowledged
