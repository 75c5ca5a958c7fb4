"""Logs of a service: a line an event, as text or as JSON; counts and reasons, nobody's data."""

import json
import logging
from datetime import UTC, datetime
from typing import Final

from hubbub.errors.visible import visible_lines

__all__ = ["FORMATS", "write_logs"]

FORMATS: Final = ("text", "json")
# gRPC says so, with a traceback, of every caller that was gone when its answer was sent.
_GONE: Final = "ExecuteBatchError"


class _Json(logging.Formatter):
    """One JSON object a line. `event` is the message before anything was filled in: group by it."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": str(record.msg),
            "message": record.getMessage(),
        }
        if isinstance(record.args, tuple) and record.args:
            entry["arguments"] = [
                a if isinstance(a, bool | int | float) else str(a) for a in record.args
            ]
        if record.exc_info:
            entry["trace"] = self.formatException(record.exc_info)
        return json.dumps(entry)


class _Text(logging.Formatter):
    """A line an event, as a terminal may have it."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        return visible_lines(super().format(record))


def write_logs(how: str) -> None:
    """From now on, to standard error. how: one of FORMATS."""
    handler = logging.StreamHandler()
    text = _Text("%(asctime)s %(levelname)s %(name)s %(message)s")
    handler.setFormatter(_Json() if how == "json" else text)
    handler.addFilter(_is_ours)
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


def _is_ours(record: logging.LogRecord) -> bool:
    """Whether it is no stranger's doing alone, who could fill the log with it."""
    return not (record.name.startswith("grpc.") and _GONE in record.getMessage())
