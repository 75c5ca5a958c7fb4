"""Unary encoding: one bit per value, each bit randomized on its own.

Idea: write the value as a vector with a single 1; flip every bit with a small chance. `unary.sue`
    flips ones and zeros alike; `unary.oue` spends nearly all on the zeros, where most bits are.
Guarantee: two values differ in two bits. sue: p = 1-q, q = 1/(sqrt(e)+1), loss 2 log(p/q).
    oue: p = 1/2, q = 1/(e+1), loss log((1-q)/q). q is rounded up, so the loss stays <= epsilon.
Sends: ceil(d/8) bytes.
Estimator and variance: pure with these p and q; oue's 4 e n/(e-1)^2 is the least of this family.
Source: sue is basic one-time RAPPOR (Erlingsson, Pihur, Korolova, CCS 2014); oue is Wang et al.
    (2017), section 4.3, as is the comparison.
"""

from dataclasses import field
from fractions import Fraction

from hubbub.fields.frozen import frozen, set_derived
from hubbub.mechanisms import pure_protocols
from hubbub.mechanisms.probability import Probability, exp_at_most, log_at_least
from hubbub.mechanisms.random_bits import BitSource

_HALF = Probability.at_most(Fraction(1, 2))


@frozen()
class SymmetricUnary(pure_protocols.BitPerValue):
    """Symmetric unary encoding over [0, categories): every bit is flipped with the chance `lie`."""

    epsilon: float
    categories: int
    lie: Probability = field(init=False, repr=False)
    channel: pure_protocols.Pure = field(init=False, repr=False)

    NAME = "unary.sue"
    VERSION = 1
    SMALL = (
        {"epsilon": 0.1, "categories": 2},
        {"epsilon": 1.0, "categories": 4},
        {"epsilon": 3.0, "categories": 9},
    )

    def __post_init__(self) -> None:
        pure_protocols.check_categories(self.categories)
        lie = Probability.at_least(1 / (exp_at_most(self.epsilon, Fraction(1, 2)) + 1))
        set_derived(self, lie=lie, channel=pure_protocols.Pure(lie.complement.exact, lie.exact))

    def privacy_loss(self) -> float:
        return log_at_least(self.channel.p / self.channel.q, 2)

    def randomize(self, value: int, source: BitSource) -> bytes:
        self.check(value)
        return self.layout.encode(source.mask(self.lie, self.categories) ^ 1 << value)


@frozen()
class OptimizedUnary(pure_protocols.BitPerValue):
    """Optimized unary encoding over [0, categories): the one is a fair coin, a zero rarely lies."""

    epsilon: float
    categories: int
    lie: Probability = field(init=False, repr=False)
    channel: pure_protocols.Pure = field(init=False, repr=False)

    NAME = "unary.oue"
    VERSION = 1
    SMALL = SymmetricUnary.SMALL

    def __post_init__(self) -> None:
        pure_protocols.check_categories(self.categories)
        lie = Probability.at_least(1 / (exp_at_most(self.epsilon) + 1))
        set_derived(self, lie=lie, channel=pure_protocols.Pure(_HALF.exact, lie.exact))

    def randomize(self, value: int, source: BitSource) -> bytes:
        self.check(value)
        bits = source.mask(self.lie, self.categories)
        if (bits >> value & 1) != source.chance(_HALF):  # the value's own bit is a fair coin
            bits ^= 1 << value
        return self.layout.encode(bits)
