"""When a device reports: in a part of all epochs, or on one random day of each period.

Periods are spans of days or calendar months, the same for everybody and numbered from 1970. A
device's day in a period follows from its secret alone.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from hubbub.catalog.epochs import EPOCH_SECONDS
from hubbub.epochs import MONTH_SECONDS, begins, holding
from hubbub.errors import BadParameter
from hubbub.fields import kinds
from hubbub.fields.field import entry

_DAY: Final = EPOCH_SECONDS["day"]
_SPAN: Final = re.compile(r"([1-9][0-9]{0,2})([dw])")
_MONTH: Final = "month"
_MAX_DAYS: Final = 366
_WORDS: Final = '"month", or from 2 to 366 days or weeks of them, as "30d" or "4w"'
ONE_DAY: Final = "one day"
"""What `report_on` says of a device that reports once a period."""


def _is_period(value: Any) -> bool:
    return value == _MONTH or (
        isinstance(value, str)
        and _SPAN.fullmatch(value) is not None
        and 2 <= _span_days(value) <= _MAX_DAYS  # noqa: PLR2004 one day is an epoch
    )


PERIOD_KIND: Final = kinds.simple(
    _WORDS, _is_period, {"type": "string", "pattern": f"^({_SPAN.pattern}|{_MONTH})$"}
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
    kinds.one_of(lambda: (ONE_DAY,)),
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
    seconds = MONTH_SECONDS if period == _MONTH else _span_days(period) * _DAY
    number = holding(day * _DAY, seconds)
    return range(begins(number, seconds) // _DAY, begins(number + 1, seconds) // _DAY)


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
        return {"report_on": 'is of a period; write period = "30d", or leave report_on out'}
    if not fields.get("report_on"):
        return {"period": f'is of report_on; write report_on = "{ONE_DAY}", or leave period out'}
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
    match = _SPAN.fullmatch(period)
    if match is None:
        raise BadParameter(f"period must be {_WORDS}")
    return int(match[1]) * (7 if match[2] == "w" else 1)
