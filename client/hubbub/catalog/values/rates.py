"""Rates: occurrences of one event per occurrence of another, reported as a vector of both."""

from collections.abc import Callable, Collection, Mapping
from math import sqrt
from typing import Any, ClassVar, Final

from hubbub.catalog.values.past_kind import PastKind, reasons_without
from hubbub.catalog.values.value_kind import Complain
from hubbub.catalog.values.vectors import Vector
from hubbub.errors import BadParameter, ValueOutOfDomain
from hubbub.fields import kinds
from hubbub.fields.field import check, entry, setting, settings
from hubbub.fields.nested_tables import table_of
from hubbub.fields.rules import Interval


@settings
class Ratio:
    """The two events of a rate. Raises BadParameter if they are the same."""

    of: str = setting(kinds.text("names the event in the numerator"), "Numerator.", '"crashed"')
    per: str = setting(
        kinds.text("names the event in the denominator"), "Denominator.", '"started"'
    )
    # Kept as written, since the definition's digest covers this text.
    most: int = setting(
        kinds.in_interval(Interval(1, 1_000_000), is_integer=True),
        "Largest count of either in an epoch.",
        "20",
    )

    def __post_init__(self) -> None:
        check(self)
        if self.of == self.per:
            raise BadParameter('"of" and "per" must be different events; rename one')


_TABLE: Final = table_of(Ratio)
_REMEDY: Final = 'write rate = { of = "crashed", per = "started", most = 20 }'
RATE: Final = entry(
    _TABLE,
    "Two events whose ratio is asked for; a device reports once how often each happened in an "
    "epoch, up to `most`.",
    '{ of = "crashed", per = "started", most = 20 }',
    write=_REMEDY,
    in_definition=True,
)


def longest(ratio: Ratio) -> float:
    """Returns the largest length of a vector of both counts."""
    return sqrt(2) * ratio.most


class Rate(PastKind, Vector):
    """Counts of two events in an epoch, each at most `most`."""

    COUNTS: ClassVar[bool] = True
    FAMILY: ClassVar[str | None] = Vector.FAMILY
    SETS: ClassVar[str] = Vector.SETS
    LISTS: ClassVar[str] = "rates"
    NOT_ITS: ClassVar[Mapping[str, str]] = {
        **reasons_without("rate"),
        "max_length": "follows from `most` of the rate; leave it out",
        "release": Vector.NOT_ITS["release"],
    }
    PYTHON: ClassVar[str] = "{}"
    TYPESCRIPT: ClassVar[str] = "{0}"

    def spelled(self, table: dict[str, Any], complain: Complain) -> dict[str, Any]:
        absent = "" if "rate" in table else "is missing"
        if problem := absent or _TABLE.problem(table["rate"]):
            complain("rate", f"{problem}; {_REMEDY}")
            return {**table, "kind": "rate", "values": ["1", "2"]}
        ratio = _TABLE.read(table["rate"])
        return {
            **table,
            "kind": "rate",
            "values": [ratio.of, ratio.per],
            "max_length": longest(ratio),
        }

    def check(self, metric: Any, domain: str) -> None:
        ratio = metric.rate
        if ratio is None or metric.values != (ratio.of, ratio.per):
            raise BadParameter("rate: must name the two coordinates of its vector")
        if metric.parameters.get("max_length") != longest(ratio):
            raise BadParameter("rate: max_length must be most times the root of 2")
        super().check(metric, domain)

    def computed(
        self, metric: Any, epoch: int, events: Mapping[str, int], reported: Collection[int]
    ) -> list[float]:
        return [float(min(events.get(name, 0), metric.rate.most)) for name in metric.values]

    def figures(self, metric: Any) -> list[str]:
        return [f"{metric.rate.of} per {metric.rate.per}"]

    def reader(self, metric: Any) -> Callable[[Any], Any]:
        """Both counts, by column, as a device would report them."""

        def read(texts: Mapping[str, str]) -> list[float]:
            counts = {name: texts[name].strip() for name in metric.values}
            if not all(map(str.isdecimal, counts.values())):
                raise ValueOutOfDomain("a number of events is not a whole number from 0 on")
            events = {name: int(count) for name, count in counts.items()}
            return self.computed(metric, 0, events, ())

        return read
