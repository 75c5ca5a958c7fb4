"""Epochs by the name of their length: an hour, a day, a week, four weeks, a calendar month."""

from collections.abc import Iterable
from functools import cache
from typing import Final

from hubbub.epochs import MONTH_SECONDS, begins, holding

MINUTE: Final = "minute"
"""Of models in development alone: nobody waits for days to see how a model comes out."""

EPOCH_SECONDS: Final = {
    MINUTE: 60,
    "hour": 3600,
    "day": 86_400,
    "week": 604_800,
    "28d": 2_419_200,
    "month": MONTH_SECONDS,
}
"""By what a catalog calls them, ascending; weeks, as four of them, begin on a Thursday."""

WRITTEN_EPOCHS: Final = tuple(length for length in EPOCH_SECONDS if length != MINUTE)
"""Those that a catalog may ask for."""

_DAY_SECONDS: Final = EPOCH_SECONDS["day"]


def epoch_at(seconds: float, length: str) -> int:
    """The epoch that contains a moment in seconds since 1970-01-01 UTC."""
    return holding(seconds, EPOCH_SECONDS[length])


def epoch_start(epoch: int, length: str) -> int:
    """The epoch's first second since 1970-01-01 UTC."""
    return begins(epoch, EPOCH_SECONDS[length])


def grace_seconds(length: str) -> int:
    """How long reports are accepted after an epoch's end: as long as an epoch, or a mean month."""
    return EPOCH_SECONDS[length]


def closing_time(epoch: int, length: str) -> int:
    """When counting ends, in seconds since 1970: late batches have one more grace to arrive."""
    return epoch_start(epoch + 1, length) + 2 * grace_seconds(length)


def longest_epoch(lengths: Iterable[str]) -> str:
    """The longest of these, at least a week, for which keys of epochs are kept."""
    return max(("week", *lengths), key=EPOCH_SECONDS.__getitem__)


def epochs_within(epoch: str, days: int) -> int:
    """The largest number of epochs of this length that `days` UTC days touch."""
    if epoch == "month":
        return _months_within(days)
    seconds = EPOCH_SECONDS[epoch]
    if seconds < _DAY_SECONDS:
        return _DAY_SECONDS // seconds * days
    return spans_within(seconds // _DAY_SECONDS, days)


def spans_within(length: int, days: int) -> int:
    """The largest number of consecutive spans of `length` days that `days` days touch."""
    return (days + length - 2) // length + 1


@cache
def _months_within(days: int) -> int:
    """The largest number of months that `days` days touch, in the calendar's 400 years."""
    ends = [begins(month + 1, MONTH_SECONDS) // _DAY_SECONDS - 1 for month in range(4800)]
    # A span that begins on the last day of a month touches the most months.
    return max(
        holding((end + days - 1) * _DAY_SECONDS, MONTH_SECONDS) - month + 1
        for month, end in enumerate(ends)
    )
