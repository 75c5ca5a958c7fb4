"""Order: the confidence that the values with larger estimates are truly more frequent.

The difference of two estimates is normal around the difference of their truths. The confidence that
the first is truly ahead is one-sided: 0.5 without evidence, near 1 if the order is nearly certain.
For several pairs the doubts are added up (Boole), so a list's confidence is a lower bound.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from hubbub.analysis.answer import OF_NUMBERS, Answer, ValueAnswer
from hubbub.analysis.arrays import Floats
from hubbub.errors import BadParameter


@dataclass(frozen=True, slots=True)
class TopValue:
    """One of the most frequent values.

    `ahead_confidence` is a lower bound on the confidence that it is ahead of the next; None for the
    last.
    """

    value: ValueAnswer
    ahead_confidence: float | None


@dataclass(frozen=True, slots=True)
class Top:
    """The most frequent values, in order, with lower bounds on confidences in [0, 1].

    `set_confidence` is that these are the most frequent, `order_confidence` that their order holds.
    """

    values: tuple[TopValue, ...]
    set_confidence: float
    order_confidence: float


def top(answer: Answer, number: int, correlation: float) -> Top:
    """The `number` most frequent values. Raises BadParameter for a number below 1, or a mean.

    `correlation` is the largest negative one of two estimates, in [0, 1].
    """
    if not number >= 1:
        raise BadParameter(f"a top list of {number} values: request at least 1")
    if answer.kind in OF_NUMBERS:
        raise BadParameter(
            "a mean or a rate has no most frequent values; request estimates or a trend"
        )
    ordered = sorted(answer.values, key=lambda value: value.rank or 0)
    estimates = np.array([value.estimate for value in ordered], dtype=np.float64)
    stderrs = np.array([value.stderr for value in ordered], dtype=np.float64)
    number = min(number, len(ordered))
    doubts = _order_doubt(estimates[:-1], stderrs[:-1], estimates[1:], stderrs[1:], correlation)
    confidences: list[float | None] = [1 - doubt for doubt in doubts[:number].tolist()]
    confidences += [None] * (number - len(confidences))
    last, others = number - 1, slice(number, None)
    passing_doubts = _order_doubt(
        estimates[last], stderrs[last], estimates[others], stderrs[others], correlation
    )
    order = max(0.0, 1 - float(doubts[:last].sum() + passing_doubts.sum()))
    members = max(order, _set_confidence(estimates, stderrs, number))
    values = tuple(TopValue(*pair) for pair in zip(ordered[:number], confidences, strict=True))
    return Top(values, members, order)


def _set_confidence(estimates: Floats, stderrs: Floats, number: int) -> float:
    """Confidence that the first `number` truths are above one cut, and all others below it."""
    if number == len(estimates):
        return 1.0
    edge = slice(number - 1, number + 1)
    (last, next_), (error, next_error) = estimates[edge].tolist(), stderrs[edge].tolist()
    # Between the last member and the first other value, nearer to the more precise one.
    cut = (
        (last * next_error + next_ * error) / (error + next_error)
        if error + next_error
        else (last + next_) / 2
    )
    gaps = np.abs(estimates - cut)
    scores = np.divide(gaps, stderrs, out=np.full_like(gaps, np.inf), where=stderrs > 0)
    return max(0.0, 1 - float(ndtr(-scores).sum()))


def _order_doubt(
    leading: Floats,
    stderrs: Floats,
    following: Floats,
    other_stderrs: Floats,
    correlation: float,
) -> Floats:
    """Doubt that each of `leading` is truly ahead of the corresponding one of `following`."""
    products = stderrs * other_stderrs
    spread = np.sqrt(stderrs**2 + other_stderrs**2 + 2 * correlation * products)
    gaps = leading - following
    scores = np.divide(gaps, spread, out=np.full_like(gaps, np.inf), where=spread > 0)
    chances: Floats = ndtr(-scores)
    return chances
