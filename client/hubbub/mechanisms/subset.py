"""Subset selection: name a few values, the true one more often among them than not.

Idea: send a set of w of the d values. With probability `include` the true value is in it; the rest
    of the set is drawn uniformly from the other values, and never holds the true one by chance.
Guarantee: log(include (d-w) / ((1-include) w)) <= epsilon, include = w e / (w e + d - w) rounded
    down.
Sends: ceil(d/8) bytes, exactly w of the bits 1.
Estimator and variance: pure with p = include, q = (include (w-1) + (1-include) w) / (d-1). The best
    there is for listed values, a little better than `unary.oue`, at its price.
Source: Ye and Barg (2018); Wang, Huang, Wang, Nie, Xing (2016). w = round(d/(e+1)), at least 1.
"""

from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction

from hubbub.fields.frozen import frozen, set_derived
from hubbub.mechanisms import pure_protocols
from hubbub.mechanisms.layout import Subset
from hubbub.mechanisms.probability import Probability, exp_at_most, log_at_least
from hubbub.mechanisms.random_bits import BitSource
from hubbub.mechanisms.uniform_subsets import choose


@frozen()
class SubsetSelection(pure_protocols.ListedMechanism):
    """Subset selection over [0, categories)."""

    epsilon: float
    categories: int
    include: Probability = field(init=False, repr=False)
    channel: pure_protocols.Pure = field(init=False, repr=False)
    layout: Subset = field(init=False, repr=False)

    NAME = "subset"
    VERSION = 1
    SMALL = (
        {"epsilon": 0.1, "categories": 2},
        {"epsilon": 0.5, "categories": 5},
        {"epsilon": 1.0, "categories": 6},
        {"epsilon": 3.0, "categories": 4},
    )

    def __post_init__(self) -> None:
        pure_protocols.check_categories(self.categories)
        odds, d = exp_at_most(self.epsilon), self.categories
        w = max(1, round(d / (odds + 1)))
        include = Probability.at_most(w * odds / (w * odds + d - w))  # PRIVACY: down, to uniform
        p, left_out = include.exact, include.complement.exact
        channel = pure_protocols.Pure(p, (p * (w - 1) + left_out * w) / (d - 1))
        set_derived(self, include=include, layout=Subset(d, w), channel=channel)

    def privacy_loss(self) -> float:
        d, w = self.categories, self.layout.ones
        return log_at_least(self.include.exact * (d - w) / (self.include.complement.exact * w))

    def likelihood(self, value: int, cells: Mapping[int, int]) -> Fraction:
        d, w = self.categories, self.layout.ones
        return self.include.exact * (d - w) if value in cells else self.include.complement.exact * w

    def randomize(self, value: int, source: BitSource) -> bytes:
        self.check(value)
        included = source.chance(self.include)
        other_bits = choose(self.categories - 1, self.layout.ones - included, source)
        # The others are numbered without the value itself: make room for its bit.
        smaller = other_bits & (1 << value) - 1
        return self.layout.encode(other_bits - smaller << 1 | included << value | smaller)
