"""What a release adds noise to: whole numbers, and by how much one report changes them at most.

Of listed values, how many reports support each; of a mean, the sum of the reported places; of a
range, the totals themselves. All estimates are linear in them. The changes are proven by trying
every pair of payloads of every small mechanism (tests/figures/test_releases.py).
"""

from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np

from hubbub.analysis.estimate import estimate
from hubbub.analysis.intervals import Floats
from hubbub.analysis.poisoning import per_bucket
from hubbub.errors import BadParameter
from hubbub.mechanisms import BitVector, OneHot, Subset, Totals
from hubbub.mechanisms.buckets import BucketFlips
from hubbub.mechanisms.geometry import Incidence
from hubbub.mechanisms.mean_one_bit import OneBitMean
from hubbub.mechanisms.mean_piecewise import PiecewiseMean
from hubbub.mechanisms.walsh import WalshHadamard
from hubbub.mechanisms.wave import SquareWave

__all__ = ["statistic", "supports"]


def statistic(
    mechanism: Any,  # noqa: ANN401 of any layout
    totals: Totals,
) -> tuple[Floats, tuple[int, float], float | Floats, float]:
    """Whole numbers to add noise to, how one report changes them, and how they become estimates.

    The change: the sum of all changes at most, and the root of the sum of their squares. The
    estimates: the numbers times a unit (or a matrix), plus a base.
    """
    if isinstance(mechanism, OneBitMean | PiecewiseMean):
        # The sum of places; its estimate is linear in it.
        first, second = (
            mechanism.estimate(Totals([int(c == at) for c in range(mechanism.layout.size)], 1))
            for at in (0, 1)
        )
        total = sum(at * count for at, count in enumerate(totals.cells))
        unit = second.values[0] - first.values[0]
        base = first.values[0] * totals.reports
        most = mechanism.layout.size - 1
        return np.array([float(total)]), (most, float(most)), unit, base
    if isinstance(mechanism, SquareWave | BucketFlips):
        cells = np.array(totals.cells, dtype=np.float64)
        unit_of = _matrix(mechanism)
        change = 2 if isinstance(mechanism, SquareWave) else 2 * mechanism.sampled
        return cells, (change, sqrt(change)), unit_of, 0.0
    whole, change = supports(mechanism, totals)
    gap = float(mechanism.channel.p - mechanism.channel.q)
    base = -totals.reports * float(mechanism.channel.q) / gap
    return whole, (change, sqrt(change)), 1 / gap, base


def supports(mechanism: Any, totals: Totals) -> tuple[Floats, int]:  # noqa: ANN401 with a channel
    """How many reports support each value; and for how many one report can change that."""
    found = estimate(mechanism, totals)
    p, q = mechanism.channel.p, mechanism.channel.q
    whole = np.rint(np.array(found.values) * float(p - q) + float(totals.reports * q))
    return whole, _changes(mechanism)


def _changes(mechanism: Any) -> int:  # noqa: ANN401 with a channel
    """Of how many values two payloads can differ in whether they support them."""
    values: int = mechanism.categories
    layout = mechanism.layout
    match getattr(mechanism, "transform", None):
        case WalshHadamard():
            most: int = layout.size // 2  # two columns of a Hadamard matrix
        case Incidence() as space:
            most = 2 * (space.on_one - space.on_two)
        case _:
            most = _apart(layout)
    return min(values, most)


def _apart(layout: OneHot | Subset | BitVector) -> int:
    """In how many cells two payloads can differ, of those that have one for each value."""
    match layout:
        case OneHot():
            return 2
        case Subset():
            return 2 * min(layout.ones, layout.size - layout.ones)
        case BitVector():
            return layout.size
    raise BadParameter(f"totals of {type(layout).__name__} cannot be released")


@lru_cache(maxsize=64)
def _matrix(mechanism: SquareWave | BucketFlips) -> Floats:
    """What a report in each cell adds to each bucket's estimate; shape (buckets, cells)."""
    size = mechanism.layout.size
    ones = (Totals([int(c == cell) for c in range(size)], 1) for cell in range(size))
    return np.array([per_bucket(mechanism, one) for one in ones]).T
