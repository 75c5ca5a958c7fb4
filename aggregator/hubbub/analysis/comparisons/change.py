"""Change: what differs between two answers of one metric, from reports of different epochs.

Shares are compared, since there may be more reports in one of them: those of the population, since
others report each time. The errors are independent, or, where the same devices report in both, pull
the same way: adding the variances is then on the safe side.
"""

from dataclasses import dataclass

import numpy as np

from hubbub.analysis.answer import OF_NUMBERS, Answer
from hubbub.analysis.arrays import Floats, Mask
from hubbub.analysis.uncertainty.discoveries import FALSE_DISCOVERY_RATE, p_values, paid_by
from hubbub.analysis.uncertainty.intervals import held_between, pushed_up
from hubbub.analysis.uncertainty.sampling import sampled
from hubbub.analysis.value_estimates import ValueEstimates
from hubbub.errors import BadParameter


@dataclass(frozen=True, slots=True)
class Change:
    """One value: its share before and after, and the difference with its interval.

    Of a mean, or a vector: the numbers themselves, in the metric's own unit.
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
    units = [1 if one.kind in OF_NUMBERS else max(one.reports, 1) for one in (before, after)]
    old = np.array([value.estimate for value in before.values]) / units[0]
    new = np.array([value.estimate for value in after.values]) / units[1]
    old_error = np.array([value.stderr for value in before.values]) / units[0]
    new_error = np.array([value.stderr for value in after.values]) / units[1]
    chosen = _drawn(before) + _drawn(after)
    difference, stderr = new - old, np.sqrt(old_error**2 + new_error**2 + chosen)
    told = before.figures and after.figures and (before.figures, after.figures)
    scores = _scores(difference, stderr)
    if told:
        scores = _of_no_change((before, after), told, difference)
    ranks = _ranks(scores, before.confidence)
    low = difference - np.where(difference >= 0, ranks.near, ranks.far) * stderr
    high = difference + np.where(difference >= 0, ranks.far, ranks.near) * stderr
    if told:
        low, high = _between((before, after), told, ranks, difference)
    widest = before.span[1] - before.span[0] if before.kind in OF_NUMBERS and before.span else 1.0
    low, high = np.clip(low, -widest, widest), np.clip(high, -widest, widest)
    changed = ranks.standing & ((low > 0) | (high < 0))
    p = 2 * p_values(np.abs(scores))
    parts = (old, new, difference, stderr, low, high, p, changed)
    rows = zip(names, *(part.tolist() for part in parts), strict=True)
    return tuple(Change(*row) for row in rows)


@dataclass(frozen=True, slots=True)
class _Ranks:
    """Of a whole list of differences: how far their ends are, and which stand out from 0.

    As `ranked`, either way: the end nearer to 0 is that of the difference's place in the list. The
    further one is a little safer than it is alone.
    """

    near: Floats
    far: Floats
    standing: Mask


def _ranks(scores: Floats, confidence: float) -> _Ranks:
    order = np.argsort(-np.abs(scores), kind="stable")
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(1, len(order) + 1)
    doubt = places / max(len(order), 1)
    near = pushed_up(doubt, confidence)
    far = pushed_up(np.maximum(doubt, 1 / 4), confidence)
    standing = np.maximum(near, pushed_up(paid_by(places), 1 - FALSE_DISCOVERY_RATE))
    changed = np.empty(len(order), dtype=np.bool_)
    changed[order] = np.logical_and.accumulate((np.abs(scores) > standing)[order])
    return _Ranks(near, far, changed)


def _scores(differences: Floats, stderrs: Floats) -> Floats:
    return np.divide(differences, stderrs, out=np.zeros_like(stderrs), where=stderrs > 0)


_Pair = tuple[Answer, Answer]
_Figured = tuple[ValueEstimates, ValueEstimates]


def _of_no_change(answers: _Pair, told: _Figured, differences: Floats) -> Floats:
    """The normal scores of differences, were both sides of one population: that of both together.

    Each side's error is that of the share of both, since its own says too little of it where hardly
    any report holds a value; and what goes up further than the normal law goes is worth less.
    """
    people = sum(one.reports for one in answers)
    share = np.clip(sum(figures.estimates for figures in told) / max(people, 1), 0.0, 1.0)
    variance = np.zeros_like(differences)
    for one, figures in zip(answers, told, strict=True):
        held = share * one.reports
        coins = figures.absent**2 + figures.growth * held - figures.bend * held**2
        variance += np.maximum(coins, 0.0) / max(one.reports, 1) ** 2
        variance += sampled(share, one.reports / one.repeats)
    sizes = _scores(np.abs(differences), np.sqrt(variance))
    before, after = (
        sizes if figures.tail is None else np.maximum(figures.tail.of(sizes), 0.0)
        for figures in told
    )
    return np.where(differences >= 0, after, -before)


def _between(
    answers: _Pair, told: _Figured, ranks: _Ranks, differences: Floats
) -> tuple[Floats, Floats]:
    """Ends of differences from those of either side (Zou and Donner 2008).

    Each side's are where the population's own error reaches its estimate.
    """
    up = differences >= 0
    reach = np.where(up, ranks.near, ranks.far), np.where(up, ranks.far, ranks.near)

    def side(place: int, down: Floats, above: Floats) -> tuple[Floats, Floats]:
        """How far below and above its own estimate its share may be."""
        one, figures = answers[place], told[place]
        found = figures.estimates, figures.absent, figures.growth + one.repeats
        bend = figures.bend + one.repeats / max(one.reports, 1)
        low, high = held_between(
            found, bend, one.reports, down=down, up=above, step=figures.step, tail=figures.tail
        )
        inside = np.clip(figures.estimates, 0.0, one.reports)
        return (inside - low) / max(one.reports, 1), (high - inside) / max(one.reports, 1)

    (old_down, old_up) = side(0, reach[1], reach[0])
    (new_down, new_up) = side(1, reach[0], reach[1])
    inside = [
        np.clip(figures.estimates / max(one.reports, 1), 0.0, 1.0)
        for one, figures in zip(answers, told, strict=True)
    ]
    middle = inside[1] - inside[0]
    return middle - np.hypot(new_down, old_up), middle + np.hypot(new_up, old_down)


def _drawn(answer: Answer) -> Floats:
    """Per value the variance of who reported, in the unit that is compared.

    Of a vector it is in the errors of its coordinates, which are what reports themselves show.
    """
    if answer.kind == "vector":
        return np.zeros(len(answer.values))
    low, high = answer.span if answer.span and answer.kind == "mean" else (0.0, 1.0)
    drawn: Floats = (high - low) ** 2 * sampled(answer.places, answer.reports / answer.repeats)
    return drawn
