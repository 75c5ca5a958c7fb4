"""Floor 0. Epochs: time cut into equal spans of UTC or calendar months, numbered from 1970.

A span is named by its seconds; a month by those of the mean one, which no other span has.
"""

from datetime import UTC, datetime
from typing import Final

__all__ = ["MONTH_SECONDS", "begins", "holding"]

# The calendar repeats after 400 years, which are a whole number of days.
_CYCLE_MONTHS: Final = 4800
_CYCLE_SECONDS: Final = 146_097 * 86_400

MONTH_SECONDS: Final = _CYCLE_SECONDS // _CYCLE_MONTHS
"""What a calendar month has on average: 2,629,746."""


def begins(epoch: int, seconds: int) -> int:
    """The first second, since 1970-01-01 UTC, of an epoch of such a span."""
    if seconds != MONTH_SECONDS:
        return epoch * seconds
    cycles, months = divmod(epoch, _CYCLE_MONTHS)
    first = datetime(1970 + months // 12, months % 12 + 1, 1, tzinfo=UTC)
    return cycles * _CYCLE_SECONDS + int(first.timestamp())


def holding(moment: float, seconds: int) -> int:
    """The epoch of such a span that holds this moment, in seconds since 1970-01-01 UTC."""
    if seconds != MONTH_SECONDS:
        return int(moment // seconds)
    cycles, rest = divmod(moment, _CYCLE_SECONDS)
    date = datetime.fromtimestamp(rest, UTC)
    return int(cycles) * _CYCLE_MONTHS + (date.year - 1970) * 12 + date.month - 1
