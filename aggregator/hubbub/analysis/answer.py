"""An answer: what the analyst gets for totals, the same from every face."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from hubbub.analysis.consistency import within_ends
from hubbub.analysis.decode import decode
from hubbub.analysis.figures import Figures, correlation, figures, merged
from hubbub.analysis.intervals import (
    FALSE_DISCOVERY_RATE,
    Floats,
    Mask,
    ranked,
)
from hubbub.analysis.mean import Mean, mean_of, range_labels, span, within
from hubbub.errors import BadParameter
from hubbub.mechanisms import AnyMechanism, Rappor, Totals
from hubbub.mechanisms.buckets import BucketFlips
from hubbub.mechanisms.cms import CountMeanSketch
from hubbub.mechanisms.hcms import HadamardSketch
from hubbub.mechanisms.mean_one_bit import OneBitMean
from hubbub.mechanisms.mean_piecewise import PiecewiseMean
from hubbub.mechanisms.wave import SquareWave

__all__ = [
    "CONFIDENCE",
    "Answer",
    "AnswerKind",
    "Twins",
    "ValueAnswer",
    "answer",
    "answer_tiers",
]

AnswerKind = Literal["values", "ranges", "mean"]

CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True)
class ValueAnswer:
    """One value: estimate, standard error and interval in reports; its share of all reports.

    Of a mean: in the metric's own unit; it has no share, no rank, and nothing to stand out from.
    low, high: among what can be; of the first rows, and of those detected, as many intervals hold
        the truth as of any, though they were picked; see `ranked`.
    rank: 1 for the largest estimate.
    consistent: the post-processed estimate, never below 0 and never more than all reports together:
        of RAPPOR strings the non-negative fit, of `wave` the smooth shape, else the histogram
        nearest to the estimates and inside the intervals. Better as a picture, biased. None for a
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


@dataclass(frozen=True, slots=True)
class Twins:
    """Strings that set the same bits in every cohort: nothing can tell which of them was reported.

    Each carries the numbers of all of them together.
    """

    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """All values of one metric, with the confidence of their intervals.

    kind: how many reports hold each of some values, or fall in each of some ranges; or a mean.
    correlation: the most that two estimates vary against each other, in [0, 1].
    mean: of ranges, the mean of the numbers in them, each taken for its range's middle.
    others: of RAPPOR strings, how many reports hold one that is no candidate; None where candidates
        are too many to tell those from what was not detected, and of sketches.
    span: of numbers, the ends between which they lie.
    repeats: how many of the reports one device may have made.
    misfit: of RAPPOR strings, at most the chance that totals lie so far from what was fitted, if it
        is so; None as `others`.
    twins: of RAPPOR strings, those that cannot be told apart.
    """

    kind: AnswerKind
    reports: int
    confidence: float
    values: tuple[ValueAnswer, ...]
    correlation: float
    mean: Mean | None = None
    others: Mean | None = None
    misfit: float | None = None
    span: tuple[float, float] | None = None
    repeats: int = 1
    twins: tuple[Twins, ...] = ()

    @property
    def places(self) -> Floats:
        """Per value its share of all reports; of a mean its place in its range, from 0 to 1."""
        low, unit = 0.0, float(max(self.reports, 1))
        if self.kind == "mean" and self.span:
            low, unit = self.span[0], self.span[1] - self.span[0]
        return (np.array([value.estimate for value in self.values]) - low) / unit


def answer(
    mechanism: AnyMechanism,
    totals: Totals,
    values: Sequence[str] | None,
    candidates: Sequence[str] = (),
    confidence: float = CONFIDENCE,
) -> Answer:
    """Estimates for the listed `values`; for `candidates` if over strings; of a range if numbers.

    Raises:
        BadParameter: candidates where none belong, or none for strings.
        BatchTooSmall: not a single report.
        ShapeMismatch: totals of another shape than the mechanism's.
    """
    return answer_tiers([(mechanism, totals)], values, candidates, confidence)


def answer_tiers(
    tiers: Sequence[tuple[AnyMechanism, Totals]],
    values: Sequence[str] | None,
    candidates: Sequence[str] = (),
    confidence: float = CONFIDENCE,
    repeats: int = 1,
) -> Answer:
    """As `answer`, from people who report at different epsilons, each a mechanism with totals.

    Shares are weighted by inverse variance: the best there is if which epsilon a person chose has
    nothing to do with the value; otherwise the answer leans to those who chose the larger one.
    repeats: how many of the reports one device may have made; see `figures`. A decode of RAPPOR
        strings reads its noise off what it cannot explain, repeated lies included; `misfit` is
        judged by them.
    """
    heard = [tier for tier in tiers if tier[1].reports] or tiers[:1]
    mechanism, totals = heard[0]
    if mechanism.VALUES != "strings" and candidates:
        raise BadParameter("this metric is not over strings: leave candidates out")
    if mechanism.VALUES == "strings" and not candidates:
        raise BadParameter("this metric is over strings: say which to look for (candidates)")
    if isinstance(mechanism, Rappor):  # has no tiers: it has no epsilon to scale
        return _decoded(mechanism, totals, candidates, confidence, repeats)
    reports = [tier_totals.reports for _, tier_totals in heard]
    found = merged([figures(*tier, candidates, repeats) for tier in heard], reports)
    against = max(correlation(tier_mechanism) for tier_mechanism, _ in heard)
    match mechanism:
        case CountMeanSketch() | HadamardSketch():
            columns = _columns(found, sum(reports), confidence)
            consistent = _nearest(columns, found.absent, sum(reports), others=True)
            rows = _told(candidates, sum(reports), columns, consistent)
            return Answer("values", sum(reports), confidence, rows, against, repeats=repeats)
        case OneBitMean() | PiecewiseMean():
            return replace(_mean(mechanism, found, sum(reports), confidence), repeats=repeats)
        case SquareWave() | BucketFlips():
            kind: AnswerKind = "ranges"
            values = range_labels(mechanism)
        case _:
            kind = "values"
    if values is None:
        raise BadParameter(f"{mechanism.NAME} answers listed values, and there are none")
    columns = _columns(found, sum(reports), confidence)
    picture = found.smooth
    if picture is None:
        picture = _nearest(columns, found.absent, sum(reports))
    told = _told(values, sum(reports), columns, picture)
    mean = mean_of(mechanism, found, sum(reports), confidence)
    ends = span(mechanism)
    return Answer(kind, sum(reports), confidence, told, against, mean, span=ends, repeats=repeats)


def _decoded(
    mechanism: Rappor, totals: Totals, candidates: Sequence[str], confidence: float, repeats: int
) -> Answer:
    found = decode(mechanism, totals, candidates, FALSE_DISCOVERY_RATE, confidence, repeats=repeats)
    columns = found.estimates, found.stderrs, found.low, found.high, found.detected
    values = _told(candidates, totals.reports, columns, found.fitted)
    return Answer(
        "values",
        totals.reports,
        confidence,
        values,
        correlation(mechanism),
        others=found.others and within(*found.others, confidence, (0.0, totals.reports)),
        misfit=found.misfit and found.misfit[1],
        repeats=repeats,
        twins=tuple(Twins(tuple(candidates[i] for i in group)) for group in found.twins),
    )


Columns = tuple[Floats, Floats, Floats, Floats, Mask]


def _told(
    names: Sequence[str], reports: int, columns: Columns, consistent: Floats
) -> tuple[ValueAnswer, ...]:
    estimates = columns[0]
    ranks = np.empty(len(estimates), dtype=np.int64)
    ranks[np.argsort(-estimates, kind="stable")] = np.arange(1, len(estimates) + 1)
    shares = estimates / max(reports, 1)
    parts = (*columns[:4], shares, ranks, columns[4], consistent)
    rows = zip(names, *(part.tolist() for part in parts), strict=True)
    return tuple(ValueAnswer(*row) for row in rows)


def _columns(found: Figures, reports: int, confidence: float) -> Columns:
    absent = np.maximum(found.absent, 1e-9)
    told = ranked(found.estimates, absent, found.growth, reports, confidence, tail=found.tail)
    return found.estimates, found.stderrs, *told


def _nearest(columns: Columns, absent: Floats, reports: int, *, others: bool = False) -> Floats:
    """The histogram nearest to the estimates and inside their intervals.

    `others`: what is left over is other strings'. All are as sure as what nobody holds: by its own
    error a frequent value, less sure than rare ones of some mechanisms, would give up most.
    """
    estimates, _, low, high, _ = columns
    variances = np.maximum(absent, 1e-9) ** 2
    if others:
        estimates = np.append(estimates, reports - estimates.sum())
        variances = np.append(variances, variances.sum())
        low, high = np.append(low, 0.0), np.append(high, float(reports))
    return within_ends(estimates, variances, (low, high), reports)[: len(absent)]


def _mean(mechanism: AnyMechanism, found: Figures, reports: int, confidence: float) -> Answer:
    mean = mean_of(mechanism, found, reports, confidence)
    if mean is None:
        raise BadParameter(f"{mechanism.NAME} has no mean")
    value = ValueAnswer(
        "mean",
        mean.estimate,
        mean.stderr,
        mean.low,
        mean.high,
        share=None,
        rank=None,
        detected=None,
    )
    ends = span(mechanism)
    return Answer("mean", reports, confidence, (value,), correlation=0.0, span=ends)
