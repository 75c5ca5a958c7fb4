"""What all families share: estimates of several tiers combined, and the rows of an answer."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, Final, Self, TypeVar

import numpy as np
import numpy.typing as npt

from hubbub.analysis.answer import ValueAnswer
from hubbub.analysis.arrays import Floats, Mask
from hubbub.analysis.value_estimates import ValueEstimates
from hubbub.mechanisms import AnyMechanism, Totals

Tier = tuple[AnyMechanism, Totals]
"""People who report at one epsilon: a mechanism with its totals."""

Record = TypeVar("Record")

# Share of the variance from which a tier's tail counts; and the score at which tails are compared.
_PART: Final = 0.05
_FAR: Final = 4.0


def reports_of(tiers: Sequence[Tier]) -> int:
    """Number of reports of all tiers."""
    return sum(totals.reports for _, totals in tiers)


def with_reports(tiers: Sequence[Tier]) -> Sequence[Tier]:
    """The tiers that have reports; the first tier if none has."""
    return [tier for tier in tiers if tier[1].reports] or list(tiers[:1])


def sum_of_metrics(parts: Sequence[ValueEstimates]) -> ValueEstimates:
    """Estimates from all reports of several metrics with the same question: plain sums.

    Who reports to which metric may depend on the value, as with old and new apps, so no metric may
    stand in for another. Metrics are randomized independently, so variances add. How a value's
    reports divide among the metrics is unknown; intervals assume the worst division.
    """
    if len(parts) == 1:
        return parts[0]
    errors = np.array([(part.stderrs, part.absent) for part in parts])
    stderrs, absent = np.sqrt((errors**2).sum(axis=0))
    curvature = min(part.curvature for part in parts)
    return ValueEstimates(
        estimates=np.array([part.estimates for part in parts]).sum(axis=0),
        stderrs=stderrs,
        absent=absent,
        growth=np.array([part.growth for part in parts]).max(axis=0),
        # The sum of squared parts is smallest for equal parts.
        curvature=curvature / len(parts) if curvature > 0 else curvature,
        **_common_fields(parts, np.ones(len(parts))),
    )


def merged_tiers(
    parts: Sequence[ValueEstimates], reports: Sequence[int], scales: Floats
) -> ValueEstimates:
    """Estimates for all reports, from several tiers with `reports` each and scaled by `scales`.

    The errors include randomization and, for values that somebody holds, who chose which tier.
    """
    estimates = scales @ np.array([tier.estimates for tier in parts])
    coins = scales**2 @ np.array([tier.stderrs for tier in parts]) ** 2
    places = [tier.place for tier in parts if tier.place is not None]
    place = merged_tiers(places, reports, scales) if places else None
    stderrs = np.sqrt(coins + choice_variance(scales, reports, estimates))
    absent = np.sqrt(scales**2 @ np.array([tier.absent for tier in parts]) ** 2)
    numbers = np.array(reports, dtype=np.float64)
    growth = (scales**2 * numbers) @ np.array([tier.growth for tier in parts])
    total = max(numbers.sum(), 1.0)
    # The number of a value's t reports in a tier varies by t (1 - t / total).
    drawn = numbers @ (scales - 1) ** 2 / total
    growth = growth / total + drawn
    # A tier has its share of all t reports.
    curvature = float(
        scales**2 * (numbers / total) ** 2 @ np.array([tier.curvature for tier in parts])
    )
    return ValueEstimates(
        estimates=estimates,
        stderrs=stderrs,
        absent=absent,
        growth=growth,
        curvature=curvature + float(drawn / total),
        place=place,
        **_common_fields(parts, scales),
    )


def _common_fields(parts: Sequence[ValueEstimates], scales: Floats) -> dict[str, Any]:
    """Tail, step and what unsure numbers of reports add, of estimates that are scaled and added."""
    variances = [
        float(scale**2 * (tier.absent**2).mean()) for scale, tier in zip(scales, parts, strict=True)
    ]
    # Of the tiers that matter for the variance; the sum's tail is no longer than the longest.
    tails = [
        tier.tail
        for tier, variance in zip(parts, variances, strict=True)
        if tier.tail and variance >= _PART * sum(variances)
    ]
    return {
        "tail": max(tails, key=lambda tail: float(tail.reach(np.array([_FAR]))[0]), default=None),
        "step": max(float(scale) * part.step for scale, part in zip(scales, parts, strict=True)),
        "people_variance": max(part.people_variance for part in parts),
        "included_people_variance": min(part.included_people_variance for part in parts),
        "unsure": sum(part.unsure for part in parts),
        "number_variance": sum(part.number_variance for part in parts),
        "number_covariance": float(scales @ [part.number_covariance for part in parts]),
        "noise_variance": float(scales**2 @ [part.noise_variance for part in parts]),
    }


def tier_scales(variances: Sequence[float], reports: Sequence[int]) -> Floats:
    """Factor of each tier's estimates, relative to its own reports, by inverse variance.

    `variances` are of an estimate from a tier's reports alone, in reports squared.
    """
    numbers = np.array(reports, dtype=np.float64)
    precise = numbers**2 / np.array(variances)
    scales: Floats = precise / precise.sum() * numbers.sum() / numbers
    return scales


def choice_variance(scales: Floats, reports: Sequence[int], estimates: Floats) -> Floats:
    """Variance from who chose which tier: a tier with a scale above 1 stands in for other people.

    A tier of n reports with scale c adds s (1 - s) n (c - 1)^2 for a value with share s (sampling
    without replacement). For the mean s of numbers in [0, 1] this is an upper bound.
    """
    numbers = np.array(reports, dtype=np.float64)
    shares = np.clip(estimates / max(numbers.sum(), 1.0), 0.0, 1.0)
    variance: Floats = shares * (1 - shares) * (numbers @ (scales - 1) ** 2)
    return variance


def records(
    kind: type[Record], names: Sequence[str], **columns: npt.NDArray[np.generic]
) -> tuple[Record, ...]:
    """A record for each name, which is its `value`, with its number of each column.

    All slots of the class are filled, by columns, in a quarter of the time of its `__init__`.
    """
    rows = list(map(object.__new__, repeat(kind, len(names))))
    for field, column in zip(("value", *columns), (names, *columns.values()), strict=True):
        cells = column.tolist() if isinstance(column, np.ndarray) else column
        deque(map(getattr(kind, field).__set__, rows, cells), maxlen=0)
    return tuple(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Estimates, standard errors, ends of intervals, in reports; and what stands out."""

    estimates: Floats
    stderrs: Floats
    low: Floats
    high: Floats
    detected: Mask
    reports: int

    @classmethod
    def of(cls, figures: ValueEstimates, reports: int, confidence: float) -> Self:
        """The columns with intervals and detections that are valid for the top of the list."""
        usable = replace(figures, absent=np.maximum(figures.absent, 1e-9))
        low, high, detected = usable.ranked(reports + figures.unsure, confidence)
        return cls(
            estimates=figures.estimates,
            stderrs=figures.stderrs,
            # The true counts sum to the reports, so no lower end may exceed them.
            low=np.minimum(low, reports),
            high=high,
            detected=detected,
            reports=reports,
        )

    def rows(self, names: Sequence[str], consistent: Floats) -> tuple[ValueAnswer, ...]:
        """A row for each name, with rank and share."""
        number = max(self.reports, 1)
        return records(
            ValueAnswer,
            names,
            estimate=self.estimates,
            stderr=self.stderrs,
            low=self.low,
            high=self.high,
            share=self.estimates / number,
            rank=np.argsort(np.argsort(-self.estimates, kind="stable")) + 1,
            detected=self.detected,
            consistent=consistent,
            share_low=self.low / number,
            share_high=np.minimum(self.high / number, 1.0),
        )

    def nearest(self, absent: Floats, *, others: bool = False) -> Floats:
        """The histogram nearest to the estimates and inside their intervals.

        If none lies inside all intervals, it has all lower or all upper ends. With `others`, the
        rest belongs to other strings. All values have the weight of absent ones: with their own
        errors, frequent values would give up most, since some mechanisms estimate them less
        precisely than rare ones.
        """
        estimates, low, high = self.estimates, self.low, self.high
        variances = np.maximum(absent, 1e-9) ** 2
        if others:
            estimates = np.append(estimates, self.reports - estimates.sum())
            variances = np.append(variances, variances.sum())
            low, high = np.append(low, 0.0), np.append(high, float(self.reports))
        fewest, most = low.sum(), high.sum()
        if fewest >= self.reports or most <= self.reports:
            return (low if fewest >= self.reports else high)[: len(absent)]
        # A value loses a multiple of its variance, from its high end down to its low end. Between
        # the multiples at which values begin and end to lose, the sum falls along a straight line.
        multiples = np.concatenate([(estimates - high) / variances, (estimates - low) / variances])
        order = multiples.argsort()
        multiples = multiples[order]
        slopes = np.concatenate([variances, -variances])[order].cumsum()
        falls = np.append(0.0, (slopes[:-1] * np.diff(multiples)).cumsum())
        multiple = np.interp(most - self.reports, falls, multiples)
        answer: Floats = np.minimum(np.maximum(estimates - multiple * variances, low), high)
        return answer[: len(absent)]
