"""An embedded Redis: a real server on a free port of this machine, with its data in a folder."""

import json
import os
import re
import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import redis
from redis.exceptions import BusyLoadingError, RedisError

from hubbub.errors import ServiceUnavailable, StateUnusable
from hubbub.installation.child_process import Child, postponed_endings
from hubbub.installation.ports import free_port
from hubbub.installation.redis_programs import program_for

# It answers at once, unless it has stored data to read first.
_START_SECONDS: Final = 300.0
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
        deadline = time.monotonic() + _START_SECONDS
        with redis.Redis.from_url(self.url) as client:
            while True:
                self.child.check()
                if endings:
                    raise KeyboardInterrupt
                try:
                    client.ping()
                except (BusyLoadingError, RedisError) as error:
                    if time.monotonic() > deadline:
                        raise ServiceUnavailable(
                            f"the embedded Redis does not answer: {error}"
                        ) from error
                    time.sleep(0.02)
                else:
                    return
