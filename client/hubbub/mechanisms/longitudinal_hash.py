"""Longitudinal local hashing: the bucket of one of many values, with a permanent lie beneath.

Idea: a device picks one of a public pool of hash functions for life, hashes its value to one of g
    buckets, and answers with that bucket as `long.grr` does: a permanent lie for each bucket, and
    again a lie for every report. An unchanged value can be reported every day without being
    averaged out, and values in one bucket share one permanent answer.
Guarantee: that of `long.grr` over g buckets: epsilon of one report, permanent_epsilon of all
    reports of one value. A value that changes to another bucket costs another permanent_epsilon;
    there are g of them, however many values a person ever holds. Which function it was says nothing
    of the value, but every report of a device has it: few functions tell few devices apart.
Sends: an index of function and bucket: 1 or 2 bytes.
Estimator and variance: pure with p = true, q = c true + (1-c) lie of `long.grr`, c = (g^(t-1) - 1)
    / (g^t - 1) the share of the functions under which two values collide, the same for any two.
    Near the variance of `long.unary` where g is near exp(epsilon) + 1.
Source: LOLOHA of Arcolezi, Pinzon, Palamidessi, Gambs (EDBT 2023), with a pool in place of a
    function of each device's own; values are vectors of t digits modulo a prime g and functions
    the inner products with the points of a projective space, so collisions are even and nothing
    is left of them (docs/decisions/0212-mechanisms-and-families.md).
"""

from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction
from functools import cache
from math import isqrt
from typing import Final

from hubbub.fields.frozen import frozen, set_derived
from hubbub.mechanisms import pure_protocols
from hubbub.mechanisms.layout import Estimates, OneHot, Totals
from hubbub.mechanisms.longitudinal_grr import PERMANENT_EPSILON, LongitudinalGrr
from hubbub.mechanisms.mechanism import Memo, Memoized, check_whole, whole
from hubbub.mechanisms.projective_geometry import HashPool, primes
from hubbub.mechanisms.random_bits import BitSource

_FUNCTION: Final = b"function"
_MAX_FUNCTIONS: Final = 1 << 12


@frozen()
class LongitudinalHash(Memoized, pure_protocols.ListedMechanism):
    """Chained randomized response over the buckets of a pool of hash functions."""

    epsilon: float
    permanent_epsilon: float = field(metadata=PERMANENT_EPSILON)
    categories: int
    functions: int = field(
        default=64,
        metadata=whole(
            "Largest number of hash functions, of which a device shows its own for life. More "
            "functions make answers more exact; a larger minimum of the construction overrides "
            "the number.",
            3,
            _MAX_FUNCTIONS,
            example=64,
        ),
    )
    transform: HashPool = field(init=False, repr=False)
    response: LongitudinalGrr = field(init=False, repr=False)
    channel: pure_protocols.Pure = field(init=False, repr=False)

    NAME = "long.hash"
    VERSION = 1
    SMALL = (
        {"epsilon": 0.1, "permanent_epsilon": 0.5, "categories": 2},
        {"epsilon": 1.0, "permanent_epsilon": 2.0, "categories": 7, "functions": 7},
        {"epsilon": 2.0, "permanent_epsilon": 3.0, "categories": 12, "functions": 6},
    )

    def __post_init__(self) -> None:
        pure_protocols.check_categories(self.categories)
        check_whole(self, "functions")
        pool, response, channel = _best_pool(
            self.epsilon, self.permanent_epsilon, self.categories, self.functions
        )
        set_derived(self, transform=pool, response=response, channel=channel)

    @property
    def layout(self) -> OneHot:
        """The cell of function j, bucket b is j g + b."""
        return OneHot(self.transform.functions * self.transform.prime)

    @property
    def permanent_groups(self) -> int:
        return self.transform.functions

    def privacy_loss(self) -> float:
        return self.response.privacy_loss()

    def permanent_loss(self) -> float:
        return self.response.permanent_loss()

    def permanent_key(self, value: int, memo: Memo) -> bytes:
        return self.response.permanent_key(self._function_and_bucket(value, memo)[1], memo)

    def likelihood(self, value: int, cells: Mapping[int, int]) -> Fraction:
        function, bucket = divmod(next(iter(cells)), self.transform.prime)
        true_bucket = self.transform.bucket(value, function)
        return self.response.channel.p if true_bucket == bucket else self.response.channel.q

    def randomize_again(self, value: int, memo: Memo, source: BitSource) -> bytes:
        function, bucket = self._function_and_bucket(value, memo)
        sent = self.response.respond(bucket, memo, source)
        return self.layout.encode(function * self.transform.prime + sent)

    def estimate(self, totals: Totals) -> Estimates:
        totals.check(self.layout)
        supports = self.transform.sums(totals.cells, self.categories)
        return self.channel.estimates(supports, totals.reports)

    def _function_and_bucket(self, value: int, memo: Memo) -> tuple[int, int]:
        """The device's function, and the value's bucket under it."""
        self.check(value)
        # PRIVACY: one function for life, drawn without a look at the value.
        function = memo.coins(_FUNCTION).below(self.transform.functions)
        return function, self.transform.bucket(value, function)


@cache
def _best_pool(
    epsilon: float, permanent_epsilon: float, categories: int, functions: int
) -> tuple[HashPool, LongitudinalGrr, pure_protocols.Pure]:
    """The pool of least variance with at most `functions` functions; else the smallest one."""
    pools = []
    for prime in primes(max(functions, 2 * isqrt(categories) + 3)):  # one of two digits at least
        dimensions = 2
        while prime**dimensions < categories:
            dimensions += 1
        pools.append(HashPool(prime, dimensions))
    allowed = max(functions, min(pool.functions for pool in pools))
    options = []
    for pool in pools:
        if pool.functions <= allowed:
            response = LongitudinalGrr(epsilon, permanent_epsilon, pool.prime)
            true_chance, lie_chance = response.channel.p, response.channel.q
            other_chance = lie_chance + pool.collisions * (true_chance - lie_chance)
            options.append((pool, response, pure_protocols.Pure(true_chance, other_chance)))
    return min(options, key=lambda option: (option[2].variance(0, 1), option[0].functions))
