"""A service's process: its common settings, its servers and loops until a signal, its exit code."""

import argparse
import asyncio
import contextlib
import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Final

from hubbub.errors import BadParameter, HubbubError
from hubbub.serving.server import Server
from hubbub.serving.tls import TlsFolder

__all__ = [
    "add_security",
    "end_with_parent",
    "redis_url",
    "run_service",
    "serve_until_signal",
    "tls_folder",
]

_GRACE_SECONDS: Final = 5.0


def add_security(parser: argparse.ArgumentParser) -> None:
    """The choice that every service asks for: certificates, or plain text on this machine."""
    security = parser.add_mutually_exclusive_group(required=True)
    security.add_argument("--tls", type=Path, help="folder of certificates: hubbub keys tls")
    security.add_argument("--insecure", action="store_true", help="no TLS, on loopback alone")


def tls_folder(given: argparse.Namespace, role: str) -> TlsFolder | None:
    """What was chosen: the role's certificates, or None for plain text."""
    return TlsFolder(given.tls, role) if given.tls else None


def redis_url() -> str:
    """HUBBUB_REDIS_URL: from the environment, since it may hold a password.

    Raises:
        BadParameter: it is not set.
    """
    url = os.environ.get("HUBBUB_REDIS_URL")
    if not url:
        raise BadParameter("HUBBUB_REDIS_URL is not set; set it to redis://HOST:PORT/0")
    return url


def end_with_parent() -> None:
    """End this worker process when the process that started it is gone, killed included."""
    parent = multiprocessing.parent_process()
    if parent is None:
        raise AssertionError("only a process of multiprocessing has a parent to end with")

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, name="hubbub-parent", daemon=True).start()


async def serve_until_signal(
    servers: Sequence[Server], loops: Sequence[Coroutine[Any, Any, None]]
) -> None:
    """Serve and run the loops until SIGTERM or SIGINT, then finish the calls under way.

    A loop that ends has failed: then everything stops, and its error is raised.
    """
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    tasks = [asyncio.create_task(loop) for loop in loops]
    stopped = asyncio.create_task(stop.wait())
    for server in servers:
        await server.start()
    await asyncio.wait([stopped, *tasks], return_when=asyncio.FIRST_COMPLETED)
    for server in servers:
        await server.stop(_GRACE_SECONDS)
    for task in (stopped, *tasks):
        if task.done():
            task.result()
        task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.gather(*tasks)


def run_service(role: str, serve: Callable[[], Coroutine[Any, Any, None]]) -> int:
    """Run a service to its end: 0 after a signal, 2 with a message if it could not start."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        asyncio.run(serve())
    except HubbubError as error:
        print(f"hubbub {role}: {error}", file=sys.stderr)  # noqa: T201 to whoever started it
        return 2
    return 0
