"""`hubbub up`: everything on this machine until Ctrl-C, kept in a folder."""

import argparse
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final

from hubbub.catalog import Catalog
from hubbub.cli.local.local_run import LAST_BASE, LocalRun, Ports
from hubbub.cli.terminal.catalog_reading import read_aloud
from hubbub.cli.terminal.output import say
from hubbub.errors import BadParameter, BundleRefused, HubbubError, ServiceUnavailable
from hubbub.errors.places import PROTECTS_NOBODY

_BASE_PORT: Final = 7070
_WATCH_SECONDS: Final = 1.0
_MODELS_SECONDS: Final = 10.0
_DEVELOPMENT_MODELS_SECONDS: Final = 1.0


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `up` to the command line."""
    up = commands.add_parser("up")
    up.add_argument(
        "--catalog",
        type=Path,
        help="catalog to serve (metrics.toml if it is here, else the demo's)",
    )
    up.add_argument(
        "--home", type=Path, default=Path(".hubbub"), help="folder for all state (%(default)s)"
    )
    up.add_argument(
        "--port",
        type=int,
        default=_BASE_PORT,
        help="for devices; the next seven are for the services (%(default)s)",
    )
    up.add_argument(
        "--dev",
        action="store_true",
        help="for development: a report counts at once, numbers protect nobody, and the catalog is "
        "taken anew when it changes",
    )
    up.set_defaults(run=_up)


def demo_catalog() -> Catalog:
    """The catalog that the demo asks."""
    with as_file(files("hubbub.cli") / "demo_data" / "metrics.toml") as path:
        return read_aloud(path)


def _up(arguments: argparse.Namespace) -> int:
    if not 1 <= arguments.port <= LAST_BASE:
        raise BadParameter(f"--port {arguments.port} is outside [1, {LAST_BASE}]")
    here = Path("metrics.toml")
    path = arguments.catalog or (here if here.exists() else None)
    catalog = read_aloud(path) if path else demo_catalog()
    home = arguments.home.absolute()
    ports = Ports.from_base(arguments.port)
    with LocalRun(home, catalog, ports, development=arguments.dev) as run:
        if arguments.dev:
            say(PROTECTS_NOBODY)
        say(f"hubbub is up, with {path or 'the catalog of the demo'}; state in {arguments.home}")
        say(
            f"  devices report to   127.0.0.1:{arguments.port} with {arguments.home / 'app.hubbub'}"
        )
        say(f"  and over HTTP to    https://{run.http_door}")
        for name, metric in run.bundle.metrics.items():
            if arguments.dev and metric.model:
                say(f"  model {name}: {metric.model.last + 1} rounds, of a minute each")
        say(f"  see what was found  {run.endpoints.page}")
        say(f"  ask for estimates   hubbub query METRIC --home {arguments.home}")
        say(f"  see every report    hubbub status --home {arguments.home}")
        say(f"  logs                {arguments.home / 'log'}")
        say("Ctrl-C ends it; the next start goes on from here.")
        until_interrupted(run, _watching(path, run) if path and arguments.dev else None)
    return 0


def _watching(path: Path, run: LocalRun) -> Callable[[], None]:
    """What takes the catalog anew if it has changed since it was last asked."""
    seen = _looked(path)

    def look() -> None:
        nonlocal seen
        if (now := _looked(path)) == seen:
            return
        seen = now
        try:
            run.take(read_aloud(path))
        except BundleRefused as error:
            say(f"{path}: refused, the former goes on: {error}")
            say(f"  or forget all that was counted: end this, delete {run.home}, start it again")
        except HubbubError as error:
            say(f"{path}: refused, the former goes on: {error}")
        else:
            number = len(run.bundle.metrics)
            metrics = "1 metric" if number == 1 else f"{number:,} metrics"
            say(f"{path}: taken, {metrics}; apps take the new bundle")

    return look


def _looked(path: Path) -> tuple[int, int] | None:
    """What tells a changed file; None while an editor replaces it."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def until_interrupted(run: LocalRun, look: Callable[[], None] | None = None) -> None:
    """Go on until Ctrl-C. look: done every second.

    Raises ServiceUnavailable if a process ends by itself.
    """
    publishing = 0.0
    try:
        while True:
            run.check()
            if look:
                look()
            if time.monotonic() >= publishing:
                with suppress(ServiceUnavailable):  # again soon
                    run.publish_models()
                often = _DEVELOPMENT_MODELS_SECONDS if run.bundle.development else _MODELS_SECONDS
                publishing = time.monotonic() + often
            time.sleep(_WATCH_SECONDS)
    except KeyboardInterrupt:
        say("Ending.")
