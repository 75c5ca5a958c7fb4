"""Local hashing with a public pool of hash functions: a string's bucket by one of them, or another.

Idea: pick one of m_h hash functions, hash the string to one of m_w buckets, and answer with that
    bucket as `grr` does: the truth with probability `keep`, otherwise one of the others.
Guarantee: log(keep (m_w-1) / (1-keep)) <= epsilon, keep = e / (e+m_w-1) rounded down. Which
    function was picked says nothing.
Sends: an index of function and bucket: 2 bytes for 65,536 cells.
Estimator and variance: per function and bucket; pure with p = keep, q = (1-keep)/(m_w-1). A
    string's estimate as for `cms`. Lies are spread evenly, so a crowd of it is accounted for as one
    of `grr` (even_noise.py), among the reports of one function.
Source: Bassily, Smith (STOC 2015); Wang, Blocki, Li, Jha (USENIX Security 2017), section 4.4; a
    pool in place of a function for each report as in Apple's sketches (2017): totals suffice.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from hubbub.mechanisms import pure, sketch
from hubbub.mechanisms.bits import BitSource
from hubbub.mechanisms.hashing import encoded, position
from hubbub.mechanisms.layout import Estimates, OneHot, Totals
from hubbub.mechanisms.mechanism import DomainName, FamilyName
from hubbub.mechanisms.probability import Probability, exp_at_most, log_at_least


@dataclass(frozen=True, slots=True)
class LocalHashing:
    """Local hashing with `hashes` functions (m_h) into `width` buckets (m_w)."""

    epsilon: float
    hashes: int = field(metadata=sketch.HASHES)
    width: int = field(metadata=sketch.WIDTH)
    keep: Probability = field(init=False, repr=False)
    channel: pure.Pure = field(init=False, repr=False)

    NAME: ClassVar[str] = "local_hash"
    VERSION: ClassVar[int] = 1
    VALUES: ClassVar[DomainName] = "strings"
    FAMILY: ClassVar[FamilyName] = "sketch"
    SMALL: ClassVar[tuple[Mapping[str, Any], ...]] = (
        {"epsilon": 0.1, "hashes": 1, "width": 2},
        {"epsilon": 1.0, "hashes": 3, "width": 4},
        {"epsilon": 3.0, "hashes": 2, "width": 5},
    )

    check = sketch.check
    positions = sketch.positions
    row = sketch.row
    total_variation = pure.total_variation
    variance = pure.variance
    probes = sketch.probes

    def __post_init__(self) -> None:
        sketch.check_size(self, sketch.MAX_CELLS)
        odds, others = exp_at_most(self.epsilon), self.width - 1
        keep = Probability.at_most(odds / (odds + others))  # PRIVACY: down, towards uniform
        object.__setattr__(self, "keep", keep)
        object.__setattr__(self, "channel", pure.Pure(keep.exact, keep.complement.exact / others))

    @property
    def layout(self) -> OneHot:
        """The cell of function j, bucket b is j width + b."""
        return OneHot(self.hashes * self.width)

    @property
    def groups(self) -> int:
        return self.hashes

    def privacy_loss(self) -> float:
        return log_at_least(self.channel.p / self.channel.q)

    def likelihood(self, value: str, cells: Mapping[int, int]) -> Fraction:
        function, bucket = divmod(next(iter(cells)), self.width)
        own = position(encoded(value), function, self.width)
        return self.channel.p if own == bucket else self.channel.q

    def randomize(self, value: str, source: BitSource) -> bytes:
        string = encoded(value)
        function = source.below(self.hashes)
        bucket = position(string, function, self.width)
        if not source.chance(self.keep):
            other = source.below(self.width - 1)  # skip over the bucket itself
            bucket = other + (other >= bucket)
        return self.layout.encode(function * self.width + bucket)

    def estimate(self, totals: Totals) -> Estimates:
        """Per function and bucket: the number of the function's reports with a string in it."""
        totals.check(self.layout)
        values: list[float] = []
        variances: list[float] = []
        for first in range(0, self.layout.size, self.width):
            supports = totals.cells[first : first + self.width]
            function = self.channel.estimates(supports, sum(supports))
            values += function.values
            variances += function.variances
        return Estimates(tuple(values), tuple(variances), totals.reports)
