"""Projective geometry response: one index, near-optimal at every epsilon. For very many values.

Idea: value v stands for a hyperplane of a projective space over a prime field; two of them meet in
    a fixed share of their points. Send a point of v's hyperplane with probability `keep`, else one
    off it, uniformly. The prime sets how large a part of all points a hyperplane is: about 1/(e+1).
Guarantee: log of (keep / points on) / ((1-keep) / points off) <= epsilon; keep = e S/(e S + k - S)
    rounded down, S of the k points on a hyperplane.
Sends: an index in [0, k), k = (s^t - 1)/(s - 1) >= d: 3 bytes for a million values.
Estimator and variance: pure with p = keep, q = keep I/S + (1-keep) (S-I)/(k-S), I points on two
    hyperplanes; near 4 e n/(e-1)^2 for rare values. One transform reads all values.
Source: Feldman, Nelson, Nguyen, Talwar (ICML 2022), section 3. Primes suffice: s is the one with
    the least variance among those whose transform stays within bounds.
"""

from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction
from functools import cache
from typing import Final

from hubbub.fields.frozen import frozen, set_derived
from hubbub.mechanisms import pure_protocols
from hubbub.mechanisms.layout import Estimates, OneHot, Totals
from hubbub.mechanisms.probability import Probability, exp_at_most, log_at_least
from hubbub.mechanisms.projective_geometry import Incidence, primes
from hubbub.mechanisms.random_bits import BitSource

# Of cells, so that totals stay a few megabytes, and of the additions that read them: seconds.
_MAX_POINTS: Final = 1 << 22
_MAX_WORK: Final = 1 << 29
_MAX_PRIME: Final = 4099
# Geometries whose variances differ by less, as a factor, are compared exactly.
_NEAR: Final = 1 + 1e-6


@frozen()
class ProjectiveResponse(pure_protocols.ListedMechanism):
    """Projective geometry response over [0, categories)."""

    epsilon: float
    categories: int
    keep: Probability = field(init=False, repr=False)
    channel: pure_protocols.Pure = field(init=False, repr=False)
    transform: Incidence = field(init=False, repr=False)

    NAME = "projective"
    VERSION = 1
    SMALL = (
        {"epsilon": 0.1, "categories": 2},
        {"epsilon": 1.0, "categories": 10},
        {"epsilon": 1.0, "categories": 4},
        {"epsilon": 1.6, "categories": 29},
        {"epsilon": 3.0, "categories": 9},
    )

    def __post_init__(self) -> None:
        pure_protocols.check_categories(self.categories)
        odds = exp_at_most(self.epsilon)
        transform = _best_space(odds, self.categories)
        keep = _keep(odds, transform)
        set_derived(self, transform=transform, keep=keep, channel=_channel(keep, transform))

    @property
    def layout(self) -> OneHot:
        return OneHot(self.transform.points)

    def privacy_loss(self) -> float:
        points_on_one, points = self.transform.on_one, self.transform.points
        keep_chance, lied = self.keep.exact, self.keep.complement.exact
        return log_at_least(keep_chance * (points - points_on_one) / (lied * points_on_one))

    def likelihood(self, value: int, cells: Mapping[int, int]) -> Fraction:
        points_on_one, points = self.transform.on_one, self.transform.points
        if self.transform.meets(value, next(iter(cells))):
            return self.keep.exact / points_on_one
        return self.keep.complement.exact / (points - points_on_one)

    def randomize(self, value: int, source: BitSource) -> bytes:
        self.check(value)
        space = self.transform
        s, t = space.prime, space.dimensions
        plane = space.vector(value)
        # All coordinates but one are free; that one, where the plane has its 1, sets the inner
        # product: 0 for a point on the plane, and then they are not all 0; anything else off it.
        product = 0
        if source.chance(self.keep):
            free = 1 + source.below(s ** (t - 1) - 1)
        else:
            free, product = divmod(source.below(s ** (t - 1) * (s - 1)), s - 1)
            product += 1
        pivot = plane.index(1)
        vector = [0] * t
        for coordinate in range(t):
            if coordinate != pivot:
                free, vector[coordinate] = divmod(free, s)
                product -= plane[coordinate] * vector[coordinate]
        vector[pivot] = product % s
        return self.layout.encode(space.point(vector))

    def estimate(self, totals: Totals) -> Estimates:
        totals.check(self.layout)
        supports = self.transform.sums(totals.cells, self.categories)
        return self.channel.estimates(supports, totals.reports)


def _keep(odds: Fraction, space: Incidence) -> Probability:
    weight = odds * space.on_one
    # PRIVACY: down, towards uniform.
    return Probability.at_most(weight / (weight + space.points - space.on_one))


def _channel(keep: Probability, space: Incidence) -> pure_protocols.Pure:
    points, points_on_one, points_on_both = space.points, space.on_one, space.on_two
    q = keep.exact * Fraction(points_on_both, points_on_one) + keep.complement.exact * Fraction(
        points_on_one - points_on_both, points - points_on_one
    )
    return pure_protocols.Pure(keep.exact, q)


@cache
def _best_space(odds: Fraction, categories: int) -> Incidence:
    """The geometry of least variance with at least `categories` points."""
    spaces = []
    for prime in primes(_MAX_PRIME):
        dimensions = 2
        while (prime**dimensions - 1) // (prime - 1) < categories:
            dimensions += 1
        space = Incidence(prime, dimensions)
        if space.points <= _MAX_POINTS and space.points * prime * dimensions <= _MAX_WORK:
            spaces.append(space)
    variances = [_about_variance(float(odds), space) for space in spaces]
    least = min(variances) * _NEAR
    near_best = (space for space, v in zip(spaces, variances, strict=True) if v <= least)
    return min(near_best, key=lambda space: _channel(_keep(odds, space), space).variance(0, 1))


def _about_variance(odds: float, space: Incidence) -> float:
    """Variance that a report adds to an absent value, within 1e-9 of it: fractions are slow."""
    points, points_on_one, points_on_both = space.points, space.on_one, space.on_two
    keep = odds * points_on_one / (odds * points_on_one + points - points_on_one)
    q = keep * points_on_both / points_on_one + (1 - keep) * (points_on_one - points_on_both) / (
        points - points_on_one
    )
    return q * (1 - q) / (keep - q) ** 2
