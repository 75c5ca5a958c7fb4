"""The client's log, with `logging` loaded at its first line: most starts write none."""


def warn(message: str, *arguments: object) -> None:
    """Logs a warning. The app decides what is shown: without a handler nothing is."""
    import logging  # noqa: PLC0415 as above

    log = logging.getLogger("hubbub.client")
    if not log.handlers:
        log.addHandler(logging.NullHandler())
    log.warning(message, *arguments)
