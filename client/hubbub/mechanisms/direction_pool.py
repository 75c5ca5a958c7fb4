"""Directions: a public pool of random words, the same on every machine for one seed.

A book is SHAKE-128 of its name; every two bytes choose one of 4,096 steps of a normal number, whole
and in 1/4,096. So devices of all languages rank the same words, and an aggregator needs no list.
Source of a normal number's mean between two quantiles: Johnson, Kotz, Balakrishnan (1994), 10.1.
"""

import math
from functools import cache
from typing import Final

from hubbub.mechanisms.portable_floats import binomial, density, normal_tail

UNIT: Final = 1 << 12
"""What a step of 1, a standard deviation, is written as."""

_STEPS: Final = 1 << 12
# Limits of the integral: a normal number beyond them is rarer than 1e-15.
_FAR: Final = 8.0
_GRID: Final = 400
MAX_DIMENSIONS: Final = 1 << 10


@cache
def steps() -> tuple[int, ...]:
    """Means of a normal number in 4,096 equally likely parts, in 1/UNIT, scaled to variance 1.

    Each is more than a thousandth away from a rounding boundary, so that all libraries agree.
    """
    from statistics import NormalDist  # noqa: PLC0415 of vectors alone

    normal = NormalDist()
    edges = [normal.pdf(normal.inv_cdf(part / _STEPS)) for part in range(1, _STEPS)]
    means = [_STEPS * (a - b) for a, b in zip([0.0, *edges], [*edges, 0.0], strict=True)]
    spread = math.sqrt(math.fsum(mean * mean for mean in means) / _STEPS)
    return tuple(round(mean / spread * UNIT) for mean in means)


def book_bytes(seed: str, number: int, words: int, dimensions: int) -> bytes:
    """Two little-endian bytes for every coordinate of the book's words, word after word."""
    import hashlib  # noqa: PLC0415 as in hubbub.sealing.hpke

    name = f"hubbub directions 1 {seed} {dimensions} {words} {number}"
    return hashlib.shake_128(name.encode()).digest(2 * words * dimensions)


def book(seed: str, number: int, words: int, dimensions: int) -> list[list[int]]:
    """The words of one book, each with `dimensions` whole coordinates, in 1/UNIT."""
    book_data, levels = book_bytes(seed, number, words, dimensions), steps()
    flat = [
        levels[(book_data[index] | book_data[index + 1] << 8) % _STEPS]
        for index in range(0, len(book_data), 2)
    ]
    return [flat[start : start + dimensions] for start in range(0, len(flat), dimensions)]


@cache
def top_sums(words: int) -> tuple[tuple[float, float], ...]:
    """Expected sums, plain and of squares, of the 1, 2, ... words - 1 largest of `words` normals.

    A word at z is among the w largest if fewer than w of the others exceed it: the sums are `words`
    times the means of z and z^2 over that event, here by the trapezoid rule. The number of near
    words follows from them, so every SDK must compute them to the same last digit.
    """
    width = 2 * _FAR / _GRID
    sums, squares = [0.0] * (words - 1), [0.0] * (words - 1)
    for place in range(_GRID + 1):
        z = -_FAR + place * width
        share = words * density(z) * width
        chances = binomial(words - 1, normal_tail(z), normal_tail(-z))
        fewer = 0.0
        for count in range(words - 1):
            fewer += chances[count]
            part = share * fewer
            sums[count] += z * part
            squares[count] += z * z * part
    return tuple(zip(sums, squares, strict=True))
