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

__all__ = ["Answer", "AnswerKind", "ValueAnswer", "answer"]

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
    if mechanism.VALUES != "strings" and candidates:
        raise BadParameter("this metric is not over strings: leave candidates out")
    if mechanism.VALUES == "strings" and not candidates:
        raise BadParameter("this metric is over strings: say which to look for (candidates)")
    match mechanism:
        case Rappor():
            found = decode(mechanism, totals, candidates, FALSE_DISCOVERY_RATE, confidence)
            columns = found.estimates, found.stderrs, found.low, found.high, found.detected
            return _tell(
                "values", candidates, totals.reports, confidence, columns, found.fitted.tolist()
            )
        case CountMeanSketch() | HadamardSketch():
            estimates, stderrs, absent = count(mechanism, totals, candidates)
            p = p_values(estimates / absent)
            level = critical(p, FALSE_DISCOVERY_RATE)
            low, high = selected(estimates, stderrs, p, level, confidence)
            columns = estimates, stderrs, low, high, p <= level
            return _tell("values", candidates, totals.reports, confidence, columns)
        case OneBitMean() | PiecewiseMean():
            return _mean(mechanism, totals, confidence)
        case SquareWave():
            estimates, stderrs = unbiased(mechanism, totals)
            columns = _columns(estimates, stderrs, stderrs, confidence)
            fitted = smooth(mechanism, totals).tolist()
            return _tell("ranges", _labels(mechanism), totals.reports, confidence, columns, fitted)
        case BucketFlips():
            values = _labels(mechanism)
    if values is None:
        raise BadParameter(f"{mechanism.NAME} answers listed values, and there are none")
    given = estimate(mechanism, totals)
    estimates, stderrs = np.array(given.values), np.sqrt(np.array(given.variances))
    absent = np.full_like(stderrs, sqrt(mechanism.variance(0, totals.reports)))
    columns = _columns(estimates, stderrs, absent, confidence)
    kind: AnswerKind = "ranges" if mechanism.VALUES == "numbers" else "values"
    return _tell(kind, values, totals.reports, confidence, columns)


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


def _columns(estimates: Floats, stderrs: Floats, absent: Floats, confidence: float) -> Columns:
    """absent: the standard errors if nobody held the value; a value is judged by these."""
    scores = np.divide(estimates, absent, out=np.zeros_like(absent), where=absent > 0)
    detected = discoveries(p_values(scores), FALSE_DISCOVERY_RATE)
    return estimates, stderrs, *interval(estimates, stderrs, confidence), detected


def _mean(mechanism: OneBitMean | PiecewiseMean, totals: Totals, confidence: float) -> Answer:
    given = mechanism.estimate(totals)
    reports = max(totals.reports, 1)
    wide = mechanism.high - mechanism.low
    place, stderr = given.values[0] / reports, sqrt(given.variances[0]) / reports
    value = np.array([mechanism.low + wide * place])
    low, high = interval(value, np.array([wide * stderr]), confidence)
    mean = ValueAnswer(
        "mean",
        float(value[0]),
        wide * stderr,
        float(low[0]),
        float(high[0]),
        place,
        detected=True,
    )
    return Answer("mean", totals.reports, confidence, (mean,))


def _labels(mechanism: BucketFlips | SquareWave) -> list[str]:
    """[0, 10), [10, 20), ..., the last one with its end."""
    edges = [f"{edge:.6g}" for edge in mechanism.edges()]
    labels = [f"[{low}, {high})" for low, high in pairwise(edges)]
    labels[-1] = labels[-1][:-1] + "]"
    return labels
