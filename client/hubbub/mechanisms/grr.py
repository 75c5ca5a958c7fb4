"""Generalized randomized response (k-RR): keep the value, or name another one.

Idea: tell the truth with probability `keep`; otherwise one of the other d-1 values, uniformly.
Guarantee: log(keep (d-1) / (1-keep)) <= epsilon, with keep = e / (e+d-1) rounded down.
Sends: an index, ceil(log2(d) / 8) bytes.
Estimator and variance: pure with p = keep, q = (1-keep)/(d-1). Best while d < 3e + 2.
Source: Kairouz, Bonawitz, Ramage (ICML 2016); "DE" in Wang et al. (2017), section 4.1.
"""

from dataclasses import field

from hubbub.fields.frozen import frozen, set_derived
from hubbub.mechanisms import pure_protocols
from hubbub.mechanisms.probability import Probability, exp_at_most
from hubbub.mechanisms.random_bits import BitSource


@frozen()
class GeneralizedRandomizedResponse(pure_protocols.OneIndex):
    """k-ary randomized response over [0, categories)."""

    epsilon: float
    categories: int
    keep: Probability = field(init=False, repr=False)
    channel: pure_protocols.Pure = field(init=False, repr=False)

    NAME = "grr"
    VERSION = 1
    SMALL = (
        {"epsilon": 0.1, "categories": 2},
        {"epsilon": 1.0, "categories": 5},
        {"epsilon": 3.0, "categories": 7},
    )

    def __post_init__(self) -> None:
        pure_protocols.check_categories(self.categories)
        odds, other_count = exp_at_most(self.epsilon), self.categories - 1
        keep = Probability.at_most(odds / (odds + other_count))  # PRIVACY: down, towards uniform
        set_derived(
            self,
            keep=keep,
            channel=pure_protocols.Pure(keep.exact, keep.complement.exact / other_count),
        )

    def randomize(self, value: int, source: BitSource) -> bytes:
        self.check(value)
        if source.chance(self.keep):
            return self.layout.encode(value)
        other_index = source.below(self.categories - 1)  # skip over the value itself
        return self.layout.encode(other_index + (other_index >= value))
