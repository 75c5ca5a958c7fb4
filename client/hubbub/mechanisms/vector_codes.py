"""Codes of directions: a unit vector is reported as a near word of a public book.

Idea: draw one of `books` books of random words; the w words nearest to the vector are near, and one
    of them is sent with the chance `keep`, alike; else one of the others, alike.
Guarantee: log(keep (M-w) / ((1-keep) w)) <= epsilon for M words, keep = w e / (w e + M - w) rounded
    down. It holds for any w words that are called near: the ranking is in floats, the coins exact.
Sends: an index of book and word: 3 bytes up to 16 million cells.
Estimator and variance: per word, how many of the book's reports are of vectors near it: pure with
    p = keep / w, q = (1-keep) / (M-w), over one book as `local_hash`. A word as it is, divided by
    m = (p - q) T_w / sqrt(d), has the vector as its mean over all pools, with T_w the expected sum
    of the w largest of M normal numbers. Its squared error is (d - 1 + S) / (d m^2) - 1, where S
    is the mean square of a sent word along the vector; w makes that smallest. A vector shorter
    than `max_length` is told at that length, its sign turned by a chance that leaves its mean.
Source: Shah, Chen, Balle, Kairouz, Theis (AISTATS 2022), minimal random coding; Isik, Chen, Ozgur,
    Weissman, No (2023), codes of random directions; subset selection of Ye and Barg (2018).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any, Final

from hubbub.errors import BadParameter, ValueOutOfDomain
from hubbub.fields.frozen import frozen, set_derived
from hubbub.fields.rules import is_number
from hubbub.mechanisms import pure_protocols
from hubbub.mechanisms.direction_pool import MAX_DIMENSIONS, book, top_sums
from hubbub.mechanisms.layout import Estimates, OneHot, Totals, concat
from hubbub.mechanisms.mechanism import MAX_CELLS, check_cells, check_whole, number, whole
from hubbub.mechanisms.portable_floats import length
from hubbub.mechanisms.probability import MAX_EPSILON, Probability, exp_at_most, log_at_least
from hubbub.mechanisms.random_bits import BitSource

POOL: Final = ("words", "books")
"""The parameters that `auto` chooses."""

_CELLS: Final = 1 << 20
MAX_BOOKS: Final = 1 << 16
MAX_LENGTH: Final = 1e12
"""So that squares, and sums of as many reports as there may be, are finite."""

# Tolerance of a unit vector's squared length, for rounding in sums of floats.
_CLOSE: Final = 1e-6
# Largest epsilon for which this number of words is within 5% of the best number; decision 0218.
_WORDS: Final = ((1.5, 32), (2.5, 64), (3.5, 128), (5.0, 256), (6.5, 512), (math.inf, 1024))
# Most words times the root of reports * dimensions^.75, so that equal vectors err by 8% more than
# the optimum (decision 0218, which has the limits); and from where on totals are the largest.
_CROWDED_WORDS: Final = 1.5e6
_MIN_WORDS: Final = 64
_MANY: Final = 1.6e8
_MAX_REPORTS: Final = 10**13


def words_for(epsilon: float) -> int:
    """The number of words of a book at this epsilon; more gain little and take a device time."""
    return next(words for limit, words in _WORDS if not epsilon > limit)


def pool_for(
    epsilon: float, reports: float = 0, dimensions: int = 2, words: int = 0, most: float = MAX_CELLS
) -> dict[str, int]:
    """Words, if they are 0, and books for so many reports in an epoch; 0 if unknown.

    Books add an error that more reports do not reduce; it matters the more, the larger epsilon is.
    More books lessen it, in totals of 32 MB instead of 8 if `most` cells allow, and fewer words.
    Larger numbers than a metric may have count as the largest; what checks them may run later.
    """
    crowding = min(reports, _MAX_REPORTS) * dimensions**0.75
    is_large = crowding * math.exp(0.75 * min(epsilon, MAX_EPSILON)) > _MANY
    cells = min(int(max(most, _CELLS) if is_large else _CELLS), MAX_CELLS)
    fewer = int(_CROWDED_WORDS / math.sqrt(max(crowding, 1.0)))
    words = words or min(words_for(epsilon), max(fewer, _MIN_WORDS))
    return {"words": words, "books": min(max(cells // words, 1), MAX_BOOKS)}


@frozen(kw_only=True)
class VectorCodes(pure_protocols.PureMechanism[Sequence[float]]):
    """Vectors of `dimensions` numbers, by `books` books of `words` words each.

    A value is a sequence of numbers whose length (root of the sum of squares) is at most
    `max_length`.

    Attributes:
        near: w, the number of near words.
        reach: m, which divides a word.
        squared_error: mean of |word/m - vector|^2 for one report of a unit vector, over all pools,
            with words less the mean word of their book, which saves 1 / (words m^2).
        along: S.
    """

    epsilon: float
    dimensions: int
    words: int = field(
        default=64,
        metadata=whole(
            "Number of words of each book; `auto` chooses it by epsilon.",
            2,
            1 << 10,
            example=64,
        ),
    )
    books: int = field(
        default=1 << 14,
        metadata=whole(
            "Number of books; totals have a cell for each word of each book.",
            1,
            MAX_BOOKS,
            example=16384,
        ),
    )
    seed: str = "0"
    max_length: float = field(
        default=1.0,
        metadata=number(
            "Largest length of a vector (root of the sum of squares); longer vectors are "
            "shortened.",
            1e-100,
            MAX_LENGTH,
            example=1.0,
        ),
    )
    near: int = field(init=False, repr=False)
    keep: Probability = field(init=False, repr=False)
    channel: pure_protocols.Pure = field(init=False, repr=False)
    reach: float = field(init=False, repr=False, compare=False)
    squared_error: float = field(init=False, repr=False, compare=False)
    along: float = field(init=False, repr=False, compare=False)

    NAME = "vector.codes"
    VERSION = 1
    VALUES = "vectors"
    FAMILY = "vector"
    SMALL = (
        {"epsilon": 0.1, "dimensions": 2, "words": 2, "books": 1},
        {"epsilon": 1.0, "dimensions": 3, "words": 5, "books": 3},
        {"epsilon": 3.0, "dimensions": 2, "words": 8, "books": 2, "max_length": 4.0},
    )

    def __post_init__(self) -> None:
        if not (isinstance(self.dimensions, int) and 2 <= self.dimensions <= MAX_DIMENSIONS):  # noqa: PLR2004 one number is a mean
            raise BadParameter(f"dimensions {self.dimensions} is outside [2, {MAX_DIMENSIONS}]")
        check_whole(self, "words", "books")
        if not (is_number(self.max_length) and 0 < self.max_length <= MAX_LENGTH):
            raise BadParameter(f"max_length {self.max_length} is outside (0, {MAX_LENGTH:g}]")
        check_cells(self, "words", "books")
        if not isinstance(self.seed, str):
            raise BadParameter("seed must be a text; use that of the pool")
        odds, words = exp_at_most(self.epsilon), self.words
        best, error, reach, along = _nearest(float(odds), words, self.dimensions)
        keep = Probability.at_most(best * odds / (best * odds + words - best))  # PRIVACY: down
        channel = pure_protocols.Pure(keep.exact / best, keep.complement.exact / (words - best))
        set_derived(
            self,
            near=best,
            keep=keep,
            channel=channel,
            reach=reach,
            squared_error=error,
            along=along,
        )

    @property
    def layout(self) -> OneHot:
        """Cell of book b, word i: b words + i."""
        return OneHot(self.books * self.words)

    @property
    def groups(self) -> int:
        return self.books

    def privacy_loss(self) -> float:
        return log_at_least(self.channel.p / self.channel.q)

    def total_variation(self) -> Fraction:
        """The distance between two vectors with no, or as few as possible, near words in common."""
        return min(self.near, self.words - self.near) * (self.channel.p - self.channel.q)

    def check(self, value: Any) -> None:
        """Raises ValueOutOfDomain unless `value` is such a vector. Never shows it."""
        if not (
            isinstance(value, Sequence)
            and not isinstance(value, str | bytes)
            and len(value) == self.dimensions
            and all(is_number(number) for number in value)
            and _scaled_length(value) <= self.max_length * (1 + _CLOSE)
        ):
            raise ValueOutOfDomain(
                f"value is not a vector of {self.dimensions} numbers of length "
                f"{self.max_length:g} or less"
            )

    def order(self, direction: Sequence[float], number: int) -> list[int]:
        """The words of a book, the nearest to the direction first; of equals the earlier."""
        words = book(self.seed, number, self.words, self.dimensions)
        distances = [
            -math.fsum(a * x for a, x in zip(word, direction, strict=True)) for word in words
        ]
        return sorted(range(self.words), key=distances.__getitem__)

    def row(self, value: Sequence[float]) -> Sequence[int | Fraction]:
        """Per book and word, whether it is near; of a vector that may be turned, how often."""
        self.check(value)
        return [
            sum((part for part, near_words in law if word in near_words), start=Fraction())
            for law in (self._near_words(value, number) for number in range(self.books))
            for word in range(self.words)
        ]

    def likelihood(self, value: Sequence[float], cells: Mapping[int, int]) -> Fraction:
        self.check(value)
        number, word = divmod(next(iter(cells)), self.words)
        return sum(
            (
                part * (self.channel.p if word in near_words else self.channel.q)
                for part, near_words in self._near_words(value, number)
            ),
            start=Fraction(),
        )

    def randomize(self, value: Sequence[float], source: BitSource) -> bytes:
        self.check(value)
        direction, turning = self._direction(value)
        if turning is not None and source.chance(turning):
            direction = [-x for x in direction]
        number = source.below(self.books)
        order = self.order(direction, number)
        # PRIVACY: the only coin that depends on epsilon; nobody else knows which words are near.
        if source.chance(self.keep):
            place = source.below(self.near)
        else:
            place = self.near + source.below(self.words - self.near)
        return self.layout.encode(number * self.words + order[place])

    def estimate(self, totals: Totals) -> Estimates:
        """Per book and word: how many of the book's reports are of vectors near it."""
        totals.check(self.layout)
        size = self.words
        books = (totals.cells[start : start + size] for start in range(0, self.layout.size, size))
        estimates = (self.channel.estimates(supports, sum(supports)) for supports in books)
        return concat(estimates, totals.reports)

    def probes(self) -> Sequence[tuple[float, ...]]:
        """Both directions of every axis, and what lies between all."""
        axes = range(self.dimensions)
        ends = [
            tuple(sign * float(index == axis) for index in axes)
            for axis in axes
            for sign in (1, -1)
        ]
        middle = (1 / math.sqrt(self.dimensions),) * self.dimensions
        return [tuple(self.max_length * x for x in vector) for vector in (*ends, middle)]

    def _direction(self, value: Sequence[float]) -> tuple[list[float], Probability | None]:
        """At length 1, and the chance of its opposite that leaves the mean; None for none."""
        largest, scaled = apart(value)
        if not largest:  # the zero vector has no direction: any one, negated with probability 1/2
            scaled = [1.0] + [0.0] * (len(value) - 1)
        vector_length = length(scaled)
        shortfall = 1 - vector_length * (largest / self.max_length)
        turning = Probability.at_most(shortfall / 2) if shortfall > _CLOSE else None
        return [x / vector_length for x in scaled], turning

    def _near_words(self, value: Sequence[float], number: int) -> list[tuple[Fraction, set[int]]]:
        """Which words of a book are near, of the direction and of its opposite, how often each."""
        direction, turning = self._direction(value)
        turned = turning.exact if turning is not None else Fraction()
        ways = [(1 - turned, direction), (turned, [-x for x in direction])]
        return [(part, set(self.order(way, number)[: self.near])) for part, way in ways if part]


def apart(vector: Sequence[float]) -> tuple[float, list[float]]:
    """The largest of its numbers, without its sign, and the vector over it; of nothing zeros.

    Squares of what is tiny are 0, and of what is huge no float: so lengths are of the latter.
    """
    largest = max(map(abs, vector))
    return largest, [x / largest if largest else 0.0 for x in vector]


def _scaled_length(vector: Sequence[float]) -> float:
    largest, scaled = apart(vector)
    return largest * length(scaled)


def _nearest(odds: float, words: int, dimensions: int) -> tuple[int, float, float, float]:
    """How many words are near: of the least squared error; that error, m and S."""
    best, least, reach, projection = 1, math.inf, 1.0, 1.0
    for w, (top, square) in enumerate(top_sums(words), start=1):
        p = odds / (w * odds + words - w)
        q = 1 / (w * odds + words - w)
        m = (p - q) * top / math.sqrt(dimensions)
        along = p * square + q * (words - square)
        error = (dimensions - 1 + along) / (dimensions * m * m) - 1
        if error < least:
            best, least, reach, projection = w, error, m, along
    return best, least - 1 / (words * reach * reach), reach, projection
