"""Totals drawn from their exact law, as if so many people had reported: no report is made.

For whoever plans: the randomness is numpy's, reproducible, and protects nobody. Each payload format
has its own law, written once: given which values how many reports hold, one-hot cells are
multinomial, bits binomial, fixed-size sets and samples drawn element by element with the chance
that what is left of a set has for it (hypergeometric), cohorts multinomial and then bits.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hubbub.analysis.arrays import Floats
from hubbub.analysis.strings.candidate_positions import bloom_places, sketch_buckets
from hubbub.errors import BadParameter
from hubbub.mechanisms import (
    AnyMechanism,
    BitVector,
    CohortBits,
    Layout,
    OneHot,
    Rappor,
    Samples,
    Subset,
    Totals,
)
from hubbub.mechanisms.geometry import HashPool
from hubbub.mechanisms.grr import GeneralizedRandomizedResponse
from hubbub.mechanisms.hcms import HadamardSketch
from hubbub.mechanisms.local_hash import LocalHashing
from hubbub.mechanisms.long_grr import LongitudinalGrr
from hubbub.mechanisms.long_hash import LongitudinalHash
from hubbub.mechanisms.pairs import PairedParts
from hubbub.mechanisms.privset import PrivSet
from hubbub.mechanisms.rr import RandomizedResponse
from hubbub.mechanisms.tree import PrefixTree
from hubbub.mechanisms.vector_codes import VectorCodes
from hubbub.mechanisms.walsh import negative
from hubbub.privacy.draws_of_codes import draw_vectors
from hubbub.privacy.draws_of_sets import draw_sets
from hubbub.privacy.draws_of_trees import draw_points, draw_tree

Counts = npt.NDArray[np.int64]

# Values times cells whose chances are worked out one by one; and how many times as many are drawn
# at once in the same time.
_LARGEST: Final = 1 << 22
_QUICK: Final = 16
# A report of these is the index of a value.
_NAMED: Final = (RandomizedResponse, GeneralizedRandomizedResponse, LongitudinalGrr)


def draw(
    mechanism: AnyMechanism,
    values: Sequence[Any],
    counts: Sequence[int],
    chance: np.random.Generator,
) -> Totals:
    """Totals of counts[i] reports of values[i], drawn from their exact law.

    Raises:
        BadParameter: more values and cells than can be drawn.
    """
    held = np.array(counts, dtype=np.int64)
    cells = _SAMPLERS[type(mechanism.layout)](mechanism, values, held, chance)
    return Totals(cells.tolist(), int(held.sum()))


@lru_cache(maxsize=1 << 13)
def one_hot_chances(mechanism: AnyMechanism, value: object) -> Floats:
    """Of a payload that is one index: the chance of each for this value; shape (cells,)."""
    cells = range(mechanism.layout.size)
    chances = np.array([float(mechanism.likelihood(value, {cell: 1})) for cell in cells])
    shares: Floats = chances / chances.sum()
    return shares


def _one_hot(
    mechanism: AnyMechanism, values: Sequence[Any], held: Counts, chance: np.random.Generator
) -> Counts:
    for kind, law in _OWN_LAWS.items():
        if isinstance(mechanism, kind):
            return law(mechanism, values, held, chance)
    if isinstance(mechanism, LocalHashing | LongitudinalHash):
        return _lied(mechanism, hashed(mechanism, values, held, chance), chance)
    if isinstance(mechanism, _NAMED):
        return named(bits_held(mechanism, values, held), float(mechanism.channel.q), chance)
    _check(mechanism, len(values) * mechanism.layout.size)
    cells = np.zeros(mechanism.layout.size, dtype=np.int64)
    for value, count in zip(values, held.tolist(), strict=True):
        cells += chance.multinomial(count, one_hot_chances(mechanism, value))
    return cells


def _paired(
    mechanism: PairedParts, values: Sequence[int], held: Counts, chance: np.random.Generator
) -> Counts:
    """Pairs of parts by a fair coin; then, table by table, the points of each cell's reports."""
    large = sum(mechanism.cells) * mechanism.points > _LARGEST
    if large:  # report by report, as there are more chances than can be worked out
        _check(mechanism, int(held.sum()) // _QUICK)
    groups = mechanism.groups
    sent = chance.multinomial(held, np.full(groups, 1 / groups))
    places = [mechanism.places_of(value) for value in values]
    cells = np.zeros((groups, mechanism.points), dtype=np.int64)
    for group, size in enumerate(mechanism.cells):
        own = np.zeros(size, dtype=np.int64)
        np.add.at(own, [mechanism.cell(one, group) for one in places], sent[:, group])
        if large:
            told = np.repeat(np.arange(size, dtype=np.int32), own)
            cells[group] = draw_points(mechanism.response, told, chance)
            continue
        for cell in np.flatnonzero(own).tolist():
            chances = one_hot_chances(mechanism.response, cell)
            cells[group] += chance.multinomial(own[cell], chances)
    return cells.reshape(-1)


def named(own: Counts, other: float, chance: np.random.Generator) -> Counts:
    """How many reports name each value: any other one with this chance, the true one with the rest.

    That is any value at all, or surely the true one. own: how many hold each; in rows, each by
    itself.
    """
    values = own.shape[-1]
    sure = chance.binomial(own, 1 - values * other)
    any_at_all = np.full(values, 1 / values)
    cells: Counts = sure + chance.multinomial((own - sure).sum(axis=-1), any_at_all)
    return cells


def hashed(
    mechanism: LocalHashing | LongitudinalHash,
    values: Sequence[Any],
    held: Counts,
    chance: np.random.Generator,
) -> Counts:
    """Per function and bucket, how many people's values are there: a function each, all alike."""
    if isinstance(mechanism, LocalHashing):
        functions, width = mechanism.hashes, mechanism.width
    else:
        functions, width = mechanism.transform.functions, mechanism.transform.prime
    _check(mechanism, len(values) * functions // _QUICK)
    sent = chance.multinomial(held, np.full(functions, 1 / functions))
    own = np.zeros((functions, width), dtype=np.int64)
    np.add.at(own, (np.arange(functions), _buckets(mechanism, values)), sent)
    return own


def _buckets(mechanism: LocalHashing | LongitudinalHash, values: Sequence[Any]) -> Counts:
    """The bucket of each value under each function; shape (values, functions)."""
    if isinstance(mechanism, LocalHashing):
        return sketch_buckets(mechanism, values)
    return _pool_buckets(mechanism.transform, tuple(values))


@lru_cache(maxsize=16)
def _pool_buckets(pool: HashPool, values: tuple[int, ...]) -> Counts:
    return np.array([[pool.bucket(one, j) for j in range(pool.functions)] for one in values])


def _lied(
    mechanism: LocalHashing | LongitudinalHash, own: Counts, chance: np.random.Generator
) -> Counts:
    """Of every function, its buckets as they are held, and lies."""
    by = mechanism if isinstance(mechanism, LocalHashing) else mechanism.response
    other = float(by.channel.q)
    return named(own, other, chance).reshape(-1)


def _signs(
    mechanism: HadamardSketch, values: Sequence[str], held: Counts, chance: np.random.Generator
) -> Counts:
    """One entry of one function's row, all alike, and its sign kept or turned."""
    width, functions = mechanism.width, mechanism.hashes
    rows = _negatives(width)
    places = functions * width
    _check(mechanism, len(values) * places // _QUICK)
    sent = chance.multinomial(held, np.full(places, 1 / places)).reshape(-1, functions, width)
    minus = rows[sketch_buckets(mechanism, values)]
    keep = float(mechanism.keep.exact)
    negatives = chance.binomial(sent, np.where(minus, keep, 1 - keep))
    pairs = np.stack([sent - negatives, negatives], axis=-1)
    cells: Counts = pairs.sum(axis=0).reshape(-1)
    return cells


@lru_cache(maxsize=4)
def _negatives(width: int) -> npt.NDArray[np.bool_]:
    """Per bucket, which entries of its row are negative."""
    return np.array(
        [[negative(bucket, entry) for entry in range(width)] for bucket in range(width)]
    )


def _bits(
    mechanism: Any,
    values: Sequence[int],
    held: Counts,
    chance: np.random.Generator,
) -> Counts:
    own = bits_held(mechanism, values, held)
    p, q = float(mechanism.channel.p), float(mechanism.channel.q)
    ones: Counts = chance.binomial(own, p) + chance.binomial(held.sum() - own, q)
    return ones


def bits_held(mechanism: AnyMechanism, values: Sequence[int], held: Counts) -> Counts:
    """Per cell, how many people hold the value that it stands for."""
    own = np.zeros(mechanism.layout.size, dtype=np.int64)
    np.add.at(own, np.array(values), held)
    return own


def _sets(
    mechanism: Any,
    values: Sequence[int],
    held: Counts,
    chance: np.random.Generator,
) -> Counts:
    """As their own law has it; or, of one value each, as below.

    People by how many of their set are still to be picked: picked element by element, in order.

    Until a person's own element has come nothing of the picking depends on which one it is, so they
    are counted together, by whether it is in their set; those whose element comes are then drawn.
    """
    if isinstance(mechanism, PrivSet):
        return draw_sets(mechanism, values, held, chance)
    size, ones = mechanism.layout.size, mechanism.layout.ones
    _check(mechanism, size * ones // _QUICK)
    own = bits_held(mechanism, values, held)
    included = int(chance.binomial(held.sum(), float(mechanism.channel.p)))
    # Of the set, beside the own element. Rows: own element to come and left out, and in; and past.
    left = np.zeros((3, ones + 1), dtype=np.int64)
    left[1, ones - 1], left[0, ones] = included, int(held.sum()) - included
    to_go, cells = np.arange(ones + 1), np.zeros(size, dtype=np.int64)
    for element in range(size):
        came = chance.multivariate_hypergeometric(
            left[:2].reshape(-1), int(own[element]), method="marginals"
        ).reshape(2, -1)
        left[:2] -= came
        # Other elements still to come: of those whose own is among them one less.
        others = np.array([[size - element - 1], [size - element - 1], [size - element]])
        picked = chance.binomial(left, np.minimum(to_go / np.maximum(others, 1), 1.0))
        left -= picked
        left[:, :-1] += picked[:, 1:]
        left[2] += came.sum(axis=0)
        cells[element] = picked.sum() + came[1].sum()
    return cells


def _samples(
    mechanism: Any,
    values: Sequence[float],
    held: Counts,
    chance: np.random.Generator,
) -> Counts:
    """As sets, of the buckets that are asked about; then each answer with its chance."""
    buckets, sampled = mechanism.layout.buckets, mechanism.layout.sampled
    _check(mechanism, len(values) * buckets * sampled // _QUICK)
    own = np.array([mechanism.range.bucket(value, buckets) for value in values])
    lie = float(mechanism.lie.exact)
    left = np.zeros((len(values), sampled + 1), dtype=np.int64)
    left[:, sampled] = held
    cells = np.zeros((buckets, 2), dtype=np.int64)
    for bucket in range(buckets):
        asked = chance.binomial(left, np.minimum(np.arange(sampled + 1) / (buckets - bucket), 1.0))
        left -= asked
        left[:, :-1] += asked[:, 1:]
        each = asked.sum(axis=1)
        yes = chance.binomial(each, np.where(own == bucket, 1 - lie, lie)).sum()
        cells[bucket] = each.sum() - yes, yes
    return cells.reshape(-1)


def _cohorts(
    mechanism: Any,
    values: Sequence[str],
    held: Counts,
    chance: np.random.Generator,
) -> Counts:
    channel = mechanism.chain.channel if isinstance(mechanism, Rappor) else mechanism.channel
    own, reports = cohorts_held(mechanism, values, held, chance)
    seen = chance.binomial(own, float(channel.p))
    seen += chance.binomial(reports[:, None] - own, float(channel.q))
    return np.column_stack([reports, seen]).reshape(-1)


def cohorts_held(
    mechanism: Any,
    values: Sequence[str],
    held: Counts,
    chance: np.random.Generator,
) -> tuple[Counts, Counts]:
    """Per cohort and bit, of how many people it is truly 1; and per cohort its people."""
    layout = mechanism.layout
    cohorts, bits = layout.cohorts, layout.bits
    _check(mechanism, len(values) * cohorts // _QUICK)
    split = chance.multinomial(held, np.full(cohorts, 1 / cohorts))  # shape (values, cohorts)
    ones = np.zeros(cohorts * bits + 1, dtype=np.int64)
    if isinstance(mechanism, Rappor):
        places = bloom_places(mechanism, values).reshape(len(values), cohorts, -1)
    else:
        places = (sketch_buckets(mechanism, values) + bits * np.arange(cohorts))[:, :, None]
    np.add.at(ones, places, np.broadcast_to(split[:, :, None], places.shape))
    return ones[:-1].reshape(cohorts, bits), split.sum(axis=0)


Sampler = Callable[[Any, Sequence[Any], Counts, np.random.Generator], Counts]

# Of mechanisms whose report is one index, those whose cells are too many for a chance each.
_OWN_LAWS: Final[Mapping[type[AnyMechanism], Sampler]] = {
    HadamardSketch: _signs,
    PrefixTree: draw_tree,
    PairedParts: _paired,
    VectorCodes: draw_vectors,
}
_SAMPLERS: Final[Mapping[type[Layout], Sampler]] = {
    OneHot: _one_hot,
    BitVector: _bits,
    Subset: _sets,
    Samples: _samples,
    CohortBits: _cohorts,
}


def _check(mechanism: AnyMechanism, work: int) -> None:
    if work > _LARGEST:
        raise BadParameter(
            f"{mechanism.NAME} of this size, with so many values, is too much to draw; "
            "ask about fewer values"
        )
