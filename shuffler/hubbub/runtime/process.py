"""A service's process: runs its servers and loops until a signal, and sets the exit code."""

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
from hubbub.runtime.memory import return_freed_memory, use_one_heap
from hubbub.runtime.monitoring.logs import facts, write_logs
from hubbub.runtime.monitoring.stages_and_traces import start_tracing
from hubbub.runtime.service_options import Common
from hubbub.runtime.tls import TlsFolder, ends
from hubbub.runtime.version import VERSION

_log: Final = logging.getLogger("hubbub.runtime")

_GRACE_SECONDS: Final = 5.0
_AGAIN_SECONDS: Final = 0.2
# A connection is a file. Many systems allow 1024 unless a process asks for more.
_MAX_FILES: Final = 65_536


class Serves(Protocol):
    """A server, of whatever protocol, that a process starts and stops."""

    async def start(self) -> None:
        """Begins to listen."""

    async def serve(self) -> None:
        """Runs until the server is stopped; raises the error that ends it before."""

    async def stop(self, grace_seconds: float) -> None:
        """Takes no new calls; calls under way have `grace_seconds` to finish."""


Loop = Callable[[], Coroutine[Any, Any, None]]
"""What runs beside the doors, from the start on; not begun where the start fails."""


class Settings(Protocol):
    """The settings of a service."""

    @property
    def common(self) -> Common:
        """The settings that all services share."""


Chosen = TypeVar("Chosen", bound=Settings)


def certificates_until(folders: Iterable[TlsFolder | None]) -> str:
    """First day on which a certificate of these folders expires, for the log line at the start."""
    end_times = ends(folders).values()
    return day_of(min(end_times)) if end_times else "none"


def day_of(seconds: float) -> str:
    """The UTC day of a moment in seconds since 1970."""
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


async def serve_until_signal(
    servers: Sequence[Serves],
    loops: Sequence[Loop],
    startup_facts: Mapping[str, Any],
    on_hangup: Callable[[], None] = lambda: None,
) -> None:
    """Runs servers and loops until SIGTERM or SIGINT, then finishes the calls under way.

    A loop or server that ends has failed: then everything stops at once, so that nobody waits for
    work that is not done. `startup_facts` go into the log line of the start. SIGHUP calls
    `on_hangup`.

    Raises:
        PartFailed: a loop or server failed by a fault of ours.
        HubbubError: the error of a loop or server, such as an address that is taken.
    """
    stop = asyncio.Event()
    why: list[str] = []

    def on_signal(name: str) -> None:
        why.append(name)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, on_signal, number.name)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, on_hangup)
    names_by_task = {
        asyncio.create_task(loop()): loop.__qualname__ for loop in (*loops, return_freed_memory)
    }
    stopped = asyncio.create_task(stop.wait())
    try:
        for server in servers:
            await server.start()
            names_by_task[asyncio.create_task(server.serve())] = type(server).__qualname__
        _log.info("started", extra=facts(version=VERSION, **startup_facts))
        await asyncio.wait([stopped, *names_by_task], return_when=asyncio.FIRST_COMPLETED)
        failed = [task for task in names_by_task if task.done()]
        reason = why[0] if why else f"{names_by_task[failed[0]]} has failed"
        _log.info("stopping", extra=facts(version=VERSION, why=reason))
        grace_seconds = 0.0 if failed else _GRACE_SECONDS
        await asyncio.gather(*(server.stop(grace_seconds) for server in servers))
        for task in failed:
            _raise_failure(task, names_by_task[task])
    finally:  # the runner would cancel each once, which one may swallow
        await end_tasks(asyncio.all_tasks() - {asyncio.current_task()})
    _log.info("stopped")


class PartFailed(Exception):
    """A part of a running service failed by a fault of ours; names what and where, and no value."""


def _raise_failure(task: "asyncio.Task[None]", part: str) -> NoReturn:
    error = task.exception()
    if isinstance(error, HubbubError):
        raise error
    if error is None:
        raise PartFailed(f"{part} has ended")
    # PRIVACY: an error's text may contain data.
    frames = traceback.extract_tb(error.__traceback__)
    callers = ", called by ".join(
        f"{frame.name} in {Path(frame.filename).name}:{frame.lineno}" for frame in frames[::-1]
    )
    raise PartFailed(f"{part} has failed: {type(error).__name__} at {callers}") from None


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
    """Runs a service to its end, and returns its exit code.

    The code is 0 after a signal, 2 if the service could not start, 1 if a part failed later (it may
    be started again). `loop_of` returns a factory of the event loop; None for Python's own.
    """

    def run() -> int:
        # A reload requested before the start is complete is part of the start.
        signal.signal(signal.SIGHUP, lambda *_: None)
        try:
            settings = parse()
            write_logs(settings.common.log_format)
            if settings.common.tls:
                settings.common.tls.warn_if_old()
            start_tracing(role, os.environ)
            _allow_files()
            use_one_heap()
            with asyncio.Runner(loop_factory=loop_of(settings)) as runner:
                runner.run(serve(settings))
        except HubbubError as error:
            return complain(str(error), f"hubbub {role}")
        except PartFailed as error:
            _log.critical(
                "%s; this is a fault of hubbub: report it, and start the service again", error
            )
            return 1
        return 0

    return run_program(run)


def _allow_files() -> None:
    """Raises this process's limit of open files, up to _MAX_FILES."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    max_files = _MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, _MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < max_files:
        with suppress(ValueError, OSError):  # the system has a lower bound of its own
            resource.setrlimit(resource.RLIMIT_NOFILE, (max_files, hard))
