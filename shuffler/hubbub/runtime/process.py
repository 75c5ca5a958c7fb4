"""A service's process: its servers and loops until a signal, its exit code."""

import asyncio
import logging
import os
import resource
import signal
import traceback
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NoReturn, Protocol, TypeVar

from hubbub.errors import HubbubError
from hubbub.programs.standard_streams import complain, run_program
from hubbub.runtime.monitoring.logs import facts, write_logs
from hubbub.runtime.monitoring.tracing import start_tracing
from hubbub.runtime.service_options import Common
from hubbub.runtime.tls import TlsFolder, ends
from hubbub.runtime.version import VERSION

_log: Final = logging.getLogger("hubbub.runtime")

_GRACE_SECONDS: Final = 5.0
_AGAIN_SECONDS: Final = 0.2
# A connection is a file. Many systems allow 1024 unless a process asks for more.
_MAX_FILES: Final = 65_536


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
