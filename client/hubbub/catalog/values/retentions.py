"""Retention: the number of weeks after a device's first week in which it is used."""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Final

from hubbub.catalog.values.past_kind import PastKind, without
from hubbub.errors import BadParameter
from hubbub.fields.field import Entry
from hubbub.fields.kinds import whole

LATER: Final = "later"
"""The value of all weeks after the last that is counted."""
WEEKS: Final = Entry(
    kind=whole(1, 52),
    meaning='With `kind = "retention"`: how many weeks after the first are counted one by one.',
    example="8",
)


def week_names(weeks: int) -> tuple[str, ...]:
    """Returns the values: one per week from the first on, and one for all later weeks."""
    return (*(f"week {week}" for week in range(weeks + 1)), LATER)


class Retention(PastKind):
    """Weeks since the first week, reported at the first event of a week."""

    EPOCH: ClassVar[str] = "week"
    VALUELESS: ClassVar[bool] = True
    PYTHON: ClassVar[str] = "None"
    TYPESCRIPT: ClassVar[str] = "undefined"
    LISTS: ClassVar[str] = "weeks"
    NOT_ITS: ClassVar[Mapping[str, str]] = without("weeks")
    FIELD: ClassVar[tuple[str, Entry] | None] = ("weeks", WEEKS)

    def base_values(self, written: int) -> tuple[str, ...]:
        """Returns the names for `written` weeks."""
        return week_names(written)

    def check(self, metric: Any, domain: str) -> None:
        """Raises BadParameter unless the values are the names of a number of weeks."""
        weeks = len(metric.values or ()) - 2
        if problem := WEEKS.kind.problem(weeks):
            raise BadParameter(f"weeks: {problem}")
        if metric.values != week_names(weeks):
            raise BadParameter("weeks: the values differ from the names of its weeks")
        super().check(metric, domain)

    def computed(
        self,
        metric: Any,
        epoch: int,
        events: Mapping[str, int],  # noqa: ARG002 that there is one is enough
        reported: Collection[int],
    ) -> str:
        """Returns the week, counted from the first week that the device reported.

        The ledger remembers the last 64 epochs, more than the weeks that are counted.
        """
        week = epoch - min(reported, default=epoch)
        return str(metric.values[min(max(week, 0), len(metric.values) - 1)])
