"""The running version, from the package's metadata."""

from importlib.metadata import version
from typing import Final

VERSION: Final = version("hubbub")
