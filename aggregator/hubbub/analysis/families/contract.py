"""The contract of a family: all that is asked of a mechanism once its reports are added up.

Mechanisms of one family answer alike: of the values listed, of strings through a sketch or through
Bloom filters, of the parts of a range, a mean, or that of a vector. A family says how, in its own
file.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, ClassVar, Final, Literal

import numpy as np

from hubbub.analysis.answer import Answer
from hubbub.analysis.arrays import Floats
from hubbub.analysis.families.laws import Counts, one_hot_chances
from hubbub.analysis.uncertainty.intervals import Tail
from hubbub.analysis.value_estimates import ValueEstimates
from hubbub.errors import BadParameter
from hubbub.mechanisms import AnyMechanism, CohortBits, Totals
from hubbub.mechanisms.pure import Pure

MetricKind = Literal["values", "strings", "ranges", "mean", "vector"]

Tier = tuple[AnyMechanism, Totals]
"""People who report at one epsilon: a mechanism with its totals."""


def wider(figures: ValueEstimates, repeats: int) -> ValueEstimates:
    """The figures where reports of one device share all of their lies: n of them err as one does.

    That is at most sqrt(n) times the error of n fresh ones.
    """
    more = sqrt(repeats)
    return replace(
        figures,
        stderrs=more * figures.stderrs,
        absent=more * figures.absent,
        growth=repeats * figures.growth,
        tail=None,
        bend=repeats * figures.bend,
        place=figures.place and wider(figures.place, repeats),
    )


def risen(estimates: Floats, stderrs: Floats, absent: Floats, reports: int) -> Floats:
    """What each report of a value must add to its variance, to come from `absent` to `stderrs`."""
    true_counts = np.clip(estimates, 0.0, reports)
    more = stderrs**2 - absent**2
    return np.divide(more, true_counts, out=np.zeros_like(more), where=true_counts > 0)


NO_SUMS: Final = "estimates of strings, sets and parts are no sums over reports"
"""Why intervals of such estimates hold at one look alone."""


def evenly_spread(low: float, high: float) -> list[float]:
    """101 numbers from end to end."""
    return [low + (high - low) * place / 100 for place in range(101)]


@dataclass(frozen=True, slots=True)
class BitSum:
    """A sum of bits: how far it is off, its largest variance, and of how many sums it is the worst.

    A bit is within 1 of its mean, whatever that is.
    """

    what: str
    off: float
    variance: float
    times: int


@dataclass(frozen=True, slots=True)
class Expected:
    """Standard errors as shares of all reports: per value, and of a value that nobody holds.

    Of a mean, as shares of its range, where they are largest; of a vector, of each coordinate's.
    """

    stderrs: Floats
    absent: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """Whole numbers that a release adds noise to, and how they become estimates.

    l1, l2: how one report changes them at most: the sum of all changes, and the root of the sum of
        their squares. unit, base: estimates are the numbers times a unit (or a matrix), and a base.
    """

    numbers: Floats
    l1: int
    l2: float
    unit: float | Floats
    base: float


class Family(ABC):
    """How mechanisms of one family answer. `mechanism` is always one of the family's.

    What most families do alike is written here.
    """

    KIND: ClassVar[MetricKind]
    """What its answers are of."""
    FINDS: ClassVar[bool] = False
    """Whether it finds strings that nobody listed."""
    ONE_LOOK: ClassVar[str] = ""
    """Why intervals hold at one look alone; empty where they can hold at every look."""
    SHARES: ClassVar[str] = ""
    """What a reader must know of its shares, as a sentence; empty for plain ones."""
    COUNTS_BY_CELL: ClassVar[bool] = True
    """Whether each value has one cell in which its reports are counted."""
    REHEARSES_DAYS: ClassVar[bool] = True
    """Whether it can be rehearsed on values that people hold day after day."""
    ABSENT_SHARE: ClassVar[float] = 0.0
    """Where an estimate that nobody adds to lies in its range, in [0, 1]."""

    def edges(self, mechanism: Any) -> Sequence[float]:
        """Ends of the parts of its range, ascending; empty without such parts."""
        return ()

    def is_spread(self, mechanism: Any) -> bool:
        """Whether a number counts in many cells, so that its part follows from a fit alone."""
        return False

    @abstractmethod
    def figures(
        self,
        mechanism: Any,
        totals: Totals,
        candidates: Sequence[str],
        *,
        shape: bool,
    ) -> ValueEstimates:
        """What totals say of every value, before anything is judged.

        shape: whether the smooth shape is wanted, which takes longest.

        Raises:
            BatchTooSmall: not a single report.
            ShapeMismatch: totals of another shape than the mechanism's.
        """

    def repeated(
        self, mechanism: Any, figures: ValueEstimates, reports: int, repeats: int
    ) -> ValueEstimates:
        """The figures where one device may have made so many of the reports, lying for life.

        Here nothing of a lie is taken for fresh.
        """
        return wider(figures, repeats)

    @abstractmethod
    def answer(
        self,
        tiers: Sequence[Tier],
        names: Sequence[str],
        confidence: float,
        repeats: int,
    ) -> Answer:
        """Estimates of everything in `names`, which a family that has its own leaves alone.

        repeats: how many of the reports one device may have made.
        """

    def ends(self, mechanism: Any) -> tuple[float, float] | None:
        """Between which ends its numbers lie; None where no numbers are asked for."""
        return None

    def correlation(self, mechanism: Any) -> float:
        """The most that two estimates can vary against each other, in [0, 1], as a correlation.

        The difference of two estimates with standard errors s and t then has a variance of at most
        s^2 + t^2 + 2 c s t. Here nothing is assumed: 1.
        """
        return 1.0

    @abstractmethod
    def sums(self, mechanism: Any, cells: Floats, totals: Totals) -> Iterator[BitSum]:
        """Sums whose mean is known whatever people hold: how far each is off."""

    @abstractmethod
    def weights(self, mechanism: Any, targets: Sequence[Any]) -> tuple[Floats, float]:
        """What each cell, and each report, adds to the targets' estimates together."""

    @abstractmethod
    def expected(
        self,
        mechanism: Any,
        values: Sequence[object],
        shares: Floats,
        reports: float,
    ) -> Expected:
        """The errors there will be, if shares[i] of so many reports hold values[i]."""

    @abstractmethod
    def statistic(self, mechanism: Any, totals: Totals) -> Statistic:
        """What a release adds noise to.

        Raises:
            BadParameter: it cannot be released.
        """

    def local(self, mechanism: Any, noisy: Floats, reports: int) -> Floats | None:
        """Of a release's estimates the reports' own variances, from its noisy numbers alone.

        None where they follow from what one report adds; see `repeated.spreads`.
        """
        return None

    @abstractmethod
    def labels(self, mechanism: Any, values: Sequence[str] | None) -> Sequence[str]:
        """What a release names its numbers.

        Raises:
            BadParameter: it cannot be released.
        """

    @abstractmethod
    def question(self, mechanism: Any) -> Mapping[str, Any]:
        """What the mechanism asks, as fields of a MetricDraft; a size only where it has one."""

    @abstractmethod
    def far_apart(self, mechanism: Any) -> tuple[Any, Any]:
        """Two values that reports should tell apart as well as any."""

    def examples(self, mechanism: Any) -> Sequence[Any]:
        """Values to report honestly, spread evenly."""
        return list(mechanism.probes())

    def targets(self, mechanism: Any, number: int) -> Sequence[Any]:
        """What fake reports could push: at most `number`, never all values together."""
        return range(min(number, len(mechanism.row(self.examples(mechanism)[0])) - 1))

    def example_share(self, mechanism: Any, targets: Sequence[Any]) -> float:
        """The share that `examples`, reported alike, give the targets together."""
        rows = [mechanism.row(value) for value in self.examples(mechanism)]
        return sum(float(row[target]) for row in rows for target in targets) / len(rows)

    def tail(self, mechanism: Any, reports: int) -> Tail | None:
        """How far chance goes with few reports of a value that nobody holds; None where unknown."""
        return None

    def near_chances(self, mechanism: Any, value: Any, others: Sequence[Any]) -> list[float]:
        """For each of `others`, the chance that a report of `value` is the likeliest of its own."""
        chances = one_hot_chances(mechanism, value)
        return [float(chances[np.argmax(one_hot_chances(mechanism, own))]) for own in others]

    def rows_of(self, mechanism: Any, value: Any) -> Sequence[int]:
        """Which of `labels` a value counts for: those that the mechanism has a 1 for."""
        return [place for place, holds in enumerate(mechanism.row(value)) if holds]

    def ways(self, mechanism: Any) -> int:
        """How many parts one report holds together; 0 for values without parts."""
        return 0

    def lasting_buckets(self, mechanism: Any) -> int:
        """In how many buckets a device answers for life; 0 where it answers for its value."""
        return 0

    @abstractmethod
    def draw(
        self, mechanism: Any, values: Sequence[Any], counts: Counts, chance: np.random.Generator
    ) -> Counts:
        """Cells of held[i] reports of values[i], drawn from their exact law.

        Raises:
            BadParameter: more values and cells than can be drawn.
        """

    def draw_lasting(
        self,
        mechanism: Any,
        values: Sequence[Any],
        counts: Counts,
        chance: np.random.Generator,
    ) -> Callable[[], Counts]:
        """Draw what the same devices keep for life; each call then draws the cells of one epoch.

        Raises:
            BadParameter: as of `draw`, or the mechanism's permanent step has no law here.
        """
        raise BadParameter(f"{mechanism.NAME} cannot be drawn over several epochs")


def between(
    what: str, supports: Floats, trials: Floats, pure: Pure, more: float = 0.0
) -> Iterator[BitSum]:
    """Whatever people hold, of those asked q to p support a cell: beyond is chance, or no honesty.

    more: variance of the supports that is not the reports'. The worst case of the one is that
    nobody holds the value, of the other that everybody does.
    """
    for chance, direction, word in ((float(pure.q), -1, "least"), (float(pure.p), 1, "most")):
        off = direction * (supports - trials * chance)
        variance = trials * chance * (1 - chance) + more
        place = int(np.argmax(off / np.sqrt(np.maximum(variance, 1))))
        share = supports[place] / max(trials[place], 1)
        yield BitSum(
            f"{what} {place + 1} is supported by {share:.2%} of reports, by honest ones it would "
            f"be {chance:.2%} at {word}",
            float(off[place]),
            float(variance[place]),
            times=len(supports),
        )


def in_cohorts(layout: CohortBits, cells: Floats, channel: Pure, hashes: int) -> Iterator[BitSum]:
    """How many bits of a cohort's reports are 1: those of the string by p, all others by q."""
    p, q = float(channel.p), float(channel.q)
    rows = cells.reshape(layout.cohorts, layout.bits + 1)
    reports, ones = rows[:, 0], rows[:, 1:].sum(axis=1)
    # Bits of a string may fall together, so between one and `hashes` of them are its own.
    low = reports * (p + (layout.bits - 1) * q)
    high = reports * (hashes * p + (layout.bits - hashes) * q)
    variance = reports * layout.bits * max(p * (1 - p), q * (1 - q))
    for word, off in (("few", low - ones), ("many", ones - high)):
        cohort = int(np.argmax(off / np.sqrt(np.maximum(variance, 1))))
        share = ones[cohort] / max(reports[cohort], 1)
        yield BitSum(
            f"too {word} bits of cohort {cohort + 1} are 1: {share:,.2f} a report",
            float(off[cohort]),
            float(variance[cohort]),
            times=layout.cohorts,
        )
