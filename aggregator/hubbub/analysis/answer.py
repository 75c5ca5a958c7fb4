"""An answer: what the analyst gets for totals, the same from every face."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from typing import Final, Literal

import numpy as np

from hubbub.analysis.decode import decode
from hubbub.analysis.distribution import smooth, unbiased
from hubbub.analysis.estimate import estimate
from hubbub.analysis.intervals import (
    Floats,
    Mask,
    critical,
    discoveries,
    interval,
    p_values,
    selected,
)
from hubbub.analysis.sketch import count
from hubbub.errors import BadParameter
from hubbub.mechanisms import AnyMechanism, Rappor, Totals
from hubbub.mechanisms.buckets import BucketFlips
from hubbub.mechanisms.cms import CountMeanSketch
from hubbub.mechanisms.hcms import HadamardSketch
from hubbub.mechanisms.mean_one_bit import OneBitMean
from hubbub.mechanisms.mean_piecewise import PiecewiseMean
from hubbub.mechanisms.wave import SquareWave

__all__ = ["Answer", "AnswerKind", "ValueAnswer", "answer", "answer_tiers", "range_labels"]

AnswerKind = Literal["values", "ranges", "mean"]

CONFIDENCE: Final = 0.95
FALSE_DISCOVERY_RATE: Final = 0.05


@dataclass(frozen=True, slots=True)
class ValueAnswer:
    """One value: estimate, standard error and interval in reports; its share of all reports.

    Of a mean: in the metric's own unit; share is its place in the range, 0 at low and 1 at high.
    fitted: where there is one, the post-processed estimate: of strings the non-negative fit of what
        was detected, of a distribution the smooth one. Better as a picture, biased.
    """

    value: str
    estimate: float
    stderr: float
    low: float
    high: float
    share: float
    detected: bool
    fitted: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """All values of one metric, with the confidence of their intervals.

    kind: how many reports hold each of some values, or fall in each of some ranges; or a mean.
    """

    kind: AnswerKind
    reports: int
    confidence: float
    values: tuple[ValueAnswer, ...]


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
) -> Answer:
    """As `answer`, from people who report at different epsilons, each a mechanism with totals.

    Shares are weighted by inverse variance: the best there is if which epsilon a person chose has
    nothing to do with the value; otherwise the answer leans to those who chose the larger one.
    """
    heard = [tier for tier in tiers if tier[1].reports] or tiers[:1]
    mechanism, totals = heard[0]
    if mechanism.VALUES != "strings" and candidates:
        raise BadParameter("this metric is not over strings: leave candidates out")
    if mechanism.VALUES == "strings" and not candidates:
        raise BadParameter("this metric is over strings: say which to look for (candidates)")
    if isinstance(mechanism, Rappor):  # has no tiers: it has no epsilon to scale
        return _decoded(mechanism, totals, candidates, confidence)
    reports = [tier_totals.reports for _, tier_totals in heard]
    figures = _merged([_figures(*tier, candidates) for tier in heard], reports)
    match mechanism:
        case CountMeanSketch() | HadamardSketch():
            p = p_values(figures.estimates / figures.absent)
            level = critical(p, FALSE_DISCOVERY_RATE)
            low, high = selected(figures.estimates, figures.stderrs, p, level, confidence)
            columns = figures.estimates, figures.stderrs, low, high, p <= level
            return _tell("values", candidates, sum(reports), confidence, columns)
        case OneBitMean() | PiecewiseMean():
            return _mean(mechanism, figures, sum(reports), confidence)
        case SquareWave() | BucketFlips():
            kind: AnswerKind = "ranges"
            values = range_labels(mechanism)
        case _:
            kind = "values"
    if values is None:
        raise BadParameter(f"{mechanism.NAME} answers listed values, and there are none")
    columns = _columns(figures, confidence)
    fitted = None if figures.fitted is None else figures.fitted.tolist()
    return _tell(kind, values, sum(reports), confidence, columns, fitted)


@dataclass(frozen=True, slots=True)
class _Figures:
    """Of each value, in reports: estimate, its standard error, and that if nobody held the value.

    absent: a value is judged by these. fitted: a post-processed estimate, where there is one.
    """

    estimates: Floats
    stderrs: Floats
    absent: Floats
    fitted: Floats | None = None


def _figures(mechanism: AnyMechanism, totals: Totals, candidates: Sequence[str]) -> _Figures:
    match mechanism:
        case CountMeanSketch() | HadamardSketch():
            return _Figures(*count(mechanism, totals, candidates))
        case SquareWave():
            estimates, stderrs = unbiased(mechanism, totals)
            return _Figures(estimates, stderrs, stderrs, smooth(mechanism, totals))
        case OneBitMean() | PiecewiseMean():
            given = mechanism.estimate(totals)
            absent = mechanism.variance(totals.reports / 2, totals.reports)  # there is no absence
        case _:
            given = estimate(mechanism, totals)
            absent = mechanism.variance(0, totals.reports)
    stderrs = np.sqrt(np.array(given.variances))
    return _Figures(np.array(given.values), stderrs, np.full_like(stderrs, sqrt(absent)))


def _merged(figures: Sequence[_Figures], reports: Sequence[int]) -> _Figures:
    """One set of figures for all reports, from tiers with so many each."""
    if len(figures) == 1:
        return figures[0]
    # A weight that does not look at the estimates pulls them nowhere.
    numbers = np.array(reports, dtype=np.float64)
    precise = numbers**2 / np.array([(tier.absent**2).mean() for tier in figures])
    scales = precise / precise.sum() * numbers.sum() / numbers
    fits = [tier.fitted for tier in figures if tier.fitted is not None]
    return _Figures(
        scales @ np.array([tier.estimates for tier in figures]),
        np.sqrt(scales**2 @ np.array([tier.stderrs for tier in figures]) ** 2),
        np.sqrt(scales**2 @ np.array([tier.absent for tier in figures]) ** 2),
        scales @ np.array(fits) if fits else None,
    )


def _decoded(
    mechanism: Rappor, totals: Totals, candidates: Sequence[str], confidence: float
) -> Answer:
    found = decode(mechanism, totals, candidates, FALSE_DISCOVERY_RATE, confidence)
    columns = found.estimates, found.stderrs, found.low, found.high, found.detected
    return _tell("values", candidates, totals.reports, confidence, columns, found.fitted.tolist())


Columns = tuple[Floats, Floats, Floats, Floats, Mask]


def _tell(  # noqa: PLR0917 an answer's parts, in its own order
    kind: AnswerKind,
    names: Sequence[str],
    reports: int,
    confidence: float,
    columns: Columns,
    fitted: Sequence[float | None] | None = None,
) -> Answer:
    shares = (columns[0] / max(reports, 1)).tolist()
    lists = (column.tolist() for column in columns)
    rows = zip(names, *lists, shares, fitted or [None] * len(shares), strict=True)
    return Answer(
        kind,
        reports,
        confidence,
        tuple(
            ValueAnswer(name, value, stderr, low, high, share, detected, fit)
            for name, value, stderr, low, high, detected, share, fit in rows
        ),
    )


def _columns(figures: _Figures, confidence: float) -> Columns:
    estimates, stderrs, absent = figures.estimates, figures.stderrs, figures.absent
    scores = np.divide(estimates, absent, out=np.zeros_like(absent), where=absent > 0)
    detected = discoveries(p_values(scores), FALSE_DISCOVERY_RATE)
    return estimates, stderrs, *interval(estimates, stderrs, confidence), detected


def _mean(
    mechanism: OneBitMean | PiecewiseMean, figures: _Figures, reports: int, confidence: float
) -> Answer:
    wide = mechanism.high - mechanism.low
    place = float(figures.estimates[0]) / max(reports, 1)
    stderr = wide * float(figures.stderrs[0]) / max(reports, 1)
    value = np.array([mechanism.low + wide * place])
    low, high = interval(value, np.array([stderr]), confidence)
    mean = ValueAnswer(
        "mean", float(value[0]), stderr, float(low[0]), float(high[0]), place, detected=True
    )
    return Answer("mean", reports, confidence, (mean,))


def range_labels(mechanism: BucketFlips | SquareWave) -> list[str]:
    """[0, 10), [10, 20), ..., the last one with its end."""
    edges = [f"{edge:.6g}" for edge in mechanism.edges()]
    labels = [f"[{low}, {high})" for low, high in pairwise(edges)]
    labels[-1] = labels[-1][:-1] + "]"
    return labels
