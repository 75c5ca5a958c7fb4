"""Hadamard count mean sketch: as `cms`, but one bit in place of a vector.

Idea: pick one of m_h hash functions, hash the string to one of m_w buckets, and of that bucket's
    row of a Hadamard matrix send one entry, picked at random, with its sign flipped with a small
    chance.
Guarantee: log(keep / (1-keep)) <= epsilon, keep = e/(e+1) rounded down. Which function and which
    entry were picked says nothing.
Sends: an index of function, entry and sign: 3 bytes for a million cells.
Estimator and variance: per function and bucket: a report supports the buckets whose row has the
    sent sign in the sent entry; pure with p = keep, q = 1/2. One transform per function reads them
    all. A string's estimate as for `cms`.
Source: Apple, Learning with Privacy at Scale (2017), A_client-HCMS and A_server-HCMS.
"""

from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction

from hubbub.fields.frozen import frozen, set_derived
from hubbub.mechanisms import pure_protocols, string_hashing
from hubbub.mechanisms.hadamard import WalshHadamard, negative
from hubbub.mechanisms.layout import Estimates, OneHot, Totals, concat
from hubbub.mechanisms.probability import Probability, keep_at_most, log_at_least
from hubbub.mechanisms.random_bits import BitSource
from hubbub.mechanisms.string_hashing import encoded, position


@frozen()
class HadamardSketch(string_hashing.Sketch):
    """Hadamard count mean sketch with `hashes` functions into `width` buckets, a power of two."""

    epsilon: float
    hashes: int = field(metadata=string_hashing.HASHES)
    width: int = field(metadata=string_hashing.WIDTH)
    keep: Probability = field(init=False, repr=False)
    channel: pure_protocols.Pure = field(init=False, repr=False)
    transform: WalshHadamard = field(init=False, repr=False)

    NAME = "hcms"
    VERSION = 1
    SMALL = (
        {"epsilon": 0.1, "hashes": 1, "width": 2},
        {"epsilon": 1.0, "hashes": 3, "width": 4},
        {"epsilon": 3.0, "hashes": 2, "width": 8},
    )

    def __post_init__(self) -> None:
        string_hashing.check_size(self, each=2)
        keep = keep_at_most(self.epsilon)
        channel = pure_protocols.Pure(keep.exact, Fraction(1, 2))
        set_derived(self, keep=keep, channel=channel, transform=WalshHadamard(self.width))

    @property
    def layout(self) -> OneHot:
        """The cell of function j, entry l is 2 (j width + l), plus 1 if the sign sent is -."""
        return OneHot(2 * self.hashes * self.width)

    def privacy_loss(self) -> float:
        return log_at_least(self.keep.exact / self.keep.complement.exact)

    def likelihood(self, value: str, cells: Mapping[int, int]) -> Fraction:
        place, sent = divmod(next(iter(cells)), 2)
        function, entry = divmod(place, self.width)
        minus = negative(position(encoded(value), function, self.width), entry)
        return (self.keep if minus == sent else self.keep.complement).exact

    def randomize(self, value: str, source: BitSource) -> bytes:
        string = encoded(value)
        function, entry = source.below(self.hashes), source.below(self.width)
        minus = negative(position(string, function, self.width), entry)
        sent = minus if source.chance(self.keep) else not minus
        return self.layout.encode(2 * (function * self.width + entry) + sent)

    def estimate(self, totals: Totals) -> Estimates:
        """Per function and bucket: the number of the function's reports with a string in it."""
        totals.check(self.layout)
        estimates = []
        for start in range(0, self.layout.size, 2 * self.width):
            cells = totals.cells[start : start + 2 * self.width]
            signed = [plus - minus for plus, minus in zip(cells[::2], cells[1::2], strict=True)]
            supports = [(sum(cells) + x) // 2 for x in self.transform.apply(signed)]
            estimates.append(self.channel.estimates(supports, sum(cells)))
        return concat(estimates, totals.reports)
