"""From totals of a round's words to the mean of its people's directions, and its variances."""

from math import sqrt

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.errors import BatchTooSmall
from hubbub.mechanisms.directions import UNIT, book_bytes, steps
from hubbub.mechanisms.vector_codes import VectorCodes


def mean_of_cells(mechanism: VectorCodes, cells: Floats) -> tuple[Floats, Floats]:
    """Mean of what was reported, and its coordinates' variances; shape (dimensions,) each.

    cells: how often each word was sent; shape (books * words,). The variances are estimated from
    the reports: without bias, of coins and people together.

    Raises:
        BatchTooSmall: fewer than two reports.
    """
    people = float(cells.sum())
    if people < 2:  # noqa: PLR2004 one has no variance
        raise BatchTooSmall("a round's mean is of two reports at least")
    known = np.array(steps(), dtype=np.float64)
    size = (mechanism.words, mechanism.dimensions)
    books = cells.reshape(mechanism.books, mechanism.words)
    sums, squares = np.zeros(mechanism.dimensions), np.zeros(mechanism.dimensions)
    for number in np.flatnonzero(books.any(axis=1)).tolist():
        drawn = np.frombuffer(book_bytes(mechanism.seed, number, *size), dtype="<u2")
        words = known[drawn % len(known)].reshape(size)
        sums += books[number] @ words
        squares += books[number] @ words**2
    scale = UNIT * sqrt(mechanism.dimensions) * mechanism.reach
    mean = sums / people / scale
    variances = np.maximum(squares / people / scale**2 - mean**2, 0.0) / (people - 1)
    return mean, variances
