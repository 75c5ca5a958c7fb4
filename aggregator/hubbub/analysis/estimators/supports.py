"""How many reports support each listed value, and how much one report can change that."""

from typing import Any

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.estimators.vectorized_estimate import estimate
from hubbub.errors import BadParameter
from hubbub.mechanisms import BitVector, OneHot, Subset, Totals
from hubbub.mechanisms.geometry import HashPool, Incidence
from hubbub.mechanisms.walsh import WalshHadamard


def supports(mechanism: Any, totals: Totals) -> Floats:
    """Number of reports that support each value: whole numbers."""
    estimates = estimate(mechanism, totals)
    p, q = mechanism.channel.p, mechanism.channel.q
    whole: Floats = np.rint(np.array(estimates.values) * float(p - q) + float(totals.reports * q))
    return whole


def max_changes(mechanism: Any) -> int:
    """Largest number of values that only one of two payloads supports."""
    values: int = mechanism.categories
    layout = mechanism.layout
    match getattr(mechanism, "transform", None):
        case WalshHadamard():
            most: int = layout.size // 2  # two columns of a Hadamard matrix
        case Incidence() as space:
            most = 2 * (space.on_one - space.on_two)
        case HashPool() as pool:
            most = 2 * pool.prime ** (pool.dimensions - 1)  # a bucket holds this many values
        case _:
            most = _apart(layout)
    return min(values, most)


def _apart(layout: OneHot | Subset | BitVector) -> int:
    """Largest number of cells in which two payloads differ, for layouts with one cell per value."""
    match layout:
        case OneHot():
            return 2
        case Subset():
            return 2 * min(layout.ones, layout.size - layout.ones)
        case BitVector():
            return layout.size
    raise BadParameter(f"totals of {type(layout).__name__} cannot be released")
