"""Finds a running hubbub, and connects to it by the HTTP client that notebooks use."""

import json
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TextIO

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
        with (home / _FILE).open("rb") as file:
            page = json.load(file)["page"]
            if sys.platform != "win32":  # `hubbub up` does not run there
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:  # a `hubbub up` has locked the file
        return Endpoints(page=str(page), home=str(home))
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


def nothing_runs(home: Path | str) -> str:
    """The message that no `hubbub up` runs in a folder."""
    development = False
    with suppress(OSError, *MISSHAPEN):
        development = json.loads((Path(home) / _FILE).read_bytes())["development"]
    option = " --dev" if development else ""
    return f"nothing runs in {home}: start it with: hubbub up --home {home}{option}"
