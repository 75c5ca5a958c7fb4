"""Logs of a service: one line per event, as text or JSON, with counts and reasons, never user data.

An event's facts are given as `extra=facts(...)`: in text they follow the message, in JSON each is
a field of its own.
"""

import json
import logging
from datetime import UTC, datetime
from typing import Any, Final

from hubbub.errors.printable import visible_lines

FORMATS: Final = ("text", "json")
# gRPC logs this, with a traceback, for every caller that disconnected before its answer.
_GONE: Final = "ExecuteBatchError"
_FACTS: Final = "hubbub_facts"


def facts(**values: Any) -> dict[str, dict[str, Any]]:
    """The named facts of a log line, for the `extra` argument of a logger."""
    return {_FACTS: values}


class _Json(logging.Formatter):
    """Formats one JSON object per line. Its `event` is the module and function that logged it."""

    def format(self, record: logging.LogRecord) -> str:
        """The line as JSON."""
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": f"{record.module}.{record.funcName.strip('_')}",
            "message": record.getMessage(),
            **getattr(record, _FACTS, {}),
        }
        if record.exc_info:
            entry["trace"] = self.formatException(record.exc_info)
        return json.dumps(entry)


class _Text(logging.Formatter):
    """Formats one line per event, with control characters made visible for terminals."""

    def format(self, record: logging.LogRecord) -> str:
        """The line as text."""
        texts = [f"{name} {_text(fact)}" for name, fact in getattr(record, _FACTS, {}).items()]
        return visible_lines(": ".join(filter(None, (super().format(record), ", ".join(texts)))))


def write_logs(how: str) -> None:
    """Starts logging to standard error in the format `how`, one of FORMATS."""
    handler = logging.StreamHandler()
    text = _Text("%(asctime)s %(levelname)s %(name)s %(message)s")
    handler.setFormatter(_Json() if how == "json" else text)
    handler.addFilter(_is_ours)
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


def _text(fact: Any) -> str:
    if isinstance(fact, dict):
        return " ".join(f"{name}={value}" for name, value in fact.items())
    return " ".join(map(str, fact)) if isinstance(fact, list) else str(fact)


def _is_ours(record: logging.LogRecord) -> bool:
    """Whether a record is worth logging: strangers must not be able to fill the log."""
    return not (record.name.startswith("grpc.") and _GONE in record.getMessage())
