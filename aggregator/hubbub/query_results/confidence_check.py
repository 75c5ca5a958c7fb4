"""The confidence levels that an interval can have."""

from typing import Final

from hubbub.errors import BadParameter

MIN_CONFIDENCE: Final = 1e-6
MAX_CONFIDENCE: Final = 1 - 1e-9
"""Past it a float's own steps would be what the interval is made of; at 1 it has no end."""


def confidence_error(confidence: float) -> BadParameter:
    """The error for a confidence that no interval can have."""
    percent = confidence / 100 if 1 < confidence < 100 else 0.95  # noqa: PLR2004 percent
    return BadParameter(
        f"confidence {confidence} is outside [{MIN_CONFIDENCE:g}, {MAX_CONFIDENCE!r}]; "
        f"{100 * percent:g}% is {percent:g}"
    )
