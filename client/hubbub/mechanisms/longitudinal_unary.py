"""Longitudinal optimized unary encoding: one bit per value, with a permanent lie beneath.

Idea: `unary.oue` once and for all per device and value (permanent); then every bit is flipped with
    a small chance in every report. An unchanged value can be reported every day without being
    averaged out.
Guarantee: two values differ in two bits. One report: log((1-q)/q) <= epsilon with q the chance that
    a true 0 is sent as 1; all reports of one value: log((1-rare)/rare) <= permanent_epsilon. A
    value that changes costs another permanent_epsilon.
Sends: ceil(d/8) bytes.
Estimator and variance: pure with p = 1/2, q = (1-rare) flip + rare (1-flip), the least q that the
    claim allows: as good for one report as `unary.oue` at the same epsilon.
Source: L-OSUE of Arcolezi, Couchot, Al Bouna, Xiao (2022).
"""

from dataclasses import field
from fractions import Fraction

from hubbub.fields.frozen import frozen, set_derived
from hubbub.mechanisms import pure_protocols
from hubbub.mechanisms.longitudinal_grr import PERMANENT_EPSILON, odds
from hubbub.mechanisms.mechanism import Memo
from hubbub.mechanisms.probability import Probability, log_at_least
from hubbub.mechanisms.random_bits import BitSource

_HALF = Probability.at_most(Fraction(1, 2))


@frozen()
class LongitudinalUnary(pure_protocols.PermanentListed, pure_protocols.BitPerValue):
    """Chained optimized unary encoding over [0, categories)."""

    epsilon: float
    permanent_epsilon: float = field(metadata=PERMANENT_EPSILON)
    categories: int
    rare: Probability = field(init=False, repr=False)
    flip: Probability = field(init=False, repr=False)
    channel: pure_protocols.Pure = field(init=False, repr=False)

    NAME = "long.unary"
    VERSION = 1
    SMALL = (
        {"epsilon": 0.1, "permanent_epsilon": 0.5, "categories": 2},
        {"epsilon": 0.5, "permanent_epsilon": 1.0, "categories": 4},
        {"epsilon": 2.0, "permanent_epsilon": 3.0, "categories": 5},
    )

    def __post_init__(self) -> None:
        pure_protocols.check_categories(self.categories)
        report, forever = odds(self.epsilon, self.permanent_epsilon)
        rare = Probability.at_least(1 / (forever + 1))
        p_rare = rare.exact
        # PRIVACY: up; then a true 0 is sent as 1 with a chance of 1/(report+1) at least.
        flip = Probability.at_least((1 / (report + 1) - p_rare) / (1 - 2 * p_rare))
        p_either = p_rare + flip.exact * (1 - 2 * p_rare)
        set_derived(self, rare=rare, flip=flip, channel=pure_protocols.Pure(_HALF.exact, p_either))

    def permanent_loss(self) -> float:
        return log_at_least(self.rare.complement.exact / self.rare.exact)

    def randomize_again(self, value: int, memo: Memo, source: BitSource) -> bytes:
        # PRIVACY: one permanent vector per value, for as long as the device keeps its secret.
        coins = memo.coins(b"permanent" + self.permanent_key(value, memo))
        bits = coins.mask(self.rare, self.categories)
        if (bits >> value & 1) != coins.chance(_HALF):  # the value's own bit is a fair coin
            bits ^= 1 << value
        return self.layout.encode(bits ^ source.mask(self.flip, self.categories))
