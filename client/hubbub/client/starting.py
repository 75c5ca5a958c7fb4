"""How a client starts: where its state is, what if it cannot be there, where it logs."""

import hashlib
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import platformdirs

from hubbub.catalog import Bundle
from hubbub.client.database import Damaged
from hubbub.client.folder_state import FolderState
from hubbub.client.memory_state import MemoryState
from hubbub.client.state import State
from hubbub.client.witness import Witnesses
from hubbub.errors import HubbubError, StateUnusable

__all__ = ["log_to_stderr", "state_home", "state_of"]

_log: Final = logging.getLogger("hubbub.client")
_log.addHandler(logging.NullHandler())  # the app decides what is shown
_HANDLER: Final = "hubbub"


def state_home() -> Path:
    """Where this user's state folders are, one an operator."""
    return platformdirs.user_state_path("hubbub")


def state_of(
    bundle: Bundle, state_dir: Path | None, clock: Callable[[], float] = time.time
) -> State:
    """The device's state, in its folder or this user's own; else in memory, with a warning.

    PRIVACY: that one's limits hold across restarts all the same, by a witness elsewhere. Where
    even that cannot be written, nothing may leave.

    Raises:
        BundleRefused: the folder trusts another operator.
    """
    # By operator: apps of two operators do not meet.
    own = hashlib.sha256(bundle.operator).hexdigest()[:16]
    folder = state_dir or state_home() / own
    try:
        try:
            return _opened(folder, bundle, clock)
        except Damaged:
            return _opened(folder, bundle, clock)  # it was set aside: now with a new file
    except StateUnusable as error:
        _log.warning("going on in memory: %s", error)
        return MemoryState(witnesses=Witnesses(folder), clock=clock)


def _opened(folder: Path, bundle: Bundle, clock: Callable[[], float]) -> FolderState:
    state = FolderState(folder, clock=clock)
    try:
        state.pin(bundle.operator, bundle.signed)
        state.standing()
    except HubbubError:
        state.close()
        raise
    return state


def log_to_stderr(level: str) -> None:
    """Show what the client logs, for who runs the program."""
    _log.setLevel(level.upper())
    if not any(handler.name == _HANDLER for handler in _log.handlers):
        handler = logging.StreamHandler()
        handler.name = _HANDLER
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
        _log.addHandler(handler)
