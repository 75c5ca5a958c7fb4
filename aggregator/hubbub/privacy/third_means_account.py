"""Third values with few reports each: what the mean reports, given their counts, reveal of the sum.

With L, n, theta, psi and g(z | L) of hubbub.privacy.third_values_account, let X be independent
numbers, one for each value, whose laws are proportional to psi. S is their sum, Psi the law of S,
and M its mean: g(z | L) is proportional to Psi(L) / Poisson(L; n theta).

1. Let q(D) = P(D - 1) / P(D), and q(0) = 0. Then s(k) = (k + 1) Psi(k + 1) / Psi(k) is the mean of
the sum of theta q(z - X), given that S = k, since (x + 1) psi(x + 1) = theta q(z - x) psi(x). As
psi is log-concave, the X given S = k + 1 are those given S = k, but for one, which is 1 more (Efron
1965). q rises. So s falls, with each k by at most kappa, which is theta times the largest step of
q. Thus L -> g(z | L) is log-concave. M is the mean of s(S), and no variance of S is above M, since
their difference is the covariance of s and S. Of counts above the most dummies of one value, whose
q has no bound, X is given away: let T be what remains of L, for the other values. Then all this
holds, and 3. too, since c does not fall with T. With none left, r is 0.

2. Let r be g(z | T - 1) / g(z | T). Then g(z | T - s) = g(z | T) r^s c(s), where c falls from
c(0) = 1. Let terms a(s) be 0 or less up to some s, and then 0 or more, from b on. The sum of
a(s) r^s c(s) is at most c(b) times that of a(s) r^s. This sum rises with r where it is above 0.
So only the law of r under g(z | T) matters, rounded up. Where r is large, or g(z | T) is 0, L is
given away: M is small there by 3., and for each L that has a chance. It may be less than computed,
so all r up to the largest one keep their chances.

3. With theta = r' T / n, r is above r' just if s(T - 1) is below T. Then s(k) is at most
T + kappa max(T - 1 - k, 0), and M is at most the mean of the law with just these s(k). With the sum
A of its chances from T - 1 on and B of those before, both divided by that of T - 1,

    M <= T + c(T),    c(T) = kappa / (1 + kappa) (T - 1 - B) / (A + B)

since sums of k + 1 times chances give A's and B's means. It rises with kappa.
c rises with t = T - 1, since A / t and B / t fall. A is the sum of x(i), where x(0) = 1, and
(T + i) x(i + 1) = T x(i). From j on, these add up to T x(j) = sum of i x(i + 1), at least j times
the sum Y(j) of x after j. So A' = sum of j Y(j) / T / (T + j) is at most that of x(j) / (T + j),
below A / t. With u = T + kappa, u B / t is the sum of y(i), where y(0) = 1, and
(u + kappa i) y(i) = (t - i) y(i - 1). From j on, these add up to (t - j) y(j - 1) = sum of
(2 + kappa + (1 + kappa) i) y(i), at least (1 + kappa) (1 + j) times the sum Z(j) of y from j on. So
its derivative, the sum of (1 + kappa) (1 + j) Z(j) / (t - j) / (u + kappa j), is at most that of
y(j - 1) / (u + kappa j), below 1 / u of it.
The derivative of M by log theta is the variance of S. So where r is above r' / f for f > 1, M is at
most f (T + c(T)) with the theta of r'.

4. M is a sum over all values, and so are L and, rounded down, M in steps of a fixed size: their
joint law is that of a transform. Up to some k, X has no larger mean than M; larger ones are added.
5. Whole weights are those of a geometric law, but for q, which differs by 2^-32 of itself at most.
As X differ in one place, s(k + 1) / s(k) differs by twice that. M and r may be above these bounds,
but by less than is added to them.
Source: hubbub's own, proven above.
"""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import numpy.typing as npt
from scipy.fft import fft, ifft

from hubbub.analysis.arrays import Floats
from hubbub.analysis.binomials import binomial_tail
from hubbub.privacy.shuffled_epoch import FFT_ERROR, POWER_ERROR
from hubbub.privacy.third_values_account import Signals, poisson, shifted_chances

# Above this kappa, M may be far above T.
_MAX_KAPPA: Final = 2.5
# Of r, above which all is given away.
_MAX_SPREAD: Final = 0.15
# Above this c(T), all counts may be closer.
_FAR: Final = 1.5
# Of r, from its mean, in its standard deviations.
_LEAST: Final = -1
_MOST: Final = 9
# By how much M may be too large from one theta to the next, in its standard deviations.
_STEP: Final = 0.13
# Of theta, the least such step, in standard deviations of r.
_MIN_STEP: Final = 0.1
# How many r there are for each theta.
_FACTORS: Final = 8
# Steps of M in 18 of its standard deviations, after which they repeat; sizes that are tried; and by
# how much M, T and r are rounded up, beside a step, T and r.
_STEPS: Final = 8000
_SIZES: Final = 500
_CLOSE: Final = 1e-6
# For Chernoff's bound of M from below, and its probability's logarithm.
_TILTS: Final = np.geomspace(1e-2, 20, 60)
_LOG_RARE: Final = 40.0

_Places = npt.NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class ThirdMeans:
    """Bounds of r, for each T of `totals`.

    Args:
        totals: T, in ascending order.
        ratios: bounds of r; a row for each bound, a column for each T.
        chances: at least the probability of a larger r, if L is T.
        is_far: whether M may be far above T.
        ends: for each T, the row of the last bound that is used.
        end_chances: for each T, the same beyond that row if L is T, T - 1, ...
    """

    totals: Floats
    ratios: Floats
    chances: Floats
    is_far: bool
    ends: _Places
    end_chances: Floats

    @classmethod
    def of(cls, law: Floats, values: int, most: int, totals: Floats, size: int) -> Self | None:
        """Of this many values, for numbers on the others below `size`; None if coins are closer.

        `law` is that of each value's dummies, `most` the largest probable number of reports on it.
        """
        theta, rise = totals.mean() / values, np.diff(np.append(0.0, law[:-1] / law[1:])).max()
        if theta * rise > _MAX_KAPPA or totals[0] < size:
            return None
        k, moves = np.arange(most + 1.0), shifted_chances(law, most + 1)
        above_most = np.diag(moves[len(law) :].sum(axis=0))[1:]
        moves = np.concatenate([moves[: len(law)], above_most])
        chances, means = _counts(moves * poisson(k, theta))
        variance, mean = chances @ (means - theta) ** 2, chances @ means
        hidden_variance = mean - variance
        spread = float((variance / mean / hidden_variance / values) ** 0.5)
        if spread > _MAX_SPREAD:
            return None
        step = spread * min(max(_STEP * float(hidden_variance / variance), _MIN_STEP), 1.0)
        start = float(totals[0] / values * np.exp(_LEAST * spread))
        rows = int((np.log(totals[-1] / totals[0]) + (_MOST - _LEAST) * spread) / step) + 2
        factors = np.exp(step / _FACTORS * np.arange(_FACTORS)[::-1])[:, None]
        ratios, larger = np.empty((2, rows, _FACTORS, len(totals)))
        ends = np.zeros(len(totals), dtype=np.intp)
        end_chances = np.ones((len(totals), size))
        for row, theta in enumerate(start * np.exp(step * np.arange(rows))):
            _, means = _counts(moves * poisson(k, theta))
            # Of theta near that of the T whose large r are bounded.
            middle = theta / (1 + (_LEAST + _MOST) / 2 * spread)
            law_of_means = _MeanLaw.of(moves * poisson(k, middle), means, values, middle)
            bounds = totals + _mean_above(totals, theta * rise)
            ratios[row] = values * theta / totals / factors * (1 + _CLOSE)
            larger[row] = law_of_means.at_most(bounds * factors, totals)
            is_end = (ends == 0) & (ratios[row, -1] >= 1 + _MOST * spread)
            ends[is_end] = (row + 1) * _FACTORS - 1
            on_third = totals[is_end, None] - np.arange(size)
            end_chances[is_end] = law_of_means.at_most(bounds[is_end, None], on_third)
        # Of more reports on a value than `most`; and what rounding may add.
        missing = values * (binomial_tail(most, totals, 1 / values) + POWER_ERROR)
        larger = np.minimum((larger + missing).reshape(-1, len(totals)), 1.0)
        return cls(
            totals=totals,
            ratios=ratios.reshape(larger.shape),
            chances=np.minimum.accumulate(larger),
            is_far=bool(bounds[-1] - totals[-1] > _FAR),
            ends=ends,
            end_chances=np.minimum(end_chances + missing[:, None], 1.0),
        )

    def views(self, on_third: Floats) -> Signals:
        """As those of `AllCounts`; `on_third` descends without gaps from one of `totals`."""
        column = np.searchsorted(self.totals, on_third[0])
        numbers = (self.totals[column] - on_third).astype(np.intp)
        end = self.ends[column]
        masses = -np.diff(self.chances[:end, column], prepend=1.0, append=0.0)
        views = masses[:, None] * self.ratios[: end + 1, column, None] ** numbers
        given_away = np.diag(self.end_chances[column, numbers])
        return Signals.certain(np.concatenate([views[masses > 0], given_away]))


@dataclass(frozen=True, kw_only=True)
class _MeanLaw:
    """Law of M, a sum over all values, jointly with L, a Poisson number.

    Args:
        mean: that of L.
        offset: M less the sum of its steps.
        unit: size of a step.
        first: the least number of steps.
        turns: where the transform by L is not nearly 0.
        cumulative: for each turn and number of steps, the sum of the chances up to this number.
    """

    mean: float
    offset: float
    unit: float
    first: int
    turns: Floats
    cumulative: npt.NDArray[np.complex128]

    @classmethod
    def of(cls, psi: Floats, means: Floats, values: int, theta: float) -> Self:
        """Of this many values; `psi` has a row of chances for each count, `means` what adds to M.

        `psi` is that of `theta`.
        """
        chances, _ = _counts(psi)
        usual = float(means[(len(means) - psi.shape[1] + 1) // 2])  # of most counts
        spread = float(chances @ (means - chances @ means) ** 2) ** 0.5
        units = 18 * values**0.5 * spread / _STEPS * np.linspace(0.8, 1, _SIZES)[:, None]
        all_steps = np.floor((means - usual) / units + _CLOSE)
        nearest = ((all_steps * units) @ chances).argmax()
        unit, steps = float(units[nearest, 0]), all_steps[nearest].astype(np.intp)
        with np.errstate(over="ignore"):
            growth = values * np.log(np.exp(np.outer(_TILTS, -steps * unit)) @ chances)
        # There are hardly ever fewer steps.
        first = -int(((growth + _LOG_RARE) / _TILTS).min() / unit) - 1
        # The period is odd: each turn but 0 has an opposite.
        period = 2 * int(6 * (values * theta) ** 0.5) + 21
        turns = 2 * np.pi / period * np.arange(period // 2 + 1)
        by_turn = np.exp(-1j * np.outer(turns, np.arange(psi.shape[1]))) @ psi.T
        is_some = values * np.log(np.abs(by_turn).sum(axis=1)) > -_LOG_RARE
        spectrum = np.zeros((is_some.sum(), _STEPS), dtype=np.complex128)
        np.add.at(spectrum.T, steps % _STEPS, by_turn[is_some].T)
        spectrum = fft(spectrum)
        is_large = np.abs(spectrum) > np.exp(-_LOG_RARE / values)
        powers = np.zeros_like(spectrum)
        powers[is_large] = spectrum[is_large] ** values
        laws = np.roll(ifft(powers), -first, axis=1)
        laws *= np.where(turns > 0, 2, 1)[is_some, None] / period
        # Each of the values may be rounded up.
        offset = values * (usual - _CLOSE * unit)
        return cls(
            mean=values * theta,
            offset=offset,
            unit=unit,
            first=first,
            turns=turns[is_some],
            cumulative=np.cumsum(laws, axis=1),
        )

    def at_most(self, bounds: Floats, on_third: Floats) -> Floats:
        """At least the probabilities that M is at most these numbers, for these L."""
        bounds, on_third = np.broadcast_arrays(bounds, on_third)
        places = np.floor((bounds - self.offset) / self.unit).astype(np.intp) - self.first
        sums = self.cumulative[:, np.clip(places, 0, self.cumulative.shape[1] - 1)]
        turned = np.exp(1j * np.multiply.outer(self.turns, on_third)) * sums
        chances: Floats = turned.real.sum(axis=0) + FFT_ERROR
        return chances / poisson(on_third, self.mean)


def _counts(psi: Floats) -> tuple[Floats, Floats]:
    """Probability of each count, and the mean number of reports on its value."""
    chances = psi.sum(axis=1)
    return chances, psi @ np.arange(psi.shape[1]) / chances


def _mean_above(totals: Floats, kappa: float) -> Floats:
    """c(T): by how much M may be above T, rounded up."""
    steps = np.arange(1.0, 12 * totals[-1] ** 0.5 + 40)[:, None]
    after = 1 + np.cumprod(totals / (totals + steps - 1), axis=0).sum(axis=0)
    falls = np.maximum(totals - steps, 0.0) / (totals + kappa * steps)
    before = np.cumprod(falls, axis=0).sum(axis=0)
    above: Floats = kappa / (1 + kappa) * (totals - 1 - before) / (after + before)
    return above + _CLOSE * totals
