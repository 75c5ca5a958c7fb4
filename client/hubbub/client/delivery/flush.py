"""Flush: sends what waits now, in the caller's own thread, for so long and no longer."""

from hubbub.client.clock import Clock
from hubbub.client.delivery.sender import Sender
from hubbub.client.diagnostics import Diagnostics
from hubbub.errors import StateUnusable


def flush(
    sender: Sender,
    seconds: float,
    *,
    patient: bool,
    clock: Clock,
    diagnostics: Diagnostics,
) -> bool:
    """Whether nothing is left waiting. Raises nothing: an app is not hurt by what fails here.

    patient: try again after a failure.
    """
    deadline = clock.monotonic() + seconds
    try:
        sender.fetch_models(seconds)
        sender.enter()
        while True:
            sender.fetch_tokens(deadline - clock.monotonic())
            wait = sender.attempt(deadline - clock.monotonic())
            if wait is None:
                return sender.is_done
            if clock.monotonic() + wait >= deadline or (wait and not patient):
                return False
            clock.sleep(wait)
    except StateUnusable as error:
        diagnostics.warn_once("state", "reports wait in memory: %s", error)
    except Exception as error:  # noqa: BLE001 a fault of ours is no business of the app's
        diagnostics.warn_once("fault", "sending failed: %s", type(error).__name__)
    return False
