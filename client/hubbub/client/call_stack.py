"""The stack of the thread that calls a client; an app may call it deep inside its own calls."""

import sys
from typing import Final

# Reading, entering and sending take at most some sixty.
_FRAMES: Final = 150


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


def _call(frames: int) -> None:
    if frames:
        _call(frames - 1)
