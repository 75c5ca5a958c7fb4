"""Local hashing with a public pool of hash functions: a string's bucket by one of them, or another.

Idea: pick one of m_h hash functions, hash the string to one of m_w buckets, and answer with that
    bucket as `grr` does: the truth with probability `keep`, otherwise one of the others.
Guarantee: log(keep (m_w-1) / (1-keep)) <= epsilon, keep = e / (e+m_w-1) rounded down. Which
    function was picked says nothing.
Sends: an index of function and bucket: 2 bytes for 65,536 cells.
Estimator and variance: per function and bucket; pure with p = keep, q = (1-keep)/(m_w-1). A
    string's estimate as for `cms`. Lies are spread evenly, so a crowd of it is accounted for as one
    of `grr` (even_lies.py), among the reports of one function.
Source: Bassily, Smith (STOC 2015); Wang, Blocki, Li, Jha (USENIX Security 2017), section 4.4; a
    pool in place of a function for each report as in Apple's sketches (2017): totals suffice.
"""

from dataclasses import field

from hubbub.fields.frozen import frozen, set_derived
from hubbub.mechanisms import string_hashing
from hubbub.mechanisms.grouped_mechanism import Grouped
from hubbub.mechanisms.grr import GeneralizedRandomizedResponse
from hubbub.mechanisms.random_bits import BitSource
from hubbub.mechanisms.string_hashing import encoded, position


@frozen()
class LocalHashing(string_hashing.Sketch, Grouped[str]):
    """Local hashing with `hashes` functions (m_h) into `width` buckets (m_w)."""

    epsilon: float
    hashes: int = field(metadata=string_hashing.HASHES)
    width: int = field(metadata=string_hashing.WIDTH)
    response: GeneralizedRandomizedResponse = field(init=False, repr=False)

    NAME = "local_hash"
    VERSION = 1
    SMALL = (
        {"epsilon": 0.1, "hashes": 1, "width": 2},
        {"epsilon": 1.0, "hashes": 3, "width": 4},
        {"epsilon": 3.0, "hashes": 2, "width": 5},
    )

    def __post_init__(self) -> None:
        string_hashing.check_size(self)
        response = GeneralizedRandomizedResponse(self.epsilon, self.width)
        set_derived(self, response=response)

    def code(self, value: str, group: int) -> int:
        """The string's bucket by the function of this number."""
        return position(encoded(value), group, self.width)

    def randomize(self, value: str, source: BitSource) -> bytes:
        """The same as that of `Grouped`, in half of its time."""
        string = encoded(value)
        function = source.below(self.hashes)
        bucket = position(string, function, self.width)
        if not source.chance(self.response.keep):
            other_bucket = source.below(self.width - 1)  # skip over the bucket itself
            bucket = other_bucket + (other_bucket >= bucket)
        return self.layout.encode(function * self.width + bucket)
