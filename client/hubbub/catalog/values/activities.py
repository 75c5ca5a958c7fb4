"""Activity: is a day of use the device's first of its week, or of its 28 days?"""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Final

from hubbub.catalog.epochs import epoch_at, epoch_start
from hubbub.catalog.values.past_kind import PastKind
from hubbub.errors import BadParameter

AGAIN: Final = "again in its week"
FIRST_OF_WEEK: Final = "first in its week"
FIRST_OF_28: Final = "first in its 28 days"
_VALUES: Final = (AGAIN, FIRST_OF_WEEK, FIRST_OF_28)


class Activity(PastKind):
    """One report at the first event of a day. A week or 28 days is the epoch of that length."""

    EPOCH: ClassVar[str] = "day"
    VALUELESS: ClassVar[bool] = True
    PYTHON: ClassVar[str] = "None"
    TYPESCRIPT: ClassVar[str] = "undefined"
    LISTS: ClassVar[str] = "days of use"

    def base_values(self, written: None) -> tuple[str, ...]:  # noqa: ARG002 nothing is written
        """Returns the three values."""
        return _VALUES

    def check(self, metric: Any, domain: str) -> None:
        """Raises BadParameter if the metric has other values than the three."""
        if metric.values != _VALUES:
            raise BadParameter("kind: the values of an activity are not its three")
        super().check(metric, domain)

    def computed(
        self,
        metric: Any,  # noqa: ARG002 alike for all
        epoch: int,
        events: Mapping[str, int],  # noqa: ARG002 that there is one is enough
        reported: Collection[int],
    ) -> str:
        """Returns the value by the other days that the device reported."""
        if _is_first("28d", epoch, reported):
            return FIRST_OF_28
        return FIRST_OF_WEEK if _is_first("week", epoch, reported) else AGAIN


def _is_first(length: str, day: int, reported: Collection[int]) -> bool:
    """Returns whether no reported day is in the same epoch of this length."""
    own = _epoch_of(day, length)
    return all(_epoch_of(other, length) != own for other in reported)


def _epoch_of(day: int, length: str) -> int:
    return epoch_at(epoch_start(day, "day"), length)
