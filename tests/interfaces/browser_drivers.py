"""The browsers that Playwright does not drive, by their names."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

import pytest

from tests.interfaces.firefox import firefox, needs_firefox
from tests.interfaces.tab import Tab
from tests.interfaces.webkit import needs_webkit, webkit

_OPEN: Final[dict[str, Callable[[Path], AbstractContextManager[Tab]]]] = {
    "firefox": firefox,
    "webkit": webkit,
}
# What a fixture has as its params.
DRIVEN: Final = [
    pytest.param("firefox", marks=[needs_firefox, pytest.mark.thorough]),
    pytest.param("webkit", marks=[needs_webkit, pytest.mark.thorough]),
]


def driven(name: str, folder: Path) -> AbstractContextManager[Tab]:
    """One of them, that has seen nothing. folder: an empty one."""
    return _OPEN[name](folder)
