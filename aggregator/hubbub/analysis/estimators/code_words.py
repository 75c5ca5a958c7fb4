"""The words of the books of `vector.codes`: of one book, or of many books at once.

They are measured from their book's centre: the mean of the words that people in all directions
send. It is 0 over all books, but not in a book: a known error of each report, and subtracted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from math import ceil
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import beta, betainc, chdtri

from hubbub.analysis.arrays import Floats
from hubbub.mechanisms.directions import UNIT, book_bytes, steps
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
        drawn = _all_word_bytes(mechanism)[numbers]
    else:
        drawn = _word_bytes(mechanism, numbers)
    words: Floats = _step_of_bytes()[drawn].reshape(len(numbers), *size)
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
    first, last = max(near_count - half, 0), min(near_count + half, mechanism.words)
    sums = np.empty((len(numbers), size))
    ends = [(np.empty_like(sums), np.empty((len(numbers), last - first, size))) for _ in range(2)]
    batch = books_at_once(mechanism)
    for start in range(0, len(numbers), batch):
        block = slice(start, start + batch)
        words = words_of_each(mechanism, numbers[block])
        sums[block] = np.einsum("bwd->bd", words)
        order = np.argsort(words @ direction, axis=1)
        for (sure_sum, unsure_edge), places in zip(ends, (order[:, ::-1], order), strict=True):
            is_sure = np.zeros(places.shape)
            np.put_along_axis(is_sure, places[:, :first], 1.0, axis=1)
            sure_sum[block] = (is_sure[:, None, :] @ words)[:, 0]
            unsure_edge[block] = np.take_along_axis(words, places[:, first:last, None], axis=1)
    return NearWords(
        mechanism=mechanism,
        every=sums,
        ends=(ends[0], ends[1]),
        lacking=near_count - first,
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
