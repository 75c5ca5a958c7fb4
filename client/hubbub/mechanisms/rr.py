"""Randomized response: a yes/no question, answered truthfully more often than not.

Idea: tell the truth with probability p, the opposite otherwise.
Guarantee: log(p / (1-p)) <= epsilon, with p = e / (e+1) rounded down, e = exp(epsilon).
Sends: 1 byte, 0 or 1.
Estimator and variance: pure with q = 1-p: (C - n q)/(p - q), n p (1-p)/(p - q)^2.
Source: Warner (1965). With a fair first coin, p = 3/4 and epsilon = ln 3.
"""

from dataclasses import field

from hubbub.errors import BadParameter
from hubbub.fields.frozen import frozen, set_derived
from hubbub.mechanisms import pure_protocols
from hubbub.mechanisms.probability import Probability, keep_at_most
from hubbub.mechanisms.random_bits import BitSource


@frozen()
class RandomizedResponse(pure_protocols.OneIndex):
    """Warner's randomized response over the two values 0 and 1."""

    epsilon: float
    categories: int = 2
    keep: Probability = field(init=False, repr=False)
    channel: pure_protocols.Pure = field(init=False, repr=False)

    NAME = "rr"
    VERSION = 1
    SMALL = ({"epsilon": 0.1}, {"epsilon": 3.0})

    def __post_init__(self) -> None:
        if self.categories != 2:  # noqa: PLR2004 yes and no
            raise BadParameter(
                f"rr answers a yes/no question: categories {self.categories} is not 2; use grr"
            )
        keep = keep_at_most(self.epsilon)
        set_derived(self, keep=keep, channel=pure_protocols.Pure(keep.exact, keep.complement.exact))

    def randomize(self, value: int, source: BitSource) -> bytes:
        self.check(value)
        return self.layout.encode(value if source.chance(self.keep) else 1 - value)
