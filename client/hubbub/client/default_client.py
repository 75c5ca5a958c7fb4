"""One client for a whole small program, without passing it around.

hubbub.client.init()
hubbub.client.report("theme", "dark")
"""

import os
import threading
from typing import Any, Final, Generic, Protocol, TypeVar, overload

from hubbub.client.client import Client
from hubbub.client.lazy_log import warn
from hubbub.client.outcome import Outcome
from hubbub.client.prevented_start import is_strict, reason_of
from hubbub.client.settings import Settings
from hubbub.errors import BadParameter

Value_contra = TypeVar("Value_contra", contravariant=True)

# By process: a fork copies a lock that another thread holds, and nobody releases the copy.
_locks: Final[dict[int, threading.RLock]] = {}
_client: Client | None = None


def init(path: str | os.PathLike[str] | None = None, **settings: Any) -> Client | None:
    """Starts this program's client, with the arguments of `Client.from_bundle()`.

    Returns None, and logs a warning, if it cannot start; then report() returns Outcome.CLOSED.
    A strict one raises instead. A client that was started before is closed.
    """
    global _client  # noqa: PLW0603 one program, one client: that is what this module is for
    with _process_lock():
        _close()
        try:
            _client = Client.from_bundle(path, **settings)
        except Exception as error:
            if is_strict(path, settings.get("strict")):
                raise
            warn("hubbub does not start: %s", reason_of(error))
            return None
        return _client


def report(metric: str, value: Any = None) -> Outcome:
    """As `Client.report()`, by the client of init(). Raises BadParameter if strict, without one."""
    client = _client  # another thread may close it meanwhile: then report() returns CLOSED
    if client:
        return client.report(metric, value)
    if Settings.read_strict():
        raise BadParameter("there is no client; call hubbub.client.init() first")
    return Outcome.CLOSED


def end() -> None:
    """Closes this program's client, if there is one."""
    with _process_lock():
        _close()


def _process_lock() -> threading.RLock:
    return _locks.setdefault(os.getpid(), threading.RLock())


def _close() -> None:
    global _client
    client, _client = _client, None
    if client:
        client.close()


class Reports(Protocol):
    """An object that reports: a client, or a person."""

    def report(self, metric: str, value: Any = None) -> Outcome:
        """As `Client.report()`."""


class TypedMetric(Generic[Value_contra]):
    """A metric by name, with the type of its values: `hubbub catalog codegen` writes them."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    @overload
    def report(
        self: "TypedMetric[None]", value: None = None, *, client: Reports | None = None
    ) -> Outcome: ...

    @overload
    def report(self, value: Value_contra, *, client: Reports | None = None) -> Outcome: ...

    def report(self, value: Any = None, *, client: Reports | None = None) -> Outcome:
        """Reports by this client, or by that of init(). Raises as `Client.report()`."""
        return client.report(self.name, value) if client else report(self.name, value)
