"""Checks the confidence level of an interval."""

from typing import Final

from hubbub.errors import BadParameter

MIN_CONFIDENCE: Final = 1e-6
MAX_CONFIDENCE: Final = 1 - 1e-9
"""Past it a float's own steps would be what the interval is made of; at 1 it has no end."""


def check_confidence(confidence: float) -> None:
    """Raises BadParameter unless an interval can have this confidence."""
    if not MIN_CONFIDENCE <= confidence <= MAX_CONFIDENCE:
        percent = confidence / 100 if 1 < confidence < 100 else 0.95  # noqa: PLR2004 percent
        raise BadParameter(
            f"confidence {confidence} is outside [{MIN_CONFIDENCE:g}, {MAX_CONFIDENCE!r}]; "
            f"{100 * percent:g}% is {percent:g}"
        )
