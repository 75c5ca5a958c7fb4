"""Kinds that a device computes from its own past: funnels, activity, retention and rates.

The app reports events. The device reports the value of an epoch once: a kind that counts events
when the epoch is over, the others at the first event, computed from the epochs in the ledger.
A rate is the occurrences of one event per occurrence of another, reported as a vector of both.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from math import sqrt
from typing import Any, ClassVar, Final

from hubbub.catalog.epochs_and_periods import epoch_at, epoch_start
from hubbub.catalog.plain_python_value import as_python
from hubbub.catalog.values.sets_and_vectors import Vector
from hubbub.catalog.values.value_kind import Complain, ValueKind, not_listed
from hubbub.errors import BadParameter, ValueOutOfDomain
from hubbub.fields import kinds
from hubbub.fields.field import Entry, check, entry, setting, settings, table_of
from hubbub.fields.kinds import integer, names
from hubbub.fields.rules import Interval
from hubbub.mechanisms import REGISTRY

_USE: Final = "use"
_NOT_ITS: Final[Mapping[str, str]] = {
    **ValueKind.NOT_ITS,
    **dict.fromkeys(
        ("values", "values_file", "domain", "parts", "edges", "outside", "other"),
        "cannot be used with this kind, whose values follow from its own fields; leave it out",
    ),
    **dict.fromkeys(
        ("default", "discover", "period", "report_on"),
        "cannot be used with this kind: the device's own past decides when and what it "
        "reports; leave it out",
    ),
}


def reasons_without(field: str) -> Mapping[str, str]:
    """Returns the NOT_ITS of a kind that requires this field."""
    return {name: reason for name, reason in _NOT_ITS.items() if name != field}


class PastKind(ValueKind):
    """A kind with base values, of which a device computes one.

    EPOCH: the only permitted epoch; "" for any. FIELD: the field of metrics.toml
    that the base values follow from, with its entry; None if they are always the same.
    """

    TAKES_OTHER: ClassVar[bool] = False
    EPOCH: ClassVar[str] = ""
    FIELD: ClassVar[tuple[str, Any] | None] = None
    NOT_ITS: ClassVar[Mapping[str, str]] = _NOT_ITS

    def spelled(self, table: dict[str, Any], complain: Complain) -> dict[str, Any]:
        if self.EPOCH and "epoch" not in table:
            complain("epoch", f'is missing; write epoch = "{self.EPOCH}"')
            table = {**table, "epoch": self.EPOCH}
        if self.FIELD is None:
            return {**table, "values": [*self.base_values(None)]}
        name, entry = self.FIELD
        other_fields = {field: value for field, value in table.items() if field != name}
        if name not in table:
            complain(name, entry.missing(name))
            return {**other_fields, "values": ["1", "2"]}
        if problem := entry.kind.problem(table[name]):
            complain(name, f"{problem}; write {name} = {entry.example}")
            return {**other_fields, "values": ["1", "2"]}
        return {**other_fields, "values": [*self.base_values(entry.kind.read(table[name]))]}

    def base_values(self, written: Any) -> Sequence[str]:
        """Returns the base values for the content of FIELD."""
        return tuple(written)

    def check(self, metric: Any, domain: str) -> None:
        kind = metric.kind
        if (self.FAMILY or "listed") != REGISTRY[metric.mechanism].FAMILY:
            raise BadParameter(
                f'kind: {metric.mechanism} cannot be used with "{kind}"; write mechanism = "auto"'
            )
        if self.EPOCH and metric.epoch != self.EPOCH:
            raise BadParameter(f'epoch: must be "{self.EPOCH}" with kind = "{kind}"')
        if metric.limits.reports_per_epoch != 1:
            raise BadParameter(
                f'limits: reports_per_epoch must be 1: a device reports "{kind}" once an epoch'
            )
        if metric.default is not None or metric.discover or metric.report_on:
            raise BadParameter(f'kind: "{kind}" has no default, discover or period')
        arms = {metric.experiment.name} if metric.experiment else set()
        if self.COUNTS and {*metric.breakdown} - arms:
            raise BadParameter(
                f'breakdown: cannot be used with "{kind}": devices report it after its epoch, when '
                "a public field, such as the app's version, may no longer be that of the events; "
                "leave it out, or name an experiment, whose arms stay the same"
            )
        if not self.COUNTS and metric.sampling != 1:
            raise BadParameter(
                f'sampling: cannot be used with kind = "{kind}", for which a device reports in all '
                "epochs of use; leave it out"
            )
        super().check(metric, domain)

    def event(self, metric: Any, value: Any) -> str:
        """Returns the event of a report. Raises ValueOutOfDomain, without the value."""
        if self.VALUELESS and value is None:
            return _USE
        if self.VALUELESS:
            raise ValueOutOfDomain(f"a metric of kind {metric.kind} takes no value; leave it out")
        event = as_python(value, metric.values)
        if not (isinstance(event, str) and event in metric.values):
            raise not_listed(metric.values, value)
        return event

    def computed(
        self, metric: Any, epoch: int, events: Mapping[str, int], reported: Collection[int]
    ) -> Any:
        """Returns the value of an epoch, for `metric.code`, from the counts of its events.

        There is at least one event. `reported` are the other epochs that this device reported, as
        far as its ledger remembers them.
        """
        raise NotImplementedError

    def example(self, metric: Any, chance: Any) -> Any:
        return None if self.VALUELESS else chance.choice(metric.values)


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
    NAME_OF_VALUES: ClassVar[str] = "steps"
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
    NAME_OF_VALUES: ClassVar[str] = "days of use"

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
    own, *others = (epoch_at(epoch_start(date, "day"), length) for date in (day, *reported))
    return own not in others


class Retention(PastKind):
    """Weeks since the first week, reported at the first event of a week."""

    EPOCH: ClassVar[str] = "week"
    VALUELESS: ClassVar[bool] = True
    PYTHON: ClassVar[str] = "None"
    TYPESCRIPT: ClassVar[str] = "undefined"
    NAME_OF_VALUES: ClassVar[str] = "weeks"
    NOT_ITS: ClassVar[Mapping[str, str]] = reasons_without("weeks")
    FIELD: ClassVar[tuple[str, Entry] | None] = ("weeks", WEEKS)

    def base_values(self, written: int) -> tuple[str, ...]:
        return week_names(written)

    def check(self, metric: Any, domain: str) -> None:
        weeks = len(metric.values or ()) - 2
        if problem := WEEKS.kind.problem(weeks):
            raise BadParameter(f"weeks: {problem}")
        if metric.values != week_names(weeks):
            raise BadParameter("weeks: the values are not the names of the metric's weeks")
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
    NAME_OF_VALUES: ClassVar[str] = "rates"
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
