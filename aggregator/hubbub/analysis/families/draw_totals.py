"""Exact laws of totals, from which several families draw as if a population had reported.

For simulations and plans: the randomness is numpy's, reproducible, and protects nobody. No report
is made. Given how many people hold each value, one-hot cells are multinomial, bits are binomial,
and cohorts are multinomial with binomial bits. Reports of `projective` are drawn one by one, since
prefix trees and large tables of parts have too many places to draw each from its law.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from hubbub.analysis.arrays import Floats
from hubbub.errors import BadParameter
from hubbub.mechanisms import AnyMechanism, CohortBits
from hubbub.mechanisms.haar import HaarResponse
from hubbub.mechanisms.hadamard import HadamardResponse
from hubbub.mechanisms.projective import ProjectiveResponse
from hubbub.mechanisms.projective_geometry import Incidence
from hubbub.mechanisms.pure_protocols import Pure
from hubbub.mechanisms.two_step_response import Chain
from hubbub.mechanisms.wave import SquareWave

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class People:
    """People whose reports are drawn: counts[i] of them hold values[i]."""

    values: Sequence[Any]
    counts: Counts


LARGEST: Final = 1 << 22
"""Values times cells whose chances are worked out one by one."""

QUICK: Final = 16
"""How many times as many values and cells are drawn at once in the same time."""


def check_size(mechanism: AnyMechanism, work: int) -> None:
    """Raises BadParameter if `work`, in values times cells, is too large to draw."""
    if work > LARGEST:
        raise BadParameter(
            f"{mechanism.NAME} of this size, with so many values, is too large to simulate; "
            "use fewer values"
        )


# More than the 10,000 numbers of a rehearsal, so that each is computed only once.
@lru_cache(maxsize=1 << 14)
def one_hot_chances(mechanism: AnyMechanism, value: Any) -> Floats:
    """Probability of each index as the payload of this value; shape (cells,)."""
    cells = np.arange(mechanism.layout.size)
    if isinstance(mechanism, HaarResponse | SquareWave):
        return np.array(mechanism.chances(mechanism.range.bucket(value, mechanism.buckets)))
    if isinstance(mechanism, HadamardResponse):
        groups = np.bitwise_count(cells & value + 1) % 2
    elif isinstance(mechanism, ProjectiveResponse):
        vectors, _ = vectors_of(mechanism.transform, cells)
        groups = np.sign(vectors @ vectors[value] % mechanism.transform.prime)
    else:
        groups = cells
    # Cells of a group are equally likely; a fraction for each of many cells takes seconds.
    firsts = np.unique(groups, return_index=True)[1].tolist()
    chances = np.array([float(mechanism.likelihood(value, {cell: 1})) for cell in firsts])[groups]
    shares: Floats = chances / chances.sum()
    return shares


def draw_named_values(people: Counts, other: float, rng: Generator) -> Counts:
    """Draws how many reports name each value: any other value with probability `other` each.

    A report names a uniform value, or certainly the true one. `people` is the number of people who
    hold each value; rows are independent.
    """
    values = people.shape[-1]
    truthful = rng.binomial(people, 1 - values * other)
    return truthful + rng.multinomial((people - truthful).sum(axis=-1), np.full(values, 1 / values))


def holders(mechanism: AnyMechanism, people: People) -> Counts:
    """Number of people who hold the value of each cell."""
    by_cell = np.zeros(mechanism.layout.size, dtype=np.int64)
    np.add.at(by_cell, np.array(people.values), people.counts)
    return by_cell


def bucket_holders(buckets: Counts, width: int, counts: Counts, rng: Generator) -> Counts:
    """Draws a hash function for each person, and counts people per function and bucket.

    `buckets` has the bucket of each value under each function; shape (values, functions).
    """
    functions = buckets.shape[1]
    sent = rng.multinomial(counts, np.full(functions, 1 / functions))
    people = np.zeros((functions, width), dtype=np.int64)
    np.add.at(people, (np.arange(functions), buckets), sent)
    return people


def bit_counts(true_counts: Counts, reports: Counts, channel: Pure, rng: Generator) -> Counts:
    """Draws how often each bit is sent as 1, if it is truly 1 in `true_counts` of the reports."""
    one_counts: Counts = rng.binomial(true_counts, float(channel.p))
    return one_counts + rng.binomial(reports - true_counts, float(channel.q))


def lasting_bits(
    true_counts: Counts,
    reports: Counts,
    permanent: tuple[float, float],
    fresh: tuple[float, float],
    rng: Generator,
) -> Callable[[], Counts]:
    """As `bit_counts` over permanent bits that are drawn once; each call draws the reported bits.

    `permanent` has the probability of a permanent 1 for a true 1 and for a true 0; `fresh` that of
    a reported 1 for a permanent 1 and for a permanent 0.
    """
    forever = rng.binomial(true_counts, permanent[0]) + rng.binomial(
        reports - true_counts, permanent[1]
    )

    def ones() -> Counts:
        sent: Counts = rng.binomial(forever, fresh[0])
        return sent + rng.binomial(reports - forever, fresh[1])

    return ones


def cohort_holders(
    layout: CohortBits, places: npt.NDArray[Any], counts: Counts, rng: Generator
) -> tuple[Counts, Counts]:
    """Draws each person's cohort; returns people whose bit is 1 per cohort and bit, and per cohort.

    `places` has the flat cells of each value's bits; shape (values, cohorts, bits of a value).
    """
    cohorts = layout.cohorts
    split = rng.multinomial(counts, np.full(cohorts, 1 / cohorts))  # shape (values, cohorts)
    one_counts = np.zeros(cohorts * layout.bits + 1, dtype=np.int64)
    np.add.at(one_counts, places, np.broadcast_to(split[:, :, None], places.shape))
    return one_counts[:-1].reshape(cohorts, layout.bits), split.sum(axis=0)


def cohort_cells(reports: Counts, one_counts: Counts) -> Counts:
    """Cells of cohorts: the reports of each, then the count of each of its bits."""
    return np.column_stack([reports, one_counts]).reshape(-1)


def chain_steps(chain: Chain) -> tuple[tuple[float, float], tuple[float, float]]:
    """Permanent and fresh probabilities of RAPPOR's bits, for `lasting_bits`."""
    rise = float(chain.flip.exact)
    return (1 - rise, rise), (float(chain.one_after_one.exact), float(chain.one_after_zero.exact))


# Reports drawn at once.
_AT_ONCE: Final = 1 << 18


def draw_points(
    response: ProjectiveResponse, planes: npt.NDArray[np.int32], rng: Generator
) -> Counts:
    """Draws how often each point is sent, for one report per plane."""
    cells = np.zeros(response.layout.size, dtype=np.int64)
    for start in range(0, len(planes), _AT_ONCE):
        points = _points(response, planes[start : start + _AT_ONCE], rng)
        cells += np.bincount(points, minlength=len(cells))
    return cells


def _points(response: ProjectiveResponse, planes: npt.NDArray[np.int32], rng: Generator) -> Counts:
    """Draws each report's point: on its hyperplane, or off it with the probability of a lie.

    As `ProjectiveResponse.randomize`: all coordinates but one are free, and the one where the
    hyperplane has its first 1 determines the inner product.
    """
    space = response.transform
    s, t = space.prime, space.dimensions
    plane, pivots = vectors_of(space, planes.astype(np.int64))
    is_true = rng.random(len(planes)) < float(response.keep.exact)
    product = np.where(is_true, 0, rng.integers(1, s, len(planes)))
    free = np.where(
        is_true,
        rng.integers(1, s ** (t - 1), len(planes)),
        rng.integers(0, s ** (t - 1), len(planes)),
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
    sizes = np.full(len(points), s ** (t - 1))
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
