"""What names, texts and addresses are, wherever one is read."""

import re
from typing import Any, Final

from hubbub.catalog.encoding import is_writable
from hubbub.errors.addresses import has_port, url_parts

MAX_TEXT: Final = 10_000

NAME: Final = re.compile(r"[a-z][a-z0-9_.-]{0,63}")
LOG_NAME: Final = re.compile(r"[a-z0-9.-]{1,128}(:[0-9]{1,5})?(/[A-Za-z0-9._~-]{1,64}){0,8}")
ADDRESS: Final = re.compile(r"(https://)?[!-.0-9;-~]{1,253}:[0-9]{1,5}")


def is_whole(thing: Any) -> bool:
    """Whether it is an integer."""
    return isinstance(thing, int) and not isinstance(thing, bool)


def is_text(thing: Any) -> bool:
    """Whether it is a text of some length that can be written down."""
    return (
        isinstance(thing, str)
        and bool(thing.strip())
        and len(thing) <= MAX_TEXT
        and is_writable(thing)
    )


def is_address(thing: Any) -> bool:
    """Whether it is HOST:PORT or https://HOST:PORT, in the letters that a name is dialled by."""
    return isinstance(thing, str) and ADDRESS.fullmatch(thing) is not None and has_port(thing)


def is_log_name(thing: Any) -> bool:
    """Whether it is the host and path that a log is served at."""
    known = isinstance(thing, str) and LOG_NAME.fullmatch(thing) is not None
    return known and url_parts(f"https://{thing}") is not None


def metric_name_of(stream: str) -> str:
    """The metric that a stream is of: a stream is a metric's name, perhaps with cell and tier."""
    return stream.partition("/")[0].partition("@")[0]
