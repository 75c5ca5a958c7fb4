"""Hints for a developer whose value a metric refuses: the accepted values."""

from collections.abc import Sequence
from typing import Any, Final

from hubbub.errors.grammar import did_you_mean

# As many as fit a few lines of a terminal.
_MAX_NAMES: Final = 12


def value_hint(values: Sequence[str], value: Any) -> str:
    """Returns the first accepted values, and the accepted value that is most similar.

    PRIVACY: similarity nearly reveals the value. For the developer; never for a log.
    """
    listing = ", ".join(f'"{value}"' for value in values[:_MAX_NAMES])
    rest = len(values) - _MAX_NAMES
    more = f" and {rest} more" if rest > 0 else ""
    return f"{listing}{more}{did_you_mean(value, values)}"
