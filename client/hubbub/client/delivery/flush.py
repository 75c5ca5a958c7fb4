"""Flush: sends what waits now, in the caller's own thread, for so long and no longer."""

import time

from hubbub.client.delivery.sender import Sender
from hubbub.client.state.contract import State
from hubbub.errors import StateUnusable

__all__ = ["flush"]


def flush(sender: Sender, state: State, seconds: float, *, patient: bool) -> bool:
    """Whether nothing is left waiting. Raises nothing: an app is not hurt by what fails here.

    patient: try again after a failure.
    """
    deadline = time.monotonic() + seconds
    try:
        sender.enter()
        while True:
            wait = sender.attempt(deadline - time.monotonic())
            if wait is None:
                return not state.waiting()
            if time.monotonic() + wait >= deadline or (wait and not patient):
                return False
            time.sleep(wait)
    except StateUnusable as error:
        sender.say_once("state", "reports wait in memory: %s", error)
    except Exception as error:  # noqa: BLE001 a fault of ours is no business of the app's
        sender.say_once("fault", "sending failed: %s", type(error).__name__)
    return False
