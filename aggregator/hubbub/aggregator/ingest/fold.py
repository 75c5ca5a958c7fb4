"""Folds payloads into totals, with numpy, by layout; tests compare with the layouts' `cells`."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hubbub.mechanisms import BitVector, CohortBits, Layout, OneHot, Samples, Subset

Payloads = npt.NDArray[np.uint8]
"""Shape (reports, payload_bytes)."""
Words = npt.NDArray[np.unsignedinteger[Any]]
Cells = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# Rows are added in blocks of this many bytes, which stay in the processor's cache, until few rows
# remain, whose bits are counted directly.
_BLOCK_BYTES: Final = 1 << 21
_FEW_ROWS: Final = 24
# Least rows per group of a block, since each group costs extra work; and the largest room of
# groups side by side, as a multiple of their rows' room.
_ROWS_A_GROUP: Final = 16
_MAX_ROOM_RATIO: Final = 4


def count_ones(rows: Payloads) -> Cells:
    """Number of rows in which each bit is 1, lowest bit of the first byte first.

    `rows` has shape (rows, bytes); the result has shape (8 * bytes,).
    """
    return _count(_words(rows))


def count_ones_in_groups(rows: Payloads, groups: Cells, number: int) -> Cells:
    """As `count_ones` for each group: shape (number, 8 * bytes); `groups` has each row's group."""
    counts = np.zeros((number, 8 * rows.shape[1]), dtype=np.int64)
    step = max(_BLOCK_BYTES // rows.shape[1], _ROWS_A_GROUP * number)
    for start in range(0, len(rows), step):
        counts += _count_in_groups(rows[start : start + step], groups[start : start + step], number)
    return counts


def _count_in_groups(rows: Payloads, groups: Cells, number: int) -> Cells:
    sizes = np.bincount(groups, minlength=number)
    starts = np.cumsum(sizes) - sizes
    order = np.argsort(groups.astype(np.uint16), kind="stable")  # of 16 bits: a radix sort
    deepest = int(sizes.max())
    if deepest * number > _MAX_ROOM_RATIO * len(rows):
        # Groups of very different sizes: adds bit by bit.
        counts = np.zeros((number, 8 * rows.shape[1]), dtype=np.int64)
        bits = np.unpackbits(rows[order], axis=1, bitorder="little")
        present = np.nonzero(sizes)[0]
        counts[present] = np.add.reduceat(bits, starts[present], axis=0, dtype=np.int64)
        return counts
    # All groups at once, side by side, the shorter ones with zeros below.
    words = _words(rows)
    places = np.empty(len(rows), dtype=np.int64)
    places[order] = (np.arange(len(rows)) - np.repeat(starts, sizes)) * number
    places += groups
    group_words = np.zeros((deepest * number, words.shape[1]), dtype=words.dtype)
    group_words[places] = words
    return _count(group_words.reshape(deepest, number * words.shape[1])).reshape(number, -1)


def _count(words: Words) -> Cells:
    row_bytes = words.shape[1] * words.itemsize
    counts = np.zeros(8 * row_bytes, dtype=np.int64)
    levels: list[list[Words]] = []
    step = max(_FEW_ROWS, _BLOCK_BYTES // row_bytes)
    for start in range(0, len(words), step):
        _add(words[start : start + step], levels)
    for weight, parts in enumerate(levels):
        bits = np.unpackbits(np.concatenate(parts).view(np.uint8), axis=1, bitorder="little")
        counts += bits.sum(axis=0, dtype=np.int64) << weight
    return counts


def _add(rows: Words, levels: list[list[Words]]) -> None:
    """Adds rows bitwise; appends what remains of each weight (1, 2, 4, ...) to `levels`."""
    weight = 0
    while len(rows):
        carries: list[Words] = []
        while len(rows) >= _FEW_ROWS:
            third = len(rows) // 3
            first, two, three = rows[:third], rows[third : 2 * third], rows[2 * third : 3 * third]
            sum_bits = first ^ two
            carries.append((first & two) | (sum_bits & three))
            sum_bits ^= three
            rows = np.concatenate([sum_bits, rows[3 * third :]])
        if len(levels) == weight:
            levels.append([])
        levels[weight].append(rows)
        rows = np.concatenate(carries) if carries else rows[:0]
        weight += 1


def _words(rows: Payloads) -> Words:
    """The rows as the longest words that divide them."""
    length = rows.shape[1]
    size = next(size for size in (8, 4, 2, 1) if length % size == 0)
    return np.ascontiguousarray(rows).view(np.dtype(f"<u{size}"))


def well_formed(layout: Layout, payloads: Payloads) -> Mask:
    """Which payloads an honest client could have sent: those that `layout.cells` accepts."""
    mask: Mask
    match layout:
        case OneHot():
            mask = _indices(payloads) < layout.size
        case BitVector():
            mask = _padding_is_zero(layout.size, payloads)
        case Subset():
            ones = np.bitwise_count(_words(payloads)).sum(axis=1, dtype=np.int64)
            mask = (ones == layout.ones) & _padding_is_zero(layout.size, payloads)
        case Samples():
            indices = _answer_indexes(layout, payloads)
            ascending = np.all(np.diff(indices // 2, axis=1) > 0, axis=1)
            mask = ascending & (indices[:, -1] < layout.size)
        case CohortBits():
            bits = _padding_is_zero(layout.bits, payloads[:, 2:])
            mask = bits & (_indices(payloads[:, :2]) < layout.cohorts)
        case _:
            raise AssertionError("payloads of a layout that cannot be folded")
    return mask


def fold(layout: Layout, payloads: Payloads) -> Cells:
    """Sum of all payloads' cells, shape (layout.size,); all must be well formed."""
    match layout:
        case OneHot():
            return np.bincount(_indices(payloads), minlength=layout.size)
        case BitVector() | Subset():
            return count_ones(payloads)[: layout.size]
        case Samples():
            return np.bincount(_answer_indexes(layout, payloads).reshape(-1), minlength=layout.size)
        case CohortBits():
            cohorts = _indices(payloads[:, :2])
            reports = np.bincount(cohorts, minlength=layout.cohorts)
            bits = count_ones_in_groups(payloads[:, 2:], cohorts, layout.cohorts)[:, : layout.bits]
            return np.concatenate([reports[:, None], bits], axis=1).reshape(-1)
        case _:
            raise AssertionError("payloads of a layout that cannot be folded")


def _indices(payloads: Payloads) -> Cells:
    """The payloads as little-endian numbers."""
    indices = payloads[:, 0].astype(np.int64)
    for byte in range(1, payloads.shape[1]):
        indices |= payloads[:, byte].astype(np.int64) << 8 * byte
    return indices


def _padding_is_zero(size: int, payloads: Payloads) -> Mask:
    """Whether the bits after the first `size` are zero."""
    if size % 8 == 0:
        return np.ones(len(payloads), dtype=np.bool_)
    mask: Mask = payloads[:, -1] >> size % 8 == 0
    return mask


def _answer_indexes(layout: Samples, payloads: Payloads) -> Cells:
    """Index of each answer; shape (reports, sampled)."""
    width = OneHot(layout.size).payload_bytes
    return _indices(payloads.reshape(-1, width)).reshape(len(payloads), layout.sampled)
