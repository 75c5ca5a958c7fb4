"""A service's process: its common settings, its servers and loops until a signal, its exit code."""

import argparse
import asyncio
import logging
import os
import resource
import signal
import traceback
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Final, NoReturn, Protocol, TypeVar

from hubbub.errors import BadParameter, HubbubError
from hubbub.errors.addresses import check_address
from hubbub.programs.standard_streams import complain, run_program
from hubbub.runtime.certificates import ends
from hubbub.runtime.monitoring.logs import FORMATS, facts, write_logs
from hubbub.runtime.monitoring.tracing import start_tracing
from hubbub.runtime.tls import TlsFolder
from hubbub.runtime.version import VERSION

_log: Final = logging.getLogger("hubbub.runtime")

_GRACE_SECONDS: Final = 5.0
_AGAIN_SECONDS: Final = 0.2
VARIABLES: Final = {
    "HUBBUB_REDIS_URL": "the service's own Redis, as redis://HOST:PORT/0 or rediss://, with the "
    "user and the password (needed)",
    "HUBBUB_DEV": "1 is what `--dev` is; `hubbub init --dev` writes it",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "where batches are traced to, if anywhere; so does "
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
}
"""What a service reads of its environment; its command line says the rest."""
# A connection is a file. Many systems allow 1024 unless a process asks for more.
_MAX_FILES: Final = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """What every service is told.

    tls: its certificates, or None for plain text. development: its numbers protect nobody.
    """

    tls: TlsFolder | None
    redis_url: str
    redis_replicas: int
    metrics_listen: str
    log_format: str
    development: bool = False


class Serves(Protocol):
    """A door: whatever it speaks, a process opens and closes it so."""

    async def start(self) -> None:
        """Listen."""
        ...

    async def serve(self) -> None:
        """Let people in until it is stopped, once it listens; raises what it fails with."""
        ...

    async def stop(self, grace_seconds: float) -> None:
        """Let nobody in any more; who is inside has so long."""
        ...


Loop = Callable[[], Coroutine[Any, Any, None]]
"""What runs beside the doors, from the start on; not begun where the start fails."""


class Settings(Protocol):
    """What a service is told, of its own and in common."""

    @property
    def common(self) -> Common:
        """What every service is told."""
        ...


Chosen = TypeVar("Chosen", bound=Settings)


def add_common(parser: argparse.ArgumentParser, *, metrics_listen: str) -> None:
    """The settings that every service has."""
    security = parser.add_mutually_exclusive_group(required=True)
    security.add_argument("--tls", type=Path, help="folder of certificates made by hubbub keys tls")
    security.add_argument(
        "--insecure", action="store_true", help="serve without TLS, on a loopback address only"
    )
    parser.add_argument(
        "--redis-replicas",
        type=int,
        default=0,
        help="number of Redis replicas that must have a write before it counts (%(default)s)",
    )
    parser.add_argument(
        "--metrics-listen", default=metrics_listen, help="address for Prometheus (%(default)s)"
    )
    parser.add_argument(
        "--log-format", choices=FORMATS, default=FORMATS[0], help="format of the log (%(default)s)"
    )
    parser.add_argument(
        "--dev",
        action="store_true",
        help="development installation: the privacy settings protect nobody, and files of "
        "production are refused; also set by HUBBUB_DEV=1",
    )


def common(arguments: argparse.Namespace, role: str) -> Common:
    """What was chosen for them.

    Raises:
        BadParameter: HUBBUB_REDIS_URL is not set, HUBBUB_DEV is unclear, a number is out of range,
            or an address is none.
    """
    url = redis_url()
    check_addresses(arguments, "metrics_listen")
    check_range(arguments, "redis_replicas", 0, 10)
    tls = TlsFolder(arguments.tls, role) if arguments.tls else None
    return Common(
        tls=tls,
        redis_url=url,
        redis_replicas=arguments.redis_replicas,
        metrics_listen=arguments.metrics_listen,
        log_format=arguments.log_format,
        development=arguments.dev or _is_development(),
    )


def _is_development() -> bool:
    """What the environment says, which goes with the keys of `hubbub init --dev`."""
    value = os.environ.get("HUBBUB_DEV", "")
    if value not in {"", "0", "1"}:
        raise BadParameter("HUBBUB_DEV is neither 1 nor 0; set it to 1, or leave it out")
    return value == "1"


def redis_url(setting: str = "HUBBUB_REDIS_URL") -> str:
    """Where our Redis is: from the environment, since it may hold a password.

    Raises:
        BadParameter: it is not set.
    """
    url = os.environ.get(setting)
    if not url:
        raise BadParameter(f"{setting} is not set; set it to redis://HOST:PORT/0")
    return url


def check_range(arguments: argparse.Namespace, name: str, low: float, high: float) -> None:
    """Raises BadParameter unless a setting is in [low, high]; nan is not."""
    number = getattr(arguments, name)
    if not low <= number <= high:
        option = "--" + name.replace("_", "-")
        raise BadParameter(f"{option} {number} is outside [{low:.15g}, {high:.15g}]")


def check_addresses(arguments: argparse.Namespace, *names: str) -> None:
    """Raises BadParameter unless each of these settings is HOST:PORT."""
    for name in names:
        check_address("--" + name.replace("_", "-"), getattr(arguments, name))


def read_network(option: str, text: str) -> str:
    """An address or a network of several. Raises BadParameter."""
    try:
        return str(ip_network(text))
    except ValueError:
        raise BadParameter(
            f"{option} {text!a} is no address; write 10.0.0.5, or a network as 10.0.0.0/24"
        ) from None


def certificates_until(folders: Iterable[TlsFolder | None]) -> str:
    """The day on which the first certificate of some folders ends, for the line at the start."""
    end_times = ends(folders).values()
    return day_of(min(end_times)) if end_times else "none"


def day_of(seconds: float) -> str:
    """A moment's day, UTC."""
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


async def serve_until_signal(
    servers: Sequence[Serves],
    loops: Sequence[Loop],
    startup_facts: Mapping[str, Any],
    on_hangup: Callable[[], None] = lambda: None,
) -> None:
    """Serve and run the loops until SIGTERM or SIGINT, then finish the calls under way.

    A loop that ends has failed, as a door that lets nobody in: then everything stops at once, so
    that nobody waits for what nothing works on. startup_facts: what the line in the log says of the
    start, beside the version. on_hangup: what SIGHUP does; it ends nothing.

    Raises:
        PartFailed: by a fault of ours.
        HubbubError: a loop's own, as an address that is taken.
    """
    stop = asyncio.Event()
    why: list[str] = []

    def on_signal(name: str) -> None:
        why.append(name)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, on_signal, number.name)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, on_hangup)
    parts = {asyncio.create_task(loop()): loop.__qualname__ for loop in loops}
    stopped = asyncio.create_task(stop.wait())
    for server in servers:
        await server.start()
        parts[asyncio.create_task(server.serve())] = type(server).__qualname__
    _log.info("started", extra=facts(version=VERSION, **startup_facts))
    await asyncio.wait([stopped, *parts], return_when=asyncio.FIRST_COMPLETED)
    failed = [task for task in parts if task.done()]
    reason = why[0] if why else f"{parts[failed[0]]} has failed"
    _log.info("stopping", extra=facts(version=VERSION, why=reason))
    for server in servers:
        await server.stop(0.0 if failed else _GRACE_SECONDS)
    for task in failed:
        _raise_failure(task, parts[task])
    await end_tasks(asyncio.all_tasks() - {asyncio.current_task()})
    _log.info("stopped")


class PartFailed(Exception):
    """A part of a running service has failed, by a fault of ours: what and where, and no value."""


def _raise_failure(task: "asyncio.Task[None]", part: str) -> NoReturn:
    error = task.exception()
    if isinstance(error, HubbubError):
        raise error
    if error is None:
        raise PartFailed(f"{part} has ended")
    # PRIVACY: an error's own words may hold what it was about.
    frames = traceback.extract_tb(error.__traceback__)
    where = ", called by ".join(
        f"{frame.name} in {Path(frame.filename).name}:{frame.lineno}" for frame in frames[::-1]
    )
    raise PartFailed(f"{part} has failed: {type(error).__name__} at {where}") from None


async def end_tasks(tasks: Iterable["asyncio.Task[Any] | None"]) -> None:
    """Cancel tasks until they have ended.

    Once is not enough: before Python 3.12 `asyncio.wait_for`, which redis-py sends with, may
    swallow a cancellation that comes as it is done.
    """
    pending = {task for task in tasks if task}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=_AGAIN_SECONDS)


def run_service(
    role: str,
    parse: Callable[[], Chosen],
    serve: Callable[[Chosen], Coroutine[Any, Any, None]],
    loop_of: Callable[[Chosen], Callable[[], asyncio.AbstractEventLoop] | None] = lambda _: None,
) -> int:
    """Run a service to its end: 0 after a signal, 2 with a message if it could not start.

    1 with a message where a part of it has failed since: whoever started it may start it again.

    loop_of: what makes the event loop that it is best served by; None for Python's own.
    """
    return run_program(lambda: _run(role, parse, serve, loop_of))


def _run(
    role: str,
    parse: Callable[[], Chosen],
    serve: Callable[[Chosen], Coroutine[Any, Any, None]],
    loop_of: Callable[[Chosen], Callable[[], asyncio.AbstractEventLoop] | None],
) -> int:
    # Who asks for a reload before there is anything to load gets it with the start.
    signal.signal(signal.SIGHUP, lambda *_: None)
    try:
        settings = parse()
        write_logs(settings.common.log_format)
        if settings.common.tls:
            settings.common.tls.warn_if_old()
        start_tracing(role, os.environ)
        _allow_files()
        with asyncio.Runner(loop_factory=loop_of(settings)) as runner:
            runner.run(serve(settings))
    except HubbubError as error:
        return complain(str(error), f"hubbub {role}")
    except PartFailed as error:
        _log.critical("%s; this is a fault of hubbub: tell its makers, and start it again", error)
        return 1
    return 0


def _allow_files() -> None:
    """Have as many files open as this process may, within reason."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, _MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(ValueError, OSError):  # the system has a lower bound of its own
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
