"""The words of the books of `vector.codes`, and the error that all reports by one book share.

They are measured from their book's centre: the mean of the words that people in all directions
send. It is 0 over all books, but not in a book: a known error of each report, and subtracted.

Two directions have the more near words in common the nearer they are to each other. So the error of
the books is known for a mean that is nearly known, up to the words that are near one of them alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from math import ceil, exp, sqrt
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import beta, betainc, chdtri, ndtri

from hubbub.analysis.arrays import Floats
from hubbub.mechanisms.direction_pool import UNIT, book_bytes, steps
from hubbub.mechanisms.vector_codes import VectorCodes

# Number of coordinates processed together: 8 MB.
_NUMBERS: Final = 1 << 20
# Number of coordinates whose bytes are kept for the next question: 8 MB.
_CACHED: Final = 1 << 22
# Number of coordinates of the words about the boundary, on each side of it: 64 MB in all.
_KEPT: Final = 1 << 21
# Words keep their side if they are as many times further from the boundary than it may move.
_FAR: Final = 4.0
# The least number of words on each side of it that are ranked again.
_MIN_HALF: Final = 2
# Number of lengths of words of which the centre's polynomial is fitted.
_LENGTHS: Final = 256


def books_at_once(mechanism: VectorCodes) -> int:
    """Number of books whose words fit in a few megabytes; at least 1."""
    return max(1, _NUMBERS // (mechanism.words * mechanism.dimensions))


def words_of(mechanism: VectorCodes, number: int) -> Floats:
    """A book's words from its centre, in steps; shape (words, dimensions)."""
    words: Floats = words_of_each(mechanism, [number])[0]
    return words


def words_of_each(mechanism: VectorCodes, numbers: Sequence[int]) -> Floats:
    """Words of several books from their centres, in steps; shape (books, words, dimensions)."""
    size = (mechanism.words, mechanism.dimensions)
    if len(numbers) > 1 and mechanism.books * mechanism.words * mechanism.dimensions <= _CACHED:
        word_bytes = _all_word_bytes(mechanism)[numbers]
    else:
        word_bytes = _word_bytes(mechanism, numbers)
    words: Floats = _step_of_bytes()[word_bytes].reshape(len(numbers), *size)
    squares = np.einsum("bwd,bwd->bw", words, words) / UNIT**2
    chances = np.polyval(_centre(mechanism)[0], squares)
    words -= chances[:, None, :] @ words
    return words


def centre_square(mechanism: VectorCodes) -> float:
    """Mean square of a coordinate of the books' centres, in words' standard deviations."""
    return _centre(mechanism)[1]


def along_over_across(mechanism: VectorCodes) -> float:
    """Mean square of a sent word along its person's direction, over that across it."""
    square = centre_square(mechanism)
    return (mechanism.along - square) / (1 - square)


@lru_cache(maxsize=1)  # an answer takes the words of the same books several times
def _all_word_bytes(mechanism: VectorCodes) -> npt.NDArray[np.uint16]:
    return _word_bytes(mechanism, range(mechanism.books))


def _word_bytes(mechanism: VectorCodes, numbers: Sequence[int]) -> npt.NDArray[np.uint16]:
    """The two bytes of each coordinate of these books' words; shape (books, words * dimensions)."""
    size = (mechanism.words, mechanism.dimensions)
    raw = b"".join(book_bytes(mechanism.seed, number, *size) for number in numbers)
    return np.frombuffer(raw, dtype="<u2").reshape(len(numbers), -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class NearWords:
    """The words of every book that are near some vector, or nearly so.

    Directions at a small distance have nearly the same near words: only those about the boundary
    differ, and only they are ranked again.

    Args:
        mechanism: the codes.
        every: sum of all words of each book; shape (books, dimensions).
        ends: of the direction and of its opposite: the sum of the words that are certainly near,
            shape (books, dimensions), and the words about the boundary, (books, words, dimensions).
        lacking: how many of the words about the boundary are near.
        is_whole: whether they are all that may be near, as far as memory allows.
    """

    mechanism: VectorCodes
    every: Floats
    ends: tuple[tuple[Floats, Floats], tuple[Floats, Floats]]
    lacking: int
    is_whole: bool

    def expected(self, vector: Floats) -> Floats:
        """Mean contribution of a report of `vector`, in steps; shape (books, dimensions).

        If the vector is shorter than 1, a device sends its direction or, at random, the opposite.
        """
        length, direction = _length_and_direction(vector)
        p, q = float(self.mechanism.channel.p), float(self.mechanism.channel.q)
        answer = q * self.every
        chances = ((1 + min(length, 1.0)) / 2, (1 - min(length, 1.0)) / 2)
        for sign, chance, (sure_sum, words) in zip((1, -1), chances, self.ends, strict=True):
            if chance:
                ranks = sign * (words @ direction)
                first = ranks.shape[1] - self.lacking
                least = np.partition(ranks, first, axis=1)[:, first, None]
                expected_near = sure_sum + ((ranks >= least)[:, None, :] @ words)[:, 0]
                answer += chance * (p - q) * expected_near
        return answer


def near_words(
    mechanism: VectorCodes, numbers: Sequence[int], vector: Floats, distance: float
) -> NearWords:
    """The words of these books that are near vectors at about this distance from `vector`."""
    length, direction = _length_and_direction(vector)
    near_count, size = mechanism.near, mechanism.dimensions
    # Along a direction words are normal: so many lie between the boundary and where it may be.
    boundary = NormalDist().inv_cdf(1 - near_count / mechanism.words)
    angle = min(distance / max(length, distance), 1.0)
    half = ceil(mechanism.words * NormalDist().pdf(boundary) * _FAR * angle) + _MIN_HALF
    allowed = max(_MIN_HALF, _KEPT // (len(numbers) * size))
    is_whole, half = half <= allowed, min(half, allowed)
    nearest, farthest = max(near_count - half, 0), min(near_count + half, mechanism.words)
    sums = np.empty((len(numbers), size))
    ends = [
        (np.empty_like(sums), np.empty((len(numbers), farthest - nearest, size))) for _ in range(2)
    ]
    batch = books_at_once(mechanism)
    for start in range(0, len(numbers), batch):
        block = slice(start, start + batch)
        words = words_of_each(mechanism, numbers[block])
        sums[block] = np.einsum("bwd->bd", words)
        order = np.argsort(words @ direction, axis=1)
        for (sure_sum, unsure_edge), places in zip(ends, (order[:, ::-1], order), strict=True):
            is_sure = np.zeros(places.shape)
            np.put_along_axis(is_sure, places[:, :nearest], 1.0, axis=1)
            sure_sum[block] = (is_sure[:, None, :] @ words)[:, 0]
            unsure_edge[block] = np.take_along_axis(
                words, places[:, nearest:farthest, None], axis=1
            )
    return NearWords(
        mechanism=mechanism,
        every=sums,
        ends=(ends[0], ends[1]),
        lacking=near_count - nearest,
        is_whole=is_whole,
    )


def _length_and_direction(vector: Floats) -> tuple[float, Floats]:
    """A vector's length and direction; of nothing that of the first axis."""
    length = float(np.linalg.norm(vector))
    return length, vector / length if length > 0 else np.eye(1, len(vector))[0]


@cache
def _centre(mechanism: VectorCodes) -> tuple[Floats, float]:
    """Of a word in its book's centre: the polynomial of its squared length, and `centre_square`.

    A word x near a direction u displaces one at the boundary t, t u on average. So over all u it
    adds its part beyond the boundary, x - t u: along itself 1 - t cos(u, x) / |x|.
    """
    size = mechanism.dimensions
    # Of words' squared lengths, each as often as it counts in a sum of words' squares.
    squares = chdtri(size + 2, (np.arange(_LENGTHS) + 0.5) / _LENGTHS)
    boundary = NormalDist().inv_cdf(1 - mechanism.near / mechanism.words)
    cosines = np.clip(boundary / np.sqrt(squares), -1.0, 1.0)
    half = (size - 1) / 2
    cap_mass = betainc(half, half, (1 - cosines) / 2)
    cap_mass -= cosines * (1 - cosines**2) ** half / (2 * half * beta(0.5, half))
    p, q = float(mechanism.channel.p), float(mechanism.channel.q)
    polynomial = np.polyfit(squares, q + (p - q) * cap_mass, 2)
    square = mechanism.words * float((np.polyval(polynomial, squares) ** 2).mean())
    return polynomial, square


@cache
def _step_of_bytes() -> Floats:
    """The step that two bytes choose, for each of their 65,536 values."""
    return np.resize(np.array(steps(), dtype=np.float64), 1 << 16)


ROUNDS: Final = 4
"""How often the errors are computed, each time about a more precise mean; the last two count."""
FEWER_ROUNDS: Final = 2
"""The same where little remains; the last one counts."""

# The errors are averaged over points about the mean, at these opposite normal displacements, which
# are wider than the mean's error: the true errors are then as far from those of any one point.
_PAIRS: Final = 4
_WIDER: Final = 1.5
_SHORTER: Final = 0.35
# Vectors longer than this are taken to be of length 1, whose opposite no device sends.
_WHOLE: Final = 0.99
# Steps of the integral over angles.
_GRID: Final = 2000
# Just below a right angle, whose tangent is infinite.
_RIGHT: Final = np.pi / 2 - 1e-9
# Least length of a mean that has a direction.
_MIN_LENGTH: Final = 1e-9
# Least share of the coins' variance that is left.
_LEAST: Final = 1e-3
# The law's equation of the mean's error is a contraction; so many steps settle it.
_STEPS: Final = 60


class BooksErrors:
    """The known errors of books, about a mean that becomes more precise.

    `sent` is the number of reports of each of the books with these `numbers`, and `scale` the
    factor from a word in steps to a contribution to the mean.
    """

    def __init__(
        self, mechanism: VectorCodes, numbers: Sequence[int], sent: Floats, scale: float
    ) -> None:
        self._mechanism, self._numbers, self._sent, self._scale = mechanism, numbers, sent, scale
        pairs = words_of(mechanism, 0)[:_PAIRS] / UNIT  # standard normal, and alike for everybody
        self._offsets = np.concatenate([pairs, -pairs])
        self._near: NearWords | None = None

    def about(self, mean: Floats, mean_variance: float) -> tuple[Floats, float]:
        """Mean error of a report by each book, if all people hold a vector about `mean`.

        `mean_variance` is that of the mean's coordinate. Returns the errors, of shape (books,
        dimensions), and the variance that they leave to a coordinate of the mean.
        """
        if self._near is None or not self._near.is_whole:
            radius = sqrt(self._mechanism.dimensions * mean_variance)
            self._near = near_words(self._mechanism, self._numbers, mean, radius)
        errors, shifts = np.zeros((len(self._numbers), len(mean))), []
        radius = sqrt(mean_variance * _width(float(np.linalg.norm(mean))))
        for offset in self._offsets:
            point = mean + radius * offset
            length = float(np.linalg.norm(point))
            point /= length if length > _WHOLE else 1.0
            book_error = self._scale * self._near.expected(point) - point
            errors += book_error / len(self._offsets)
            shifts.append(self._sent @ book_error / self._sent.sum())
        left = float(np.var(shifts, axis=0, ddof=1).mean())
        return errors, left * _averaged_variance(self._mechanism)


def _averaged_variance(mechanism: VectorCodes) -> float:
    """Variance that averaged errors leave, as a multiple of that of the errors they are made of.

    The true errors are those of one more point: 1 + 1/8. By Rice's formula the distances of the
    roots of mean + errors(mean) = sum of words have a gamma law of shape d/2: a factor of 1 + 2/d.
    """
    return (1 + 1 / (2 * _PAIRS)) * (1 + 2 / mechanism.dimensions)


def _width(length: float) -> float:
    """Variance of the points about a mean of this length, as a multiple of the mean's own."""
    return _WIDER * (1 + _SHORTER * (1 - min(length, 1.0)))


def variance_by_books(mechanism: VectorCodes, units: Floats, weights: Floats, pool: float) -> float:
    """Variance that shared books add to the mean's coordinate, in the mean of coordinates.

    `units` are the reported directions, of shape (directions, dimensions), and `weights` their
    shares; `pool` is the variance over the choice of books, if all people hold the same vector.
    """
    return pool * float(weights @ correlations(mechanism, angles(units @ units.T)) @ weights)


def variance_less_known(
    mechanism: VectorCodes,
    units: Floats,
    weights: Floats,
    *,
    pool: float,
    coins: float,
    reports: float,
) -> float:
    """As `variance_by_books`, where the known errors about the mean are subtracted.

    It is negative where they explain more of the variance of who uses which book. `coins` is the
    variance of the mean's coordinate if no two reports share a book.
    """
    mean = weights @ units
    length = min(float(np.linalg.norm(mean)), 1.0)
    direction = mean / np.linalg.norm(mean) if length else units[0]
    ends = np.array([(1 + length) / 2, (1 - length) / 2])
    to_mean = angles(units @ direction)
    common = ends @ [
        weights @ correlations(mechanism, angle) for angle in (to_mean, np.pi - to_mean)
    ]
    opposite_correlation = float(correlations(mechanism, np.array(np.pi)))
    self_overlap = float(ends @ ends + 2 * ends.prod() * opposite_correlation)
    part = min(max(float(common) / self_overlap, 0.0), 1.0)
    explained = part * (2 * float(common) - part * self_overlap)
    # Each report's book is a random one, so that what is known of it explains more.
    spread = 1 + mechanism.books / reports
    shared = variance_by_books(mechanism, units, weights, pool) - explained * pool * spread

    def unlike(square: float) -> float:
        """Variance between the errors at vectors whose squared distance this is."""
        angle = min(sqrt(square) / max(length, _MIN_LENGTH), np.pi)
        return 2 * pool * float(ends @ ends) * (1 - float(correlations(mechanism, np.array(angle))))

    variance = coins
    for _ in range(_STEPS):
        square = mechanism.dimensions * variance
        # As `BooksErrors.about` has it, of points that are so far apart.
        unknown = _averaged_variance(mechanism) / 2 * unlike(2 * _width(length) * square)
        variance = max(coins + shared + part**2 * spread * unknown, _LEAST * coins)
    return variance - coins


def angles(products: Floats) -> Floats:
    """The angles whose cosines these are, but for rounding."""
    return np.arccos(np.clip(products, -1.0, 1.0))


def correlations(mechanism: VectorCodes, angles_apart: Floats) -> Floats:
    """Correlation of a book's errors at directions that are so far apart, in radians.

    A word is near both with the chance that two normal numbers exceed the boundary; its derivative
    by their angle is exp(-t^2 / (1 + cos)) / (2 pi), with the boundary t (Plackett 1954). The mean
    over all angles is the square of the book's centre, which is subtracted.
    """
    words_per_book, near = mechanism.words, mechanism.near
    p, q = float(mechanism.channel.p), float(mechanism.channel.q)
    boundary = float(ndtri(1 - near / words_per_book))
    grid = np.linspace(0.0, np.pi, _GRID + 1)
    middles = (grid[1:] + grid[:-1]) / 2
    lost = (
        words_per_book
        / (2 * np.pi)
        * np.exp(-(boundary**2) / (1 + np.cos(middles)))
        * np.pi
        / _GRID
    )
    # As many words are near in any direction, so that nearly two leave where one would: measured.
    density = words_per_book * exp(-(boundary**2) / 2) / sqrt(2 * np.pi)
    swaps = np.sqrt(1 + 1 / (1 + density * np.tan(np.minimum(grid, _RIGHT))))
    near_both = near - swaps * np.concatenate([[0.0], np.cumsum(lost)])
    squares = (
        p * p * near_both
        + 2 * p * q * (near - near_both)
        + q * q * (words_per_book - 2 * near + near_both)
    )
    squares -= np.average(squares, weights=np.sin(grid) ** (mechanism.dimensions - 2))
    answer: Floats = np.interp(angles_apart, grid, squares / squares[0])
    return answer
