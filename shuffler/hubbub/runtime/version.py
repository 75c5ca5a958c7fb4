"""The version that runs, as the package's own record says it."""

from importlib.metadata import version
from typing import Final

VERSION: Final = version("hubbub")
