"""Decodes a round's words: mean direction of its people's vectors, and second moments."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.estimators.code_words import centre_square, words_of
from hubbub.analysis.families.vector import books_variance, drawn_words, scale_of
from hubbub.errors import BatchTooSmall
from hubbub.mechanisms.directions import UNIT
from hubbub.mechanisms.vector_codes import VectorCodes

# Least ratio of a word's length along its person's direction to its length across.
_MIN_LONGER: Final = 1e-9


@dataclass(frozen=True, slots=True)
class DirectionMoments:
    """The moments of the directions in a round's reports.

    Args:
        people: number of reports.
        mean: of directions, per coordinate.
        variances: of the mean, from coins and from books that reports share.
        outer: mean outer product of a direction with itself, shape (dimensions, dimensions), trace
            1. Sent words are longer along their person's direction, so they contain it; None if
            they do not, as at the smallest epsilons, where half of all words are near.
    """

    people: int
    mean: Floats
    variances: Floats
    outer: Floats | None

    @property
    def noise(self) -> float:
        """Root of the expected squared length of the error of the mean direction."""
        return float(np.sqrt(self.variances.sum()))


def moments_of(
    mechanism: VectorCodes, sums: Floats, sent: Floats, products: Floats
) -> DirectionMoments:
    """Moments of the directions that a round's words show.

    `sums` are of the words of each book's reports, in steps, of shape (books, dimensions), and
    `sent` counts these reports; `products` is the sum of each word's outer product with itself, of
    shape (dimensions, dimensions). Raises BatchTooSmall for fewer than two reports.
    """
    people = int(sent.sum())
    if people < 2:  # noqa: PLR2004 one has no variance
        raise BatchTooSmall("a round's mean needs at least two reports")
    moments = products / people / UNIT**2
    by_book = scale_of(mechanism) * sums
    mean = by_book.sum(axis=0) / people
    squares = np.diag(moments) / mechanism.dimensions / mechanism.reach**2
    coins = np.maximum(squares - mean**2, 0.0) / (people - 1)
    # Reports by one book share its words, and err together.
    shared = books_variance(mechanism, by_book, sent, people**2 * coins)
    variances = coins + shared / people**2
    longer = mechanism.along - 1
    is_clear = abs(longer) > _MIN_LONGER
    across = 1 - centre_square(mechanism)
    outer = (moments - across * np.eye(mechanism.dimensions)) / longer if is_clear else None
    return DirectionMoments(people, mean, variances, outer)


def moments_from_cells(mechanism: VectorCodes, cells: Floats) -> DirectionMoments:
    """The moments from each word's count, shape (books * words,). Raises as `moments_of`."""
    size = mechanism.dimensions
    books = cells.reshape(mechanism.books, mechanism.words)
    sums, products = np.zeros((mechanism.books, size)), np.zeros((size, size))
    for number in np.flatnonzero(books.any(axis=1)).tolist():
        words = words_of(mechanism, number)
        sums[number] = books[number] @ words
        sent = np.flatnonzero(books[number])
        products += (words[sent].T * books[number][sent]) @ words[sent]
    return moments_of(mechanism, sums, books.sum(axis=1), products)


def draw_moments(
    mechanism: VectorCodes, units: Floats, chance: np.random.Generator
) -> DirectionMoments:
    """Moments of one report for each unit vector, drawn from its exact law."""
    books, ranks = drawn_words(mechanism, len(units), chance)
    sent = np.empty_like(units)
    for draw_number, (number, rank) in enumerate(zip(books.tolist(), ranks.tolist(), strict=True)):
        words = words_of(mechanism, number)
        order = np.argpartition(-(words @ units[draw_number]), mechanism.near - 1)
        sent[draw_number] = words[order[rank]]
    sums = np.zeros((mechanism.books, mechanism.dimensions))
    np.add.at(sums, books, sent)
    counts = np.bincount(books, minlength=mechanism.books).astype(np.float64)
    return moments_of(mechanism, sums, counts, sent.T @ sent)
