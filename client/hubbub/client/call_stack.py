"""The stack of the thread that calls a client; an app may call it deep inside its own calls."""

from typing import Final

# Reading, entering and sending take at most some sixty.
_FRAMES: Final = 150


def check_stack(frames: int = _FRAMES) -> None:
    """Raises RecursionError if the calling thread has fewer than `frames` frames left.

    In the middle of reading a state, the same error would look like damage.
    """
    if frames:
        check_stack(frames - 1)
