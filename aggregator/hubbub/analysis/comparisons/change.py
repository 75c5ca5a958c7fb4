"""Change: the difference between two answers of one metric, from reports of different epochs.

Shares of the population are compared, since numbers of reports differ and other people report each
time. Errors of both sides are independent; if the same devices report in both, errors are
positively correlated, and adding the variances is on the safe side.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from hubbub.analysis.answer import OF_NUMBERS, Answer
from hubbub.analysis.arrays import Floats, Mask
from hubbub.analysis.families.tiers_and_rows import records
from hubbub.analysis.uncertainty.intervals import (
    FALSE_DISCOVERY_RATE,
    Tail,
    bisected,
    difference_of,
    end_of,
    reach_of,
    sampled,
    selection_reach,
    stand_out,
)
from hubbub.analysis.uncertainty.tails import equal_chance_ends
from hubbub.analysis.value_estimates import ValueEstimates
from hubbub.errors import BadParameter

# A smaller part of the variance changes no p-value above 1e-9 by a tenth.
_NO_PART: Final = 1e-3
# If two scales were closer together, the weights of the mixture would cancel.
_APART: Final = 1.05
_MIN_CHANCE: Final = 1e-300
_WORTH_HALVINGS: Final = 20


def worth_of(scores: Floats, parts: tuple[Floats, Floats]) -> Floats:
    """Normal scores as improbable as `scores`, which are at least 0; never above them.

    `parts` is the share of the variance from the secret number of dummies of either side. These
    numbers are two-sided exponential, with longer tails than a normal law.
    """
    hidden = parts[0] + parts[1] > _NO_PART
    answer: Floats = np.maximum(scores, 0.0)
    if not hidden.any():
        return answer
    chances = _two_secrets_tail(scores[hidden], parts[0][hidden], parts[1][hidden])
    worth = -ndtri(np.clip(chances, _MIN_CHANCE, 0.5))
    answer[hidden] = np.minimum(scores[hidden], worth)
    return answer


def reach_of_worth(worth: Floats, parts: tuple[Floats, Floats]) -> Floats:
    """Inverse of `worth_of`: scores as improbable as these normal scores, and never below them."""
    hidden = parts[0] + parts[1] > _NO_PART
    answer, target = worth.copy(), worth[hidden]
    if not hidden.any():
        return answer
    hidden_parts = parts[0][hidden], parts[1][hidden]
    # The largest support of such a distribution grows with the square.
    _, answer[hidden] = bisected(
        target,
        target + target**2,
        lambda middle: worth_of(middle, hidden_parts) < target,
        _WORTH_HALVINGS,
    )
    return answer


def _two_secrets_tail(scores: Floats, first: Floats, second: Floats) -> Floats:
    """Tail probability of two independent secret numbers and a normal error, of total variance 1.

    The two laws together are a mixture of both, by partial fractions; its weights may be negative.
    """
    mean_score = (first + second) / 2
    larger = np.maximum(np.maximum(first, second), mean_score * (2 * _APART / (1 + _APART)))
    smaller = np.maximum(2 * mean_score - larger, _NO_PART / 10)
    coins = np.sqrt(np.maximum(1 - larger - smaller, 1e-6))
    weight = larger / (larger - smaller)
    chances: Floats = weight * _secret_tail(scores, np.sqrt(larger / 2), coins)
    chances -= (weight - 1) * _secret_tail(scores, np.sqrt(smaller / 2), coins)
    return chances


def _secret_tail(scores: Floats, scale: Floats, coins: Floats) -> Floats:
    """Tail probability of one secret number with this scale, plus a normal error."""
    normal, ratio = scores / coins, coins / scale
    lower_part = ratio**2 / 2 - scores / scale + log_ndtr(normal - ratio)
    upper_part = ratio**2 / 2 + scores / scale + log_ndtr(-normal - ratio)
    answer: Floats = np.exp(log_ndtr(-normal)) + (np.exp(lower_part) - np.exp(upper_part)) / 2
    return answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One value: its share before and after, and the difference with its interval.

    For a mean or a vector the numbers are in the metric's unit.

    Args:
        stderr: of the population's difference: randomization, and who reported.
        low, high: the end nearer to 0 accounts for the value's place in the list; the other end of
            an unchanged value has the rest of the error rate.
        p_value: two-sided, of this value alone.
        changed: significant at a false discovery rate of 5% over all values, or at the intervals'
            error rate if that is less; the interval then excludes 0.
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


def changes(before: Answer, after: Answer, *, together: bool = False) -> tuple[Change, ...]:
    """Changes of all values, in the order of the answers.

    With `together`, the answers' confidence is that of all intervals together (Bonferroni). Raises
    BadParameter if the answers are to different questions.
    """
    names = [value.value for value in before.values]
    if before.kind != after.kind or names != [value.value for value in after.values]:
        raise BadParameter("two answers to different questions cannot be compared")
    units = [
        1 if answer.kind in OF_NUMBERS else max(answer.reports, 1) for answer in (before, after)
    ]
    old = np.array([value.estimate for value in before.values]) / units[0]
    new = np.array([value.estimate for value in after.values]) / units[1]
    difference, sides, hidden = new - old, None, None
    if before.figures and after.figures:
        sides = _Sides([(before, before.figures), (after, after.figures)])
        stderr = np.sqrt(sides.variances.sum(axis=0))
        scores, hidden = _scores_without_change(sides, difference)
    else:
        stderr = np.sqrt(_variance(before) + _variance(after))
        scores = _scores(difference, stderr)
    p = 2 * ndtr(-np.abs(scores))
    # An interval with a higher confidence than the marks could contain 0 for a marked value.
    changed = stand_out(p, min(FALSE_DISCOVERY_RATE, 1 - before.confidence))
    if together:
        near = far = np.full_like(p, reach_of(before.confidence))
    else:
        near, far = _reaches(p, changed, before.confidence)
    rises = difference >= 0
    lower, upper = np.where(rises, near, far), np.where(rises, far, near)
    if sides:
        if hidden:
            lower, upper = (reach_of_worth(reach, hidden) for reach in (lower, upper))
        low, high = _difference_ends(sides, lower, upper)
        # For a marked value the nearer end is at least one report away from 0.
        least = np.minimum(np.abs(difference), 1 / sides.reports.min())
        np.maximum(low, least, out=low, where=changed & rises)
        np.minimum(high, -least, out=high, where=changed & ~rises)
    else:
        widest = before.span[1] - before.span[0] if before.span else 1.0
        low = np.maximum(difference - lower * stderr, -widest)
        high = np.minimum(difference + upper * stderr, widest)
    return records(
        Change,
        names,
        before=old,
        after=new,
        difference=difference,
        stderr=stderr,
        low=low,
        high=high,
        p_value=p,
        changed=changed,
    )


def _reaches(p: Floats, changed: Mask, confidence: float) -> tuple[Floats, Floats]:
    """Standard errors to the end nearer to 0 and to the other end, of values with these p-values.

    To the nearer end by the value's place in the list, as in `ranked`; changed values all take the
    place of the last of them (Benjamini and Yekutieli 2005), so that intervals exclude 0. Of an
    unchanged value the other end has the rest of the error rate.
    """
    places = np.where(changed, changed.sum(), p.argsort(kind="stable").argsort() + 1)
    shares = places / max(len(p), 1)
    far_reach = -ndtri((1 - confidence) * (1 - shares / 2))
    return selection_reach(shares, confidence), np.where(changed, reach_of(confidence), far_reach)


def _scores(differences: Floats, stderrs: Floats) -> Floats:
    return np.divide(differences, stderrs, out=np.zeros_like(stderrs), where=stderrs > 0)


# Of each tail, which is nearly straight between neighbours; and for how many values at once.
_KNOTS: Final = 64
_AT_ONCE: Final = 512
_TINY: Final = 1e-300


class _Sides:
    """Shares of the population on both sides, as by `ValueEstimates.of_shares`.

    Both sides at once, since a call of numpy costs more than its work on a few values: arrays have
    shape (2, values), or (2, 1). `variances` are of the shares, other errors in reports; `each` has
    the figures of a side, its number of reports, and that of a device.
    """

    def __init__(self, answers: Sequence[tuple[Answer, ValueEstimates]]) -> None:
        self.each = [
            (figures, max(answer.reports, 1), answer.repeats) for answer, figures in answers
        ]
        self.reports = np.array([[float(reports)] for _, reports, _ in self.each])
        further = [
            (*figures.share_law(reports, repeats), figures.curvature)
            for figures, reports, repeats in self.each
        ]
        further_growth, further_curvature, curvature = np.array(further).T[..., None]
        self.estimates, stderrs, self.absent, growth = np.array(
            [(side.estimates, side.stderrs, side.absent, side.growth) for side, _, _ in self.each]
        ).swapaxes(0, 1)
        counts = np.minimum(np.maximum(self.estimates, 0.0), self.reports)
        square = stderrs**2 + further_growth * counts - further_curvature * counts**2
        self.variances = np.maximum(square, 0.0) / self.reports**2
        self.growth, self.curvature = growth + further_growth, curvature + further_curvature


def _scores_without_change(
    sides: _Sides, differences: Floats
) -> tuple[Floats, tuple[Floats, Floats] | None]:
    """Normal scores of the differences, if nothing changed.

    Errors are computed from the pooled share, since a side's own estimate understates the error
    where hardly any report holds a value; skewness and long tails lower the score. Also returns
    the shares of the differences' variances from either side's secret number of dummies, if any.
    """
    reports = sides.reports
    share = sides.estimates.sum(axis=0) / reports.sum()
    share = np.minimum(np.maximum(share, 0.0), 1.0)
    counts = share * reports
    square = sides.absent**2 + sides.growth * counts - sides.curvature * counts**2
    variances = np.maximum(square, 0.0) / reports**2
    total = variances.sum(axis=0)
    stderr = np.sqrt(total)
    scores = _scores(np.abs(differences), stderr)
    # The third moment of a difference is that of one side less that of the other.
    direction = np.where(differences >= 0, 1.0, -1.0)
    tails = [_skew(figures) for figures, _, _ in sides.each]
    if any(tails):
        declines = [[side.skewness_decline * (repeats <= 1)] for side, _, repeats in sides.each]
        skewness = np.minimum(np.maximum(1 - np.array(declines) * share, -1.0), 1.0)
        weights = skewness * variances * sides.absent / (reports * np.maximum(stderr**3, _TINY))
        weights *= np.array([-direction, direction])
        pairs = [(tail, weight) for tail, weight in zip(tails, weights, strict=True) if tail]
        scores = _equivalent_scores(scores, pairs)
    hidden = None
    if any(figures.number_variance or figures.noise_variance for figures, _, _ in sides.each):
        old_part, new_part = (
            _scores(_dummy_variance(share, figures) / number**2, total)
            for figures, number, _ in sides.each
        )
        hidden = old_part, new_part
        scores = worth_of(scores, hidden)
    return direction * scores, hidden


def _dummy_variance(share: Floats, figures: ValueEstimates) -> Floats:
    """The part of an estimate's variance from the secret number of dummies, at this share."""
    number = figures.number_variance
    # One more report moves the estimate by this, and the total by the share.
    covariance = (figures.number_covariance / number if number else 0.0) - share
    return number * covariance**2 + figures.noise_variance


def _skew(figures: ValueEstimates) -> Tail | None:
    """The skewed tail of one side; None if symmetric (see `_dummy_variance`)."""
    return None if figures.tail is None or figures.tail.down else figures.tail


def _equivalent_scores(scores: Floats, tails: Sequence[tuple[Tail, Floats]]) -> Floats:
    """Normal scores as improbable as the difference of sides with these tails.

    Of each side its tail, and how much of it is in the difference's, negative if opposite.
    """
    # Usual if both sides are equally large, since their tails cancel.
    weights = np.array([weight for _, weight in tails])
    at_scores = np.array([tail.excess(scores) for tail, _ in tails])
    if not ((weights * at_scores).sum(axis=0) > 0).any():
        return scores
    worth = [tail.worth[:: 1 + len(tail.worth) // _KNOTS] for tail, _ in tails]
    knots = np.sort(np.concatenate([np.array([0.0, scores.max() + 1]), *worth]))
    # One 0 at most, from which the knots rise.
    knots = knots[knots.searchsorted(0.0, side="right") - 1 :]
    excess = np.array([tail.excess(knots) for tail, _ in tails])
    parts = []
    for start in range(0, len(scores), _AT_ONCE):
        rows = slice(start, start + _AT_ONCE)
        reached = weights[:, rows].T @ excess
        np.maximum(reached, 0.0, out=reached)
        reached += knots
        # Of each score, the knots before and after it.
        after = np.maximum((reached >= scores[rows, None]).argmax(axis=1), 1)
        before, row = after - 1, np.arange(len(after))
        low, high = reached[row, before], reached[row, after]
        part = (scores[rows] - low) / np.maximum(high - low, _TINY)
        parts.append(knots[before] + part * (knots[after] - knots[before]))
    answer: Floats = np.maximum(np.concatenate(parts), 0.0)
    return answer


def _difference_ends(
    sides: _Sides, lower_reach: Floats, upper_reach: Floats
) -> tuple[Floats, Floats]:
    """Ends of the differences, from the ends of either side."""
    downs, ups = np.array([upper_reach, lower_reach]), np.array([lower_reach, upper_reach])
    reports, estimates = sides.reports, sides.estimates
    laws = [
        figures.count_law
        for figures, _, repeats in sides.each
        if figures.count_law and not figures.count_law.dummies and repeats <= 1
    ]
    if len(laws) == len(sides.each):
        counts = np.minimum(np.maximum(estimates, 0.0), reports)
        low, high = equal_chance_ends(laws, counts, downs, ups)
    elif not any(figures.count_law or _skew(figures) for figures, _, _ in sides.each):
        counts = np.minimum(np.maximum(estimates, 0.0), reports)
        error = sides.absent, sides.growth, sides.curvature
        half_steps = np.array([[figures.step / 2] for figures, _, _ in sides.each])
        low = end_of(counts, *error, -downs) - half_steps
        high = end_of(counts, *error, ups) + half_steps
    else:
        low, high = np.array(
            [
                replace(figures.of_shares(number, repeats), tail=_skew(figures)).unbounded(
                    number, down=down, up=up
                )
                for (figures, number, repeats), down, up in zip(sides.each, downs, ups, strict=True)
            ]
        ).transpose(1, 0, 2)
    _, lows, highs = difference_of(np.array([estimates, low, high]) / reports, (0.0, 1.0))
    return lows, highs


def _variance(answer: Answer) -> Floats:
    """Population variance of each value's share, or of a mean; a vector's error includes that."""
    unit = 1.0 if answer.kind in OF_NUMBERS else max(answer.reports, 1)
    coins: Floats = (np.array([value.stderr for value in answer.values]) / unit) ** 2
    if answer.kind == "vector":
        return coins
    low, high = answer.span if answer.span and answer.kind == "mean" else (0.0, 1.0)
    further = answer.place.drawn(answer.repeats) if answer.place else answer.repeats
    return coins + (high - low) ** 2 * further * sampled(answer.places, answer.reports)
