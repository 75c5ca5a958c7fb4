"""Basic RAPPOR: one bit per listed value, with RAPPOR's permanent and instantaneous lie.

Idea: where the values are known there is nothing to hash: a vector with a single 1, lied about once
    and for all, and again in every report. h = 1, one cohort.
Guarantee: one report: log(q*(1-p*) / (p*(1-q*))); all reports of one value:
    2 log((1-f/2) / (f/2)). See two_step_response.py for p*, q*.
Sends: ceil(d/8) bytes.
Estimator and variance: pure with p = q*, q = p*.
Source: Erlingsson, Pihur, Korolova (CCS 2014), section 2.1. Variants: one-time is p = 0, q = 1.
"""

from dataclasses import field

from hubbub.fields.frozen import frozen, set_derived
from hubbub.mechanisms import pure_protocols
from hubbub.mechanisms.mechanism import Memo
from hubbub.mechanisms.random_bits import BitSource
from hubbub.mechanisms.two_step_response import ONE_AS_ONE, PERMANENT_LIE, ZERO_AS_ONE, Chain


@frozen()
class BasicRappor(pure_protocols.PermanentListed, pure_protocols.BitPerValue):
    """RAPPOR over [0, categories), one bit each."""

    categories: int
    f: float = field(metadata=PERMANENT_LIE)
    p: float = field(metadata=ZERO_AS_ONE)
    q: float = field(metadata=ONE_AS_ONE)
    chain: Chain = field(init=False, repr=False)
    channel: pure_protocols.Pure = field(init=False, repr=False)

    NAME = "rappor.basic"
    VERSION = 1
    SMALL = (
        {"categories": 3, "f": 0.5, "p": 0.25, "q": 0.75},
        {"categories": 4, "f": 0.75, "p": 0.0, "q": 1.0},
    )

    def __post_init__(self) -> None:
        pure_protocols.check_categories(self.categories)
        chain = Chain(self.f, self.p, self.q)
        set_derived(self, chain=chain, channel=chain.channel)

    def permanent_loss(self) -> float:
        return self.chain.permanent_loss(hashes=1)

    def randomize_again(self, value: int, memo: Memo, source: BitSource) -> bytes:
        coins = memo.coins(b"permanent" + self.permanent_key(value, memo))
        permanent = self.chain.permanent(1 << value, self.categories, coins)
        return self.layout.encode(self.chain.instantaneous(permanent, self.categories, source))
