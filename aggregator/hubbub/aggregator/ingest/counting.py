"""Counting ones per bit over millions of payloads, many bits at a time.

Rows of machine words are added like a column of binary numbers: a full adder takes three rows and
gives one row of sums and one of carries, five bitwise operations for all bits of a word at once.
When few rows are left their bits are counted one by one, each as much as its carries stand for.

Source: the carry-save adder of Harley and Seal, in Warren, Hacker's Delight (2nd ed.), section 5-1.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

Payloads = npt.NDArray[np.uint8]
Words = npt.NDArray[np.unsignedinteger[Any]]
Cells = npt.NDArray[np.int64]

# Rows are added in blocks of so many bytes, which stay in the processor's cache, until so few are
# left that counting their bits is cheaper.
_BLOCK_BYTES: Final = 1 << 21
_FEW_ROWS: Final = 24
# A block has this many rows a group at least, or it would mostly be groups; side by side they may
# take this many times the room of their rows.
_ROWS_A_GROUP: Final = 16
_ROOM: Final = 4


def count_ones(rows: Payloads) -> Cells:
    """Per bit of a row (lowest of the first byte first), in how many rows it is 1.

    rows: shape (rows, bytes); answers shape (8 * bytes,).
    """
    return _count(_words(rows))


def count_ones_in_groups(rows: Payloads, groups: Cells, number: int) -> Cells:
    """The same per group: shape (number, 8 * bytes). groups: of each row, in [0, number)."""
    counts = np.zeros((number, 8 * rows.shape[1]), dtype=np.int64)
    step = max(_BLOCK_BYTES // rows.shape[1], _ROWS_A_GROUP * number)
    for first in range(0, len(rows), step):
        counts += _count_in_groups(rows[first : first + step], groups[first : first + step], number)
    return counts


def _count_in_groups(rows: Payloads, groups: Cells, number: int) -> Cells:
    sizes = np.bincount(groups, minlength=number)
    starts = np.cumsum(sizes) - sizes
    order = np.argsort(groups.astype(np.uint16), kind="stable")  # of 16 bits: a radix sort
    deepest = int(sizes.max())
    if deepest * number > _ROOM * len(rows):
        # Groups of very different sizes: every bit on its own.
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
    beside = np.zeros((deepest * number, words.shape[1]), dtype=words.dtype)
    beside[places] = words
    return _count(beside.reshape(deepest, number * words.shape[1])).reshape(number, -1)


def weigh(rows: Payloads) -> Cells:
    """Per row, how many of its bits are 1."""
    weights: Cells = np.bitwise_count(_words(rows)).sum(axis=1, dtype=np.int64)
    return weights


def _count(words: Words) -> Cells:
    row_bytes = words.shape[1] * words.itemsize
    counts = np.zeros(8 * row_bytes, dtype=np.int64)
    levels: list[list[Words]] = []
    step = max(_FEW_ROWS, _BLOCK_BYTES // row_bytes)
    for first in range(0, len(words), step):
        _add(words[first : first + step], levels)
    for weight, parts in enumerate(levels):
        bits = np.unpackbits(np.concatenate(parts).view(np.uint8), axis=1, bitorder="little")
        counts += bits.sum(axis=0, dtype=np.int64) << weight
    return counts


def _add(rows: Words, levels: list[list[Words]]) -> None:
    """Adds the rows up; what remains of each weight (1, 2, 4, ...) goes to `left`."""
    weight = 0
    while len(rows):
        carries: list[Words] = []
        while len(rows) >= _FEW_ROWS:
            third = len(rows) // 3
            first, two, three = rows[:third], rows[third : 2 * third], rows[2 * third : 3 * third]
            half = first ^ two
            carries.append((first & two) | (half & three))
            half ^= three
            rows = np.concatenate([half, rows[3 * third :]])
        if len(levels) == weight:
            levels.append([])
        levels[weight].append(rows)
        rows = np.concatenate(carries) if carries else rows[:0]
        weight += 1


def _words(rows: Payloads) -> Words:
    """The rows in the longest words that divide them."""
    length = rows.shape[1]
    size = next(size for size in (8, 4, 2, 1) if length % size == 0)
    return np.ascontiguousarray(rows).view(np.dtype(f"<u{size}"))
