"""Few lies: what an epoch reveals of one person if little hides it, whatever the others hold.

An adversary who knows which of the others lied, as in hubbub.privacy.shuffled_histogram, knows more
than a histogram shows: some percent of epsilon if lies are few. Here almost nothing is given away.
Of the others, a hold the person's value v, b hold another value w that the person might have, and
M = others - a - b hold a third value; s reports are on v and w, x of them on v.

It does not matter which third values the M hold: all on the same one, u, reveals the most, except
for a small addition. If more than M reports are on third values, tell an adversary of u which of
them are the surplus, drawn from those not of the M: the person's, the a, the b, and dummies. Of the
remaining reports on third values, at most M, let r not show u. The view of any other third values
can be simulated from x, s and r, without distinguishing v from w: give each remaining report the
value of one of the M, none twice; let r of them, drawn evenly, show a uniformly different third
value, and the rest their own; and let the surplus show any, evenly. For which of the M are on third
values is an even draw, each shows its own with the same probability whatever it is, and otherwise a
uniform other one; and a report not of the M shows all third values evenly, also when it is given
one. So u is the only case that is computed.

Of the M, N are noise, Bin(M, d q), spread evenly over all values. Without the surplus,
N - max(0, s - a - b - dummies - 1) of the others on third values are spread evenly over these
d - 2, so r is binomial. Nothing is given away if nobody holds v or w, or if everybody does.

Beside noise dummies the view of three values is three counts: all of them are summed.

Cases (a, b) are computed in blocks. A block counts only the holders that all its cases have, since
a report that the adversary knows hides nobody; a block that reveals too much is halved, down to a
share of the others that is worth a hundredth of epsilon.
Source: hubbub's own, proven above; tests enumerate small epochs.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import exp, inf
from typing import Final, Self

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.binomials import binomial_quantile, likely, pmf
from hubbub.privacy.noise_dummies_account import law_of
from hubbub.privacy.shuffled_epoch import ShuffledEpoch
from hubbub.privacy.third_values_account import shifted_chances
from hubbub.privacy.two_values_account import TAILS

# Tails that are not summed, and what is too little to be kept.
_LEFT_OUT: Final = 14
# Each chance is a product of seven that are right to 1e-10.
_ROUNDING: Final = 1e-9
# Of one case, up to which all cases take about a second.
_NUMBERS: Final = 600_000
_MULTIPLICATIONS: Final = 60_000_000
# How much longer each view takes beside noise dummies.
_NOISY: Final = 10
# Multiplications at once: more are shared among threads, which is slower on a busy machine.
_AT_ONCE: Final = 200_000
# How finely epsilon is found, beside it.
_CLOSE: Final = 1e-4
# Above this ratio to what is already proven, nothing can be gained.
_NOTHING: Final = 0.995
# Into how many blocks the others are parted at the finest.
_BLOCKS: Final = 64

_Views = tuple[Floats, Floats]


@dataclass(frozen=True)
class FewLies:
    """Account of three or more listed values in one group; of three if they have noise dummies."""

    crowd: ShuffledEpoch
    cut: float

    @classmethod
    def of(cls, crowd: ShuffledEpoch, delta: float) -> Self | None:
        """The account, valid down to `delta`; None if it does not apply, or would take long."""
        m, d, q = crowd.others, crowd.categories, crowd.lie
        # Codes have no third value of their own, and so many categories that are no whole number.
        if d == 2 or d % 1 or crowd.groups > 1 or crowd.each % 1 or m == 0 or q == 0:  # noqa: PLR2004 two values
            return None
        if crowd.noise_dummies and (d > 3 or crowd.sum_noise):  # noqa: PLR2004 three values
            return None
        crowd, cut = crowd.certain(), delta * TAILS
        on_one = likely(m, q, cut)[-1] + likely(crowd.dummies, 1 / d, cut)[-1] + 1
        noise = likely(m, crowd.hiding, cut)
        numbers = len(noise) * on_one**2
        if crowd.noise_dummies:
            numbers = _NOISY * (on_one + crowd.noise_dummies.most) ** 3
        is_quick = numbers <= _NUMBERS and numbers * noise[-1] <= _MULTIPLICATIONS
        return cls(crowd, cut) if is_quick else None

    def epsilon(self, delta: float, low: float, high: float) -> float:
        """The smallest epsilon in [low, high] that is proven for `delta`; infinite if none is.

        `high` itself if searching for less is not worth the time.
        """
        m, epsilon = self.crowd.others, low
        for a in (0, m):  # nearly always one of these is the worst
            epsilon = self._epsilon(self._view_probabilities(a, 0, m - a), delta, epsilon, high)
        if epsilon == inf or low < high * _NOTHING < epsilon:
            return max(epsilon, high)
        # From how many to how many of the others hold v, and from how many to how many w.
        finest, blocks = max(1, m // _BLOCKS), [(0, m, 1, m // 2), (0, m, 0, 0)]
        while blocks and epsilon < inf:
            min_v, max_v, min_w, max_w = blocks.pop()
            # As many hold v as hold w, or more; else v and w change places.
            if min_v + min_w > m or max_v < min_w:
                continue
            laws = self._view_probabilities(min_v, min_w, max(0, m - max_v - max_w))
            if self._delta(laws, epsilon) <= delta:
                continue
            if max(max_v - min_v, max_w - min_w) < finest:
                epsilon = self._epsilon(laws, delta, epsilon, high)
            elif max_v - min_v >= max_w - min_w:  # halved along its longer side
                middle = (min_v + max_v) // 2
                blocks += [(min_v, middle, min_w, max_w), (middle + 1, max_v, min_w, max_w)]
            else:
                middle = (min_w + max_w) // 2
                blocks += [(min_v, max_v, min_w, middle), (min_v, max_v, middle + 1, max_w)]
        return epsilon

    def _epsilon(self, laws: _Views, delta: float, low: float, high: float) -> float:
        if self._delta(laws, low) <= delta:
            return low
        if self._delta(laws, high) > delta:
            return inf
        while high - low > _CLOSE * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self._delta(laws, middle) <= delta else (middle, high)
        return high

    def _delta(self, laws: _Views, central: float) -> float:
        """Hockey-stick divergence at exp(central), in both directions, rounded up."""
        t = exp(central) * (1 - _ROUNDING)
        deltas = (
            float(np.maximum(first * (1 + _ROUNDING) - t * other, 0).sum())
            for first, other in (laws, laws[::-1])
        )
        return max(deltas) + _LEFT_OUT * self.cut

    def _view_probabilities(self, a: int, b: int, third_count: int) -> _Views:
        """Probabilities of all (x, s, r), if the person holds v and if the person holds w.

        `a`, `b` and `third_count` are the numbers of others who hold v, w and u.
        """
        d, q, p = self.crowd.categories, self.crowd.lie, self.crowd.keep
        noise = self._likely(third_count, d * q).astype(np.intp)
        min_x, hold_v = self._holders(a)
        min_y, hold_w = self._holders(b)
        laws = [_convolve(_convolve(self._even(int(noise[0]), third_count), hold_v), hold_w.T)]
        for _ in noise[1:]:
            laws.append(_with_one_report(laws[-1], 1 / d, 1 / d, 1 - 2 / d))
        by_noise = np.stack(laws) * pmf(noise, third_count, d * q)[:, None, None]
        by_noise = np.pad(by_noise, ((0, 0), (0, 1), (0, 1)))
        x, y = np.indices(by_noise.shape[1:])
        offsets = np.maximum(min_x + x + min_y + y - (a + b + self.crowd.dummies + 1), 0).ravel()
        first, two = (
            _with_one_report(by_noise, *chances, (d - 2) * q) for chances in ((p, q), (q, p))
        )
        if noise_dummies := self.crowd.noise_dummies:
            law = law_of(noise_dummies)
            first, two = (_with_dummies(table.sum(axis=0), law) for table in (first, two))
            mask = first + two > self.cut / len(first)
            return first[mask], two[mask]
        first, two = (table.reshape(len(noise), -1) for table in (first, two))
        likely = np.flatnonzero((first + two).sum(axis=0) > self.cut / len(offsets))
        likely = likely[np.argsort(offsets[likely], kind="stable")]
        moved = {
            n: self._thirds[np.maximum(noise - n, 0)].T for n in np.unique(offsets[likely]).tolist()
        }
        starts = np.union1d(
            np.searchsorted(offsets[likely], list(moved)),
            np.arange(0, len(likely), max(1, _AT_ONCE // self._thirds.size)),
        )
        parts = [likely[start:end] for start, end in pairwise([*starts.tolist(), len(likely)])]
        first, two = (
            np.concatenate(
                [(moved[int(offsets[part[0]])] @ law[:, part]).ravel() for part in parts]
            )
            for law in (first, two)
        )
        mask = first + two > self.cut / len(first)
        return first[mask], two[mask]

    @cached_property
    def _thirds(self) -> Floats:
        """For each number of uniform reports on third values, the law of how many are not on u."""
        d, most = self.crowd.categories, self._likely(self.crowd.others, self.crowd.hiding)[-1]
        numbers = np.arange(most + 1)
        if d == 3:  # noqa: PLR2004 there is but one third value
            return np.ones((len(numbers), 1))
        return pmf(numbers, numbers[:, None], (d - 3) / (d - 2))

    def _likely(self, trials: int, chance: float) -> Floats:
        """Numbers of a binomial, without tails of probability `cut` on either side."""
        most = trials - binomial_quantile(self.cut, trials, 1 - chance)
        return np.arange(float(binomial_quantile(self.cut, trials, chance)), most + 1)

    def _even(self, noise: int, third_count: int) -> Floats:
        """Law of how many of `noise` and of the dummies are on v, and how many on w.

        The array has room for any probable amount of noise of `third_count` people.
        """
        d, dummies = self.crowd.categories, self.crowd.dummies
        most = self._likely(third_count, self.crowd.lie)[-1] + self._likely(dummies, 1 / d)[-1]
        x, y = np.indices((int(most) + 1,) * 2)
        reports = noise + dummies
        return pmf(x, reports, 1 / d) * pmf(y, np.maximum(reports - x, 0), 1 / (d - 1))

    def _holders(self, people: int) -> tuple[int, Floats]:
        """Least probable number of v's holders on v; law of how many are on v, and on w."""
        d, q = self.crowd.categories, self.crowd.lie
        lies = self._likely(people, (d - 1) * q)[::-1, None]
        on_w = np.arange(self._likely(people, q)[-1] + 1)
        chances = pmf(lies, people, (d - 1) * q) * pmf(on_w, lies, 1 / (d - 1))
        return people - int(lies[0, 0]), chances


def _convolve(first: Floats, other: Floats) -> Floats:
    """Law of the sum of two independent pairs of numbers."""
    rows, width = len(first) + len(other) - 1, first.shape[1] + other.shape[1] - 1
    first, flat_other = (
        np.pad(law, ((0, 0), (0, width - law.shape[1]))).ravel() for law in (first, other)
    )
    return np.convolve(first, flat_other)[: rows * width].reshape(rows, width)


def _with_dummies(law: Floats, dummy_law: Floats) -> Floats:
    """Probabilities of all counts of three values, of which the last has the other reports."""
    rows, columns = law.shape
    on_both = np.add.outer(np.arange(rows), np.arange(columns))
    moves = shifted_chances(dummy_law, rows + columns - 1)
    on_third = law[:, :, None] * moves[:, ::-1].T[on_both]
    on_w = np.einsum("jy,xyk->xjk", shifted_chances(dummy_law, columns), on_third)
    views: Floats = shifted_chances(dummy_law, rows) @ on_w.reshape(rows, -1)
    return views.ravel()


def _with_one_report(law: Floats, on_v: float, on_w: float, on_neither: float) -> Floats:
    """The law with one more report of these probabilities; entries beyond the array are lost."""
    grown = on_neither * law
    grown[..., 1:, :] += on_v * law[..., :-1, :]
    grown[..., 1:] += on_w * law[..., :-1]
    return grown
