"""Files and folders that cannot be written, refused in the same words everywhere."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hubbub.errors import HubbubError


@contextmanager
def refuse_unwritable(place: str | Path, refused: type[HubbubError]) -> Iterator[None]:
    """Raise `refused` with the place and the reason where the block cannot write it."""
    try:
        yield
    except OSError as error:
        raise refused(f"{place}: cannot be written: {error.strerror}") from error
