"""An answer: what the analyst gets for totals, the same from every face."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Final

from hubbub.analysis.decode import decode
from hubbub.analysis.intervals import discoveries, interval
from hubbub.errors import BadParameter
from hubbub.mechanisms import AnyMechanism, Rappor, Totals

__all__ = ["Answer", "ValueAnswer", "answer"]

CONFIDENCE: Final = 0.95
FALSE_DISCOVERY_RATE: Final = 0.05


@dataclass(frozen=True, slots=True)
class ValueAnswer:
    """One value: estimate, standard error and interval in reports; its share of all reports."""

    value: str
    estimate: float
    stderr: float
    low: float
    high: float
    share: float
    detected: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """All values of one metric, with the confidence of their intervals."""

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
    """Estimates for the listed `values`, or for `candidates` where a metric is over strings.

    Raises:
        BadParameter: candidates for listed values, or none for strings.
        ShapeMismatch: totals of another shape than the mechanism's.
    """
    if values is None:
        if not isinstance(mechanism, Rappor):
            raise BadParameter(f"{mechanism.NAME} over strings cannot be decoded")
        if not candidates:
            raise BadParameter("this metric is over strings: say which to look for (candidates)")
        found = decode(mechanism, totals, candidates, FALSE_DISCOVERY_RATE)
        names, estimates, stderrs = candidates, found.estimates.tolist(), found.stderrs.tolist()
        detected = found.detected.tolist()
    else:
        if candidates:
            raise BadParameter("this metric lists its values: leave candidates out")
        given = mechanism.estimate(totals)
        names, estimates = values, list(given.values)
        stderrs = [sqrt(variance) for variance in given.variances]
        absent = sqrt(mechanism.variance(0, totals.reports))
        detected = discoveries(estimates, [absent] * len(estimates), FALSE_DISCOVERY_RATE).tolist()
    return Answer(
        totals.reports,
        confidence,
        tuple(
            ValueAnswer(
                name,
                estimate,
                stderr,
                *interval(estimate, stderr, confidence),
                share=estimate / totals.reports if totals.reports else 0.0,
                detected=stands_out,
            )
            for name, estimate, stderr, stands_out in zip(
                names, estimates, stderrs, detected, strict=True
            )
        ),
    )
