"""Folds: payloads into totals, with numpy. One per layout, tested equal to its `cells`."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hubbub.aggregator.ingest.counting import count_ones, count_ones_in_groups, weigh
from hubbub.mechanisms import BitVector, CohortBits, Layout, OneHot, Samples, Subset

Payloads = npt.NDArray[np.uint8]
"""Shape (reports, payload_bytes)."""
Cells = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def well_formed(layout: Layout, payloads: Payloads) -> Mask:
    """Which payloads an honest client could have sent: those that `layout.cells` takes."""
    mask: Mask = _FOLDS[type(layout)][0](layout, payloads)
    return mask


def fold(layout: Layout, payloads: Payloads) -> Cells:
    """The sum of all payloads' cells; they must all be honest. Shape (layout.size,)."""
    cells: Cells = _FOLDS[type(layout)][1](layout, payloads)
    return cells


def _indices(payloads: Payloads) -> npt.NDArray[np.int64]:
    """Little-endian numbers, one a payload."""
    indices = payloads[:, 0].astype(np.int64)
    for byte in range(1, payloads.shape[1]):
        indices |= payloads[:, byte].astype(np.int64) << 8 * byte
    return indices


def _honest_one_hot(layout: OneHot, payloads: Payloads) -> Mask:
    return _indices(payloads) < layout.size


def _fold_one_hot(layout: OneHot, payloads: Payloads) -> Cells:
    return np.bincount(_indices(payloads), minlength=layout.size)


def _honest_bits(layout: BitVector, payloads: Payloads) -> Mask:
    padding = layout.size % 8
    if not padding:
        return np.ones(len(payloads), dtype=np.bool_)
    mask: Mask = payloads[:, -1] >> padding == 0
    return mask


def _fold_bits(layout: BitVector, payloads: Payloads) -> Cells:
    return count_ones(payloads)[: layout.size]


def _honest_subset(layout: Subset, payloads: Payloads) -> Mask:
    right: Mask = weigh(payloads) == layout.ones
    return right & _honest_bits(BitVector(layout.size), payloads)


def _fold_subset(layout: Subset, payloads: Payloads) -> Cells:
    return _fold_bits(BitVector(layout.size), payloads)


def _sampled(layout: Samples, payloads: Payloads) -> npt.NDArray[np.int64]:
    """Shape (reports, sampled): the index of each answer."""
    width = OneHot(layout.size).payload_bytes
    return _indices(payloads.reshape(-1, width)).reshape(len(payloads), layout.sampled)


def _honest_samples(layout: Samples, payloads: Payloads) -> Mask:
    indices = _sampled(layout, payloads)
    ascending: Mask = np.all(np.diff(indices // 2, axis=1) > 0, axis=1)
    inside: Mask = indices[:, -1] < layout.size
    return ascending & inside


def _fold_samples(layout: Samples, payloads: Payloads) -> Cells:
    return np.bincount(_sampled(layout, payloads).reshape(-1), minlength=layout.size)


def _cohorts(payloads: Payloads) -> npt.NDArray[np.int64]:
    return _indices(payloads[:, :2])


def _honest_cohort_bits(layout: CohortBits, payloads: Payloads) -> Mask:
    bits = _honest_bits(BitVector(layout.bits), payloads[:, 2:])
    mask: Mask = bits & (_cohorts(payloads) < layout.cohorts)
    return mask


def _fold_cohort_bits(layout: CohortBits, payloads: Payloads) -> Cells:
    cohorts = _cohorts(payloads)
    reports = np.bincount(cohorts, minlength=layout.cohorts)
    bits = count_ones_in_groups(payloads[:, 2:], cohorts, layout.cohorts)[:, : layout.bits]
    return np.concatenate([reports[:, None], bits], axis=1).reshape(-1)


_FOLDS: Final[
    Mapping[type, tuple[Callable[[Any, Payloads], Mask], Callable[[Any, Payloads], Cells]]]
] = {
    OneHot: (_honest_one_hot, _fold_one_hot),
    BitVector: (_honest_bits, _fold_bits),
    Subset: (_honest_subset, _fold_subset),
    Samples: (_honest_samples, _fold_samples),
    CohortBits: (_honest_cohort_bits, _fold_cohort_bits),
}
