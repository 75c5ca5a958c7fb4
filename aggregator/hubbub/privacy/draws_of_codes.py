"""Reports of unit vectors by codes of directions, drawn from their exact law on the real pool."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hubbub.analysis.arrays import Floats
from hubbub.analysis.estimators.words_of_books import books_at_once, words_of, words_of_each
from hubbub.analysis.models import DirectionMoments, told_by
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


def told_of(mechanism: VectorCodes, units: Floats, chance: np.random.Generator) -> DirectionMoments:
    """One report of each vector, as the aggregator decodes them."""
    books, places = _drawn(mechanism, len(units), chance)
    sent = np.empty_like(units)
    for at, (number, place) in enumerate(zip(books.tolist(), places.tolist(), strict=True)):
        words = words_of(mechanism, number)
        order = np.argpartition(-(words @ units[at]), mechanism.near - 1)
        sent[at] = words[order[place]]
    return told_by(mechanism, len(units), sent.sum(axis=0), sent.T @ sent)


def draw_vectors(
    mechanism: VectorCodes,
    values: Sequence[Sequence[float]],
    held: npt.NDArray[np.int64],
    chance: np.random.Generator,
) -> npt.NDArray[np.int64]:
    """How often each word is sent by held[i] reports of the vectors values[i], from its law."""
    vectors = np.repeat(np.array(values, dtype=np.float64), held, axis=0)
    units = unit_of(vectors / mechanism.max_length, chance)
    books, places = _drawn(mechanism, len(units), chance)
    cells = np.zeros((mechanism.books, mechanism.words), dtype=np.int64)
    order = np.argsort(books, kind="stable")
    many = books_at_once(mechanism)
    for first in range(0, len(units), many):
        own = order[first : first + many]
        heard, at = np.unique(books[own], return_inverse=True)
        words = words_of_each(mechanism, heard.tolist())[at]
        ranks = np.argsort(-np.einsum("pd,pwd->pw", units[own], words), axis=1, kind="stable")
        np.add.at(cells, (books[own], ranks[np.arange(len(own)), places[own]]), 1)
    return cells.reshape(-1)


def _drawn(
    mechanism: VectorCodes, reports: int, chance: np.random.Generator
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Of each report its book, and which of that book's words it sends, the nearest being 0."""
    books = chance.integers(0, mechanism.books, reports)
    kept = chance.random(reports) < float(mechanism.keep.exact)
    near = chance.integers(0, mechanism.near, reports)
    far = chance.integers(mechanism.near, mechanism.words, reports)
    return books, np.where(kept, near, far)
