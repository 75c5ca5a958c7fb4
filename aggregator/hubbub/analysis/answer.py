"""The answer to a query about one metric's totals; CLI, web page and notebook all show it."""

from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.strings.likely_strings import LikelyString
from hubbub.analysis.strings.tree_search import Found
from hubbub.analysis.value_estimates import Mean, ValueEstimates

AnswerKind = Literal["values", "ranges", "mean", "vector"]
OF_NUMBERS: Final = ("mean", "vector")
"""Kinds whose rows are numbers in the metric's own unit, and no counts."""

CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueAnswer:
    """One value: estimate, standard error and interval in reports, and its share of all reports.

    A mean, or a coordinate, is in the metric's unit, without share, rank and detection.

    Args:
        low, high: ends of the interval, valid also for the first rows and for detected values.
        rank: 1 for the largest estimate.
        consistent: post-processed and biased, in [0, all reports]: for RAPPOR strings the
            non-negative fit, for `wave` the smooth shape, otherwise the nearest histogram inside
            the intervals. None for a mean.
        share_low, share_high: interval of the share, with the error of the number of reports if it
            is an estimate.
    """

    value: str
    estimate: float
    stderr: float
    low: float
    high: float
    share: float | None
    rank: int | None
    detected: bool | None
    consistent: float | None = None
    share_low: float | None = None
    share_high: float | None = None


@dataclass(frozen=True, slots=True)
class Twins:
    """Strings with equal bits in every cohort; each has the numbers of all of them together."""

    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """All values of one metric, with the confidence of their intervals.

    Args:
        kind: values and ranges count reports; a mean has one row, a vector one per coordinate.
        mean: for ranges, the mean of their middles.
        others: number of reports with a string that is no candidate, or that was not discovered;
            None for sketches, and for RAPPOR with too many candidates.
        span: range of numbers, or of each coordinate.
        repeats: largest number of these reports from one device.
        fit_p_value: for RAPPOR, upper bound on the probability of totals so far from a correct fit;
            None as for `others`.
        twins: for RAPPOR, strings that cannot be distinguished.
        beginnings: discovered strings that are only beginnings of longer ones.
        reports_asked: number of reports that could contain each value, if values were appended;
            empty if all could. Shares refer to it.
        likely: further strings that are probably held, if requested.
        figures: estimates with their laws, for comparisons.
        found: the discovered strings as their search returns them.
        place: for a mean, the sum of the numbers' places, as of `ValueEstimates`.
    """

    kind: AnswerKind
    reports: int
    confidence: float
    values: tuple[ValueAnswer, ...]
    mean: Mean | None = None
    others: Mean | None = None
    fit_p_value: float | None = None
    span: tuple[float, float] | None = None
    repeats: int = 1
    twins: tuple[Twins, ...] = ()
    beginnings: tuple[str, ...] = ()
    reports_asked: tuple[int, ...] = ()
    likely: tuple[LikelyString, ...] = ()
    figures: ValueEstimates | None = field(default=None, compare=False, repr=False)
    found: tuple[Found, ...] = field(default=(), compare=False, repr=False)
    place: ValueEstimates | None = field(default=None, compare=False, repr=False)

    @property
    def places(self) -> Floats:
        """Share of all reports per value; for numbers, the place in their range, from 0 to 1."""
        low, unit = 0.0, float(max(self.reports, 1))
        if self.kind in OF_NUMBERS and self.span:
            low, unit = self.span[0], self.span[1] - self.span[0]
        return (np.array([value.estimate for value in self.values]) - low) / unit
