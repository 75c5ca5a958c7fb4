"""Reports of unit vectors by codes of directions, drawn from their exact law on the real pool."""

from math import sqrt

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.mechanisms.directions import UNIT, book_bytes, steps
from hubbub.mechanisms.vector_codes import VectorCodes


def unit_of(vectors: Floats, chance: np.random.Generator) -> Floats:
    """Vectors no longer than 1, made as long as that: the sign is turned so that the mean stays."""
    lengths = np.linalg.norm(vectors, axis=1)
    turned = chance.random(len(vectors)) < (1 - np.minimum(lengths, 1.0)) / 2
    # Nothing has no direction: any will do, its sign turned every second time.
    first = np.eye(1, vectors.shape[1])
    units = (
        np.where(lengths[:, None] > 0, vectors, first)
        / np.where(lengths > 0, lengths, 1.0)[:, None]
    )
    found: Floats = np.where(turned, -1.0, 1.0)[:, None] * units
    return found


def mean_of_codes(
    mechanism: VectorCodes, units: Floats, chance: np.random.Generator
) -> tuple[Floats, Floats]:
    """Mean of one report each, as the aggregator decodes it, and its coordinates' variances.

    The variances are estimated from the reports: without bias, of coins and people together.
    """
    known = np.array(steps(), dtype=np.float64)
    people, size = len(units), (mechanism.words, mechanism.dimensions)
    books = chance.integers(0, mechanism.books, people)
    kept = chance.random(people) < float(mechanism.keep.exact)
    near, far = (
        chance.integers(0, mechanism.near, people),
        chance.integers(mechanism.near, mechanism.words, people),
    )
    places = np.where(kept, near, far)
    sums, squares = np.zeros(mechanism.dimensions), np.zeros(mechanism.dimensions)
    for number, unit, place in zip(books.tolist(), units, places.tolist(), strict=True):
        drawn = np.frombuffer(book_bytes(mechanism.seed, number, *size), dtype="<u2")
        words = known[drawn % len(known)].reshape(size)
        order = np.argpartition(-(words @ unit), mechanism.near - 1)
        word = words[order[place]]
        sums += word
        squares += word**2
    scale = UNIT * sqrt(mechanism.dimensions) * mechanism.reach
    mean = sums / people / scale
    variances = np.maximum(squares / people / scale**2 - mean**2, 0.0) / max(people - 1, 1)
    return mean, variances
