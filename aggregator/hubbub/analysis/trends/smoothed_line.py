"""A line: the probable course of a value over its days, with bands and steps.

The model's variances are not fixed: the result averages over a grid of them, weighted by
likelihood. So bands include their uncertainty; where days vary more than the model, the variance of
days' own effects grows, and the line follows the days.

A step is reported if the evidence for it, averaged over all days and sizes, is `_EVIDENCE` times
that for no step. Walks reach that by chance in at most 1% of lines, whatever their variance.
(Markov's inequality would ask for a hundred times, which loses a third of the steps of four errors
of a day.) Then the level may jump there by its estimated size. A step with
less evidence is not reported, and the line includes it with its probability.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from scipy.special import expit

from hubbub.analysis.arrays import Floats
from hubbub.analysis.trends.local_level import Smoothed, join_grids, smooth
from hubbub.analysis.uncertainty.intervals import reach_of
from hubbub.analysis.value_estimates import Mean

MIN_POINTS: Final = 8
"""The fewest days that a line is drawn through."""
FALSE_ALARM: Final = 0.01
"""How often, at most, a line without a step has one found."""
# Measured, 500 to 1,500 walks each, also with own errors and a rise: at most .93% of 10
# and 20 days reach 16, and of 28, 40, 60 and 90 days .93%, .93%, 1.0% and 1.0% reach 12.
_EVIDENCE: Final = 12.0
_EVIDENCE_OF_FEW: Final = 16.0
_MANY: Final = 28

_WEEK: Final = 7
# In the variance of a day's error: from nothing to a thousand times as much, a factor of two in
# standard deviation a step.
_STEPS: Final = 4.0 ** np.arange(-7, 6)
_WALKS: Final = np.concatenate([[1e-7], _STEPS])
_OWN: Final = np.concatenate([[0.0], 4.0 ** np.arange(-2, 6)])
_WEEKDAYS: Final = np.concatenate([[0.0], 4.0 ** np.arange(-3, 6)])
# Prior variances of the rise from first to last point, over the variance of a day's error.
_RISES: Final = np.array([0.0, 8.0, 128.0])
_SIZES: Final = 6
# Beforehand: that there are no weekdays, or that nothing rises; and that nothing is a day's own,
# which a band that counts on it would miss.
_NONE: Final = 0.5
_NONE_OWN: Final = 0.2
# Beforehand: that there is a step, or one more; and how likely one must be to bend the line.
_STEP: Final = 0.2
_BENDS: Final = 0.05
_MIN_WEEKDAY_ODDS: Final = 20.0
_MAX_STEPS: Final = 12
# How large a step is, squared, beside the largest that is looked for: as good as not known.
_WIDE: Final = 100.0
# A day less likely than that, of those on which a step may have been, is left out.
_UNLIKELY: Final = 1e-3
_NEGLIGIBLE: Final = 1e-6
# A day so many standard errors from what all others expect of it has its own interval in the band:
# chance takes one day of 80 so far.
_APART: Final = 2.5
_TINY: Final = 1e-300
# Log-likelihoods this far below the maximum are neglected: e^-30 of it.
_NOTHING: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A change from one day to the next; `place` is of the first point after it.

    At the line's confidence it is in the places from `first` to `last`, and its `size`, the
    difference upwards, is in [`low`, `high`].
    """

    place: int
    first: int
    last: int
    size: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Probable truth and band at each point; `weekdays` has effects from Monday on, or is empty."""

    middle: Floats
    low: Floats
    high: Floats
    weekdays: tuple[float, ...] = ()
    steps: tuple[Step, ...] = ()


def line_through(
    days: Sequence[int],
    values: Floats,
    variances: Floats,
    confidence: float,
    *,
    weekly: bool = True,
    fixed: float = 0.0,
) -> Line:
    """The line through estimates with these error variances.

    `days` are ascending numbers since 1970, possibly with gaps. With `weekly` they are days, which
    may have weekday effects. `fixed` is a variance that all days share, so that smoothing does not
    reduce it. Raises BadParameter for a confidence outside its range.
    """
    reach = reach_of(confidence)
    own_days = np.array(days)
    names = (own_days + 3) % _WEEK  # 1970 began on a Thursday; 0 is Monday
    columns = np.column_stack([values, names[:, None] == np.arange(_WEEK)]).astype(np.float64)
    columns = columns if weekly else columns[:, :1]
    model = _Model(own_days, columns, variances)
    steps: list[Step] = []
    all_jump_variances = np.zeros(len(own_days))
    fit = model.fit(all_jump_variances)
    least = np.log(_EVIDENCE if len(own_days) >= _MANY else _EVIDENCE_OF_FEW)
    while True:
        log_evidence, chances = fit.next_step(all_jump_variances)
        if len(steps) == _MAX_STEPS or not log_evidence >= least:
            break
        step, jump_variances = fit.step(chances, confidence)
        steps.append(step)
        all_jump_variances += jump_variances
        fit = model.fit(all_jump_variances)
    middle, variance = fit.signal()
    # The posterior probability of one more step.
    likely = float(expit(log_evidence + np.log(_STEP / (1 - _STEP))))
    if len(steps) < _MAX_STEPS and likely > _BENDS:
        _, jump_variances = fit.step(chances, confidence)
        plain, plain_variance = middle, variance
        bent, bent_variance = model.fit(all_jump_variances + jump_variances).signal()
        middle = (1 - likely) * plain + likely * bent
        variance = (1 - likely) * (plain_variance + (plain - middle) ** 2)
        variance = variance + likely * (bent_variance + (bent - middle) ** 2)
    half = reach * np.sqrt(np.maximum(variance, 0.0) + fixed)
    steps.sort(key=lambda step: step.place)
    low, high = middle - half, middle + half
    point_reach = np.where(fit.apart() > _APART, reach * np.sqrt(variances + fixed), -np.inf)
    low, high = np.minimum(low, values - point_reach), np.maximum(high, values + point_reach)
    return Line(middle=middle, low=low, high=high, weekdays=fit.weekdays(), steps=tuple(steps))


class _Model:
    """The estimates, and the grid of variances to explain them."""

    def __init__(self, days: Floats, columns: Floats, variances: Floats) -> None:
        self.columns, self.variances = columns, variances
        unit = float(np.median(variances))
        walks, point_noises = np.meshgrid(_WALKS * unit, _OWN * unit, indexing="ij")
        self.walks, self.own = walks.reshape(-1), point_noises.reshape(-1)
        self.rises = _RISES * unit
        self.weekdays = _WEEKDAYS * unit if columns.shape[1] > 1 else np.zeros(1)
        # Of steps, squared: from the error of a day to all that was seen, a factor of two apart.
        most = max(float(np.ptp(columns[:, 0])) ** 2 / unit, 1.0)
        self.sizes = unit * 4.0 ** np.arange(max(_SIZES, int(np.ceil(np.log2(most) / 2)) + 1))
        self.gaps = np.diff(days, prepend=days[0]).astype(np.float64)
        rise = (days - days.mean()) / max(float(np.ptp(days)), 1.0)
        self._with_rise = np.column_stack([columns, rise])

    def fit(self, all_jump_variances: Floats) -> "_Fit":
        """The fit for every pair of variances, grouped by the variance of the slope."""
        moved = self.gaps[:, None] * self.walks + all_jump_variances[:, None]
        smoothed = smooth(self._with_rise, self.variances[:, None] + self.own, moved)
        return _Fit(
            self, join_grids([smoothed.explaining_last(rise) for rise in self.rises.tolist()])
        )

    def prior(self) -> Floats:
        """Log prior probability of each pair."""
        noise_chances = np.where(self.own == 0, _NONE_OWN, (1 - _NONE_OWN) / (len(_OWN) - 1))
        rises = np.where(self.rises == 0, _NONE, (1 - _NONE) / (len(self.rises) - 1))
        answer: Floats = np.log(np.outer(rises, noise_chances)).reshape(-1)
        return answer


class _Fit:
    """The posterior given the variances of jumps so far, over all pairs and weekday variances."""

    def __init__(self, model: _Model, smoothed: Smoothed) -> None:
        self._model, self._smoothed = model, smoothed
        products = smoothed.products
        likely = -0.5 * (smoothed.log_size + products[:, 0, 0])
        likely = np.repeat(likely[:, None], len(model.weekdays), axis=1)
        if products.shape[1] > 1:
            sizes, turns = np.linalg.eigh(products[:, 1:, 1:])
            self._sizes, self._turns = np.maximum(sizes, 0.0), turns
            self._met = np.einsum("pij,pi->pj", turns, products[:, 1:, 0])
            scaled = 1 + self._sizes[:, None, :] * model.weekdays[None, :, None]
            self._shrunk = model.weekdays[None, :, None] / scaled
            likely -= 0.5 * np.log(scaled).sum(axis=2)
            likely += 0.5 * (self._shrunk * self._met[:, None, :] ** 2).sum(axis=2)
            likely[:, 0] += np.log(_NONE)
            likely[:, 1:] += np.log((1 - _NONE) / (len(model.weekdays) - 1))
        likely += model.prior()[:, None]
        self._logs: Floats = likely - _log_sum(likely)
        self.weights: Floats = np.exp(self._logs)

    def _less_weekdays(
        self, contrasts: Floats, square: Floats, pairs: Any = slice(None)
    ) -> tuple[Floats, Floats]:
        """Results after explaining weekdays, per pair, point and weekday variance."""
        contrasts, square = contrasts[:, pairs].swapaxes(0, 1), square[:, pairs].T
        explained = np.repeat(contrasts[:, :, :1], len(self._model.weekdays), axis=2)
        explained_square = np.repeat(square[:, :, None], len(self._model.weekdays), axis=2)
        if contrasts.shape[2] > 1:
            shrunk = self._shrunk[pairs].swapaxes(1, 2)
            turned = contrasts[:, :, 1:] @ self._turns[pairs]
            explained -= turned @ (shrunk * self._met[pairs, :, None])
            explained_square -= turned**2 @ shrunk
        return explained, explained_square

    def _at_days(self) -> tuple[Floats, Floats, Floats]:
        """`times` and `diagonal` of the likely pairs, less weekdays, and their weights."""
        pairs, smoothed = self.weights.sum(axis=1) > _NEGLIGIBLE, self._smoothed
        return *self._less_weekdays(smoothed.times, smoothed.diagonal, pairs), self.weights[pairs]

    def signal(self) -> tuple[Floats, Floats]:
        """Posterior mean and variance of the truth at each point."""
        observed, error = self._model.columns[:, :1], self._model.variances[:, None]
        times, diagonal, weights = self._at_days()
        middle = observed - error * times
        square = middle**2 + error - error**2 * diagonal
        mean, square = (
            np.einsum("ptw,pw->t", moment, weights) / weights.sum() for moment in (middle, square)
        )
        return mean, square - mean**2

    def apart(self) -> Floats:
        """Each day's auxiliary residual, in standard errors, on average (de Jong, Penzer 1998)."""
        times, diagonal, weights = self._at_days()
        scores = np.abs(times) / np.sqrt(np.maximum(diagonal, _TINY))
        answer: Floats = np.einsum("ptw,pw->t", scores, weights)
        return answer

    def weekdays(self) -> tuple[float, ...]:
        """Weekday effects from Monday on, with sum 0; empty if they are not likely enough."""
        model = self._model
        none = float(self.weights[:, 0].sum())
        if len(model.weekdays) == 1 or none * _MIN_WEEKDAY_ODDS > 1 - none:
            return ()
        shrunk = np.einsum("pw,pwj,pj->pj", self.weights, self._shrunk, self._met)
        effects = np.einsum("pij,pj->i", self._turns, shrunk)
        return tuple((effects - effects.mean()).tolist())

    def next_step(self, all_jump_variances: Floats) -> tuple[float, Floats]:
        """Log evidence for one more step, and the probability of each point if there is one."""
        logs = self._step_evidence()
        logs[all_jump_variances > 0] = logs[0] = -np.inf
        if not np.isfinite(logs).any():  # the level may jump everywhere already
            return -np.inf, np.zeros_like(logs)
        log_total = float(_log_sum(logs))
        return log_total - float(np.log(len(logs) - 1)), np.exp(logs - log_total)

    def step(self, chances: Floats, confidence: float) -> tuple[Step, Floats]:
        """The likeliest step, and the additional jump variance for each day."""
        size, spread = self._size(place := int(chances.argmax()))
        likely_columns = np.flatnonzero(chances >= _UNLIKELY)
        order = np.argsort(-chances)
        region = order[: int(np.searchsorted(np.cumsum(chances[order]), confidence)) + 1]
        jump_variances = np.zeros_like(chances)
        jump_variances[likely_columns] = chances[likely_columns] * (size**2 + spread**2)
        half = reach_of(confidence) * spread
        step = Step(
            place=place,
            first=int(region.min()),
            last=int(region.max()),
            size=size,
            low=size - half,
            high=size + half,
        )
        return step, jump_variances

    def _step_evidence(self) -> Floats:
        """Log likelihood ratio of a step before each point, averaged over sizes and posterior."""
        sizes, evidence = self._model.sizes, np.full(len(self._model.columns), -np.inf)
        signals, variances = self._less_weekdays(self._smoothed.from_on, self._smoothed.within)
        # A step of the size that what was seen speaks for is the most that any can say.
        most = (0.5 * signals**2 / np.maximum(variances, _TINY)).max(axis=1) + self._logs
        for pair in np.argsort(-most.max(axis=1)).tolist():
            counts = most[pair] > evidence.max() - _NOTHING
            if not counts.any():
                break
            likely = signals[pair][:, counts, None], variances[pair][:, counts, None]
            logs = _log_ratio(*likely, sizes)
            logs += self._logs[pair, counts, None] - np.log(len(sizes))
            evidence = np.logaddexp(evidence, _log_sum(logs, axis=(1, 2)))
        return evidence

    def _size(self, place: int) -> tuple[float, float]:
        """Size of the step before a point, and its standard error."""
        prior, smoothed = _WIDE * self._model.sizes[-1], self._smoothed
        signals, variances = (
            law[:, 0]
            for law in self._less_weekdays(smoothed.from_on[[place]], smoothed.within[[place]])
        )
        logs = self._logs + _log_ratio(signals, variances, prior)
        weights = np.exp(logs - _log_sum(logs))
        variance = prior / (1 + variances * prior)
        middle = signals * variance
        mean = float((weights * middle).sum())
        return mean, float(np.sqrt((weights * (variance + (middle - mean) ** 2)).sum()))


def _log_sum(logs: Floats, axis: tuple[int, ...] | None = None) -> Any:
    """Log of the sum of exponentials; three times as fast as scipy's."""
    most = logs.max(axis=axis, keepdims=True)
    return most.squeeze(axis) + np.log(np.exp(logs - most).sum(axis=axis))


def _log_ratio(signals: Floats, variances: Floats, size: Any) -> Floats:
    """Log likelihood ratio of a step with squared size about `size`."""
    grown = 1 + variances * size
    answer: Floats = 0.5 * signals**2 * size / grown - 0.5 * np.log(grown)
    return answer


_AROUND = 7


def known_variances(
    points: Sequence[Mean], reports: Sequence[int], ends: tuple[float, float]
) -> Floats:
    """Variances of estimates, in squared units, without the chance error of each estimate.

    A report's variance is a parabola in the truth, the same every day. An estimate that is low by
    chance has a variance that is too low, and would attract a line: so the variance is computed
    from the mean of the days around it. `ends` is the range of the truth.
    """
    numbers = np.array(reports, dtype=np.float64)
    levels = np.clip([point.estimate for point in points], *ends)
    unit_variances = np.array([point.stderr for point in points]) ** 2 * numbers
    parabola = np.linalg.lstsq(np.vander(levels, 3), unit_variances, rcond=1e-9)[0]
    kernel = np.ones(min(2 * _AROUND + 1, len(levels)))
    smoothed = np.convolve(levels * numbers, kernel, "same") / np.convolve(numbers, kernel, "same")
    fit_values = np.vander(smoothed, 3) @ parabola
    return np.clip(fit_values, unit_variances.min(), unit_variances.max()) / numbers
