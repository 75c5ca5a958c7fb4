"""The stack of the thread that calls a client; an app may call it deep inside its own calls."""

import sys
import threading
from collections.abc import Callable
from typing import Final, TypeVar

# Reading, entering and sending take at most some sixty.
_FRAMES: Final = 150
Result = TypeVar("Result")


def check_stack() -> None:
    """Raises RecursionError if the calling thread has fewer than 150 frames left.

    In the middle of reading a state, the same error would look like damage.
    """
    try:
        # Functions in C count towards the limit, too, but not three for each frame.
        sys._getframe(sys.getrecursionlimit() // 4)  # noqa: SLF001 its only name
    except ValueError:  # there are not so many frames
        return
    _call(_FRAMES)


def with_own_stack(work: Callable[[], Result]) -> Result:
    """Returns what `work` returns in a thread of its own, whose call stack is empty.

    Raises the error of `work`; RecursionError if not even a thread's start fits on this stack.
    """
    results: list[Result] = []
    errors: list[Exception] = []

    def run() -> None:
        try:
            results.append(work())
        except Exception as error:  # noqa: BLE001 the caller's thread raises it
            errors.append(error)

    thread = threading.Thread(target=run, name="hubbub-start")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def _call(frames: int) -> None:
    if frames:
        _call(frames - 1)
