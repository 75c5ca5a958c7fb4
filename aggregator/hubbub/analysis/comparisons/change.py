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
from hubbub.analysis.uncertainty import intervals
from hubbub.analysis.uncertainty.tails import equal_chance_ends, equal_chance_scores
from hubbub.analysis.value_estimates import ValueEstimates, lower_ends
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
    answer[hidden] = np.minimum(scores[hidden], -ndtri(np.clip(chances, _MIN_CHANCE, 0.5)))
    return answer


def reach_of_worth(worth: Floats, parts: tuple[Floats, Floats]) -> Floats:
    """Inverse of `worth_of`: scores as improbable as these normal scores, and never below them."""
    hidden = parts[0] + parts[1] > _NO_PART
    answer, target = worth.copy(), worth[hidden]
    if not hidden.any():
        return answer
    hidden_parts = parts[0][hidden], parts[1][hidden]
    # The largest support of such a distribution grows with the square.
    _, answer[hidden] = intervals.bisected(
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
    """Changes of all values, in the order of the answers, as by `changes_of_all`."""
    return changes_of_all([(before, after)], together=together)[0]


def changes_of_all(
    pairs: Sequence[tuple[Answer, Answer]], *, together: bool = False
) -> list[tuple[Change, ...]]:
    """Changes of each pair of answers, before and after, of one confidence.

    Marks, and the places of intervals, are those over the values of all pairs. With `together`, the
    confidence is that of all intervals together (Bonferroni). Raises BadParameter if two answers
    are to different questions.
    """
    all_pairs = [_Pair(before, after) for before, after in pairs]
    if not all_pairs:
        return []
    p = np.concatenate([pair.p for pair in all_pairs])
    confidence = pairs[0][0].confidence
    # An interval with a higher confidence than the marks could contain 0 for a marked value.
    changed = intervals.stand_out(p, min(intervals.FALSE_DISCOVERY_RATE, 1 - confidence))
    if together:
        ends = np.full((2, len(p)), intervals.reach_of(confidence))
    else:
        ends = _reaches(p, changed, confidence)
    starts = np.cumsum([len(pair.p) for pair in all_pairs])[:-1]
    return [
        pair.rows(pair_ends, pair_changed)
        for pair, pair_ends, pair_changed in zip(
            all_pairs, np.split(ends, starts, axis=1), np.split(changed, starts), strict=True
        )
    ]


class _Pair:
    """Two answers to one question, and the two-sided p-value of each value's difference."""

    def __init__(self, before: Answer, after: Answer) -> None:
        self.names = [value.value for value in before.values]
        if before.kind != after.kind or self.names != [value.value for value in after.values]:
            raise BadParameter("two answers to different questions cannot be compared")
        self.old, self.new = (
            np.array([value.estimate for value in answer.values])
            / (1 if answer.kind in OF_NUMBERS else max(answer.reports, 1))
            for answer in (before, after)
        )
        self.difference = self.new - self.old
        self.widest = before.span[1] - before.span[0] if before.span else 1.0
        self.sides: _Sides | None = None
        self.hidden: tuple[Floats, Floats] | None = None
        if before.figures and after.figures:
            self.sides = _Sides([(before, before.figures), (after, after.figures)])
            self.stderr = np.sqrt(self.sides.variances[0] + self.sides.variances[1])
            scores, self.hidden = _scores_without_change(self.sides, self.difference)
        else:
            self.stderr = np.sqrt(_variance(before) + _variance(after))
            scores = _scores(self.difference, self.stderr)
        self.p: Floats = 2 * ndtr(-np.abs(scores))

    def rows(self, ends: Floats, changed: Mask) -> tuple[Change, ...]:
        """The changes; `ends` are standard errors to the end nearer to 0 and to the other end."""
        difference, rises = self.difference, self.difference >= 0
        reaches = np.where(rises, ends, ends[::-1])
        if self.sides:
            if self.hidden:
                reaches = np.array([reach_of_worth(reach, self.hidden) for reach in reaches])
            low, high = _difference_ends(self.sides, reaches)
            if changed.any():  # the nearer end is at least one report away from 0
                least = np.minimum(np.abs(difference), 1 / self.sides.reports.min())
                np.maximum(low, least, out=low, where=changed & rises)
                np.minimum(high, -least, out=high, where=changed & ~rises)
        else:
            low = np.maximum(difference - reaches[0] * self.stderr, -self.widest)
            high = np.minimum(difference + reaches[1] * self.stderr, self.widest)
        return records(
            Change,
            self.names,
            before=self.old,
            after=self.new,
            difference=difference,
            stderr=self.stderr,
            low=low,
            high=high,
            p_value=self.p,
            changed=changed,
        )


def _reaches(p: Floats, changed: Mask, confidence: float) -> Floats:
    """Standard errors to the end nearer to 0 and to the other end, of values with these p-values.

    To the nearer end by the value's place in the list, as in `ranked`; changed values all take the
    place of the last of them (Benjamini and Yekutieli 2005), so that intervals exclude 0. Of an
    unchanged value the other end has the rest of the error rate.
    """
    shares = np.maximum(p.argsort(kind="stable").argsort() + 1, changed.sum()) / max(len(p), 1)
    far_reach = -ndtri((1 - confidence) * (1 - shares / 2))
    far_reach[changed] = intervals.reach_of(confidence)
    return np.array([intervals.selection_reach(shares, confidence), far_reach])


def _scores(differences: Floats, stderrs: Floats) -> Floats:
    return np.divide(differences, stderrs, out=np.zeros_like(stderrs), where=stderrs > 0)


# Of each tail, which is nearly straight between neighbours; and for how many values at once.
_KNOTS: Final = 64
_AT_ONCE: Final = 512
_TINY: Final = 1e-300


class _Sides:
    """Shares of the population on both sides, as by `ValueEstimates.of_shares`.

    Both sides at once, since a call of numpy costs more than its work on a few values: arrays have
    shape (2, values). `variances` are of the shares, other errors in reports; `each` has the
    figures of a side, its number of reports, and that of a device.
    """

    def __init__(self, answers: Sequence[tuple[Answer, ValueEstimates]]) -> None:
        self.each = [
            (figures, max(answer.reports, 1), answer.repeats) for answer, figures in answers
        ]
        self.estimates, stderrs, self.absent, growth = np.array(
            [(side.estimates, side.stderrs, side.absent, side.growth) for side, _, _ in self.each]
        ).swapaxes(0, 1)
        numbers = [
            (*figures.share_law(reports, repeats), figures.curvature, reports)
            for figures, reports, repeats in self.each
        ]
        self.laws = [
            figures.count_law
            for figures, _, repeats in self.each
            if figures.count_law and not figures.count_law.dummies and repeats <= 1
        ]
        columns = np.array(numbers).T[..., None] + np.zeros_like(stderrs)
        further_growth, further_curvature, curvature, self.reports = columns
        self.counts = np.minimum(np.maximum(self.estimates, 0.0), self.reports)
        square = stderrs**2 + further_growth * self.counts - further_curvature * self.counts**2
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
    direction = np.copysign(1.0, differences)
    if len(sides.laws) == len(sides.each) and len({(law.p, law.q) for law in sides.laws}) == 1:
        return direction * equal_chance_scores(sides.laws, sides.estimates), None
    reports = sides.reports
    share = (sides.estimates[0] + sides.estimates[1]) / (reports[0] + reports[1])
    share = np.minimum(np.maximum(share, 0.0), 1.0)
    counts = share * reports
    square = sides.absent**2 + sides.growth * counts - sides.curvature * counts**2
    variances = np.maximum(square, 0.0) / reports**2
    total = variances[0] + variances[1]
    stderr = np.sqrt(total)
    scores = np.abs(differences) / np.maximum(stderr, _TINY)
    # The third moment of a difference is that of one side less that of the other.
    tails = [_skew(figures) for figures, _, _ in sides.each]
    if any(tails):
        declines = [[side.skewness_decline * (repeats <= 1)] for side, _, repeats in sides.each]
        skewness = np.maximum(1 - np.array(declines) * share, -1.0)
        weights = skewness * variances * sides.absent / (reports * np.maximum(stderr**3, _TINY))
        weights[0] *= -1
        scores = _equivalent_scores(scores, tails, weights * direction)
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


def _skew(figures: ValueEstimates) -> intervals.Tail | None:
    """The skewed tail of one side; None if symmetric (see `_dummy_variance`)."""
    return None if figures.tail is None or figures.tail.down else figures.tail


def _equivalent_scores(
    scores: Floats, tails: Sequence[intervals.Tail | None], weights: Floats
) -> Floats:
    """Normal scores as improbable as the difference of sides with these tails.

    `weights` is how much of each tail is in the difference's, negative if opposite.
    """
    tables = [tail.worth if tail else np.empty(0) for tail in tails]
    # Usual if both sides are equally large: one tail, which is in neither direction.
    if np.array_equal(tables[0], tables[1]) and not (weights[0] + weights[1] > 0).any():
        return scores
    ends = np.array([0.0, scores.max(initial=0.0) + 1])
    worth = [table[:: 1 + len(table) // _KNOTS] for table in tables]
    knots = np.sort(np.concatenate([ends, *worth]))
    # One 0 at most, from which the knots rise.
    first, last = knots.searchsorted(ends, side="right")
    knots = knots[first - 1 : last]
    excess = np.array([tail.excess(knots) if tail else 0 * knots for tail in tails])
    answer = np.empty_like(scores)
    for start in range(0, len(scores), _AT_ONCE):
        rows = slice(start, start + _AT_ONCE)
        reached = weights[:, rows].T @ excess
        np.maximum(reached, 0.0, out=reached)
        reached += knots
        # Of each score, the knots before and after it.
        following = np.maximum((reached >= scores[rows, None]).argmax(axis=1), 1)
        places = np.array([following - 1, following])
        (low, high), (before, after) = reached[np.arange(len(following)), places], knots[places]
        part = (scores[rows] - low) / np.maximum(high - low, _TINY)
        answer[rows] = before + part * (after - before)
    return np.maximum(answer, 0.0)


def _difference_ends(sides: _Sides, reaches: Floats) -> tuple[Floats, Floats]:
    """Ends of the differences, from the ends of either side."""
    downs, ups = reaches[::-1], reaches
    if len(sides.laws) == len(sides.each):
        low, high = equal_chance_ends(sides.laws, sides.counts, downs, ups)
    elif not any(figures.count_law and repeats <= 1 for figures, _, repeats in sides.each):
        error = sides.absent, sides.growth, sides.curvature
        tails = [_skew(figures) for figures, _, _ in sides.each]
        excess = [
            tail.excess(down) if tail else 0 * down for tail, down in zip(tails, downs, strict=True)
        ]
        half_steps = np.array([[figures.step / 2] for figures, _, _ in sides.each])
        low = lower_ends(sides.counts, error, downs, np.array(excess) if any(tails) else None)
        low -= half_steps * [[tail is None] for tail in tails]  # a tail contains the step
        high = intervals.end_of(sides.counts, *error, ups) + half_steps
    else:
        low, high = np.array(
            [
                replace(figures.of_shares(number, repeats), tail=_skew(figures)).unbounded(
                    number, down=down, up=up
                )
                for (figures, number, repeats), down, up in zip(sides.each, downs, ups, strict=True)
            ]
        ).transpose(1, 0, 2)
    counts = np.array([sides.estimates, low, high])
    _, lows, highs = intervals.difference_of(counts / sides.reports, (0.0, 1.0))
    return lows, highs


def _variance(answer: Answer) -> Floats:
    """Population variance of each value's share, or of a mean; a vector's error includes that."""
    unit = 1.0 if answer.kind in OF_NUMBERS else max(answer.reports, 1)
    coins: Floats = (np.array([value.stderr for value in answer.values]) / unit) ** 2
    if answer.kind == "vector":
        return coins
    low, high = answer.span if answer.span and answer.kind == "mean" else (0.0, 1.0)
    further = answer.place.drawn(answer.repeats) if answer.place else answer.repeats
    return coins + (high - low) ** 2 * further * intervals.sampled(answer.places, answer.reports)
