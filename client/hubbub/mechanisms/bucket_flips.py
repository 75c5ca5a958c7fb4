"""d-bit flips: a histogram of a number, from a few buckets per device, each answered once for life.

Idea: the range is cut into buckets. A device picks a few of them, for ever, and says of each
    whether its number lies there, lying sometimes. The answers to one bucket are drawn once
    (permanent), so an unchanged number can be reported every day without being averaged out.
Guarantee: two numbers differ in two of the bits at most: 2 log(p/q) <= epsilon, q = 1/(sqrt(e)+1)
    rounded up, p = 1-q; for one report and for all reports of numbers in one bucket. Which buckets
    were picked says nothing about the number. A number that moves to another bucket costs another
    epsilon. Reports of an unchanged number are the same bytes: who sees payloads can link them.
Sends: `sampled` indices of 2 bucket + answer, 1 to 2 bytes each.
Estimator and variance: with C_v yeses about bucket v from n devices that picked `sampled` of d:
    (d/sampled) (C_v - n_v q)/(p-q), n_v of them having been asked about v. Variance of t holders in
    n: n (d/sampled) q(1-q)/(p-q)^2 + t (d/sampled - 1).
Source: dBitFlipPM of Ding, Kulkarni, Yekhanin (NeurIPS 2017), section 3, and its memoization.
"""

from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction
from math import comb

from hubbub.errors import BadParameter
from hubbub.fields.frozen import frozen, set_derived
from hubbub.mechanisms import number_range
from hubbub.mechanisms.layout import Estimates, Samples, Totals
from hubbub.mechanisms.mechanism import Memo, Memoized, check_whole, whole
from hubbub.mechanisms.number_range import Range
from hubbub.mechanisms.probability import Probability, exp_at_most, log_at_least
from hubbub.mechanisms.random_bits import BitSource
from hubbub.mechanisms.uniform_subsets import choose, members


@frozen(kw_only=True)
class BucketFlips(Memoized, number_range.InBuckets):
    """dBitFlipPM over [low, high] in `buckets` equal buckets; a device answers about `sampled`."""

    epsilon: float
    low: float = field(metadata=number_range.LOW)
    high: float = field(metadata=number_range.HIGH)
    buckets: int = field(metadata=number_range.BUCKETS)
    sampled: int = field(
        metadata=whole(
            ("Number of parts about which a device answers."),
            2,
            number_range.MAX_BUCKETS,
            example=4,
        )
    )
    lie: Probability = field(init=False, repr=False)
    range: Range = field(init=False, repr=False)
    layout: Samples = field(init=False, repr=False)

    NAME = "buckets"
    VERSION = 1
    SMALL = (
        {"epsilon": 0.1, "low": 0, "high": 1, "buckets": 2, "sampled": 2},
        {"epsilon": 1.0, "low": -2.5, "high": 7, "buckets": 4, "sampled": 2},
        {"epsilon": 3.0, "low": 0, "high": 3600, "buckets": 5, "sampled": 3},
    )

    def __post_init__(self) -> None:
        check_whole(self, "buckets")
        # With a single bucket two numbers would differ in one bit, and waste half of epsilon.
        if not (isinstance(self.sampled, int) and 2 <= self.sampled <= self.buckets):  # noqa: PLR2004 as said
            raise BadParameter(f"sampled {self.sampled} is outside [2, buckets {self.buckets}]")
        lie = Probability.at_least(1 / (exp_at_most(self.epsilon, Fraction(1, 2)) + 1))
        value_range, layout = Range(self.low, self.high), Samples(self.buckets, self.sampled)
        set_derived(self, lie=lie, range=value_range, layout=layout)

    @property
    def permanent_groups(self) -> int:
        return comb(self.buckets, self.sampled)

    def privacy_loss(self) -> float:
        return log_at_least(self.lie.complement.exact / self.lie.exact, 2)

    def total_variation(self) -> Fraction:
        """The distance in a report about at least one of the two buckets, 1 - 2 lie."""
        neither = Fraction(comb(self.buckets - 2, self.sampled), comb(self.buckets, self.sampled))
        return (1 - neither) * (1 - 2 * self.lie.exact)

    def permanent_loss(self) -> float:
        return self.privacy_loss()

    def permanent_key(self, value: float, memo: Memo) -> bytes:  # noqa: ARG002 every device alike
        return self.range.bucket(value, self.buckets).to_bytes(2, "big")

    def randomize_again(self, value: float, memo: Memo, source: BitSource) -> bytes:
        del source  # every coin is permanent
        key = self.permanent_key(value, memo)
        truth = int.from_bytes(key, "big")
        sample = choose(self.buckets, self.sampled, memo.coins(b"buckets"))
        # PRIVACY: one answer per own bucket, for as long as the device keeps its secret.
        lies = memo.coins(b"permanent" + key).mask(self.lie, self.sampled)
        return self.layout.encode(
            {
                bucket: (bucket == truth) != (lies >> i & 1)
                for i, bucket in enumerate(members(sample))
            }
        )

    def likelihood(self, value: float, cells: Mapping[int, int]) -> Fraction:
        bucket = self.range.bucket(value, self.buckets)
        yes, no = 2 * bucket + 1, 2 * bucket
        if yes not in cells and no not in cells:
            return Fraction(1)  # the device does not answer about this bucket
        ratio = self.lie.complement.exact / self.lie.exact
        return ratio if yes in cells else 1 / ratio

    def estimate(self, totals: Totals) -> Estimates:
        totals.check(self.layout)
        lie, inverse_rate = self.lie.exact, Fraction(self.buckets, self.sampled)
        slope, offset = float(inverse_rate / (1 - 2 * lie)), float(lie)
        pairs = zip(totals.cells[::2], totals.cells[1::2], strict=True)
        values = tuple((yes - (no + yes) * offset) * slope for no, yes in pairs)
        clipped = (min(max(value, 0.0), totals.reports) for value in values)
        variances = tuple(self.variance(true, totals.reports) for true in clipped)
        return Estimates(values, variances, totals.reports)

    def variance(self, true: float, reports: int) -> float:
        lie, inverse_rate = self.lie.exact, Fraction(self.buckets, self.sampled)
        return reports * float(inverse_rate * lie * (1 - lie) / (1 - 2 * lie) ** 2) + true * float(
            inverse_rate - 1
        )
