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

from hubbub.analysis.hashed import bloom_places, sketch_buckets
from hubbub.analysis.intervals import Floats
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
from hubbub.mechanisms.hcms import HadamardSketch
from hubbub.mechanisms.walsh import negative

__all__ = ["draw", "one_hot_chances"]

Counts = npt.NDArray[np.int64]

# Values times cells whose chances are worked out one by one; and how many times as many are drawn
# at once in the same time.
_LARGEST: Final = 1 << 22
_QUICK: Final = 16


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
    cells = _LAWS[type(mechanism.layout)](mechanism, values, held, chance)
    return Totals(cells.tolist(), int(held.sum()))


@lru_cache(maxsize=1024)
def one_hot_chances(mechanism: AnyMechanism, value: object) -> Floats:
    """Of a payload that is one index: the chance of each for this value; shape (cells,)."""
    cells = range(mechanism.layout.size)
    chances = np.array([float(mechanism.likelihood(value, {cell: 1})) for cell in cells])
    shares: Floats = chances / chances.sum()
    return shares


def _one_hot(
    mechanism: AnyMechanism, values: Sequence[Any], held: Counts, chance: np.random.Generator
) -> Counts:
    if isinstance(mechanism, HadamardSketch):
        return _signs(mechanism, values, held, chance)
    _check(mechanism, len(values) * mechanism.layout.size)
    cells = np.zeros(mechanism.layout.size, dtype=np.int64)
    for value, count in zip(values, held.tolist(), strict=True):
        cells += chance.multinomial(count, one_hot_chances(mechanism, value))
    return cells


def _signs(
    mechanism: HadamardSketch, values: Sequence[str], held: Counts, chance: np.random.Generator
) -> Counts:
    """One entry of one function's row, all alike, and its sign kept or turned."""
    width, functions = mechanism.width, mechanism.hashes
    rows = np.array(
        [[negative(bucket, entry) for entry in range(width)] for bucket in range(width)]
    )
    places = functions * width
    _check(mechanism, len(values) * places // _QUICK)
    sent = chance.multinomial(held, np.full(places, 1 / places)).reshape(-1, functions, width)
    minus = rows[sketch_buckets(mechanism, values)]
    keep = float(mechanism.keep.exact)
    negatives = chance.binomial(sent, np.where(minus, keep, 1 - keep))
    pairs = np.stack([sent - negatives, negatives], axis=-1)
    cells: Counts = pairs.sum(axis=0).reshape(-1)
    return cells


def _bits(
    mechanism: Any,  # noqa: ANN401 one with this layout
    values: Sequence[int],
    held: Counts,
    chance: np.random.Generator,
) -> Counts:
    own = np.zeros(mechanism.layout.size, dtype=np.int64)
    np.add.at(own, np.array(values), held)
    p, q = float(mechanism.channel.p), float(mechanism.channel.q)
    ones: Counts = chance.binomial(own, p) + chance.binomial(held.sum() - own, q)
    return ones


def _sets(
    mechanism: Any,  # noqa: ANN401 one with this layout
    values: Sequence[int],
    held: Counts,
    chance: np.random.Generator,
) -> Counts:
    """Reports by value, and by how many of their set are still to be picked: picked in order."""
    size, ones = mechanism.layout.size, mechanism.layout.ones
    _check(mechanism, len(values) * size * ones // _QUICK)
    included = chance.binomial(held, float(mechanism.channel.p))
    left = np.zeros((len(values), ones + 1), dtype=np.int64)  # of the set, beside the value itself
    left[:, ones - 1] += included
    left[:, ones] += held - included
    others = np.full(len(values), size - 1)  # elements still to come, for each value
    cells = np.zeros(size, dtype=np.int64)
    to_go = np.arange(ones + 1)
    whose = np.array(values)
    for element in range(size):
        mine = whose == element
        odds = np.where(mine[:, None], 0.0, np.minimum(to_go / np.maximum(others, 1)[:, None], 1.0))
        picked = chance.binomial(left, odds)
        left -= picked
        left[:, :-1] += picked[:, 1:]
        others[~mine] -= 1
        cells[element] = picked.sum() + included[mine].sum()
    return cells


def _samples(
    mechanism: Any,  # noqa: ANN401 one with this layout
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
    mechanism: Any,  # noqa: ANN401 one with this layout
    values: Sequence[str],
    held: Counts,
    chance: np.random.Generator,
) -> Counts:
    layout = mechanism.layout
    cohorts, bits = layout.cohorts, layout.bits
    _check(mechanism, len(values) * cohorts // _QUICK)
    split = chance.multinomial(held, np.full(cohorts, 1 / cohorts))  # shape (values, cohorts)
    ones = np.zeros(cohorts * bits + 1, dtype=np.int64)
    if isinstance(mechanism, Rappor):
        places = bloom_places(mechanism, values).reshape(len(values), cohorts, -1)
        channel = mechanism.chain.channel
    else:
        places = (sketch_buckets(mechanism, values) + bits * np.arange(cohorts))[:, :, None]
        channel = mechanism.channel
    np.add.at(ones, places, np.broadcast_to(split[:, :, None], places.shape))
    reports = split.sum(axis=0)
    own = ones[:-1].reshape(cohorts, bits)
    seen = chance.binomial(own, float(channel.p))
    seen += chance.binomial(reports[:, None] - own, float(channel.q))
    return np.column_stack([reports, seen]).reshape(-1)


Law = Callable[[Any, Sequence[Any], Counts, np.random.Generator], Counts]

_LAWS: Final[Mapping[type[Layout], Law]] = {
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
