"""An answer: what the analyst gets for totals, the same from every face."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Final

import numpy as np

from hubbub.analysis.decode import decode
from hubbub.analysis.intervals import discoveries, interval, p_values
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
        found = decode(mechanism, totals, candidates, FALSE_DISCOVERY_RATE, confidence)
        names, estimates, stderrs = candidates, found.estimates, found.stderrs
        low, high, detected = found.low, found.high, found.detected
    else:
        if candidates:
            raise BadParameter("this metric lists its values: leave candidates out")
        given = mechanism.estimate(totals)
        names, estimates = values, np.array(given.values)
        stderrs = np.sqrt(np.array(given.variances))
        low, high = interval(estimates, stderrs, confidence)
        absent = sqrt(mechanism.variance(0, totals.reports)) or 1.0
        detected = discoveries(p_values(estimates / absent), FALSE_DISCOVERY_RATE)
    return Answer(
        totals.reports,
        confidence,
        tuple(
            ValueAnswer(name, estimate, stderr, low, high, share, detected=stands_out)
            for name, estimate, stderr, low, high, share, stands_out in zip(
                names,
                estimates.tolist(),
                stderrs.tolist(),
                low.tolist(),
                high.tolist(),
                (estimates / max(totals.reports, 1)).tolist(),
                detected.tolist(),
                strict=True,
            )
        ),
    )
