"""Draws reports of `projective` one by one with numpy, as the device's randomizer does.

Prefix trees and large tables of parts have too many places to draw each from its law. Reports are
independent, so they are drawn in parallel.
"""

from typing import Final

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from hubbub.analysis.families.draw_totals import Counts
from hubbub.mechanisms.projective import ProjectiveResponse
from hubbub.mechanisms.projective_geometry import Incidence

# Reports drawn at once.
_AT_ONCE: Final = 1 << 18


def draw_points(
    response: ProjectiveResponse, planes: npt.NDArray[np.int32], chance: Generator
) -> Counts:
    """Draws how often each point is sent, for one report per plane."""
    cells = np.zeros(response.layout.size, dtype=np.int64)
    for first in range(0, len(planes), _AT_ONCE):
        drawn = _points(response, planes[first : first + _AT_ONCE], chance)
        cells += np.bincount(drawn, minlength=len(cells))
    return cells


def _points(
    response: ProjectiveResponse, planes: npt.NDArray[np.int32], chance: Generator
) -> Counts:
    """Draws each report's point: on its hyperplane, or off it with the probability of a lie.

    As `ProjectiveResponse.randomize`: all coordinates but one are free, and the one where the
    hyperplane has its first 1 determines the inner product.
    """
    space = response.transform
    s, t = space.prime, space.dimensions
    plane, pivots = vectors_of(space, planes.astype(np.int64))
    is_true = chance.random(len(planes)) < float(response.keep.exact)
    product = np.where(is_true, 0, chance.integers(1, s, len(planes)))
    free = np.where(
        is_true,
        chance.integers(1, s ** (t - 1), len(planes)),
        chance.integers(0, s ** (t - 1), len(planes)),
    )
    vector = np.zeros_like(plane)
    for coordinate in range(t):
        other_places = pivots != coordinate
        vector[other_places, coordinate] = free[other_places] % s
        free[other_places] //= s
        product[other_places] -= (
            plane[other_places, coordinate] * vector[other_places, coordinate]
        ) % s
    vector[np.arange(len(planes)), pivots] = product % s
    return numbers_of(space, vector)


def vectors_of(space: Incidence, points: Counts) -> tuple[Counts, Counts]:
    """Canonical vectors of these points, and the place of the first 1 in each."""
    s, t = space.prime, space.dimensions
    remainders, pivots = points.copy(), np.zeros(len(points), dtype=np.int64)
    size = s ** (t - 1)
    sizes = np.full(len(points), size)
    while (later := remainders >= sizes).any():
        remainders[later] -= sizes[later]
        sizes[later] //= s
        pivots[later] += 1
    vectors = np.zeros((len(points), t), dtype=np.int64)
    for coordinate in range(t - 1, -1, -1):
        vectors[:, coordinate] = remainders % s
        remainders //= s
    vectors[np.arange(len(points)), pivots] = 1
    return vectors, pivots


def numbers_of(space: Incidence, vectors: Counts) -> Counts:
    """Numbers of the points of these vectors."""
    s, t = space.prime, space.dimensions
    zeros = np.argmax(vectors != 0, axis=1)
    inverses = np.array([0, *(pow(x, -1, s) for x in range(1, s))])
    factors = inverses[vectors[np.arange(len(vectors)), zeros]]
    powers = s ** np.arange(t - 1, -1, -1)
    # Read as digits, the first 1 stands for as many as come before what has fewer zeros in front.
    number = (vectors * factors[:, None] % s) @ powers - powers[zeros]
    last = t - zeros
    skipped = space.points - (s**last - 1) // (s - 1)
    numbers: Counts = number + skipped
    return numbers
