"""Exact laws of totals, from which several families draw as if a population had reported.

For simulations and plans: the randomness is numpy's, reproducible, and protects nobody. No report
is made. Given how many people hold each value, one-hot cells are multinomial, bits are binomial,
and cohorts are multinomial with binomial bits.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from hubbub.analysis.arrays import Floats
from hubbub.errors import BadParameter
from hubbub.mechanisms import AnyMechanism, CohortBits
from hubbub.mechanisms.hadamard import HadamardResponse
from hubbub.mechanisms.pure import Pure
from hubbub.mechanisms.two_step_response import Chain

Counts = npt.NDArray[np.int64]

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
    cells = range(mechanism.layout.size)
    if isinstance(mechanism, HadamardResponse):  # often so many that single fractions take seconds
        signs = np.bitwise_count(np.array(cells) & value + 1) % 2
        levels = np.array([float(mechanism.likelihood(0, {cell: 1})) for cell in (0, 1)])
        chances = levels[signs]
    else:
        chances = np.array([float(mechanism.likelihood(value, {cell: 1})) for cell in cells])
    shares: Floats = chances / chances.sum()
    return shares


def draw_named_values(people: Counts, other: float, chance: Generator) -> Counts:
    """Draws how many reports name each value: any other value with probability `other` each.

    A report names a uniform value, or certainly the true one. `people` is the number of people who
    hold each value; rows are independent.
    """
    values = people.shape[-1]
    truthful = chance.binomial(people, 1 - values * other)
    any_at_all = np.full(values, 1 / values)
    return truthful + chance.multinomial((people - truthful).sum(axis=-1), any_at_all)


def holders(mechanism: AnyMechanism, values: Sequence[int], counts: Counts) -> Counts:
    """Number of people who hold the value of each cell."""
    people = np.zeros(mechanism.layout.size, dtype=np.int64)
    np.add.at(people, np.array(values), counts)
    return people


def bucket_holders(buckets: Counts, width: int, counts: Counts, chance: Generator) -> Counts:
    """Draws a hash function for each person, and counts people per function and bucket.

    `buckets` has the bucket of each value under each function; shape (values, functions).
    """
    functions = buckets.shape[1]
    sent = chance.multinomial(counts, np.full(functions, 1 / functions))
    people = np.zeros((functions, width), dtype=np.int64)
    np.add.at(people, (np.arange(functions), buckets), sent)
    return people


def bit_counts(true: Counts, reports: Counts, channel: Pure, chance: Generator) -> Counts:
    """Draws how often each bit is sent as 1, if it is truly 1 in `true` of the reports."""
    one_counts: Counts = chance.binomial(true, float(channel.p))
    return one_counts + chance.binomial(reports - true, float(channel.q))


def lasting_bits(
    true: Counts,
    reports: Counts,
    permanent: tuple[float, float],
    fresh: tuple[float, float],
    chance: Generator,
) -> Callable[[], Counts]:
    """As `bit_counts` over permanent bits that are drawn once; each call draws the reported bits.

    `permanent` has the probability of a permanent 1 for a true 1 and for a true 0; `fresh` that of
    a reported 1 for a permanent 1 and for a permanent 0.
    """
    forever = chance.binomial(true, permanent[0]) + chance.binomial(reports - true, permanent[1])

    def ones() -> Counts:
        sent: Counts = chance.binomial(forever, fresh[0])
        return sent + chance.binomial(reports - forever, fresh[1])

    return ones


def cohort_holders(
    layout: CohortBits, places: npt.NDArray[Any], counts: Counts, chance: Generator
) -> tuple[Counts, Counts]:
    """Draws each person's cohort; returns people whose bit is 1 per cohort and bit, and per cohort.

    `places` has the flat cells of each value's bits; shape (values, cohorts, bits of a value).
    """
    cohorts = layout.cohorts
    split = chance.multinomial(counts, np.full(cohorts, 1 / cohorts))  # shape (values, cohorts)
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
