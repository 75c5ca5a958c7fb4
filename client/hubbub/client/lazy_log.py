"""The client's log, with `logging` loaded at its first line: most starts write none."""

from contextlib import suppress


def warn(message: str, *arguments: object) -> None:
    """Logs a warning, as the app's handlers decide; without a handler nothing is shown."""
    with suppress(Exception):
        import logging  # noqa: PLC0415 as above; it fails as the interpreter shuts down

        log = logging.getLogger("hubbub.client")
        if not log.handlers:
            log.addHandler(logging.NullHandler())
        log.warning(message, *arguments)
