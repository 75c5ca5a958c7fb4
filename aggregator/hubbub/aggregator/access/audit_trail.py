"""The audit trail: a line for every query by a person, with who asked what and the result.

A line never contains a string that somebody looked for or typed to find a value; it contains how
many there were. Lines go to a separate file or to the service's log, and never to Redis.
"""

import json
import logging
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from errno import ENOSPC
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs

from hubbub.errors import ServiceUnavailable
from hubbub.runtime.monitoring.logs import facts, lost_lines

_log: Final = logging.getLogger("hubbub.audit")

# Parameters that the audit may record: checked ones, of a known grammar or from the catalog.
_LOGGED_PARAMETERS: Final = (
    "last",
    "epochs",
    "to_last",
    "to_epochs",
    "confidence",
    "tier",
    "list",
    "rows",
    "columns",
    "format",
    "number",
    "first",
    "order",
)
_METRICS: Final = ("", "v1", "metrics")
_ANSWERED: Final = 400


@dataclass(slots=True)
class Seen:
    """What a route found out about a request.

    Args:
        metric: if the address does not contain it.
        candidates: number of strings that are looked for.
        release: the query of a release.
        why: reason for a refusal.
    """

    metric: str = ""
    candidates: int = 0
    release: str = ""
    why: str = ""


@dataclass(eq=False)
class AuditTrail:
    """Writes the audit lines.

    Args:
        path: file, opened for each line so that it may be moved away; None for the service's log.
        metrics: returns the current names of metrics and tiers.
        clock: seconds since 1970.
    """

    path: Path | None
    metrics: Callable[[], Collection[str]]
    clock: Callable[[], float]

    def __post_init__(self) -> None:
        """Fails if the file cannot be written."""
        if self.path:
            self._append("")

    def note(self, scope: Mapping[str, Any], address: str, status: int) -> None:
        """Writes the line of one request: its ASGI scope, whose state has `caller` and `seen`.

        Raises ServiceUnavailable if the line cannot be written.
        """
        line = self._line(scope, address, status)
        if self.path is None:
            before = lost_lines()
            _log.info("%s %s", line.pop("method"), line.pop("question"), extra=facts(**line))
            if lost_lines() > before:
                raise _unwritten_error("the log is full, or nobody reads it")
            return
        now = datetime.fromtimestamp(self.clock(), UTC).isoformat(timespec="milliseconds")
        self._append(json.dumps({"time": now, **line}) + "\n")

    def _line(self, scope: Mapping[str, Any], address: str, status: int) -> dict[str, Any]:
        caller, facts = scope["state"]["caller"], scope["state"]["seen"]
        metric, question = _question(scope["path"])
        record: dict[str, Any] = {
            "who": caller.name if caller else None,
            "by": caller.way if caller else None,
            "address": address,
            "method": scope["method"],
            "question": question,
            "status": status,
        }
        if caller and caller.subject:
            record |= {"subject": caller.subject, "groups": list(caller.groups)}
        if metric := facts.metric or metric:
            # An unknown name may be anything, such as a candidate string.
            record["metric"] = metric if metric in self.metrics() else "unknown"
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        parameters = {n: ",".join(query[n])[:200] for n in _LOGGED_PARAMETERS if n in query}
        if status < _ANSWERED and parameters:
            record["asked"] = parameters
        for name in ("candidates", "release", "why"):
            record |= {name: value} if (value := getattr(facts, name)) else {}
        return record

    def _append(self, line: str) -> None:
        if self.path is None:
            return
        content = line.encode()
        # O_NONBLOCK: a pipe that nobody reads would stop the whole service.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK
        try:
            descriptor = os.open(self.path, flags, 0o600)
            try:
                if (length := os.write(descriptor, content)) < len(content):  # the disk is full
                    os.ftruncate(descriptor, os.fstat(descriptor).st_size - length)
                    raise OSError(ENOSPC, os.strerror(ENOSPC))
            finally:
                os.close(descriptor)
        except OSError as error:
            raise _unwritten_error(error.strerror) from error


def _unwritten_error(why: str | None) -> ServiceUnavailable:
    return ServiceUnavailable(
        f"the audit cannot be written ({why}), and the service answers nothing without it; make "
        "room, or let the service write --http-audit"
    )


def _question(path: str) -> tuple[str, str]:
    """The metric in a path, and the path without names."""
    parts = path.split("/")
    if tuple(parts[:3]) == _METRICS and len(parts) > 3:  # noqa: PLR2004 the metric's place
        value = "/".join(parts[4:5])
        return parts[3], "/v1/metrics/NAME" + (f"/{value}" if value.isalpha() else "")
    if path.startswith(("/v1/candidates/", "/v1/marks/")):
        return "", "/".join([*parts[:3], "NAME"])
    is_plain = path.count("/") <= 2 and path.replace("/", "").isalnum() and len(path) <= 40  # noqa: PLR2004 as ours are
    return "", path if is_plain else "other"
