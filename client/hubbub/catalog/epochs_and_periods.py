"""Epochs by the name of their length, and periods, on one random day of which a device reports.

Periods are spans of days or calendar months, the same for everybody and numbered from 1970. A
device's day in a period follows from its secret alone.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final

from hubbub.epochs import MONTH_SECONDS, begins, holding
from hubbub.errors import BadParameter
from hubbub.fields import kinds
from hubbub.fields.field import entry

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

GRACE_SECONDS: Final = EPOCH_SECONDS
"""How long reports are accepted after an epoch's end: as long as an epoch, or a mean month."""

WRITTEN_EPOCHS: Final = tuple(length for length in EPOCH_SECONDS if length != MINUTE)
"""Those that a catalog may ask for."""

_DAY_SECONDS: Final = EPOCH_SECONDS["day"]


def epoch_at(seconds: float, length: str) -> int:
    """The epoch that contains a moment in seconds since 1970-01-01 UTC."""
    return holding(seconds, EPOCH_SECONDS[length])


def epoch_start(epoch: int, length: str) -> int:
    """The epoch's first second since 1970-01-01 UTC."""
    return begins(epoch, EPOCH_SECONDS[length])


def late_from(epoch: int, length: str) -> int:
    """When the shuffler stops accepting reports of an epoch, in seconds since 1970."""
    return epoch_start(epoch + 1, length) + GRACE_SECONDS[length]


def closing_time(epoch: int, length: str) -> int:
    """When counting ends, in seconds since 1970: late batches have one more grace to arrive."""
    return epoch_start(epoch + 1, length) + 2 * GRACE_SECONDS[length]


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


_SPAN: Final = r"([1-9][0-9]{0,2})([dw])"
_MONTH: Final = "month"
_MAX_DAYS: Final = 366
_WORDS: Final = '"month", or from 2 to 366 days or weeks of them, as "30d" or "4w"'
ONE_DAY: Final = "one day"
"""What `report_on` says of a device that reports once a period."""


PERIOD_KIND: Final = kinds.simple(
    _WORDS,
    lambda value: (
        value == _MONTH
        or (
            isinstance(value, str)
            and re.fullmatch(_SPAN, value) is not None
            and 2 <= _span_days(value) <= _MAX_DAYS  # noqa: PLR2004 one day is an epoch
        )
    ),
    {"type": "string", "pattern": f"^({_SPAN}|{_MONTH})$"},
)
"""The kind of every span of days that something is said of."""
PERIOD: Final = entry(
    PERIOD_KIND,
    'Length of a period, in which a device reports once; requires `report_on = "one day"`.',
    '"30d"',
    label="period",
    in_definition=True,
)
REPORT_ON: Final = entry(
    kinds.word_kind(lambda: (ONE_DAY,)),
    "The days of a `period` on which a device reports: one day, drawn from its secret, with all "
    "of epsilon.",
    f'"{ONE_DAY}"',
    write=f'write report_on = "{ONE_DAY}" beside period, or leave both out',
    in_definition=True,
)
SAMPLING: Final = entry(
    # At least one device in a million.
    kinds.number("a chance", 1e-6, 1),
    "Probability that a device takes part in an epoch; each device draws for itself.",
    "0.5",
    write="write sampling = 0.1",
)


def days_of_period(period: str, day: int) -> range:
    """The days, numbered from 1970, of the period that contains `day`."""
    seconds = MONTH_SECONDS if period == _MONTH else _span_days(period) * _DAY_SECONDS
    number = holding(day * _DAY_SECONDS, seconds)
    first, after = begins(number, seconds), begins(number + 1, seconds)
    return range(first // _DAY_SECONDS, after // _DAY_SECONDS)


def reports_of_one(metric: Any, epochs: Iterable[int]) -> int:
    """The largest number of reports that one device may have made in these epochs."""
    if metric.report_on:
        return len({days_of_period(metric.period, epoch).start for epoch in epochs})
    reports: int = metric.limits.reports_per_epoch * len(list(epochs))
    return reports


def period_conflicts(fields: Mapping[str, Any]) -> dict[str, str]:
    """What conflicts with a metric's period: by field, what is wrong with it."""
    if not fields.get("period") and not fields.get("report_on"):
        return {}
    if not fields.get("period"):
        return {"report_on": 'is of a period; write period = "30d", or leave "report_on" out'}
    if not fields.get("report_on"):
        return {"period": f'is of report_on; write report_on = "{ONE_DAY}", or leave "period" out'}
    problems = {}
    if fields.get("epoch", "day") != "day":
        problems["epoch"] = 'must be "day" with report_on, which is of a day'
    limits = fields.get("limits")
    if limits is not None and limits.reports_per_epoch != 1:
        problems["limits"] = "reports_per_epoch must be 1 with report_on: it is once a period"
    return problems


def days_at_most(period: str) -> int:
    """The length of a period in days, for the longest of its kind."""
    return 31 if period == _MONTH else _span_days(period)


def _span_days(period: str) -> int:
    match = re.fullmatch(_SPAN, period)
    if match is None:
        raise BadParameter(f"period must be {_WORDS}")
    return int(match[1]) * (7 if match[2] == "w" else 1)
