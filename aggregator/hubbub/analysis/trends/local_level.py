"""The local level model, filtered and smoothed for a grid of its variances at once.

A day's share is a level that moves as a random walk, plus a weekday's effect, plus the day's own
effect. The day's estimate adds an error of known variance:

    estimate = level + weekday + own + error     level - level before ~ N(0, walk * days + jump)

A constant slope is possible, too: it is a column that is explained afterwards. Weekday and own
effects are normal with mean 0. The first level is unknown (the diffuse filter). All results follow
from P, the inverse covariance of the estimates after removing the first level: P times a column,
P's diagonal, and both summed over all days from one on, which gives the effect of a step on that
day.

Source: Durbin, Koopman, "Time Series Analysis by State Space Methods" (2012), sections 2.4, 2.5,
2.9 for the filter, the smoother and the diffuse beginning; de Jong, Penzer, "Diagnosing shocks in
time series" (JASA 1998) for steps from the smoother's own sums.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hubbub.analysis.arrays import Floats

_BY_POINT: Final = ("times", "diagonal", "from_on", "within")
_BY_PAIR: Final = ("products", "log_size")


@dataclass(frozen=True, slots=True, kw_only=True)
class Smoothed:
    """Products with P, per point, pair (walk, own) and column: the estimates, then weekdays.

    Args:
        times: P times each column; shape (points, pairs, columns).
        diagonal: of P; shape (points, pairs).
        from_on: sums of `times` over all points from one on; 0 for the first point.
        within: sums of P over the same points; shape (points, pairs); 0 for the first point.
        products: of the columns through P; shape (pairs, columns, columns).
        log_size: log determinant of the covariance; shape (pairs,).
    """

    times: Floats
    diagonal: Floats
    from_on: Floats
    within: Floats
    products: Floats
    log_size: Floats

    def explaining_last(self, variance: float) -> "Smoothed":
        """The same with a normal prior of this variance on the last column's effect."""
        last_square = self.products[:, -1, -1]
        gain = variance / (1 + variance * last_square)
        met = gain[:, None] * self.products[:, -1, :-1]
        return Smoothed(
            times=self.times[:, :, :-1] - self.times[:, :, -1:] * met,
            diagonal=self.diagonal - self.times[:, :, -1] ** 2 * gain,
            from_on=self.from_on[:, :, :-1] - self.from_on[:, :, -1:] * met,
            within=self.within - self.from_on[:, :, -1] ** 2 * gain,
            products=self.products[:, :-1, :-1] - self.products[:, :-1, -1:] * met[:, None, :],
            log_size=self.log_size + np.log1p(variance * last_square),
        )


def join_grids(grids: Sequence[Smoothed]) -> Smoothed:
    """Several grids joined to one, along the pairs."""
    by_point = {
        name: np.concatenate([getattr(part, name) for part in grids], 1) for name in _BY_POINT
    }
    by_pair = {name: np.concatenate([getattr(part, name) for part in grids]) for name in _BY_PAIR}
    return Smoothed(**by_point, **by_pair)


def smooth(columns: Floats, errors: Floats, moved: Floats) -> Smoothed:
    """Filters forwards and smooths backwards.

    `columns` has shape (points, columns); `errors`, the variances around the level, and `moved`,
    those of its moves to each point, have shape (points, pairs). moved[0] is ignored.
    """
    points, pairs = errors.shape
    many = columns.shape[1]
    misses, spreads = np.zeros((points, pairs, many)), np.ones((points, pairs))
    gains = np.ones((points, pairs))
    level = np.repeat(columns[:1], pairs, axis=0)
    unsure = errors[0].copy()
    for point in range(1, points):
        unsure += moved[point]
        spreads[point] = unsure + errors[point]
        gains[point] = unsure / spreads[point]
        misses[point] = columns[point] - level
        level = level + gains[point, :, None] * misses[point]
        unsure = unsure * (1 - gains[point])
    scaled = misses / spreads[:, :, None]
    times, diagonal = np.empty_like(misses), np.empty_like(errors)
    from_on, variances = np.zeros_like(misses), np.zeros_like(errors)
    later, weight = np.zeros((pairs, many)), np.zeros(pairs)
    for point in range(points - 1, 0, -1):
        damping = 1 - gains[point]
        times[point] = scaled[point] - gains[point, :, None] * later
        diagonal[point] = 1 / spreads[point] + gains[point] ** 2 * weight
        later = later + times[point]
        weight = 1 / spreads[point] + damping**2 * weight
        from_on[point], variances[point] = later, weight
    times[0], diagonal[0] = -later, weight
    products = np.einsum("tpi,tpj->pij", scaled[1:], misses[1:], optimize=True)
    return Smoothed(
        times=times,
        diagonal=diagonal,
        from_on=from_on,
        within=variances,
        products=products,
        log_size=np.log(spreads[1:]).sum(axis=0),
    )
