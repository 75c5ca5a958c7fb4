"""Finds a running hubbub, and connects to it by the HTTP client that notebooks use."""

import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TextIO

from hubbub.errors import ServiceUnavailable
from hubbub.notebook.connection import Connection
from hubbub.notebook.http_client import MISSHAPEN, Service, service_at

if sys.platform != "win32":
    import fcntl

HOME: Final = Path(".hubbub")
"""Where `hubbub up` has its state unless another folder is named."""
_CALL_SECONDS: Final = 60.0
_FILE: Final = "endpoints.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """The addresses of a running hubbub.

    `page` is the URL of web page and HTTP/JSON; `development` whether it was started with --dev;
    `token` is one of `hubbub keys token`, "" for none; `authority` is the ca.pem that its
    certificate chains to, None for the system's; `home` is the folder of `hubbub up` that has this
    address, "" for none.
    """

    page: str
    development: bool = False
    token: str = field(default="", repr=False)
    authority: str | None = None
    home: str = ""

    def write(self, home: Path) -> TextIO:
        """Writes the address to where `read_endpoints` looks for it.

        Returns the file, which is locked, and so in use, until it is closed.
        """
        file = (home / _FILE).open("w")
        fcntl.flock(file, fcntl.LOCK_EX)  # waits for commands that test it, for microseconds
        json.dump({"page": self.page, "development": self.development}, file)
        file.flush()
        return file

    @property
    def service(self) -> Service:
        """The HTTP client of this service. Raises as `hubbub.notebook.connect` does."""
        absent = nothing_runs(self.home) if self.home else ""
        return service_at(self.page, self.token, self.authority, _CALL_SECONDS, absent=absent)

    @property
    def connection(self) -> Connection:
        """A connection with a notebook's questions. Raises as `hubbub.notebook.connect` does."""
        return Connection(self.service)


def read_endpoints(home: Path) -> Endpoints:
    """The addresses of what `hubbub up` runs in this folder.

    Raises ServiceUnavailable if nothing was started there.
    """
    try:
        document, is_locked = _read(home)
        if is_locked:
            return Endpoints(page=str(document["page"]), home=str(home))
    except (OSError, *MISSHAPEN) as error:
        remedy = f"{nothing_runs(home)}; or give --url"
        if (home / ".env").exists():
            remedy = (
                f"{home} was made by hubbub init: start its services, and give --url "
                f"https://localhost:7076 --authority {home / 'tls' / 'ca.pem'}"
            )
        raise ServiceUnavailable(remedy) from error
    # Another installation may use the address now.
    raise ServiceUnavailable(nothing_runs(home))


def _read(home: Path) -> tuple[Mapping[str, Any], bool]:
    """What `hubbub up` wrote in a folder, and whether it has it locked, so still runs."""
    with (home / _FILE).open("rb") as file:
        document = json.load(file)
        try:
            if sys.platform != "win32":  # `hubbub up` does not run there
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return document, True
    return document, False


def nothing_runs(home: Path | str) -> str:
    """The message that nothing answers in a folder: no `hubbub up` runs, or it starts or ends."""
    option = ""
    with suppress(OSError, *MISSHAPEN):
        document, is_locked = _read(Path(home))
        if is_locked:
            return f"hubbub up is starting or ending in {home}: ask again when it says it is up"
        option = " --dev" if document["development"] else ""
    return f"nothing runs in {home}: start it with: hubbub up --home {home}{option}"
