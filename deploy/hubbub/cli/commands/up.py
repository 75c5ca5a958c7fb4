"""`hubbub up`: everything on this machine until Ctrl-C, kept in a folder."""

import argparse
import time
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final

from hubbub.catalog import Catalog
from hubbub.cli.local.local_run import LocalRun, Ports
from hubbub.cli.terminal.output import say
from hubbub.errors import BadParameter
from hubbub.privacy.crowd import read_planned

__all__ = ["add", "demo_catalog", "until_interrupted"]

_BASE_PORT: Final = 7070
_LAST_BASE: Final = 65_529
_WATCH_SECONDS: Final = 1.0


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `up` to the command line."""
    up = commands.add_parser("up", help="run everything on this machine, until Ctrl-C")
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
        help="for devices; the next six are for the services (%(default)s)",
    )
    up.set_defaults(run=_up)


def demo_catalog() -> Catalog:
    """The catalog that the demo asks."""
    with as_file(files("hubbub.cli") / "demo_data" / "metrics.toml") as path:
        return read_planned(path)


def _up(arguments: argparse.Namespace) -> int:
    if not 1 <= arguments.port <= _LAST_BASE:
        raise BadParameter(f"--port {arguments.port} is outside [1, {_LAST_BASE}]")
    here = Path("metrics.toml")
    path = arguments.catalog or (here if here.exists() else None)
    catalog = read_planned(path) if path else demo_catalog()
    home = arguments.home.absolute()
    with LocalRun(home, catalog, Ports.from_base(arguments.port)) as run:
        say(f"hubbub is up, with {path or 'the catalog of the demo'}; state in {arguments.home}")
        say(
            f"  devices report to   127.0.0.1:{arguments.port} with {arguments.home / 'app.hubbub'}"
        )
        say(f"  see what was found  {run.endpoints.page}")
        say(f"  ask for estimates   hubbub query METRIC --home {arguments.home}")
        say(f"  see every report    hubbub status --home {arguments.home}")
        say(f"  logs                {arguments.home / 'log'}")
        say("Ctrl-C ends it; the next start goes on from here.")
        until_interrupted(run)
    return 0


def until_interrupted(run: LocalRun) -> None:
    """Go on until Ctrl-C. Raises ServiceUnavailable if a process ends by itself."""
    try:
        while True:
            run.check()
            time.sleep(_WATCH_SECONDS)
    except KeyboardInterrupt:
        say("Ending.")
