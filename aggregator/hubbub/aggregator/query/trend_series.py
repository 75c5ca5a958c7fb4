"""The series of a trend: a value's points, and the line through them. As answers.py has them."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One value in one epoch: its share, or a mean, with its interval.

    reports: how many were asked for it.
    line, line_low, line_high: the likely truth by all days together, with its band; None where
    there are too few, or all err alike. The band's confidence is of all days on average.
    """

    epoch: int
    date: str
    share: float
    stderr: float
    low: float
    high: float
    reports: int
    line: float | None = None
    line_low: float | None = None
    line_high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """A step of a line's level from one epoch to the next. date: of the first epoch after it.

    within: the epochs that this is among, at the trend's confidence. difference: how far up the
    level went, a share or in the metric's own unit, with its interval.
    """

    date: str
    within: str
    difference: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One value over the epochs that hold the minimum batch.

    not_asked: epochs in which a metric that this one goes on from asked, and not for this value; ""
    where there is none.
    shifts: the steps of its line. weekdays: their effects on it from Monday on, adding up to 0;
    none where the data do not show any.
    """

    value: str
    points: list[Point]
    not_asked: str = ""
    shifts: list[Shift] = field(default_factory=list)
    weekdays: list[float] = field(default_factory=list)
