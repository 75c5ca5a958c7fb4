"""Codes of directions beside the optimum: the squared error of a unit vector, and their intervals.

Reports of one vector are drawn from the exact law on the real pool and decoded by the aggregator's
own code. So many of them tell the squared error to half a percent, and touch a quarter of the
books at most, whose words are most of the time. The optimum is PrivUnitG of Asi, Feldman, Talwar
(ICML 2022), by its formula at the best threshold; SQKR is of Chen, Kairouz, Ozgur (NeurIPS 2020),
by its, at a Kashin level of 2.5.
"""

import time
from collections.abc import Iterator
from math import ceil, exp, sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from hubbub.analysis.estimators.vector_book_errors import words_of
from hubbub.analysis.families.vector import scale_of
from hubbub.analysis.models.descent import moments_from_cells
from hubbub.mechanisms import SystemBits
from hubbub.mechanisms.vector_codes import VectorCodes, pool_for

DIMENSIONS: Final = (16, 64, 256)
EPSILONS: Final = (1.0, 2.0, 4.0, 8.0)
REPORTS: Final = 20_000
HEADER: Final = (
    "numbers",
    "epsilon",
    "words",
    "near",
    "squared error",
    "/ theory",
    "PrivUnitG",
    "/ optimum",
    "SQKR",
    "95% intervals hold",
    "us a randomize",
    "bytes",
)
_KASHIN: Final = 2.5
_TIMED: Final = 20


def vectors() -> Iterator[tuple[str, ...]]:
    """A row for every size and epsilon."""
    for dimensions in DIMENSIONS:
        for epsilon in EPSILONS:
            codes = codes_at(epsilon, dimensions)
            error, hold = measured(codes, np.random.default_rng(1))
            least = optimum(epsilon, dimensions)
            yield (
                str(dimensions),
                f"{epsilon:g}",
                str(codes.words),
                str(codes.near),
                f"{error:,.4g}",
                f"{error / codes.squared_error:.3f}",
                f"{least:,.4g}",
                f"{error / least:.3f}",
                f"{sqkr(epsilon, dimensions):,.4g}",
                f"{hold:.3f}",
                f"{_microseconds(codes):,.0f}",
                str(codes.layout.payload_bytes),
            )


def codes_at(epsilon: float, dimensions: int) -> VectorCodes:
    """The codes of a model with so many numbers in its gradient."""
    parameters: dict[str, Any] = {"dimensions": dimensions, **pool_for(epsilon)}
    return VectorCodes(epsilon=epsilon, **parameters)


def measured(codes: VectorCodes, chance: np.random.Generator) -> tuple[float, float]:
    """Mean |word/m - vector|^2, and the share of coordinates within 1.96 standard errors.

    Of one vector from everybody, whom a finite pool of words biases most.
    """
    vector = chance.standard_normal(codes.dimensions)
    vector /= np.linalg.norm(vector)
    cells = cells_of(codes, vector, REPORTS, chance)
    estimate = moments_from_cells(codes, cells)
    off = np.abs(estimate.mean - vector)
    hold = float((off < 1.96 * np.sqrt(estimate.variances)).mean())
    return squared_error_of(codes, vector, cells), hold


def squared_error_of(
    codes: VectorCodes, vector: NDArray[np.float64], cells: NDArray[np.float64]
) -> float:
    """The mean of |word/m - vector|^2 over reports of a vector; cells as of `cells_of`."""
    total, books = 0.0, cells.reshape(codes.books, codes.words)
    for number in np.flatnonzero(books.any(axis=1)).tolist():
        off = scale_of(codes) * words_of(codes, number) - vector
        total += float(books[number] @ (off**2).sum(axis=1))
    return total / float(cells.sum())


def cells_of(
    codes: VectorCodes, units: NDArray[np.float64], reports: int, chance: np.random.Generator
) -> NDArray[np.float64]:
    """Totals of so many reports of each vector, one or a row each; shape (books * words,)."""
    rows = np.atleast_2d(units)
    cells = np.zeros((codes.books, codes.words))
    sent = chance.multinomial(reports, np.full(codes.books, 1 / codes.books), size=len(rows))
    for number in np.flatnonzero(sent.any(axis=0)).tolist():
        order = np.argpartition(-(rows @ words_of(codes, number).T), codes.near - 1, axis=1)
        chances = np.full((len(rows), codes.words), float(codes.channel.q))
        np.put_along_axis(chances, order[:, : codes.near], float(codes.channel.p), axis=1)
        chances /= chances.sum(axis=1, keepdims=True)
        cells[number] = chance.multinomial(sent[:, number], chances).sum(axis=0)
    return cells.ravel()


def optimum(epsilon: float, dimensions: int) -> float:
    """PrivUnitG's squared error at the threshold that makes it least."""
    t = np.linspace(-1, 6, 7001)
    above, density = ndtr(-t), np.exp(-t * t / 2) / sqrt(2 * np.pi)
    p = exp(epsilon) * above / (exp(epsilon) * above + 1 - above)
    slope = density * (p / above - (1 - p) / (1 - above))
    squares = p / above * (t * density + above) + (1 - p) / (1 - above) * (1 - above - t * density)
    return float((dimensions * (dimensions - 1 + squares) / slope**2 / dimensions - 1).min())


def sqkr(epsilon: float, dimensions: int) -> float:
    """SQKR's, of as many bits as epsilon has nats."""
    bits = ceil(epsilon)
    factor = (exp(epsilon) + 2**bits - 1) / (exp(epsilon) - 1)
    return float(dimensions * _KASHIN**2 * factor**2 / bits - 1)


def _microseconds(codes: VectorCodes) -> float:
    value = [1.0, *([0.0] * (codes.dimensions - 1))]
    coins = SystemBits()
    started = time.perf_counter()
    for _ in range(_TIMED):
        codes.randomize(value, coins)
    return (time.perf_counter() - started) / _TIMED * 1e6
