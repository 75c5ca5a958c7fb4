"""Floor 0. Epochs: time is cut into equal spans of UTC, or calendar months, numbered from 1970.

A span is identified by its length in seconds; a calendar month by the length of a mean month.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

__all__ = ["MONTH_SECONDS", "begins", "epoch_date", "epoch_dates", "holding", "minute"]

# The calendar repeats after 400 years, which are a whole number of days.
_CYCLE_MONTHS: Final = 4800
_CYCLE_SECONDS: Final = 146_097 * 86_400

MONTH_SECONDS: Final = _CYCLE_SECONDS // _CYCLE_MONTHS
"""What a calendar month has on average: 2,629,746."""

_DAY_SECONDS: Final = 86_400
_LATEST: Final = 253_402_300_799
"""The last second that calendars have: what is later is shown as it."""


def begins(epoch: int, seconds: int) -> int:
    """When an epoch of length `seconds` begins, in seconds since 1970-01-01 UTC."""
    if seconds != MONTH_SECONDS:
        return epoch * seconds
    cycles, months = divmod(epoch, _CYCLE_MONTHS)
    first_day = datetime(1970 + months // 12, months % 12 + 1, 1, tzinfo=UTC)
    return cycles * _CYCLE_SECONDS + int(first_day.timestamp())


def holding(moment: float, seconds: int) -> int:
    """Number of the epoch that contains `moment`, in seconds since 1970-01-01 UTC."""
    if seconds != MONTH_SECONDS:
        return int(moment // seconds)
    cycles, seconds_in_cycle = divmod(moment, _CYCLE_SECONDS)
    date = datetime.fromtimestamp(seconds_in_cycle, UTC)
    return int(cycles) * _CYCLE_MONTHS + (date.year - 1970) * 12 + date.month - 1


def epoch_date(epoch: int, seconds: int) -> str:
    """When an epoch begins in UTC, as text: 2026-11-22, 2026-11-22T14:00, or 2026-11 (month)."""
    first_day = datetime.fromtimestamp(min(begins(epoch, seconds), _LATEST), UTC)
    if seconds == MONTH_SECONDS:
        return f"{first_day:%Y-%m}"
    return f"{first_day:%Y-%m-%d}" if seconds % _DAY_SECONDS == 0 else f"{first_day:%Y-%m-%dT%H:%M}"


def minute(seconds: float) -> str:
    """A moment in seconds since 1970 as text, rounded down to the minute: 2026-11-22 14:00 UTC."""
    return f"{datetime.fromtimestamp(min(seconds, _LATEST), UTC):%Y-%m-%d %H:%M} UTC"


def epoch_dates(epochs: Sequence[int], seconds: int) -> str:
    """Dates of ascending epochs, with runs joined: "2026-11-01..2026-11-07, 2026-11-09"."""
    spans: list[list[int]] = []
    for epoch in epochs:
        if spans and epoch == spans[-1][-1] + 1:
            spans[-1][1:] = [epoch]
        else:
            spans.append([epoch])
    texts = []
    for first, *last in spans:
        text = epoch_date(first, seconds)
        texts.append(f"{text}..{epoch_date(last[0], seconds)}" if last else text)
    return ", ".join(texts)
