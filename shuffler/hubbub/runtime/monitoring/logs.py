"""Logs of a service: one line per event, as text or JSON, with counts and reasons, never user data.

An event's facts are given as `extra=facts(...)`: in text they follow the message, in JSON each is
a field of its own.
"""

import json
import logging
import os
import select
from datetime import UTC, datetime
from typing import Any, Final

from hubbub.errors.message_words import visible_lines

FORMATS: Final = ("text", "json")
# gRPC logs these, each with a traceback, for every caller that disconnected before its answer, and
# that sent metadata which is not UTF-8 (it is quoted).
_OF_CALLERS: Final = ("ExecuteBatchError", "Invalid encoding on")
_FACTS: Final = "hubbub_facts"
_STDERR = 2
# How long to wait for a slow reader, once until it has read again.
_PATIENCE_MS: Final = 50


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


class _StandardError(logging.Handler):
    """Writes lines to standard error. A reader that stands still, or a full disk, stops nothing.

    `lost` counts the lines that were not written whole; the next line that is written says so.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lost = self._unsaid = 0
        self._is_cut = False  # whether the last line lacks its end

    def emit(self, record: logging.LogRecord) -> None:
        """Writes the record's line, or counts it as lost."""
        try:
            line = self.format(record)
        except Exception:  # noqa: BLE001 as every handler does: a message that does not format
            self.handleError(record)
            return
        if self._unsaid:
            what = f"{self._unsaid} lines of this log were lost: its disk was full, or nobody read"
            arguments = __name__, logging.WARNING, __file__, 0, what, None, None, "emit"
            line = f"{self.format(logging.LogRecord(*arguments))}\n{line}"
        if self._write(line):
            self._unsaid = 0
        else:
            self.lost += 1
            self._unsaid += 1

    def _write(self, line: str) -> bool:
        unwritten = ("\n" * self._is_cut + line + "\n").encode(errors="backslashreplace")
        ready = select.poll()
        ready.register(_STDERR, select.POLLOUT)
        try:
            # A pipe that is ready takes so many bytes at once.
            while unwritten and ready.poll(0 if self._unsaid else _PATIENCE_MS):
                text_line = os.write(_STDERR, unwritten[: select.PIPE_BUF])
                unwritten, self._is_cut = unwritten[text_line:], len(unwritten) > text_line
        except OSError:
            return False
        return not unwritten


def lost_lines() -> int:
    """Number of log lines of this process that could not be written."""
    handlers = logging.getLogger().handlers
    return sum(handler.lost for handler in handlers if isinstance(handler, _StandardError))


def write_logs(how: str) -> None:
    """Starts logging to standard error in the format `how`, one of FORMATS."""
    handler = _StandardError()
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
    if not record.name.startswith("grpc."):
        return True
    message = record.getMessage()
    return not any(text in message for text in _OF_CALLERS)
