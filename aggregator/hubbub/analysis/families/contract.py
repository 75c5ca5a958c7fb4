"""Contract of a family: everything that analysis needs from a mechanism.

Mechanisms of one family answer in the same way. Each family has its own file; the bases of families
of numbers and of strings are here.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, sqrt
from operator import attrgetter
from typing import Any, ClassVar, Final, Literal

import numpy as np
from numpy.random import Generator

from hubbub.analysis.answer import Answer
from hubbub.analysis.arrays import Floats
from hubbub.analysis.families.draw_totals import Counts, People, check_size, one_hot_chances
from hubbub.analysis.families.tiers_and_rows import Columns, Tier, merged_tiers, tier_scales
from hubbub.analysis.uncertainty.intervals import Tail
from hubbub.analysis.value_estimates import ValueEstimates
from hubbub.errors import BadParameter
from hubbub.mechanisms import Memoized, Totals
from hubbub.mechanisms.pure_protocols import Pure

MetricKind = Literal["values", "strings", "ranges", "mean", "vector"]

# At this false-alarm rate an answer is called suspicious.
_ALARM: Final = 1e-6
_MAX_CELLS: Final = 1 << 20


def wider(figures: ValueEstimates, repeats: int) -> ValueEstimates:
    """The figures, if all `repeats` reports of a device share one lie, and err together."""
    widening = sqrt(repeats)
    return replace(
        figures,
        stderrs=widening * figures.stderrs,
        absent=widening * figures.absent,
        growth=repeats * figures.growth,
        tail=None,
        curvature=repeats * figures.curvature,
        place=figures.place and wider(figures.place, repeats),
    )


def report_growth(estimates: Floats, stderrs: Floats, absent: Floats, reports: int) -> Floats:
    """Variance that each true report adds to an estimate, from errors with and without reports."""
    true_counts = np.clip(estimates, 0.0, reports)
    growth = stderrs**2 - absent**2
    return np.divide(growth, true_counts, out=np.zeros_like(growth), where=true_counts > 0)


NO_SUMS: Final = "estimates of strings, sets and parts are not sums over reports"
"""Why intervals of such estimates hold at one look alone."""


@dataclass(frozen=True, slots=True)
class BitSum:
    """A sum of bits that is `off` its known mean: the worst of so many `times` sums.

    `variance` is the largest of the sum; each bit is within 1 of its mean.
    """

    what: str
    off: float
    variance: float
    times: int


@dataclass(frozen=True, slots=True)
class Plausibility:
    """Result of a plausibility test; `findings` describes each deviation below one in a million.

    `p_value` is an upper bound on the probability that honest reports deviate so much; 1 is normal.
    """

    p_value: float
    findings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Expected:
    """Expected standard errors, as shares of all reports: of each value, and if nobody holds it.

    For a mean, the largest errors, as shares of its range; for a vector, of each coordinate.
    """

    stderrs: Floats
    absent: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """Whole numbers to which a release adds noise: estimates are `unit` times them, plus `base`.

    One report changes them by `l1` at most in sum, and by `l2` in the root of the sum of squares.
    `unit` is a number or a matrix.
    """

    numbers: Floats
    l1: int
    l2: float
    unit: float | Floats
    base: float


class Family(ABC):
    """Answers of one family of mechanisms. `mechanism` is always a mechanism of the family."""

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
    UNRELEASED: ClassVar[str] = ""
    """Why nothing is released of it; empty where `statistic` can be."""
    ABSENT_SHARE: ClassVar[float] = 0.0
    """Where an estimate that nobody adds to lies in its range, in [0, 1]."""

    def edges(self, mechanism: Any) -> Sequence[float]:
        """Edges of the parts of its range, ascending; empty if it has no parts."""
        return ()

    def is_spread(self, mechanism: Any) -> bool:
        """Whether a number counts in many cells, so that parts must be estimated by a fit."""
        return False

    @abstractmethod
    def figures(self, mechanism: Any, totals: Totals, candidates: Sequence[str]) -> ValueEstimates:
        """Estimates and errors of all values, before intervals and detections.

        Raises BatchTooSmall without reports, and ShapeMismatch for totals of another shape.
        """

    def scaled(
        self, tiers: Sequence[Tier], candidates: Sequence[str], repeats: int
    ) -> tuple[list[ValueEstimates], Floats]:
        """As `figures_of`, for each tier, with the factor by which it counts for others."""
        estimates = []
        for mechanism, totals in tiers:
            figures = self.figures(mechanism, totals, candidates)
            if repeats > 1 and isinstance(mechanism, Memoized):
                figures = self.repeated(mechanism, figures, totals.reports, repeats)
            estimates.append(figures)
        if len(estimates) == 1:
            return estimates, np.ones(1)
        # Variances that do not depend on the estimates, so that weights cause no bias.
        variances = [
            float((part.absent**2).mean()) if part.typical is None else part.typical
            for part in estimates
        ]
        return estimates, tier_scales(variances, [totals.reports for _, totals in tiers])

    def figures_of(
        self, tiers: Sequence[Tier], candidates: Sequence[str] = (), repeats: int = 1
    ) -> ValueEstimates:
        """Estimates from all tiers together, weighted by inverse variance; raises as `figures`.

        A device sent `repeats` reports at most; with a permanent response they share their lies.
        """
        estimates, scales = self.scaled(tiers, candidates, repeats)
        if len(estimates) == 1:
            return estimates[0]
        return merged_tiers(estimates, [totals.reports for _, totals in tiers], scales)

    def repeated(
        self, mechanism: Any, figures: ValueEstimates, reports: int, repeats: int
    ) -> ValueEstimates:
        """The figures if a device may have sent `repeats` reports, with entirely permanent lies."""
        return wider(figures, repeats)

    def answer(
        self, tiers: Sequence[Tier], names: Sequence[str], confidence: float, repeats: int
    ) -> Answer:
        """A row for each of `names`, which are the candidates of a family over strings."""
        _, totals_by_tier = zip(*tiers, strict=True)
        numbers = list(map(attrgetter("reports"), totals_by_tier))
        reports = sum(numbers)
        estimates, scales = self.scaled(tiers, names if self.KIND == "strings" else (), repeats)
        figures = merged_tiers(estimates, numbers, scales) if numbers[1:] else estimates[0]
        judged = Columns.of(figures, reports, confidence)
        values = judged.rows(names, self.consistent(tiers, scales, figures, judged))
        if figures.number_variance:
            of_shares = Columns.of(figures.of_shares(reports), reports, confidence)
            ends = ((end / max(reports, 1)).tolist() for end in (of_shares.low, of_shares.high))
            values = tuple(
                replace(row, share_low=low, share_high=high)
                for row, low, high in zip(values, *ends, strict=True)
            )
        return Answer(
            kind="values",
            reports=reports,
            confidence=confidence,
            values=values,
            repeats=repeats,
            figures=figures,
        )

    def consistent(
        self,
        tiers: Sequence[Tier],
        scales: Floats,
        figures: ValueEstimates,
        judged: Columns,
    ) -> Floats:
        """`consistent` of each row of an answer: here the nearest histogram inside the intervals.

        `scales` are those of `scaled`, `judged` the figures with their intervals.
        """
        return judged.nearest(figures.absent, others=self.KIND == "strings")

    def ends(self, mechanism: Any) -> tuple[float, float] | None:
        """Range of the reported numbers; None if the mechanism does not report numbers."""
        return None

    def correlation(self, mechanism: Any) -> float:
        """Largest negative correlation of two estimates, as a number in [0, 1].

        The difference of two estimates with standard errors s and t then has a variance of at most
        s^2 + t^2 + 2 c s t. The default 1 assumes nothing.
        """
        return 1.0

    @abstractmethod
    def sums(self, mechanism: Any, cells: Floats, totals: Totals) -> Iterator[BitSum]:
        """Sums whose mean is known whatever people hold, with their deviations."""

    def plausibility(self, tiers: Sequence[Tier], repeats: int = 1) -> Plausibility:
        """Tests whether honest reports alone could have made the totals of all tiers: a flag.

        Whatever values people hold, some sums have a known mean: how many values a report supports,
        and an estimate that cannot be below 0 or above the reports. A sum further away than chance
        allows shows that some reports were not made by the mechanism (Cao, Jia, Gong 2021, section
        6.2).

        p-values are upper bounds for any number of reports, by Bernstein's inequality (1924): for a
        sum of independent terms with variance v, each within b of its mean, P(sum - mean >= t) is
        at most exp(-t^2 / (2 (v + b t / 3))); over several sums they are added up (Bonferroni).
        Source: Boucheron, Lugosi, Massart, Concentration Inequalities (2013), 2.8.

        `repeats` is the largest number of these reports from one device with the same permanent
        response; it is ignored for mechanisms without one.
        """
        smallest, tested, findings = 1.0, 0, []
        for mechanism, totals in tiers:
            if not totals.reports or mechanism.layout.size > _MAX_CELLS:
                continue
            sums = list(self.sums(mechanism, np.array(totals.cells, dtype=np.float64), totals))
            own_repeats = repeats if isinstance(mechanism, Memoized) else 1
            tested += 1
            for bit_sum in sums:
                if bit_sum.off <= 0:
                    continue
                # Reports of one device may be the same coins over again: they are one term.
                spread = own_repeats * (bit_sum.variance + bit_sum.off / 3)
                p_value = len(sums) * bit_sum.times * exp(-(bit_sum.off**2) / (2 * spread))
                smallest = min(smallest, p_value)
                if p_value < _ALARM:
                    findings.append(bit_sum.what)
        return Plausibility(min(max(tested, 1) * smallest, 1.0), tuple(findings))

    @abstractmethod
    def weights(self, mechanism: Any, targets: Sequence[Any]) -> tuple[Floats, float]:
        """What each cell, and each report, adds to the sum of the targets' estimates."""

    def gain_margin(self, _mechanism: Any, _targets: Sequence[Any]) -> float:
        """How far fake reports may move the targets' share beyond what `weights` adds."""
        return 0.0

    def expected(
        self,
        mechanism: Any,
        values: Sequence[object],
        shares: Floats,
        reports: float,
    ) -> Expected:
        """Expected errors if shares[i] of the reports hold values[i].

        Here by the mechanism's variance of a value's own reports, and of all others.
        """
        held_variance = mechanism.variance(1.0, 1) / reports
        other_variance = mechanism.variance(0.0, 1) / reports
        errors = np.sqrt(shares * held_variance + (1 - shares) * other_variance)
        return Expected(errors, np.full_like(shares, sqrt(other_variance)))

    def statistic(self, mechanism: Any, totals: Totals) -> Statistic:
        """Numbers to which a release adds noise. Raises BadParameter if none can be released."""
        raise BadParameter(self.UNRELEASED)

    def local(self, mechanism: Any, noisy: Floats, reports: int) -> Floats | None:
        """Variances of a release's estimates from randomization, computed from its noisy numbers.

        None if they follow from what one report adds; see `listed.spreads`.
        """
        return None

    def labels(self, mechanism: Any, values: Sequence[str] | None) -> Sequence[str]:
        """Names of an answer's rows; `values` are those that the catalog lists.

        Raises BadParameter without listed values, or if the mechanism's answers have no names.
        """
        if values is None:
            raise BadParameter(f"{mechanism.NAME} needs listed values")
        return values

    def row_names(
        self, mechanism: Any, values: Sequence[str] | None, candidates: Sequence[str]
    ) -> Sequence[str]:
        """Names of an answer's rows: the candidates for strings, otherwise as `labels`."""
        return candidates if self.KIND == "strings" else self.labels(mechanism, values)

    @abstractmethod
    def question(self, mechanism: Any) -> Mapping[str, Any]:
        """The mechanism's question as fields of a MetricDraft; a size only if it has one."""

    @abstractmethod
    def far_apart(self, mechanism: Any) -> tuple[Any, Any]:
        """Two values that reports distinguish as well as any other two."""

    def examples(self, mechanism: Any) -> Sequence[Any]:
        """Values for honest reports, spread evenly over the domain."""
        return list(mechanism.probes())

    def targets(self, mechanism: Any, number: int) -> Sequence[Any]:
        """Values that fake reports could promote: at most `number`, and never all values."""
        return range(min(number, len(mechanism.row(self.examples(mechanism)[0])) - 1))

    def example_share(self, mechanism: Any, targets: Sequence[Any]) -> float:
        """Total share of the targets if all `examples` are equally frequent."""
        rows = [mechanism.row(value) for value in self.examples(mechanism)]
        return sum(float(row[target]) for row in rows for target in targets) / len(rows)

    def tail(self, mechanism: Any, reports: int) -> Tail | None:
        """Tail of an absent value's estimate from few reports; None if it is unknown or normal."""
        return None

    def near_chances(self, mechanism: Any, value: Any, others: Sequence[Any]) -> list[float]:
        """Probability, for each of `others`, that a report of `value` is its likeliest one."""
        chances = one_hot_chances(mechanism, value)
        return [float(chances[np.argmax(one_hot_chances(mechanism, other))]) for other in others]

    def rows_of(self, mechanism: Any, value: Any) -> Sequence[int]:
        """Places in `labels` for which a value counts."""
        return [place for place, holds in enumerate(mechanism.row(value)) if holds]

    def ways(self, mechanism: Any) -> int:
        """Number of parts that one report contains together; 0 for values without parts."""
        return 0

    def lasting_buckets(self, mechanism: Any) -> int:
        """Number of buckets in which a device's answer is permanent; 0 if it is per value."""
        return 0

    def draw(self, mechanism: Any, people: People, rng: Generator) -> Counts:
        """Draws the cells of these people's reports from their exact law.

        Here of payloads that are one index, by its probabilities for each value. Raises
        BadParameter for too many values and cells to draw.
        """
        size = mechanism.layout.size
        check_size(mechanism, len(people.values) * size)
        cells = np.zeros(size, dtype=np.int64)
        for value, count in zip(people.values, people.counts.tolist(), strict=True):
            cells += rng.multinomial(count, one_hot_chances(mechanism, value))
        return cells

    def draw_lasting(self, mechanism: Any, people: People, rng: Generator) -> Callable[[], Counts]:
        """Draws the permanent part of a population once; each call then draws one epoch's cells.

        Raises BadParameter as `draw`, or if the mechanism's permanent step has no law here.
        """
        raise BadParameter(f"{mechanism.NAME} cannot be simulated over several epochs")


def support_deviations(
    what: str, supports: Floats, trials: Floats, pure: Pure, extra: float = 0.0
) -> Iterator[BitSum]:
    """Worst deviations of supports below q and above p of the trials, the honest range.

    Whatever people hold, each cell's expected support is in this range. Within it the worst case
    is that nobody (q), or everybody (p), holds the value. `extra` is added to the variance.
    """
    for chance, direction, word in ((float(pure.q), -1, "least"), (float(pure.p), 1, "most")):
        deviations = direction * (supports - trials * chance)
        variance = trials * chance * (1 - chance) + extra
        place = int(np.argmax(deviations / np.sqrt(np.maximum(variance, 1))))
        share = supports[place] / max(trials[place], 1)
        yield BitSum(
            f"{what} {place + 1} is supported by {share:.2%} of reports, by honest ones it would "
            f"be {chance:.2%} at {word}",
            float(deviations[place]),
            float(variance[place]),
            times=len(supports),
        )
