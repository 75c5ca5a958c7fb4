"""Figures of a device's own past: conversions, counts of actives, shares that come back, rates.

Each is a ratio of sums of estimates, with Fieller's interval. Of listed values its variance is that
which there would be if the ratio in question were the true one (Wilson 1927). Shares and rates are
of the population, and cover who reported; numbers of devices are of those that reported. `repeats`
is the largest number of reports from one device.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import inf, isfinite, sqrt
from typing import Final

import numpy as np
from numpy.polynomial.polynomial import polyval

from hubbub.analysis.arrays import Floats, Mask
from hubbub.analysis.comparisons.change import reach_of_worth
from hubbub.analysis.families.joint_errors import Joint
from hubbub.analysis.families.tiers_and_rows import Tier
from hubbub.analysis.families.vector import two_sums
from hubbub.analysis.uncertainty.intervals import Bounds, fieller, reach_of, whole_ends

UNFINISHED: Final = "not final: reports may be missing"
"""Note of a figure whose epochs still accept reports, which may wait at the shuffler."""
_NO_BOUND: Final = "is not clearly above 0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure with its interval: a share, a rate, or a number of devices.

    Args:
        dates: epochs that it is of; of a single cohort its first week.
        estimate: None where the denominator's estimate is not above 0.
        stderr: None where the denominator is not clearly above 0, so that its error bounds nothing.
        high: None where no upper end is known.
        reports: of all its epochs.
        note: what limits it, such as a running window; "" for nothing.
        part: value of the public field; "" for all devices.
    """

    figure: str
    dates: str
    estimate: float | None
    low: float
    high: float | None
    stderr: float | None
    reports: int
    note: str = ""
    part: str = ""

    @property
    def bounds(self) -> Bounds | None:
        """The estimate, moved into its interval, and both ends; None where one is unknown."""
        if self.estimate is None or self.high is None:
            return None
        return min(max(self.estimate, self.low), self.high), self.low, self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A ratio of two estimates, and their errors.

    Args:
        variance: as of `fieller`, of this ratio alone.
        without_law: the part of it without a normal law.
        unit: what the ratio is multiplied by.
        most: largest possible ratio; infinite if any is possible.
        step: of a number of devices, by how much one report changes it; ends are half of that
            further (Yates 1934).
    """

    numerator: float
    denominator: float
    variance: Floats
    denominator_variance: float
    without_law: Floats
    unit: float = 1.0
    most: float = 1.0
    step: float = 0.0

    def figure(
        self,
        figure: str,
        *,
        below: str,
        dates: str,
        reports: int,
        confidence: float,
        note: str = "",
    ) -> Figure:
        """With its interval. below: what the denominator counts."""
        reach = reach_of(confidence)
        place = self.numerator / self.denominator if self.denominator > 0 else 0.0
        place = min(max(place, 0.0), self.most)
        variance = max(float(polyval(place, self.variance)), 0.0)
        share = float(polyval(place, self.without_law)) / variance if variance else 0.0
        if share > 0:
            parts = np.array([min(share, 1.0)]), np.zeros(1)
            reach = float(reach_of_worth(np.array([reach]), parts)[0])
        ends = fieller(
            np.array([self.numerator]),
            np.array([self.denominator]),
            self.variance[:, None],
            np.array([self.denominator_variance]),
            reach=reach,
            most=self.most,
        )
        estimate, low, high = (float(end[0]) * self.unit for end in ends)
        if half_step := self.step / 2:
            low, high = max(low - half_step, 0.0), min(high + half_step, self.most * self.unit)
            low, high = map(float, whole_ends(np.array(low), np.array(estimate), np.array(high)))
        is_clear = self.denominator > reach * sqrt(self.denominator_variance)
        if not is_clear:
            bound = "no upper end is known" if self.most == inf else "any share is possible"
            note = "; ".join(filter(None, [note, f"the number of {below} {_NO_BOUND}: {bound}"]))
        has = self.denominator > 0
        return Figure(
            figure=figure,
            dates=dates,
            estimate=estimate if has else None,
            low=low,
            high=high if isfinite(high) else None,
            stderr=self.unit * sqrt(variance) / self.denominator if is_clear else None,
            reports=reports,
            note=note,
        )


def share_of(joint: Joint, counted: Mask, base_values: Mask, repeats: int) -> Ratio:
    """The share of the devices with some values, `base_values`, that have the wanted of these."""
    numerator, denominator = counted.astype(np.float64), base_values.astype(np.float64)
    n, clipped = joint.reports, np.clip(joint.counts, 0.0, joint.reports)
    total = float(np.clip(denominator @ joint.counts, 0.0, n))
    drawn = joint.drawn(repeats)
    per_value, dummies_part, without_law = joint.variances(numerator, denominator, drawn)
    certain = float(per_value[2] @ clipped + dummies_part[2])
    start = total * _shares(clipped, denominator - numerator) + (n - total) * _shares(
        clipped, 1 - denominator
    )
    step = total * (_shares(clipped, numerator) - _shares(clipped, denominator - numerator))
    return Ratio(
        numerator=float(numerator @ joint.counts),
        denominator=float(denominator @ joint.counts),
        variance=_cubic(per_value, dummies_part, start, step),
        denominator_variance=max(certain - drawn * total**2 / max(n, 1), 0.0),
        without_law=without_law,
    )


def count_of(joint: Joint, counted: Mask) -> Ratio:
    """How many of the reporters have the wanted values."""
    numerator = counted.astype(np.float64)
    n, clipped = joint.reports, np.clip(joint.counts, 0.0, joint.reports)
    per_value, dummies_part, without_law = joint.variances(
        numerator, np.zeros_like(numerator), joint.drawn(0)
    )
    total, other_spread = (n * _shares(clipped, weights) for weights in (numerator, 1 - numerator))
    return Ratio(
        numerator=float(numerator @ joint.counts),
        denominator=float(n),
        variance=_cubic(per_value, dummies_part, other_spread, total - other_spread),
        denominator_variance=0.0,
        without_law=without_law,
        unit=float(n),
        most=1 + joint.unsure / max(n, 1),
        step=joint.step * float(np.ptp(numerator)),  # that of all devices is known
    )


def _shares(counts: Floats, counted: Floats) -> Floats:
    """The shares of the wanted values among them; alike where no count is above 0."""
    counted_counts = counts * counted
    shares: Floats = counted_counts if counted_counts.any() else counted
    return shares / max(float(shares.sum()), 1e-300)


def _cubic(per_value: Floats, dummies_part: Floats, start: Floats, step: Floats) -> Floats:
    """The variance by the ratio, where start + ratio * step devices have each value."""
    answer: Floats = np.append(per_value @ start + dummies_part, 0.0) + np.append(
        0.0, per_value @ step
    )
    return answer


def step_pairs(steps: int) -> list[tuple[int, int]]:
    """The compared places: each step and the next, then the first step and the last."""
    pairs = [(place, place + 1) for place in range(steps - 1)]
    return pairs if len(pairs) == 1 else [*pairs, (0, steps - 1)]


def conversions(
    joint: Joint, steps: Sequence[str], repeats: int, dates: str, confidence: float
) -> list[Figure]:
    """The share that reached the later step of each pair, of those that reached the first."""
    places = np.arange(len(steps))
    return [
        share_of(joint, places >= later, places >= first, repeats).figure(
            f"{steps[first]} to {steps[later]}",
            below=f"devices that reached {steps[first]}",
            dates=dates,
            reports=joint.reports,
            confidence=confidence,
        )
        for first, later in step_pairs(len(steps))
    ]


def came_back(joints: Mapping[int, Joint], cohorts: Sequence[int], week: int) -> Ratio:
    """The share of the devices of some cohorts that came back so many weeks after their first.

    `joints` are by epoch, all of the same values "week 0", "week 1" and so on; `cohorts` are first
    weeks, and `joints` has the week in question of each, too.
    """
    numerator = denominator = certain = drawn = 0.0
    variance, without_law = np.zeros(4), np.zeros(3)
    for epoch in sorted({*cohorts, *(cohort + week for cohort in cohorts)}):
        joint = joints[epoch]
        clipped = np.clip(joint.counts, 0.0, joint.reports)
        values = np.arange(len(clipped))
        above = (values == week) * float(epoch - week in cohorts)
        below = (values == 0) * float(epoch in cohorts)
        per_value, dummies_part, epoch_part = joint.variances(above, below, 0.0)
        without_law += epoch_part
        start, step = clipped, np.zeros_like(clipped)
        if above.any():
            first = joints[epoch - week]
            cohort = float(np.clip(first.counts[0], 0.0, min(first.reports, joint.reports)))
            other_spread = _shares(clipped, 1 - above)
            start, step = joint.reports * other_spread, cohort * (above - other_spread)
        variance += _cubic(per_value, dummies_part, start, step)
        numerator += float(above @ joint.counts)
        denominator += float(below @ joint.counts)
        certain += float(per_value[2] @ clipped + dummies_part[2])
        drawn += joint.drawn(1) * float(below @ clipped)
    # A device of the cohort tells whether it came back; other devices contribute both weeks.
    variance += drawn * np.array([0.0, 1.0, -1.0, 0.0])
    return Ratio(
        numerator=numerator,
        denominator=denominator,
        variance=variance,
        denominator_variance=certain + drawn,
        without_law=without_law,
    )


def back_in_weeks(
    joints: Mapping[int, Joint],
    weeks: int,
    dates: Mapping[int, str],
    confidence: float,
    *,
    by_cohort: bool,
    unfinished: AbstractSet[int] = frozenset(),
) -> Iterator[Figure]:
    """For each week after the first the share that came back, of all cohorts or of each.

    dates: what epochs are called, also of several with `by_cohort`. unfinished: epochs that still
    accept reports, and whose missing reports bias a share: it is of other cohorts where there are
    any, and has a note where there are none.
    """
    for week in range(1, weeks + 1):
        cohort_epochs = [epoch for epoch in joints if epoch + week in joints]
        epochs = [e for e in cohort_epochs if unfinished.isdisjoint((e, e + week))] or cohort_epochs
        for cohorts in (
            [[epoch] for epoch in cohort_epochs] if by_cohort else filter(None, [epochs])
        ):
            used = {*cohorts, *(cohort + week for cohort in cohorts)}
            first_date = dates[cohorts[0]]
            yield came_back(joints, cohorts, week).figure(
                f"back in week {week}",
                below="devices in their first week",
                dates=first_date if len(cohorts) == 1 else f"{first_date}..{dates[cohorts[-1]]}",
                reports=sum(joints[epoch].reports for epoch in used),
                confidence=confidence,
                note="" if unfinished.isdisjoint(used) else UNFINISHED,
            )


def rate_of(tiers: Sequence[Tier], repeats: int) -> Ratio:
    """The ratio of the sums of two coordinates."""
    sums, covariance = two_sums(tiers, repeats)
    (numerator_variance, shared), (_, denominator_variance) = covariance.tolist()
    return Ratio(
        numerator=float(sums[0]),
        denominator=float(sums[1]),
        variance=np.array([numerator_variance, -2 * shared, denominator_variance]),
        denominator_variance=denominator_variance,
        without_law=np.zeros(3),
        most=inf,
    )
