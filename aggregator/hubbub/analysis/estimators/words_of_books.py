"""Words of the books of `vector.codes`, all of a book at once."""

from functools import cache

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.mechanisms.directions import book_bytes, steps
from hubbub.mechanisms.vector_codes import VectorCodes


def words_of(mechanism: VectorCodes, number: int) -> Floats:
    """A book's words in whole steps; shape (words, dimensions)."""
    known, size = _known(), (mechanism.words, mechanism.dimensions)
    drawn = np.frombuffer(book_bytes(mechanism.seed, number, *size), dtype="<u2")
    found: Floats = known[drawn % len(known)].reshape(size)
    return found


@cache
def _known() -> Floats:
    return np.array(steps(), dtype=np.float64)
