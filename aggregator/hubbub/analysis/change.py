"""Change: what differs between two answers of one metric, from reports of different epochs.

Shares are compared, since there may be more reports in one of them: those of the population, since
others report each time. The errors are independent, or, where the same devices report in both, pull
the same way: adding the variances is then on the safe side.
"""

from dataclasses import dataclass

import numpy as np

from hubbub.analysis.answer import Answer
from hubbub.analysis.intervals import (
    FALSE_DISCOVERY_RATE,
    Floats,
    Mask,
    p_values,
    paid_by,
    pushed_up,
)
from hubbub.analysis.sampling import sampled
from hubbub.errors import BadParameter

__all__ = ["Change", "changes"]


@dataclass(frozen=True, slots=True)
class Change:
    """One value: its share before and after, and the difference with its interval.

    Of a mean: the numbers themselves, in the metric's own unit.
    stderr: of the population's difference: of the coins, and of who reported.
    p_value: the chance of a difference so large, either way, if there is none. changed: whether it
        stands out at a false discovery rate of 5% over all values; its interval holds no 0 then.
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
    chosen = _drawn(before) + _drawn(after)
    difference, stderr = new - old, np.sqrt(old_error**2 + new_error**2 + chosen)
    scores = np.divide(difference, stderr, out=np.zeros_like(stderr), where=stderr > 0)
    p = 2 * p_values(np.abs(scores))
    low, high, changed = _ranked(difference, stderr, before.confidence)
    parts = (old, new, difference, stderr, low, high, p, changed)
    rows = zip(names, *(part.tolist() for part in parts), strict=True)
    return tuple(Change(*row) for row in rows)


def _ranked(
    differences: Floats, stderrs: Floats, confidence: float = 0.95
) -> tuple[Floats, Floats, Mask]:
    """Of a whole list of differences: lows, highs, and which are not 0; whatever is picked by size.

    As `ranked`, either way: the end nearer to 0 is that of the difference's place in the list. The
    further one is a little safer than it is alone.
    """
    sizes = np.abs(np.divide(differences, stderrs, out=np.zeros_like(stderrs), where=stderrs > 0))
    order = np.argsort(-sizes, kind="stable")
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(1, len(order) + 1)
    doubt = places / max(len(order), 1)
    near = pushed_up(doubt, confidence)
    far = pushed_up(np.maximum(doubt, 1 / 4), confidence)
    standing = np.maximum(near, pushed_up(paid_by(places), 1 - FALSE_DISCOVERY_RATE))
    changed = np.empty(len(order), dtype=np.bool_)
    changed[order] = np.logical_and.accumulate((sizes > standing)[order])
    up = differences >= 0
    low = differences - np.where(up, near, far) * stderrs
    high = differences + np.where(up, far, near) * stderrs
    return low, high, changed


def _drawn(answer: Answer) -> Floats:
    """Per value the variance of who reported, in the unit that is compared."""
    low, high = answer.span if answer.span and answer.kind == "mean" else (0.0, 1.0)
    drawn: Floats = (high - low) ** 2 * sampled(answer.places, answer.reports / answer.repeats)
    return drawn
