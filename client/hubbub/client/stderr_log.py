"""The client's log on standard error, for a person who runs the program (HUBBUB_LOG)."""

import logging
from typing import Final

from hubbub.errors.message_words import visible_lines

_HANDLER: Final = "hubbub"


class _Visible(logging.Formatter):
    """Formats each log record as one line that is safe for a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record, safe for a terminal."""
        return visible_lines(super().format(record))


def log_to_stderr(level: str) -> None:
    """Writes the client's log to standard error."""
    log = logging.getLogger("hubbub.client")
    log.setLevel(level.upper())
    if not any(handler.name == _HANDLER for handler in log.handlers):
        handler = logging.StreamHandler()
        handler.name = _HANDLER
        handler.setFormatter(_Visible("%(asctime)s %(name)s %(levelname)s %(message)s"))
        log.addHandler(handler)
