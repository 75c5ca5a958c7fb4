"""The interface of mechanisms, which every registry entry implements and tests/proofs checks.

A parameter is the meaning and the range of a number that a mechanism is built from. It is declared
where the number is a field of its class, `bits: int = field(metadata=whole("...", 1, 4096))`, and
read from there by the class itself, by the catalog and by its reference.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from math import inf, prod
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Literal,
    Protocol,
    TypeVar,
    runtime_checkable,
)

from hubbub.errors import BadParameter
from hubbub.fields.frozen import frozen
from hubbub.fields.rules import Interval, is_number
from hubbub.mechanisms.layout import Estimates, Layout, Totals
from hubbub.mechanisms.random_bits import BitSource

MAX_CELLS: Final = 1 << 22
"""Largest number of cells of any totals: each query reads them all from the store."""
_KEY: Final = "parameter"
# Parameters that follow from epsilon or the listed values, or that nobody writes.
_FOLLOWING: Final = frozenset(
    {"epsilon", "categories", "sizes", "beginnings", "dimensions", "seed"}
)


@frozen(kw_only=True)
class Parameter:
    """One number that a mechanism is built from, beside epsilon and how many values are listed.

    Attributes:
        meaning: a sentence for who writes a catalog; "" if the class has none.
        whole: no fraction.
        example: None if the class has none.
        default: None if it must be given.
    """

    meaning: str
    interval: Interval
    whole: bool
    example: float | None = None
    default: float | None = None


def whole(meaning: str, low: int, high: int, *, example: int) -> Mapping[str, Parameter]:
    """The metadata of a field that holds a whole number in [low, high]."""
    return {
        _KEY: Parameter(meaning=meaning, interval=Interval(low, high), whole=True, example=example)
    }


def number(
    meaning: str, low: float = -inf, high: float = inf, ends: str = "[]", *, example: float
) -> Mapping[str, Parameter]:
    """The metadata of a field that holds any number between two, or any at all."""
    return {
        _KEY: Parameter(
            meaning=meaning, interval=Interval(low, high, ends), whole=False, example=example
        )
    }


def described(mechanism: Any) -> dict[str, Parameter]:
    """The parameters of a mechanism's class, or of one built, by name."""
    parameters = {}
    for field in fields(mechanism):
        if field.init and field.name not in _FOLLOWING:
            says = field.metadata.get(_KEY)
            parameter = says or Parameter(meaning="", interval=Interval(), whole=field.type is int)
            default: Any = field.default if is_number(field.default) else None
            parameters[field.name] = replace(parameter, default=default)
    return parameters


def check_whole(mechanism: Any, *names: str) -> None:
    """Raises BadParameter unless each of these fields holds a whole number in its interval."""
    for name in names:
        interval = described(mechanism)[name].interval
        value = getattr(mechanism, name)
        if not (isinstance(value, int) and value in interval):
            raise BadParameter(f"{name} {value} is outside [{interval.low}, {interval.high}]")


def check_cells(mechanism: Any, *names: str, each: int = 1) -> None:
    """Raises BadParameter if the product of these fields, `each` cells, is above MAX_CELLS."""
    if (cells := each * prod(getattr(mechanism, name) for name in names)) > MAX_CELLS:
        numbers = " or ".join(f"{name} {getattr(mechanism, name)}" for name in names)
        raise BadParameter(
            f"{numbers} is too large: totals have {cells:,} cells, together above {MAX_CELLS:,}"
        )


DomainName = Literal["categories", "strings", "numbers", "vectors"]

Value_contra = TypeVar("Value_contra", contravariant=True)


class Mechanism(Protocol[Value_contra]):
    """Randomizer, guarantee, layout, estimator and variance of one local randomizer.

    A mechanism is a value: immutable, and equal to another built from the same parameters.
    """

    __slots__ = ()

    if TYPE_CHECKING:  # Cached functions take mechanisms; a frozen dataclass hashes its parameters.

        def __hash__(self) -> int:
            return 0

    NAME: ClassVar[str]
    """The wire name; with VERSION never reused or given a new meaning."""
    VERSION: ClassVar[int]
    VALUES: ClassVar[DomainName]
    """Whether a value is an index into a list, a string, a number in a range, or a unit vector."""
    FAMILY: ClassVar[str]
    """What its totals answer, and how: of the values listed, of strings through a sketch or through
    Bloom filters, of the parts of a range, or the mean; see hubbub.analysis.families."""
    SMALL: ClassVar[tuple[Mapping[str, Any], ...]]
    """Parameters so small that every outcome can be enumerated: the proof runs on these."""

    @property
    def layout(self) -> Layout:
        """The payload format."""

    @property
    def groups(self) -> int:
        """The number of groups (cohorts), to which reports are assigned evenly."""
        return 1

    def privacy_loss(self) -> float:
        """The largest privacy loss of one report: log-likelihood ratio, in nats, rounded up."""

    def total_variation(self) -> Fraction:
        """The largest total variation distance between the payloads of two values, in [0, 1].

        It may be an upper bound; the gain of a report from shuffling depends on it.
        """

    def check(self, value: Any) -> None:
        """Raises ValueOutOfDomain unless `value` is one of the mechanism's; never shows it."""

    def randomize(self, value: Value_contra, source: BitSource) -> bytes:
        """A payload of `layout.payload_bytes` bytes for one value. Raises ValueOutOfDomain."""

    def row(self, value: Value_contra) -> Sequence[int | Fraction]:
        """The true contribution of `value` to each estimate, in [0, 1], if in that group."""

    def estimate(self, totals: Totals) -> Estimates:
        """Unbiased estimates, hence possibly negative.

        There is one per listed value; for hashed values one per group and cell; for numbers one per
        bucket or place of the range, or a single one, the sum of their places in it.

        Raises:
            ShapeMismatch: totals of another shape than the layout.
        """

    def variance(self, true: float, reports: int) -> float:
        """Variance of one estimate, in reports squared, if `true` of the group's reports hold it.

        Exact, not the small-frequency approximation. For a sum of places in a range it is exact if
        all are the same.
        """

    def likelihood(self, value: Value_contra, cells: Mapping[int, int]) -> Fraction:
        """The chance of a report with these cells, up to a factor that is the same for all values.

        For a mechanism with a permanent step it is the chance over both steps, for a device that
        reports once.
        """

    def probes(self) -> Sequence[Any]:
        """Values for tests: the whole domain if it is finite, else some that cover every case."""


AnyMechanism = Mechanism[Any]
"""A mechanism, whatever its values are."""


class Memo(Protocol):
    """A device's permanent randomness for one metric."""

    def coins(self, purpose: bytes, /) -> BitSource:
        """The randomness for a purpose: equal at every call, independent between purposes."""


@frozen()
class Forgetful:
    """A Memo without memory: fresh randomness at every call, as if a device reports once."""

    source: BitSource

    def coins(self, purpose: bytes, /) -> BitSource:  # noqa: ARG002 every purpose is the same source
        return self.source


@runtime_checkable
class Memoized(Protocol):
    """A mechanism with a permanent step, drawn once per device and value."""

    __slots__ = ()

    def permanent_key(self, value: Any, memo: Memo) -> bytes:
        """The key of the permanent response: values with the same key share one.

        The device's own `memo` may determine which values do. Raises ValueOutOfDomain.
        """

    def randomize_again(self, value: Any, memo: Memo, source: BitSource) -> bytes:
        """Like `randomize`, with permanent randomness from `memo` and fresh one from `source`."""

    @property
    def permanent_groups(self) -> int:
        """The number of groups of devices that reports reveal, by a permanent random choice."""
        return 1

    def permanent_loss(self) -> float:
        """The largest loss of any number of reports of one value, in nats, rounded up."""

    def randomize(self, value: Any, source: BitSource) -> bytes:
        """The payload of a device that reports once."""
        return self.randomize_again(value, Forgetful(source), source)
