"""Finds a running hubbub, and connects to it by the HTTP client that notebooks use."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from hubbub.conservation import TERMS
from hubbub.errors import ServiceUnavailable
from hubbub.notebook.connection import Connection
from hubbub.notebook.service import MISSHAPEN, Service, service_at

_CALL_SECONDS: Final = 60.0
_FILE: Final = "endpoints.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """The addresses of a running hubbub.

    `page` is the URL of web page and HTTP/JSON; `token` is one of `hubbub keys token`, "" for none;
    `authority` is the ca.pem that its certificate chains to, None for the system's; `home` is the
    folder of `hubbub up` that has this address, "" for none.
    """

    page: str
    token: str = field(default="", repr=False)
    authority: str | None = None
    home: str = ""

    def write(self, home: Path) -> None:
        """Writes the address to where `read_endpoints` looks for it."""
        (home / _FILE).write_text(json.dumps({"page": self.page}))

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

    Raises:
        ServiceUnavailable: nothing was started there.
    """
    try:
        page = json.loads((home / _FILE).read_bytes())["page"]
    except (OSError, *MISSHAPEN) as error:
        raise ServiceUnavailable(f"{nothing_runs(home)}; or give --url") from error
    return Endpoints(page=str(page), home=str(home))


def nothing_runs(home: Path | str) -> str:
    """The message that no `hubbub up` runs in a folder."""
    return f"nothing runs in {home}: start it with: hubbub up --home {home}"


def report_counts(where: Endpoints) -> dict[tuple[str, int], dict[str, int]]:
    """The terms of the conservation law by stream and epoch; in production pooled reports are 0.

    Raises:
        ServiceUnavailable: the shuffler did not answer.
    """
    return {(line["stream"], line["epoch"]): _terms(line) for line in _law(where)["windows"]}


def total_counts(where: Endpoints) -> dict[str, int]:
    """The terms of the conservation law over all streams. Raises as `report_counts`."""
    return _terms(_law(where)["total"])


def _terms(counts: dict[str, Any]) -> dict[str, int]:
    return {term: counts[term] or 0 for term in TERMS}


def _law(where: Endpoints) -> dict[str, Any]:
    law = where.service.ask("/v1/status")
    if not law["complete"]:
        raise ServiceUnavailable(
            f"{where.page} does not have the shuffler's terms: start it with --shuffler-status, "
            "and the shuffler too"
        )
    return law
