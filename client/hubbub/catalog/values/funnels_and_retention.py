"""Kinds that a device computes from its past: funnels, activity and retention."""

from collections.abc import Collection, Mapping
from itertools import pairwise
from typing import Any, ClassVar, Final

from hubbub.catalog.epochs import epoch_at, epoch_start
from hubbub.catalog.values.past_kind import PastKind, reasons_without
from hubbub.errors import BadParameter
from hubbub.fields.field import Entry
from hubbub.fields.kinds import integer, names

STEPS: Final = Entry(
    kind=names(2, 20),
    meaning='Steps of `kind = "funnel"`, in order; a device reports the furthest of an epoch.',
    example='["visit", "cart", "paid"]',
)

AGAIN: Final = "again in its week"
FIRST_OF_WEEK: Final = "first in its week"
FIRST_OF_28: Final = "first in its 28 days"
_VALUES: Final = (AGAIN, FIRST_OF_WEEK, FIRST_OF_28)

LATER: Final = "later"
"""The value of all weeks after the last that is counted."""
WEEKS: Final = Entry(
    kind=integer(1, 52),
    meaning='With `kind = "retention"`: how many weeks after the first are counted one by one.',
    example="8",
)


class Funnel(PastKind):
    """Steps in order; the value of an epoch is the furthest one."""

    COUNTS: ClassVar[bool] = True
    LISTS: ClassVar[str] = "steps"
    NOT_ITS: ClassVar[Mapping[str, str]] = reasons_without("steps")
    FIELD: ClassVar[tuple[str, Entry] | None] = ("steps", STEPS)

    def check(self, metric: Any, domain: str) -> None:
        if problem := STEPS.kind.problem(metric.values):
            raise BadParameter(f"steps: {problem}")
        super().check(metric, domain)

    def computed(
        self, metric: Any, epoch: int, events: Mapping[str, int], reported: Collection[int]
    ) -> Any:
        return max(events, key=metric.values.index)

    def figures(self, metric: Any) -> list[str]:
        steps = metric.values
        pairs = [*pairwise(steps), (steps[0], steps[-1])]
        return [f"{first} to {later}" for first, later in dict.fromkeys(pairs)]


class Activity(PastKind):
    """One report at the first event of a day. A week or 28 days is the epoch of that length."""

    EPOCH: ClassVar[str] = "day"
    VALUELESS: ClassVar[bool] = True
    PYTHON: ClassVar[str] = "None"
    TYPESCRIPT: ClassVar[str] = "undefined"
    LISTS: ClassVar[str] = "days of use"

    def base_values(self, written: None) -> tuple[str, ...]:
        return _VALUES

    def check(self, metric: Any, domain: str) -> None:
        if metric.values != _VALUES:
            raise BadParameter(
                'kind: an activity has the three values that hubbub sets; leave "values" out'
            )
        super().check(metric, domain)

    def computed(
        self, metric: Any, epoch: int, events: Mapping[str, int], reported: Collection[int]
    ) -> str:
        if _is_first("28d", epoch, reported):
            return FIRST_OF_28
        return FIRST_OF_WEEK if _is_first("week", epoch, reported) else AGAIN


def _is_first(length: str, day: int, reported: Collection[int]) -> bool:
    """Returns whether no reported day is in the same epoch of this length."""
    epoch = _epoch_of(day, length)
    return all(_epoch_of(other, length) != epoch for other in reported)


def _epoch_of(day: int, length: str) -> int:
    return epoch_at(epoch_start(day, "day"), length)


class Retention(PastKind):
    """Weeks since the first week, reported at the first event of a week."""

    EPOCH: ClassVar[str] = "week"
    VALUELESS: ClassVar[bool] = True
    PYTHON: ClassVar[str] = "None"
    TYPESCRIPT: ClassVar[str] = "undefined"
    LISTS: ClassVar[str] = "weeks"
    NOT_ITS: ClassVar[Mapping[str, str]] = reasons_without("weeks")
    FIELD: ClassVar[tuple[str, Entry] | None] = ("weeks", WEEKS)

    def base_values(self, written: int) -> tuple[str, ...]:
        return week_names(written)

    def check(self, metric: Any, domain: str) -> None:
        weeks = len(metric.values or ()) - 2
        if problem := WEEKS.kind.problem(weeks):
            raise BadParameter(f"weeks: {problem}")
        if metric.values != week_names(weeks):
            raise BadParameter("weeks: the values differ from the names of its weeks")
        super().check(metric, domain)

    def computed(
        self, metric: Any, epoch: int, events: Mapping[str, int], reported: Collection[int]
    ) -> str:
        """Returns the week since the first one reported, among the ledger's last 64 epochs."""
        week = epoch - min(reported, default=epoch)
        return str(metric.values[min(max(week, 0), len(metric.values) - 1)])

    def figures(self, metric: Any) -> list[str]:
        return [f"back in {week}" for week in metric.values[1:-1]]


def week_names(weeks: int) -> tuple[str, ...]:
    """Returns the values: one per week from the first on, and one for all later weeks."""
    return (*(f"week {week}" for week in range(weeks + 1)), LATER)
