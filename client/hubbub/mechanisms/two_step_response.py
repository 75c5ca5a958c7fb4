"""The two-step response of RAPPOR: a permanent lie under a fresh one, bit by bit.

Permanent: each bit is kept with chance 1 - f/2 and flipped with chance f/2, drawn once per device
and value. Instantaneous: each bit of the result is 1 with chance q where the permanent bit is 1,
with chance p where it is 0, drawn for every report. Together a true 1 is sent as 1 with chance
q*, a true 0 with chance p*:

    q* = f/2 (p+q) + (1-f) q        p* = f/2 (p+q) + (1-f) p

(These letters are RAPPOR's own; its p and q are the reverse of a pure protocol's.)
Source: Erlingsson, Pihur, Korolova (CCS 2014), sections 2 and 3, theorems 1 and 2.
"""

from dataclasses import field
from fractions import Fraction
from typing import Final

from hubbub.errors import BadParameter
from hubbub.fields.frozen import frozen, set_derived
from hubbub.mechanisms.mechanism import number
from hubbub.mechanisms.probability import Probability, log_at_least
from hubbub.mechanisms.pure_protocols import Pure
from hubbub.mechanisms.random_bits import BitSource

PERMANENT_LIE: Final = number(
    "Probability that a bit is random for life: the permanent lie.", 0, 1, "()", example=0.25
)
ZERO_AS_ONE: Final = number(
    "Probability that a bit that is 0 for life is reported as 1, below `q`.",
    0,
    1,
    "[)",
    example=0.2,
)
ONE_AS_ONE: Final = number(
    "Probability that a bit that is 1 for life is reported as 1.", 0, 1, "(]", example=0.8
)
"""What every mechanism with this response says of its parameters."""


@frozen()
class Chain:
    """The two-step response with RAPPOR's f, p and q. One-time RAPPOR has p = 0, q = 1."""

    f: float
    p: float
    q: float
    flip: Probability = field(init=False, repr=False)
    one_after_zero: Probability = field(init=False, repr=False)
    one_after_one: Probability = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not (isinstance(self.f, float | int) and 0 < self.f < 1):
            raise BadParameter(
                f"f {self.f} is outside (0, 1): without a permanent lie there is no guarantee"
            )
        if not (
            isinstance(self.p, float | int)
            and isinstance(self.q, float | int)
            and 0 <= self.p < self.q <= 1
        ):
            raise BadParameter(f"p {self.p} and q {self.q} break 0 <= p < q <= 1")
        # PRIVACY: more lies, closer chances.
        set_derived(
            self,
            flip=Probability.at_least(Fraction(self.f) / 2),
            one_after_zero=Probability.at_least(self.p),
            one_after_one=Probability.at_most(self.q),
        )

    @property
    def channel(self) -> Pure:
        """The two steps as one pure protocol: its p is RAPPOR's q*, its q is p*."""
        return channel(2 * self.flip.exact, self.one_after_zero.exact, self.one_after_one.exact)

    def loss(self, hashes: int) -> float:
        """The loss of one report, in nats, of values that differ in `hashes` bits (theorem 2)."""
        p_one, zero = self.channel.p, self.channel.q
        return log_at_least(p_one * (1 - zero) / (zero * (1 - p_one)), hashes)

    def permanent_loss(self, hashes: int) -> float:
        """The loss of any number of reports of one value, in nats (theorem 1)."""
        return log_at_least((1 - self.flip.exact) / self.flip.exact, 2 * hashes)

    def permanent(self, bits: int, width: int, source: BitSource) -> int:
        """The permanent response to `width` true bits."""
        return bits ^ source.mask(self.flip, width)

    def instantaneous(self, bits: int, width: int, source: BitSource) -> int:
        """A fresh response to `width` permanent bits."""
        one_mask = source.mask(self.one_after_one, width)
        zeros = source.mask(self.one_after_zero, width)
        return (bits & one_mask) | (~bits & zeros)


def channel(f: Fraction, p: Fraction, q: Fraction) -> Pure:
    """Both steps of RAPPOR's f, p and q as one pure protocol."""
    return Pure(f * (p + q) / 2 + (1 - f) * q, f * (p + q) / 2 + (1 - f) * p)
