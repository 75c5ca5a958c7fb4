"""What a mechanism is: the contract that every registry entry keeps and tests/proofs proves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, Protocol, TypeVar, runtime_checkable

from hubbub.mechanisms.bits import BitSource
from hubbub.mechanisms.layout import Estimates, Layout, Totals

DomainName = Literal["categories", "strings", "numbers", "vectors"]
FamilyName = str

Value_contra = TypeVar("Value_contra", contravariant=True)


class Mechanism(Protocol[Value_contra]):
    """Randomizer, guarantee, layout, estimator and variance of one local randomizer.

    A mechanism is a value: immutable, and equal to another built from the same parameters.
    """

    def __hash__(self) -> int: ...

    NAME: ClassVar[str]
    """The wire name; with VERSION never reused or given a new meaning."""
    VERSION: ClassVar[int]
    VALUES: ClassVar[DomainName]
    """Whether a value is an index into a list, a string, a number in a range, or a unit vector."""
    FAMILY: ClassVar[FamilyName]
    """What its totals answer, and how: of the values listed, of strings through a sketch or through
    Bloom filters, of the parts of a range, or the mean; see hubbub.analysis.families."""
    SMALL: ClassVar[tuple[Mapping[str, Any], ...]]
    """Parameters so small that every outcome can be enumerated: the proof runs on these."""

    @property
    def layout(self) -> Layout:
        """The payload format."""
        ...

    @property
    def groups(self) -> int:
        """How many groups (cohorts) a public fair coin puts reports in; 1 for most."""
        ...

    def privacy_loss(self) -> float:
        """The most that one report can say, in nats: the worst log-likelihood ratio, rounded up."""
        ...

    def total_variation(self) -> Fraction:
        """The share of one report that tells two values apart at most, in [0, 1].

        The largest total variation between the payloads of two values, or a bound above it: how
        much a report gains by being shuffled depends on it.
        """
        ...

    def check(self, value: Any) -> None:
        """Raises ValueOutOfDomain unless `value` is one of the mechanism's; never shows it."""
        ...

    def randomize(self, value: Value_contra, source: BitSource) -> bytes:
        """A payload of `layout.payload_bytes` bytes for one value.

        Raises:
            ValueOutOfDomain: the value is not one of the mechanism's.
        """
        ...

    def row(self, value: Value_contra) -> Sequence[int | Fraction]:
        """What `value` truly adds to each estimate, in [0, 1], when its report is in that group."""
        ...

    def estimate(self, totals: Totals) -> Estimates:
        """Unbiased estimates, hence possibly negative.

        One per listed value; per group and cell, of hashed ones; per bucket or place of a range, or
        one alone, the sum of the numbers' places in it.

        Raises:
            ShapeMismatch: totals of another shape than the layout.
        """
        ...

    def variance(self, true: float, reports: int) -> float:
        """Variance of one estimate, in reports squared, if `true` of the group's reports hold it.

        Exact, not the small-frequency approximation. For a sum of places in a range it is exact if
        all are the same.
        """
        ...

    def likelihood(self, value: Value_contra, cells: Mapping[int, int]) -> Fraction:
        """The chance of one report from `value`, up to a factor that is the same for all values.

        Of a mechanism with a permanent step: the chance over both steps, for a device that reports
        once.

        Args:
            value: what the device may have held.
            cells: what the report adds to, as `layout.cells` tells.
        """
        ...

    def probes(self) -> Sequence[Any]:
        """Values to enumerate: the domain where it is finite, else some that show every case."""
        ...


AnyMechanism = Mechanism[Any]
"""A mechanism, whatever its values are."""


class Memo(Protocol):
    """A device's memory of its permanent coins, for one metric."""

    def coins(self, purpose: bytes, /) -> BitSource:
        """The coins of this purpose: the same at every call, independent between purposes."""
        ...


@dataclass(frozen=True, slots=True)
class Forgetful:
    """A Memo that remembers nothing: every coin fresh, as for a device that reports once."""

    source: BitSource

    def coins(self, purpose: bytes, /) -> BitSource:  # noqa: ARG002 every purpose is the same source
        return self.source


@runtime_checkable
class Memoized(Protocol):
    """A mechanism with a permanent step, drawn once per device and value."""

    def permanent_key(self, value: Any, memo: Memo) -> bytes:
        """What the permanent step depends on: values with one key share one response.

        Args:
            value: what the device reports.
            memo: the device's own: which values share one may be a coin's, tossed for life.

        Raises:
            ValueOutOfDomain: the value is not one of the mechanism's.
        """
        ...

    def randomize_again(self, value: Any, memo: Memo, source: BitSource) -> bytes:
        """As `randomize`, with the permanent coins from `memo` and the others from `source`."""
        ...

    @property
    def permanent_groups(self) -> int:
        """How many kinds of devices reports tell apart for life, by a permanent coin they show."""
        ...

    def permanent_loss(self) -> float:
        """The most that any number of reports of one value can say, in nats, rounded up."""
        ...
