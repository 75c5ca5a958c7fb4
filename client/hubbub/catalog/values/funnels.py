"""Funnels: the furthest step that a device reached in an epoch."""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Final

from hubbub.catalog.values.past_kind import PastKind, without
from hubbub.errors import BadParameter
from hubbub.fields.field import Entry
from hubbub.fields.kinds import names

STEPS: Final = Entry(
    kind=names(2, 20),
    meaning='Steps of `kind = "funnel"`, in order; a device reports the furthest of an epoch.',
    example='["visit", "cart", "paid"]',
)


class Funnel(PastKind):
    """Steps in order; the value of an epoch is the furthest one."""

    COUNTS: ClassVar[bool] = True
    LISTS: ClassVar[str] = "steps"
    NOT_ITS: ClassVar[Mapping[str, str]] = without("steps")
    FIELD: ClassVar[tuple[str, Entry] | None] = ("steps", STEPS)

    def check(self, metric: Any, domain: str) -> None:
        """Raises BadParameter unless the metric has 2 to 20 steps."""
        if problem := STEPS.kind.problem(metric.values):
            raise BadParameter(f"steps: {problem}")
        super().check(metric, domain)

    def computed(
        self,
        metric: Any,
        epoch: int,  # noqa: ARG002 alike in all epochs
        events: Mapping[str, int],
        reported: Collection[int],  # noqa: ARG002 of its own epoch alone
    ) -> Any:
        """Returns the furthest step."""
        return max(events, key=metric.values.index)
