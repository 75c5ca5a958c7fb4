"""An answer: what the analyst gets for totals, the same from every face."""

from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.numbers import Mean
from hubbub.analysis.strings.tree_search import Found
from hubbub.analysis.value_estimates import ValueEstimates

AnswerKind = Literal["values", "ranges", "mean", "vector"]
OF_NUMBERS: Final = ("mean", "vector")
"""Kinds whose rows are numbers in the metric's own unit, and no counts."""

CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueAnswer:
    """One value: estimate, standard error and interval in reports, and its share of all reports.

    A mean, or a coordinate, is in the metric's unit, without share, rank and detection.
    low, high: ends of the interval, valid also for the first rows and for detected values.
    share_low, share_high: interval of the share, with the error of the number of reports if it is
    an
        estimate.
    rank: 1 for the largest estimate.
    consistent: post-processed, in [0, all reports]: for RAPPOR strings the non-negative fit, for
    `wave`
        the smooth shape, otherwise the nearest histogram inside the intervals. Biased. None for a
        mean.
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
    """Strings with equal bits in every cohort, which cannot be told apart.

    Each has the numbers of all of them together.
    """

    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LikelyString:
    """A string that is probably held but not proven: a candidate for the next query.

    doubt: average share, at most, of strings that nobody holds among it and all surer ones.
    high: upper bound on the number of reports with it.
    """

    value: str
    doubt: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """All values of one metric, with the confidence of their intervals.

    kind: how many reports hold each of some values, or fall in each of some ranges; a mean; or
        that of a vector, a row for each coordinate.
    correlation: the most that two estimates vary against each other, in [0, 1].
    mean: of ranges, the mean of the numbers in them, each taken for its range's middle.
    others: of RAPPOR strings, how many reports hold one that is no candidate; None where candidates
        are too many to tell those from what was not detected, and of sketches. Of strings that were
        found, how many hold another.
    span: of numbers, the ends between which they lie; of a vector, of each coordinate.
    repeats: how many of the reports one device may have made.
    fit_p_value: of RAPPOR strings, at most the chance that totals lie so far from what was fitted,
        if it is so; None as `others`.
    twins: of RAPPOR strings, those that cannot be told apart.
    beginnings: of strings that were found, those that are only what longer ones begin with.
    reports_asked: of how many reports each value could be said, where values were appended in
        between; empty where all could say all. Shares are of these.
    likely: of strings that were found, further ones that may be held; where they were asked for.
    figures: what the values are made of, where more can be said of them; for comparisons.
    found: the strings that were found, as their search tells them, for who looks for further ones.
    """

    kind: AnswerKind
    reports: int
    confidence: float
    values: tuple[ValueAnswer, ...]
    correlation: float
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

    @property
    def places(self) -> Floats:
        """Per value its share of all reports; of a mean its place in its range, from 0 to 1."""
        low, unit = 0.0, float(max(self.reports, 1))
        if self.kind in OF_NUMBERS and self.span:
            low, unit = self.span[0], self.span[1] - self.span[0]
        return (np.array([value.estimate for value in self.values]) - low) / unit
