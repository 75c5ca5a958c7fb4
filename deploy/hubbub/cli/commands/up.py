"""`hubbub up`: everything on this machine until Ctrl-C, kept in a folder."""

import time
from collections.abc import Callable
from contextlib import suppress
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final

from hubbub.aggregator.settings import Outlets
from hubbub.authoring import Catalog
from hubbub.cli.terminal.catalog_reading import read_aloud
from hubbub.cli.terminal.output import say
from hubbub.errors import BadParameter, BundleRefused, HubbubError, ServiceUnavailable
from hubbub.errors.message_words import PROTECTS_NOBODY, several
from hubbub.installation.local_run import LAST_BASE, LocalRun, Ports
from hubbub.installation.running_endpoints import HOME
from hubbub.programs.command_line import command
from hubbub.programs.option_parsing import option

_BASE_PORT: Final = 7070
_REFUSED: Final = "refused, so the previous catalog stays in use"
_WATCH_SECONDS: Final = 1.0
_MODELS_SECONDS: Final = 10.0
_DEV_MODELS_SECONDS: Final = 1.0


def demo_catalog() -> Catalog:
    """The catalog of the demo."""
    with as_file(files("hubbub.cli") / "demo_data" / "metrics.toml") as path:
        return read_aloud(path)


@command("up")
def _up(
    *,
    catalog: Path | None = option(
        "catalog to serve (metrics.toml if it is here, else the catalog of the demo)"
    ),
    home: Path = option("folder for all state (%(default)s)", default=HOME),
    port: int = option(
        "port for devices; the services use the next seven ports (%(default)s)", default=_BASE_PORT
    ),
    dev: bool = option(
        "for development only: reports are counted at once, the privacy settings protect "
        "nobody, and the catalog is read again when it changes"
    ),
    outlets: Outlets,
) -> None:
    if not 1 <= port <= LAST_BASE:
        raise BadParameter(f"--port {port} is outside [1, {LAST_BASE}]")
    catalog_path = Path("metrics.toml")
    path = catalog or (catalog_path if catalog_path.exists() else None)
    served = read_aloud(path) if path else demo_catalog()
    folder, ports = home.absolute(), Ports.from_base(port)
    with LocalRun(folder, served, ports, development=dev, outlets=outlets) as run:
        if dev:
            say(PROTECTS_NOBODY)
        say(f"hubbub is up, with {path or 'the catalog of the demo'}; state in {home}")
        if run.has_new_authority:
            say(
                f"{home / 'tls'} had no certificates: new ones were made, which devices do "
                "not trust yet; give them the new app.hubbub, until then their reports wait"
            )
        say(f"  devices report to   127.0.0.1:{port} with {home / 'app.hubbub'}")
        say(f"  and over HTTP to    https://{run.http_door}")
        for name, metric in run.bundle.metrics.items():
            if dev and metric.model:
                say(f"  model {name}: {metric.model.last_round + 1} rounds, of a minute each")
        say(f"  see the results     {run.endpoints.page}")
        say(f"  ask for estimates   hubbub query METRIC --home {home}")
        say(f"  see every report    hubbub status --home {home}")
        say(f"  logs                {home / 'log'}")
        until_interrupted(
            run,
            lambda: say("Ctrl-C ends it; the next start continues from here."),
            _watching(path, run) if path and dev else None,
        )


def _watching(path: Path, run: LocalRun) -> Callable[[], None]:
    """A function that takes the catalog anew if it changed since the last call."""
    stamp = _file_version(path)

    def look() -> None:
        nonlocal stamp
        if (now := _file_version(path)) == stamp:
            return
        stamp = now
        try:
            run.take(read_aloud(path))
        except BundleRefused as error:
            say(f"{path}: {_REFUSED}: {error}")
            say(
                f"  or discard everything that was counted: end this command, delete {run.home}, "
                "and start it again"
            )
        except HubbubError as error:
            say(f"{path}: {_REFUSED}: {error}")
        else:
            metrics = several(len(run.bundle.metrics), "metric")
            say(f"{path}: loaded, {metrics}; apps get the new bundle")

    return look


def _file_version(path: Path) -> tuple[int, int] | None:
    """What identifies a version of the file; None while an editor replaces it."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def until_interrupted(
    run: LocalRun, announce: Callable[[], None], look: Callable[[], None] | None = None
) -> None:
    """Says by `announce` that Ctrl-C ends the run, waits for it, and calls `look` every second.

    Raises ServiceUnavailable if a process ends by itself.
    """
    publishing = 0.0
    try:
        announce()  # who reads it may press Ctrl-C at once
        while True:
            run.check()
            if look:
                look()
            if time.monotonic() >= publishing:
                with suppress(ServiceUnavailable):  # again soon
                    run.publish_models()
                seconds = _DEV_MODELS_SECONDS if run.bundle.development else _MODELS_SECONDS
                publishing = time.monotonic() + seconds
            time.sleep(_WATCH_SECONDS)
    except KeyboardInterrupt:
        say("Ending.")
