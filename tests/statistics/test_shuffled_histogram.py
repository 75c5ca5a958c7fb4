"""The exact accountant of a shuffled histogram: never below the truth, and hardly above it."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement, permutations, product
from math import comb, exp, inf, log, nextafter
from random import Random
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from scipy.stats import binom

from hubbub.analysis.arrays import Floats
from hubbub.errors import BadParameter
from hubbub.mechanisms.even_lies import even_lies
from hubbub.mechanisms.vector_codes import VectorCodes
from hubbub.privacy.shuffled_epoch import ShuffledEpoch
from hubbub.privacy.shuffled_histogram import central_epsilon, largest_local, profile
from tests.support.crowds import crowd_of

pytestmark = pytest.mark.thorough

DELTA = 1e-8
_CELLS = 1_000_000
"""Chances of two counts: as many as are summed."""
_TRANSFORM = 1e-14
"""What a chance that comes out of a transform is off by at most; compared with sums, half of it."""


Chances = dict[tuple[int, ...], Fraction]


def _together(reports: Sequence[Sequence[Fraction]]) -> Chances:
    """Every histogram of independent reports, with its exact chance."""
    chances: Chances = {(0,) * len(reports[0]): Fraction(1)}
    for report in reports:
        grown: Chances = defaultdict(Fraction)
        for counts, chance in chances.items():
            for x, probability in enumerate(report):
                grown[(*counts[:x], counts[x] + 1, *counts[x + 1 :])] += chance * probability
        chances = grown
    return chances


def _histogram_chances(values: tuple[int, ...], d: int, lie: Fraction, dummies: int) -> Chances:
    """Every histogram of these people's reports and of dummies, with its exact chance."""
    keep = 1 - (d - 1) * lie
    reports = [[keep if x == value else lie for x in range(d)] for value in values]
    return _together([*reports, *[[Fraction(1, d)] * d] * dummies])


def _excess(first: Chances, two: Chances, ratio: Fraction) -> Fraction:
    """The hockey-stick divergence."""
    over = [p - ratio * two[counts] for counts, p in first.items()]
    return sum((more for more in over if more > 0), Fraction(0))


def _exact_delta(n: int, d: int, lie: Fraction, t: float, dummies: dict[int, Fraction]) -> Fraction:
    """The hockey-stick divergence, over all that the others may hold and every pair of values.

    `dummies` are the chances of their numbers, which all can see.
    """
    worst = Fraction(0)
    for others in combinations_with_replacement(range(d), n - 1):
        distributions = [
            {
                counts: chance * likely
                for number, likely in dummies.items()
                for counts, chance in _histogram_chances((value, *others), d, lie, number).items()
            }
            for value in range(d)
        ]
        for first, two in permutations(distributions, 2):
            worst = max(worst, _excess(first, two, Fraction(t)))
    return worst


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize(
    ("n", "dummies", "each"),
    [
        *((n, 0, 0.0) for n in (1, 2, 3, 4, 5)),
        *((n, 2, 0.0) for n in (1, 3)),
        *((n, 0, each) for n, each in ((1, 0.5), (2, 0.25), (3, 0.5), (2, 1.0), (2, 1.5))),
    ],
)
@pytest.mark.parametrize("local", [0.5, 1.5, 3.0])
def test_delta_is_never_below_that_of_all_outcomes(
    n: int, d: int, local: float, dummies: int, each: float
) -> None:
    """Enumerated with fractions: every histogram, whatever the others hold.

    The number of dummies of devices is a sum of coins.
    """
    lie, whole, coin = Fraction(1 / (exp(local) + d - 1)), int(each), Fraction(each % 1)
    numbers = {
        dummies + whole * n + number: comb(n, number) * coin**number * (1 - coin) ** (n - number)
        for number in range(n + 1 if coin else 1)
    }
    for central in (0.1 * local, 0.4 * local, 0.8 * local):
        exact = _exact_delta(n, d, lie, nextafter(exp(central), inf), numbers)
        delta = profile(crowd_of(n, d, local, dummies=dummies, each=each), 1e-15)(central)
        assert delta >= exact
        if exact > 1e-3 and d == 3:
            assert delta <= 1.35 * float(exact), "a small crowd shows how many lied"


@pytest.mark.parametrize("d", [2, 16])
@pytest.mark.parametrize("each", [0.03, 0.5, 1.02])
def test_dummies_of_devices_hide_at_least_as_well_as_the_shufflers(d: int, each: float) -> None:
    """To those whom a known number hides, within what chance makes of the number."""
    crowd = crowd_of(10_000, d, 7.0, honest=0.9, each=each)
    epsilon = central_epsilon(crowd, DELTA)
    dummy_count = (crowd.others + 1) * each
    spread = 6 * (dummy_count * (1 - each % 1)) ** 0.5

    def with_dummies(number: float) -> float:
        dummies = round(number)
        return central_epsilon(crowd_of(10_000, d, 7.0, honest=0.9, dummies=dummies), DELTA)

    assert with_dummies(dummy_count + spread) < epsilon < with_dummies(dummy_count - spread)
    example = with_dummies(dummy_count)
    assert example <= epsilon * 1.001
    assert epsilon <= 1.1 * example


def _shown_hashed(values: Sequence[tuple[int, ...]], d: int, lie: Fraction) -> Chances:
    """Every histogram of these people's reports, of whom each shows one of its buckets or lies."""
    groups = len(values[0])
    return _together(
        [
            [
                (1 - (d - 1) * lie if x == bucket else lie) / groups
                for bucket in buckets
                for x in range(d)
            ]
            for buckets in values
        ]
    )


@pytest.mark.parametrize(
    ("n", "d", "groups"), [(1, 3, 2), (2, 3, 2), (3, 3, 2), (2, 4, 2), (2, 3, 3)]
)
@pytest.mark.parametrize("local", [0.5, 3.0])
def test_delta_of_hashed_strings_is_never_below_that_of_all_outcomes(
    n: int, d: int, groups: int, local: float
) -> None:
    """A string is its buckets by every function; those of others and every pair, in fractions."""
    lie = Fraction(1 / (exp(local) + d - 1))
    ratios = [Fraction(nextafter(exp(share * local), inf)) for share in (0.1, 0.4, 0.8)]
    crowd = crowd_of(n, d, local, groups=groups)
    deltas = [profile(crowd, 1e-15)(share * local) for share in (0.1, 0.4, 0.8)]
    strings = list(product(range(d), repeat=groups))
    for others in combinations_with_replacement(strings, n - 1):
        # Which bucket is which by each function is a name: one of the pair may be all zeros.
        first = _shown_hashed([strings[0], *others], d, lie)
        for string in strings[1:]:
            two = _shown_hashed([string, *others], d, lie)
            for most, ratio in zip(deltas, ratios, strict=True):
                assert _excess(first, two, ratio) <= most
                assert _excess(two, first, ratio) <= most


def _attack(crowd: ShuffledEpoch) -> Iterator[tuple[Floats, Floats]]:
    """Two histograms that an adversary tells apart: the others all hold a value that is neither.

    Of two values, all hold the same. What others noise is all there is, and nothing is rounded. Of
    several groups the person's own is looked at, which is known.
    """
    d, m, dummies = crowd.categories, crowd.others, crowd.dummies
    q = 0.0 if crowd.epsilon_local == inf else 1 / (exp(crowd.epsilon_local) + d - 1)
    p = 1 - (d - 1) * q
    if d == 2:
        mean = m * q + dummies / 2
        counts = np.arange(int(mean + 14 * mean**0.5 + 60))
        noise = np.convolve(binom.pmf(counts, m, q), binom.pmf(counts, dummies, 0.5))
        with_one, other = np.append(0, noise), np.append(noise, 0)
        own_law, not_held = p * with_one + q * other, q * with_one + p * other
        yield own_law, not_held
        yield not_held, own_law
        return
    mean = m * q / crowd.groups + dummies / d
    x, y = np.meshgrid(*[np.arange(int(mean + 10 * mean**0.5 + 40))] * 2, indexing="ij")

    def joint(x: Any, y: Any) -> Floats:
        """Of lies and dummies on the two values; exact if there are only one kind."""
        trials, chance = (m, q / crowd.groups) if q else (dummies, 1 / d)
        both = binom.pmf(x + y, trials, 2 * chance) * binom.pmf(x, x + y, 0.5)
        return np.where((x >= 0) & (y >= 0), both, 0.0)

    first, second, neither = joint(x - 1, y), joint(x, y - 1), joint(x, y)
    yield (
        p * first + q * second + (1 - p - q) * neither,
        q * first + p * second + (1 - p - q) * neither,
    )


SETTINGS = [
    crowd_of(1000, 2, 3.1),
    crowd_of(10_000, 2, 5.32),
    crowd_of(100_000, 2, 2.0),
    crowd_of(10_000, 2, 6.0, dummies=100),
    crowd_of(1000, 2, inf, dummies=80),
    crowd_of(1000, 3, 3.5),
    crowd_of(1000, 16, 3.1),
    crowd_of(10_000, 16, 5.189),
    crowd_of(100_000, 16, 7.396),
    crowd_of(100_000, 16, 7.2, honest=0.9),
    crowd_of(1_000_000, 256, 9.0),
    crowd_of(10_000, 4096, 7.063),
    crowd_of(100_000, 65_536, 9.57),
    crowd_of(1000, 65_536, 8.0),
    crowd_of(1000, 16, inf, dummies=16 * 61),
    crowd_of(10_000, 16, 3.5, groups=4),
    crowd_of(100_000, 1024, 6.5, groups=4),
    crowd_of(1_000_000, 65_536, 10.0, groups=2),
]


@pytest.mark.parametrize("crowd", SETTINGS, ids=repr)
def test_the_bound_is_just_above_an_attack(crowd: ShuffledEpoch) -> None:
    """From below by dp-accounting's PLD of two explicit mass functions, and by 1% from above."""
    epsilon = central_epsilon(crowd, DELTA)
    reached = 0.0
    for own_law, other in _attack(crowd):
        distribution = privacy_loss_distribution.from_two_probability_mass_functions(
            _logs(other),
            _logs(own_law),
            pessimistic_estimate=False,
            value_discretization_interval=epsilon * 1e-4,
        )
        reached = max(reached, distribution.get_epsilon_for_delta(DELTA))
        exact = float(np.maximum(own_law - exp(epsilon) * other, 0).sum())
        assert exact <= DELTA
    assert 0.999 * reached <= epsilon, "optimistic by the grid alone"
    assert epsilon <= 1.01 * reached


@dataclass(frozen=True)
class _Adversary:
    """Sees the whole histogram, and knows that the others all hold one value: the better of two.

    Either a third value, u. Then how many show neither v, w nor u tells how many lie, and so how
    well the person's own lie is hidden; where that is too much to sum they are left out, as of
    hashed strings. Or the person's own value: then of w and of the rest, all but dummies are lies.

    Nothing is rounded but by transforms, whose errors are taken off.
    """

    crowd: ShuffledEpoch

    def delta(self, central: float) -> float:
        """What the better of both reaches."""
        return max(self._apart(central), self._alike(central))

    @cached_property
    def _chances(self) -> tuple[float, float]:
        q = 1 / (exp(self.crowd.epsilon_local) + self.crowd.categories - 1)
        return 1 - (self.crowd.categories - 1) * q, q

    @cached_property
    def _thirds(self) -> int:
        """Values beside v, w and u that are looked at."""
        d, mean = int(self.crowd.categories), self._noise(1)
        small = _size(2 * mean) * _size((d - 3) * mean) <= _CELLS
        return d - 3 if small and self.crowd.groups == 1 else 0

    def _noise(self, values: int) -> float:
        """How many of the others' reports, all lies, and dummies are on so many values."""
        lies = self.crowd.others * self._chances[1] / self.crowd.groups
        return values * (lies + self.crowd.dummies / self.crowd.categories)

    def _law(self, shape: tuple[int, int], values: tuple[int, int], *own: float) -> Floats:
        """Chances of how many others' lies and dummies are on each of two sets of values.

        own: the chances that the person's report is one more of each, too.
        """
        lie, d = self._chances[1] / self.crowd.groups, self.crowd.categories
        kinds = [
            (self.crowd.others, values[0] * lie, values[1] * lie),
            (self.crowd.dummies, values[0] / d, values[1] / d),
            (len(own) // 2, *(own or (0.0, 0.0))),
        ]
        row_phase, two = (np.expm1(-2j * np.pi * np.arange(n) / n) for n in shape)
        first, second = row_phase[:, None], two[None, : shape[1] // 2 + 1]
        logs = sum(many * np.log1p(a * first + b * second) for many, a, b in kinds)
        return np.maximum(np.fft.irfft2(np.exp(logs), s=shape, axes=(0, 1)), 0)

    @cached_property
    def _noises(self) -> Floats:
        shape = _size(self._noise(2)), _size(self._noise(self._thirds)) if self._thirds else 1
        return self._law(shape, (2, self._thirds))

    def _apart(self, central: float) -> float:
        """Of s reports on v and w, any split of others' is Bin(s, 1/2): a sum over s and r."""
        (p, q), t, noise = self._chances, exp(central), self._noises
        s = np.arange(len(noise))[:, None] * np.ones_like(noise)
        # The person's own is one of the two, or on a value that is looked at, or on another.
        expected = np.append(np.zeros_like(noise[:1]), noise[:-1], axis=0) * 2 / np.maximum(s, 1)
        third = (self.crowd.categories - 2 - self._thirds) * q * noise
        third[:, 1:] += self._thirds * q * noise[:, :-1]
        mask = expected > _TRANSFORM * 100
        s, expected, third = s[mask], expected[mask], third[mask]
        edge = np.floor(((t * p - q) * s + (t - 1) * third / expected) / ((p - q) * (1 + t))) + 1
        beyond = binom.sf(edge - 1, s, 0.5)
        on_first = s / 2 * binom.sf(edge - 2, s - 1, 0.5)
        for_v = expected * ((p - q) * on_first + q * s * beyond) + third * beyond
        for_w = expected * (p * s * beyond - (p - q) * on_first) + third * beyond
        off = 2 * (1 + t) * _TRANSFORM  # what is of the person's own report counts twice at most
        return float(np.maximum(for_v - t * for_w - off, 0)[edge <= s].sum())

    def _alike(self, central: float) -> float:
        (p, q), t, d = self._chances, exp(central), int(self.crowd.categories)
        shape = _size(self._noise(1) + 1), _size(self._noise(d - 2) + 1)
        if self.crowd.groups > 1 or shape[0] * shape[1] > _CELLS:
            return 0.0
        v, w = (self._law(shape, (1, d - 2), own, (d - 2) * q) for own in (q, p))
        return max(
            float(np.maximum(first - t * two - (1 + t) * _TRANSFORM, 0).sum())
            for first, two in ((v, w), (w, v))
        )


def _account(crowd: ShuffledEpoch, delta: float, ratio: float) -> float:
    """Its central epsilon; not below what an adversary reaches, and above by less than `ratio`."""
    epsilon, adversary = central_epsilon(crowd, delta), _Adversary(crowd)
    assert adversary.delta(epsilon) <= delta * (1 + 1e-6)
    assert adversary.delta(epsilon / ratio) > delta
    return epsilon


def _plan(crowd: ShuffledEpoch, central: float, delta: float) -> ShuffledEpoch:
    """The crowd at the largest local epsilon, at most .03 below what an adversary allows."""
    local = largest_local(crowd, central, delta)
    planned = replace(crowd, epsilon_local=local)
    assert _Adversary(planned).delta(central) <= delta * (1 + 1e-6)
    if local < 16 - 0.03:
        assert _Adversary(replace(crowd, epsilon_local=local + 0.03)).delta(central) > delta
    return planned


def _size(mean: float) -> int:
    """So many numbers from 0 on, beyond which a count of this mean is with a chance below 1e-15."""
    return int(mean + 12 * mean**0.5 + 45)


@pytest.mark.parametrize(("d", "groups"), [(3, 1), (16, 1), (5000, 1), (16, 4)])
def test_a_wide_range_of_crowds_is_accounted_for_within_three_percent(d: int, groups: int) -> None:
    """Never below an adversary; near it where a value has 25 lies on average, which hide most."""
    near = 0
    for n, local in product((2, 1000, 10**6), (0.1, 2.5, 5.0, 8.0)):
        crowd = crowd_of(n, d, local, honest=0.7, groups=groups)
        epsilon, adversary = central_epsilon(crowd, DELTA), _Adversary(crowd)
        assert adversary.delta(epsilon) <= DELTA * (1 + 1e-6)
        if crowd.others * crowd.lie / groups >= 25:
            near += 1
            assert adversary.delta(epsilon / 1.03) > DELTA
    assert near >= 4


@pytest.mark.parametrize(
    ("reports", "categories", "lies", "honest", "dummies"),
    [
        (300, 3, 12, 1.0, 5),
        (300, 16, 4, 0.5, 0),
        (500, 64, 2, 1.0, 0),
        (999, 5, 9, 1.0, 5),
        (1000, 3, 16, 0.5, 0),
        (1000, 5, 6, 1.0, 0),
        (1000, 8, 2, 1.0, 5),
        (3000, 4, 8, 0.5, 0),
        (10_000, 6, 4, 1.0, 0),
        (10_000, 16, 1, 1.0, 5),
    ],
)
def test_with_few_lies_epsilon_is_within_1_percent_of_the_better_adversary(
    reports: int, categories: int, lies: int, honest: float, dummies: int
) -> None:
    """Within 1%; to the rounding of binomial chances, never below. dummies: on each value."""
    crowd_size = round(reports / honest)
    local = log(reports / lies - categories + 1)
    crowd = crowd_of(crowd_size, categories, local, honest=honest, dummies=dummies * categories)
    _account(crowd, DELTA, 1.01)


@pytest.mark.parametrize(
    ("n", "d", "dummies"), [(2, 3, 0), (4, 3, 2), (5, 3, 0), (3, 4, 1), (5, 4, 0), (4, 5, 0)]
)
@pytest.mark.parametrize("local", [0.5, 3.0])
def test_the_epsilon_of_tiny_epochs_is_that_of_all_outcomes(
    n: int, d: int, dummies: int, local: float
) -> None:
    """In fractions, whatever the others hold, several third values too; within 1%."""
    lie, numbers = Fraction(1 / (exp(local) + d - 1)), {dummies: Fraction(1)}
    delta = float(_exact_delta(n, d, lie, exp(0.6 * local), numbers))
    epsilon = central_epsilon(crowd_of(n, d, local, dummies=dummies), delta)
    assert _exact_delta(n, d, lie, exp(epsilon), numbers) <= delta
    assert epsilon <= 0.6 * local * 1.01


def _of_case(crowd: ShuffledEpoch, a: int, b: int) -> tuple[Floats, Floats]:
    """The chances of all histograms where a of the others hold v, b hold w, the rest one u.

    Report by report. What shows neither v, w nor u is one number.
    """
    d, q, p = crowd.categories, crowd.lie, crowd.keep
    room = crowd.others + crowd.dummies + 2
    chances = np.zeros((room, room, room if d > 3 else 1))
    chances[0, 0, 0] = 1

    def add_report(chances: Floats, on_v: float, on_w: float, on_u: float) -> Floats:
        grown = on_u * chances
        grown[1:] += on_v * chances[:-1]
        grown[:, 1:] += on_w * chances[:, :-1]
        grown[:, :, 1:] += max(0.0, 1 - on_v - on_w - on_u) * chances[:, :, :-1]
        return grown

    third = crowd.others - a - b
    kinds = [(a, (p, q, q)), (b, (q, p, q)), (third, (q, q, p)), (crowd.dummies, (1 / d,) * 3)]
    for many, report in kinds:
        for _ in range(many):
            chances = add_report(chances, *report)
    return add_report(chances, p, q, q), add_report(chances, q, p, q)


@pytest.mark.parametrize(
    ("crowd", "delta"),
    [
        (crowd_of(30, 3, 1.66), 8e-4),
        (crowd_of(40, 3, 0.6), 9e-6),
        (crowd_of(34, 3, 1.3, honest=0.8, dummies=4), 1e-6),
        (crowd_of(20, 4, 1.2), 1e-4),
        (crowd_of(16, 5, 0.8, dummies=3), 5e-6),
        (crowd_of(20, 8, 2.2), 1e-6),
    ],
)
def test_the_stated_epsilon_is_that_of_the_worst_others(crowd: ShuffledEpoch, delta: float) -> None:
    """Every case of who holds v and w, enumerated: never below, and within 1%."""
    m = crowd.others
    epsilon, worst = central_epsilon(crowd, delta), 0.0
    assert epsilon < 0.99 * crowd.epsilon_local
    for a in range(m + 1):
        for b in range(min(a, m - a) + 1):
            laws = _of_case(crowd, a, b)
            for first, two in (laws, laws[::-1]):
                over = float(np.maximum(first - exp(epsilon) * two, 0).sum())
                assert over <= delta
                worst = max(worst, float(np.maximum(first - exp(epsilon / 1.01) * two, 0).sum()))
    assert worst > delta


@pytest.mark.parametrize("place", range(8))
def test_crowds_with_few_lies_are_accounted_and_planned_within_the_promised_ratio(
    place: int,
) -> None:
    """Drawn by a fixed seed: 2 to 16,000 reports, 3 to 16 values, up to a central epsilon of 6."""
    drawn = Random(f"few {place}")
    reports, categories = round(2 ** drawn.uniform(1, 14)), round(2 ** drawn.uniform(1.6, 4))
    honest, dummies = drawn.choice((0.5, 0.8, 1.0)), drawn.choice((0, 0, 2 * categories))
    central, delta = drawn.choice((2.0, 3.0, 4.0, 5.0, 6.0)), 10 ** drawn.uniform(-9, -4)
    crowd = crowd_of(reports, categories, 16.0, honest=honest, dummies=dummies)
    planned = _plan(crowd, central, delta)
    assert planned.epsilon_local < 16 - 0.03
    assert _account(planned, delta, 1.01) <= central


def _logs(chances: Floats) -> dict[int, float]:
    return {
        place: log(chance)
        for place, chance in enumerate(chances.ravel().tolist())
        if chance > 1e-300
    }


@pytest.mark.parametrize(
    ("reports", "categories", "local", "rare", "tenth"),
    [
        (10_000, 2, 5.320, 7.0, 7.0),
        (10_000, 16, 5.189, 7.8, 11.8),
        (10_000, 4096, 7.063, 6.2, 60),
        (100_000, 16, 7.396, 7.9, 12.2),
        (100_000, 256, 7.540, 7.8, 37.6),
        (100_000, 65_536, 9.570, 6.2, 214),
        (1_000_000, 16, 9.688, 7.9, 12.2),
        (1_000_000, 65_536, 10.815, 6.8, 363),
    ],
)
def test_the_largest_local_epsilon_and_its_errors_are_those_of_an_independent_computation(
    reports: int, categories: int, local: float, rare: float, tenth: float
) -> None:
    """rare, tenth: standard errors of values that nobody holds, and one in ten; rounded there."""
    crowd = crowd_of(reports, categories, 16.0)
    epsilon_local = largest_local(crowd, 1.0, DELTA)
    assert local - 0.006 <= epsilon_local <= local + 0.001
    crowd = replace(crowd, epsilon_local=epsilon_local)
    assert central_epsilon(crowd, DELTA) <= 1.0
    assert crowd.stderr(0.0) == pytest.approx(rare, rel=0.01)
    assert crowd.stderr(0.1) == pytest.approx(tenth, rel=0.01)


@pytest.mark.parametrize("central", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("categories", [3, 256])
@pytest.mark.parametrize(("reports", "dummies"), [(300, 5), (1000, 0), (1000, 2), (100_000, 0)])
def test_the_largest_local_epsilon_is_within_three_hundredths_of_what_an_adversary_allows(
    reports: int, categories: int, central: float, dummies: int
) -> None:
    """dummies: on each value."""
    crowd = crowd_of(reports, categories, 16.0, dummies=dummies * categories)
    assert _plan(crowd, central, DELTA).epsilon_local < 16 - 0.03


@pytest.mark.parametrize("place", range(12))
def test_random_crowds_are_accounted_and_planned_within_the_promised_ratio(place: int) -> None:
    """Told never below an adversary and within 3%; planned within .03; drawn by a fixed seed."""
    drawn = Random(f"crowd {place}")
    reports, categories = round(10 ** drawn.uniform(2.5, 6)), round(2 ** drawn.uniform(1.6, 16))
    honest, dummies = drawn.choice((0.5, 0.7, 0.9, 1.0)), drawn.choice((0, 0, 5 * categories))
    central = drawn.choice((0.25, 0.5, 1.0, 2.0, 4.0))
    crowd = crowd_of(reports, categories, 16.0, honest=honest, dummies=dummies)
    _account(_plan(crowd, central, DELTA), DELTA, 1.03)


def test_a_bound_proven_for_listed_values_is_not_used_for_codes() -> None:
    codes = even_lies(
        VectorCodes(epsilon=3.0, dimensions=16, words=16, books=1), 3.0
    )  # of 16 words two are near
    values = crowd_of(100, 8, 3.0, honest=0.9)
    epsilon = central_epsilon(replace(values, categories=codes.categories), 1e-6)
    assert epsilon > 1.02 * central_epsilon(values, 1e-6)


def test_people_lies_and_dummies_change_epsilon_in_the_right_direction() -> None:
    def epsilon(
        reports: int = 10_000, local: float = 5.0, delta: float = DELTA, **further: Any
    ) -> float:
        return central_epsilon(crowd_of(reports, 16, local, **further), delta)

    base = epsilon()
    assert epsilon(20_000) < base
    assert epsilon(local=5.5) > base
    assert epsilon(honest=0.5) > base
    assert epsilon(dummies=500) < base
    assert epsilon(groups=2) > base
    shared = epsilon(40_000, groups=4)
    assert shared == pytest.approx(base, rel=0.01), "a quarter of four times as many"
    assert epsilon(delta=1e-6) < base
    assert epsilon(1) == 5.0
    assert epsilon(100, inf) == inf
    alone = crowd_of(1, 16, 5.0)
    most = (exp(5) - 1) / (exp(5) + 15)
    assert profile(alone, 1e-15)(0.0) == pytest.approx(most, rel=1e-3)


@pytest.mark.parametrize(
    ("strangers", "is_kept"), [(0, True), (100, True), (300, False), (999, False)]
)
def test_a_flooded_crowd_keeps_its_promise_up_to_the_share_that_is_counted_on(
    strangers: int, is_kept: bool
) -> None:
    """Who makes reports of a crowd takes them away again: the others are all that hides anybody."""
    epsilon = central_epsilon(crowd_of(1000, 16, 3.5, honest=0.9), DELTA)
    honest_crowd = crowd_of(1000 - strangers, 16, 3.5)
    reached = max(
        float(np.maximum(own_law - exp(epsilon) * other, 0).sum())
        for own_law, other in _attack(honest_crowd)
    )
    assert (reached <= DELTA) is is_kept
    honest = (1000 - strangers) / 1000
    assert central_epsilon(crowd_of(1000, 16, 3.5, honest=honest), DELTA) == central_epsilon(
        honest_crowd, DELTA
    )
    if strangers == 999:
        assert central_epsilon(honest_crowd, DELTA) == 3.5, "the local epsilon remains"


def test_every_split_of_two_values_is_covered() -> None:
    """Whoever holds what, the count of one of two values never tells more than is told."""
    for n, local in ((60, 2.0), (400, 3.0), (400, 1.0)):
        p, q = exp(local) / (exp(local) + 1), 1 / (exp(local) + 1)
        central = 0.6 * central_epsilon(crowd_of(n, 2, local), 1e-4)
        crowd = crowd_of(n, 2, local)
        delta, worst = profile(crowd, 1e-15)(central), 0.0
        for holders in range(n):
            named = binom.pmf(np.arange(n + 1), n - 1 - holders, q)
            noise = np.convolve(named, binom.pmf(np.arange(n + 1), holders, p))
            with_one, other = np.append(0, noise), np.append(noise, 0)
            own_law, not_held = p * with_one + q * other, q * with_one + p * other
            for first, two in ((own_law, not_held), (not_held, own_law)):
                worst = max(worst, float(np.maximum(first - exp(central) * two, 0).sum()))
        assert worst <= delta <= 1.05 * worst


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"reports": 0}, "reports 0"),
        ({"categories": 1}, "categories 1"),
        ({"epsilon_local": 0.0}, "local epsilon 0.0"),
        ({"epsilon_local": 99.0}, "local epsilon 99.0"),
        ({"honest": 0.0}, "honest 0.0"),
        ({"dummies": -1}, "dummies -1"),
        ({"groups": 0}, "groups 0"),
        ({"categories": 2, "groups": 2}, "three categories or more"),
        ({"dummies": 9, "groups": 2}, "no dummies"),
    ],
)
def test_numbers_out_of_range_are_refused(wrong: dict[str, Any], message: str) -> None:
    right: dict[str, Any] = {"reports": 10, "categories": 16, "epsilon_local": 5.0}
    with pytest.raises(BadParameter, match=message):
        ShuffledEpoch(**{**right, **wrong})
    with pytest.raises(BadParameter, match="delta 1"):
        central_epsilon(crowd_of(10, 2, 1.0), 1)


def test_a_promise_that_no_crowd_of_this_size_keeps_leaves_reports_private_by_themselves() -> None:
    assert largest_local(crowd_of(3, 16, 16.0), 0.5, DELTA) == pytest.approx(0.5, abs=0.1)
    for reports, categories in product((1, 10, 100), (2, 16)):
        assert largest_local(crowd_of(reports, categories, 16.0), 1.0, DELTA) >= 1.0
