"""Pure protocols: two numbers give estimator and variance. Written once, used by most mechanisms.

p is the chance that a report supports the value it was made from, q the chance that it supports
another given value. With C of n reports supporting a value:

    estimate = (C - n q) / (p - q)
    variance = [t p (1-p) + (n-t) q (1-q)] / (p - q)^2      when t of n hold the value

Of m dummies among them, each any of d values, m/d support the value, with m/d (1 - 1/d) more of the
variance. Where m is not known but its mean is, one dummy more is a report less. Where n + m alone
is known, of n devices that make r dummies each on average, n is (n + m) / (1 + r) and m the rest;
the variance of m, n r (1-r) for r < 1, comes in times [(1/d - q) / (1 + r) / (p - q)]^2. Where m is
drawn to hide n, and n + m less the mean of m is taken for n, it does without 1 + r. So do dummies
of which each value has a number of its own, of variance s: there s (1 - 1/d) is for m/d (1 - 1/d).

Source: Wang, Blocki, Li, Jha (USENIX Security 2017), section 3.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Protocol

from hubbub.errors import BadParameter, ValueOutOfDomain
from hubbub.fields.frozen import frozen
from hubbub.mechanisms.layout import BitVector, CohortBits, Estimates, OneHot, Totals, concat
from hubbub.mechanisms.mechanism import DomainName, Mechanism, Memo, Memoized, Value_contra
from hubbub.mechanisms.probability import log_at_least

# A listed domain travels in every bundle; past this, hash the values (RAPPOR) instead.
MAX_CATEGORIES = 1 << 20


@lru_cache  # exact fractions take as long as all other steps of an estimate
def report_variances(channel: "Pure") -> tuple[float, float]:
    """The variance that a report adds if it holds the value, and if it does not."""
    p, q, gap = channel.p, channel.q, (channel.p - channel.q) ** 2
    return float(p * (1 - p) / gap), float(q * (1 - q) / gap)


@frozen()
class Pure:
    """A pure protocol's two exact probabilities, p > q."""

    p: Fraction
    q: Fraction

    def __post_init__(self) -> None:
        if not 0 <= self.q < self.p <= 1:
            raise BadParameter(
                "a pure protocol needs 0 <= q < p <= 1: otherwise its reports carry no information"
            )

    def estimates(self, supports: Sequence[int], reports: int) -> Estimates:
        """Estimates for values with this many supporting reports each, out of `reports`."""
        return self.estimates_among(supports, Totals(cells=supports, reports=reports))

    def estimates_among(self, supports: Sequence[int], totals: Totals) -> Estimates:
        """Like `estimates`, with dummies among the supporting reports."""
        reports, cells = totals.reports, max(len(totals.cells), 1)
        floor, gap = float(reports * self.q) + totals.dummies / cells, self.gap
        values = tuple((support - floor) / gap for support in supports)
        true_variance, other_variance = report_variances(self)
        clipped = [min(max(value, 0.0), reports) for value in values]
        variances = tuple(
            true * true_variance + (reports - true) * other_variance + extra
            for true, extra in zip(clipped, self.dummies_variances(clipped, totals), strict=True)
        )
        return Estimates(values, variances, reports)

    @property
    def gap(self) -> float:
        """How much more often a report supports its own value than another: p - q."""
        return float(self.p - self.q)

    def dummies_variances(self, true_counts: Sequence[float], totals: Totals) -> list[float]:
        """The variance that dummies add to each estimate, for these true counts."""
        share = 1 / max(len(totals.cells), 1)
        spread_variance = totals.spread() / self.gap**2
        offset = (share - float(self.q)) / self.gap
        spread_variance += totals.beside_variance * offset**2
        traded = 1 / max(totals.reports, 1)
        return [
            spread_variance + totals.dummies_variance * (offset - true * traded) ** 2
            for true in true_counts
        ]

    def variance(self, true: float, reports: int) -> float:
        """Variance of one estimate, in reports squared; `true` in [0, reports]."""
        true_variance, other_variance = report_variances(self)
        return true * true_variance + (reports - true) * other_variance


class PureMechanism(Mechanism[Value_contra], Protocol[Value_contra]):
    """A mechanism with a channel, whatever its values are."""

    __slots__ = ()

    @property
    def channel(self) -> Pure:
        """The two probabilities."""

    def variance(self, true: float, reports: int) -> float:
        return self.channel.variance(true, reports)

    def total_variation(self) -> Fraction:
        """The total variation distance of two values' payloads: p - q, in all pure mechanisms.

        If a report is an index or a set, each value is supported more often by p - q; if each value
        has a bit of its own, it is the chance of 1 and 0 minus that of 0 and 1:
        p (1-q) - q (1-p).
        """
        return self.channel.p - self.channel.q


class ListedMechanism(PureMechanism[int], Protocol):
    """A pure mechanism over listed values, one cell each; values are indexes in [0, categories)."""

    __slots__ = ()

    VALUES: ClassVar[DomainName] = "categories"
    FAMILY: ClassVar[str] = "listed"

    categories: int

    def check(self, value: Any) -> None:
        if not (isinstance(value, int) and 0 <= value < self.categories):
            raise ValueOutOfDomain(f"value is outside [0, {self.categories})")

    def row(self, value: int) -> Sequence[int]:
        self.check(value)
        return [int(category == value) for category in range(self.categories)]

    def estimate(self, totals: Totals) -> Estimates:
        """One unbiased estimate per category."""
        totals.check(self.layout)
        return self.channel.estimates_among(totals.cells, totals)

    def probes(self) -> Sequence[int]:
        return range(self.categories)


class OneIndex(ListedMechanism, Protocol):
    """A mechanism over listed values whose report is the index of one of them."""

    __slots__ = ()

    @property
    def layout(self) -> OneHot:
        return OneHot(self.categories)

    def likelihood(self, value: int, cells: Mapping[int, int]) -> Fraction:
        """The chance p for its own value, q for any other."""
        return self.channel.p if value in cells else self.channel.q

    def privacy_loss(self) -> float:
        return log_at_least(self.channel.p / self.channel.q)


class BitPerValue(ListedMechanism, Protocol):
    """A mechanism over listed values whose report has an independent bit for each of them."""

    __slots__ = ()

    @property
    def layout(self) -> BitVector:
        return BitVector(self.categories)

    def likelihood(self, value: int, cells: Mapping[int, int]) -> Fraction:
        """Up to a factor: only the value's own bit matters."""
        return bit_odds(self.channel, value in cells)

    def privacy_loss(self) -> float:
        """Of two values, whose two bits differ."""
        odds_of_one, odds_of_zero = (bit_odds(self.channel, sent) for sent in (True, False))
        return log_at_least(odds_of_one / odds_of_zero)


class PermanentListed(Memoized, ListedMechanism, Protocol):
    """The same with a permanent step, whose key is the category."""

    __slots__ = ()

    def permanent_key(self, value: int, memo: Memo) -> bytes:  # noqa: ARG002 every device alike
        self.check(value)
        return value.to_bytes(4, "big")


def cohort_estimates(channel: Pure, layout: CohortBits, totals: Totals) -> Estimates:
    """Estimates per cohort and bit, at index cohort * bits + bit. Raises ShapeMismatch."""
    totals.check(layout)
    size = layout.bits + 1
    cohorts = (totals.cells[start : start + size] for start in range(0, layout.size, size))
    estimates = (channel.estimates(counts, reports) for reports, *counts in cohorts)
    return concat(estimates, totals.reports)


def bit_odds(channel: Pure, sent: bool) -> Fraction:  # noqa: FBT001 the bit itself
    """The likelihood ratio of a sent bit if the value holds it and if not; p and q are below 1."""
    return channel.p / channel.q if sent else (1 - channel.p) / (1 - channel.q)


def check_categories(categories: int) -> None:
    """Raises BadParameter unless `categories` is a whole number in [2, MAX_CATEGORIES]."""
    if not (isinstance(categories, int) and 2 <= categories <= MAX_CATEGORIES):  # noqa: PLR2004 one category is no question
        raise BadParameter(f"categories {categories} is outside [2, {MAX_CATEGORIES}]")
