"""Redis servers as a test wants them: with replicas, limits, users, TLS."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from hubbub.installation.child_process import Child, free_port
from hubbub.installation.embedded_redis import server_programs
from tests.support.waiting import eventually


def installed_redis() -> str:
    """The server program on PATH, which has TLS where Debian's does; else that of the wheel."""
    wheel, *installed = server_programs()
    return str(installed[0] if installed else wheel)


@contextmanager
def redis_server(folder: Path, port: int = 0, **settings: str) -> Iterator[int]:
    """A server on a port of this machine, with these settings ("_" for "-"): the port."""
    port = port or free_port()
    folder.mkdir(parents=True, exist_ok=True)
    chosen = {"bind": "127.0.0.1", "dir": f'"{folder}"', "save": '""', **settings}
    if "tls_port" not in settings:
        chosen["port"] = str(port)
    else:
        chosen["port"] = "0"
    lines = (f"{name.replace('_', '-')} {value}\n" for name, value in chosen.items())
    configuration = folder / "redis.conf"
    configuration.write_text("".join(lines))
    child = Child("redis", [installed_redis(), str(configuration)], {}, folder / "redis.log")
    try:
        answering(child, port, tls="tls_port" in settings)
        yield port
    finally:
        # What it answered is in its files, and it looks for a milder signal ten times a second.
        child.process.kill()
        child.process.wait()


def answering(child: Child, port: int, *, tls: bool) -> None:
    """Wait until a server answers, if only that one may not ask it."""

    def answers() -> bool:
        child.check()
        # Without redis-py's own tries, between which it waits for up to seconds.
        once = Retry(NoBackoff(), 0)
        with redis.Redis(port=port, ssl=tls, ssl_cert_reqs="none", retry=once) as client:
            try:
                client.ping()
            except redis.AuthenticationError:
                return True
        return True

    eventually(answers, child.log.read_text, although=(redis.RedisError,))


def has_tls() -> bool:
    """Whether the Redis server here was built with TLS; the embedded one of the wheel is not."""
    # Without a certificate it ends at once: for want of it, or since it knows nothing of TLS.
    command = [installed_redis(), "--port", "0", "--tls-port", str(free_port())]
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    output = tried.stdout + tried.stderr
    return "Bad directive" not in output and "Missing implement" not in output
