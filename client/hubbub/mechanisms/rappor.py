"""RAPPOR: strings from an open domain, as Bloom filters in cohorts, with a permanent lie.

Idea: hash the string to a few of k bits, with the hash functions of the device's cohort; lie about
    each bit once and for all (permanent randomized response), and again in every report
    (instantaneous). An unchanged value can be reported every day without being averaged out.
Guarantee: two strings differ in at most h bits each way. One report: h log(q*(1-p*) / (p*(1-q*)));
    all reports of one string: 2h log((1-f/2) / (f/2)). See two_step_response.py for p*, q*.
Sends: 2 bytes of cohort, ceil(k/8) bytes.
Estimator and variance: per cohort j and bit i, of N reports with c ones: (c - p* N) / (q* - p*);
    pure with p = q*, q = p*. From bits to strings: a regression on the candidates' rows (analysis).
Source: Erlingsson, Pihur, Korolova (CCS 2014). Variants: one-time is p = 0, q = 1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from math import comb, prod
from typing import Any, Final

from hubbub.errors import BadParameter
from hubbub.fields.frozen import frozen, set_derived
from hubbub.mechanisms import pure_protocols
from hubbub.mechanisms.layout import CohortBits, Estimates, Totals
from hubbub.mechanisms.mechanism import Mechanism, Memo, Memoized, check_cells, check_whole, whole
from hubbub.mechanisms.random_bits import BitSource
from hubbub.mechanisms.string_hashing import STRINGS, encoded, positions
from hubbub.mechanisms.two_step_response import ONE_AS_ONE, PERMANENT_LIE, ZERO_AS_ONE, Chain

MAX_BITS: Final = 4096
MAX_HASHES: Final = 8


@frozen(kw_only=True)
class Rappor(Memoized, Mechanism[str]):
    """RAPPOR with `bits` Bloom bits, `hashes` hash functions and `cohorts` cohorts."""

    bits: int = field(metadata=whole("Number of bits of a Bloom filter.", 1, MAX_BITS, example=128))
    hashes: int = field(
        metadata=whole(
            "Number of bits that a string sets, at most `bits`.", 1, MAX_HASHES, example=2
        )
    )
    cohorts: int = field(
        metadata=whole(
            "Number of groups of devices, each with its own hash functions.", 1, 1 << 16, example=64
        )
    )
    f: float = field(metadata=PERMANENT_LIE)
    p: float = field(metadata=ZERO_AS_ONE)
    q: float = field(metadata=ONE_AS_ONE)
    chain: Chain = field(init=False, repr=False)

    NAME = "rappor"
    VERSION = 1
    VALUES = "strings"
    FAMILY = "bloom"
    SMALL = (
        {"bits": 3, "hashes": 1, "cohorts": 1, "f": 0.5, "p": 0.25, "q": 0.75},
        {"bits": 4, "hashes": 2, "cohorts": 1, "f": 0.5, "p": 0.5, "q": 0.75},
        {"bits": 5, "hashes": 2, "cohorts": 2, "f": 0.25, "p": 0.0, "q": 1.0},
    )

    def __post_init__(self) -> None:
        check_whole(self, "bits", "hashes", "cohorts")
        if not self.hashes <= self.bits:
            raise BadParameter(f"hashes {self.hashes} is above bits {self.bits}")
        check_cells(self, "cohorts", "bits")
        set_derived(self, chain=Chain(self.f, self.p, self.q))

    @property
    def layout(self) -> CohortBits:
        return CohortBits(self.cohorts, self.bits)

    @property
    def groups(self) -> int:
        return self.cohorts

    @property
    def permanent_groups(self) -> int:
        return self.cohorts

    def privacy_loss(self) -> float:
        return self.chain.loss(self.hashes)

    def total_variation(self) -> Fraction:
        """The distance of two strings without a common bit: by how many of their bits are 1."""
        chance, h = self.chain.channel, self.hashes

        def ones(p: Fraction) -> list[Fraction]:
            return [comb(h, k) * p**k * (1 - p) ** (h - k) for k in range(h + 1)]

        law, other_law = ones(chance.p), ones(chance.q)
        pairs = [(i, j) for i in range(h + 1) for j in range(h + 1)]
        gaps = (abs(law[i] * other_law[j] - other_law[i] * law[j]) for i, j in pairs)
        return sum(gaps, Fraction()) / 2

    def permanent_loss(self) -> float:
        return self.chain.permanent_loss(self.hashes)

    def check(self, value: Any) -> None:
        encoded(value)

    def permanent_key(self, value: str, memo: Memo) -> bytes:  # noqa: ARG002 every device alike
        return encoded(value)

    def randomize_again(self, value: str, memo: Memo, source: BitSource) -> bytes:
        string = encoded(value)
        cohort = memo.coins(b"cohort").below(self.cohorts)
        own_positions = set(positions(string, cohort, self.hashes, self.bits))
        bloom = sum(1 << position for position in own_positions)
        # PRIVACY: one permanent response per string, for as long as the device keeps its secret.
        permanent = self.chain.permanent(bloom, self.bits, memo.coins(b"permanent" + string))
        return self.layout.encode(cohort, self.chain.instantaneous(permanent, self.bits, source))

    def positions(self, value: str) -> list[list[int]]:
        """Per cohort, the Bloom bits (in [0, bits), perhaps fewer than `hashes`) of one string."""
        string = encoded(value)
        return [
            sorted(set(positions(string, cohort, self.hashes, self.bits)))
            for cohort in range(self.cohorts)
        ]

    def row(self, value: str) -> Sequence[int]:
        return [
            int(bit in positions)
            for positions in map(set, self.positions(value))
            for bit in range(self.bits)
        ]

    def likelihood(self, value: str, cells: Mapping[int, int]) -> Fraction:
        cohort = self.layout.cohort(cells)
        bloom = set(positions(encoded(value), cohort, self.hashes, self.bits))
        bits = (self.layout.cell(cohort, bit) in cells for bit in bloom)
        return prod(
            (pure_protocols.bit_odds(self.chain.channel, bit) for bit in bits), start=Fraction(1)
        )

    def estimate(self, totals: Totals) -> Estimates:
        """The number of a cohort's reports with each bit, at index cohort * bits + bit."""
        return pure_protocols.cohort_estimates(self.chain.channel, self.layout, totals)

    def variance(self, true: float, reports: int) -> float:
        return self.chain.channel.variance(true, reports)

    def probes(self) -> Sequence[str]:
        return STRINGS
