"""The error of a vector's mean that all reports by one book share: as estimated, and as expected.

Two directions have the more near words in common the nearer they are to each other. So the error of
the books is known for a mean that is nearly known, up to the words that are near one of them alone.
"""

from collections.abc import Sequence
from math import exp, sqrt
from typing import Final

import numpy as np
from scipy.special import ndtri

from hubbub.analysis.arrays import Floats
from hubbub.analysis.estimators.code_words import NearWords, near_words, words_of
from hubbub.mechanisms.directions import UNIT
from hubbub.mechanisms.vector_codes import VectorCodes

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

    def about(self, mean: Floats, variance: float) -> tuple[Floats, float]:
        """Mean error of a report by each book, if all people hold a vector about `mean`.

        `variance` is that of the mean's coordinate. Returns the errors, of shape (books,
        dimensions), and the variance that they leave to a coordinate of the mean.
        """
        if self._near is None or not self._near.is_whole:
            radius = sqrt(self._mechanism.dimensions * variance)
            self._near = near_words(self._mechanism, self._numbers, mean, radius)
        errors, shifts = np.zeros((len(self._numbers), len(mean))), []
        radius = sqrt(variance * _width(float(np.linalg.norm(mean))))
        for offset in self._offsets:
            point = mean + radius * offset
            length = float(np.linalg.norm(point))
            point /= length if length > _WHOLE else 1.0
            book_error = self._scale * self._near.expected(point) - point
            errors += book_error / len(self._offsets)
            shifts.append(self._sent @ book_error / self._sent.sum())
        left = float(np.var(shifts, axis=0, ddof=1).mean())
        return errors, left * _left(self._mechanism)


def _left(mechanism: VectorCodes) -> float:
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
        unknown = _left(mechanism) / 2 * unlike(2 * _width(length) * square)
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
