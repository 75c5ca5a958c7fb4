"""Change: what differs between two answers of one metric, from reports of different epochs.

Shares are compared, since there may be more reports in one of them. The two errors are independent,
or, where devices repeat a permanent lie in both, pull the same way: adding the variances is then on
the safe side.
"""

from dataclasses import dataclass
from math import erfc, sqrt

import numpy as np

from hubbub.analysis.answer import FALSE_DISCOVERY_RATE, Answer
from hubbub.analysis.intervals import discoveries, interval
from hubbub.errors import BadParameter

__all__ = ["Change", "changes"]


@dataclass(frozen=True, slots=True)
class Change:
    """One value: its share before and after, and the difference with its interval.

    Of a mean: the numbers themselves, in the metric's own unit.
    p_value: the chance of a difference so large, either way, if there is none. changed: whether it
        stands out at a false discovery rate of 5% over all values.
    """

    value: str
    before: float
    after: float
    difference: float
    stderr: float
    low: float
    high: float
    p_value: float
    changed: bool


def changes(before: Answer, after: Answer) -> tuple[Change, ...]:
    """Value by value, in the answers' own order.

    Raises:
        BadParameter: answers to different questions.
    """
    names = [value.value for value in before.values]
    if before.kind != after.kind or names != [value.value for value in after.values]:
        raise BadParameter("two answers to different questions cannot be compared")
    units = [1 if one.kind == "mean" else max(one.reports, 1) for one in (before, after)]
    old = np.array([value.estimate for value in before.values]) / units[0]
    new = np.array([value.estimate for value in after.values]) / units[1]
    old_error = np.array([value.stderr for value in before.values]) / units[0]
    new_error = np.array([value.stderr for value in after.values]) / units[1]
    difference, stderr = new - old, np.hypot(old_error, new_error)
    scores = np.divide(difference, stderr, out=np.zeros_like(stderr), where=stderr > 0)
    p = np.array([erfc(abs(score) / sqrt(2)) for score in scores.tolist()])
    low, high = interval(difference, stderr, before.confidence)
    changed = discoveries(p, FALSE_DISCOVERY_RATE)
    parts = (old, new, difference, stderr, low, high, p, changed)
    rows = zip(names, *(part.tolist() for part in parts), strict=True)
    return tuple(Change(*row) for row in rows)
