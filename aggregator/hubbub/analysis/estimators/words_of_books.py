"""The words of the books of `vector.codes`: of one book, or of many books at once."""

from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.mechanisms.directions import book_bytes, steps
from hubbub.mechanisms.vector_codes import VectorCodes

# Number of coordinates processed together: 8 MB.
_NUMBERS: Final = 1 << 20


def books_at_once(mechanism: VectorCodes) -> int:
    """Number of books whose words fit in a few megabytes; at least 1."""
    return max(1, _NUMBERS // (mechanism.words * mechanism.dimensions))


def words_of(mechanism: VectorCodes, number: int) -> Floats:
    """A book's words, in whole steps; shape (words, dimensions)."""
    words: Floats = words_of_each(mechanism, [number])[0]
    return words


def words_of_each(mechanism: VectorCodes, numbers: Sequence[int]) -> Floats:
    """Words of several books, in whole steps; shape (books, words, dimensions)."""
    steps, size = _step_means(), (mechanism.words, mechanism.dimensions)
    raw = b"".join(book_bytes(mechanism.seed, number, *size) for number in numbers)
    drawn = np.frombuffer(raw, dtype="<u2")
    words: Floats = steps[drawn % len(steps)].reshape(len(numbers), *size)
    return words


def expected_of_books(mechanism: VectorCodes, numbers: Sequence[int], vector: Floats) -> Floats:
    """Mean contribution of a report of `vector` by each book, in whole steps: (books, dimensions).

    `vector` has a length of at most 1. If it is shorter, a device sends its direction or, at
    random, the opposite, so that the mean is right.
    """
    long = float(np.linalg.norm(vector))
    turned = (1 - min(long, 1.0)) / 2
    direction = vector / long if long > 0 else np.eye(1, mechanism.dimensions)[0]
    p, q, near = float(mechanism.channel.p), float(mechanism.channel.q), mechanism.near
    answer = np.empty((len(numbers), mechanism.dimensions))
    many = books_at_once(mechanism)
    for first in range(0, len(numbers), many):
        words = words_of_each(mechanism, numbers[first : first + many])
        order = np.argsort(words @ direction, axis=1)[:, :, None]
        nearest = np.take_along_axis(words, order[:, -near:], axis=1).sum(axis=1)
        furthest = np.take_along_axis(words, order[:, :near], axis=1).sum(axis=1)
        sent = (1 - turned) * nearest + turned * furthest
        answer[first : first + many] = q * words.sum(axis=1) + (p - q) * sent
    return answer


@cache
def _step_means() -> Floats:
    return np.array(steps(), dtype=np.float64)
