"""Count mean sketch: strings from an open domain, hashed by one of many functions.

Idea: pick one of m_h hash functions, hash the string to one of m_w buckets, write that as a vector
    with a single 1 and flip every bit with a small chance. Many functions: collisions average out.
Guarantee: two strings differ in two bits: 2 log((1-lie)/lie) <= epsilon, lie = 1/(sqrt(e)+1)
    rounded up. Which function was picked says nothing.
Sends: 2 bytes of function, ceil(m_w/8) bytes.
Estimator and variance: per function and bucket, of N reports with c ones: (c - lie N)/(1 - 2 lie);
    pure. A string's estimate averages its bucket over all functions, less what collisions put there
    (analysis); unbiased over the hash functions, their error is in its standard error.
Source: Apple, Learning with Privacy at Scale (2017), A_client-CMS and A_server-CMS.
"""

from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction

from hubbub.fields.frozen import frozen, set_derived
from hubbub.mechanisms import pure_protocols, string_hashing
from hubbub.mechanisms.layout import CohortBits, Estimates, Totals
from hubbub.mechanisms.probability import Probability, exp_at_most, log_at_least
from hubbub.mechanisms.random_bits import BitSource
from hubbub.mechanisms.string_hashing import encoded, position


@frozen()
class CountMeanSketch(string_hashing.Sketch):
    """Count mean sketch with `hashes` functions (m_h) into `width` buckets (m_w)."""

    epsilon: float
    hashes: int = field(metadata=string_hashing.HASHES)
    width: int = field(metadata=string_hashing.WIDTH)
    lie: Probability = field(init=False, repr=False)
    channel: pure_protocols.Pure = field(init=False, repr=False)

    NAME = "cms"
    VERSION = 1
    SMALL = (
        {"epsilon": 0.1, "hashes": 1, "width": 2},
        {"epsilon": 1.0, "hashes": 3, "width": 4},
        {"epsilon": 3.0, "hashes": 2, "width": 5},
    )

    def __post_init__(self) -> None:
        string_hashing.check_size(self)
        lie = Probability.at_least(1 / (exp_at_most(self.epsilon, Fraction(1, 2)) + 1))
        set_derived(self, lie=lie, channel=pure_protocols.Pure(lie.complement.exact, lie.exact))

    @property
    def layout(self) -> CohortBits:
        return CohortBits(self.hashes, self.width)

    def privacy_loss(self) -> float:
        return log_at_least(self.channel.p / self.channel.q, 2)

    def likelihood(self, value: str, cells: Mapping[int, int]) -> Fraction:
        function = self.layout.cohort(cells)
        bucket = position(encoded(value), function, self.width)
        return pure_protocols.bit_odds(self.channel, self.layout.cell(function, bucket) in cells)

    def randomize(self, value: str, source: BitSource) -> bytes:
        string = encoded(value)
        function = source.below(self.hashes)
        bucket = position(string, function, self.width)
        return self.layout.encode(function, source.mask(self.lie, self.width) ^ 1 << bucket)

    def estimate(self, totals: Totals) -> Estimates:
        """Per function and bucket: the number of the function's reports with a string in it."""
        return pure_protocols.cohort_estimates(self.channel, self.layout, totals)
