"""Uniform subsets, exactly and fast."""

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache

from hubbub.mechanisms.probability import Probability
from hubbub.mechanisms.random_bits import BitSource


def choose(size: int, count: int, source: BitSource) -> int:
    """A uniform subset of `count` of `size` positions, packed in an int.

    Independent coins choose about as many; excess ones are dropped, missing ones added, at random.
    No step prefers a position, so all subsets of the size are equally likely.
    """
    chosen = source.mask(_share_at_most(size, count), size)
    one_bits = chosen.bit_count()
    if one_bits > count:
        return _drop_ones(chosen, one_bits, one_bits - count, size, source)
    all_ones = (1 << size) - 1
    return all_ones ^ _drop_ones(all_ones ^ chosen, size - one_bits, count - one_bits, size, source)


def numbered(size: int, count: int, number: int) -> int:
    """The subset of `count` of `size` positions with this number in [0, comb(size, count)), packed.

    A uniform number is a uniform subset. Lehmer (1964): those without the last position come first.
    """
    chosen, ways = 0, math.comb(size, count)
    for position in range(size - 1, -1, -1):
        ways_without = ways * (position + 1 - count) // (position + 1)
        if number >= ways_without:
            number -= ways_without
            chosen |= 1 << position
            ways, count = ways - ways_without, count - 1
        else:
            ways = ways_without
    return chosen


def members(subset: int) -> Iterator[int]:
    """The positions in a packed subset, ascending."""
    while subset:
        lowest = subset & -subset
        yield lowest.bit_length() - 1
        subset ^= lowest


@cache
def _share_at_most(size: int, count: int) -> Probability:
    return Probability.at_most(Fraction(count, size))


def _drop_ones(bits: int, one_bits: int, drop: int, size: int, source: BitSource) -> int:
    """`bits`, which has `one_bits` ones, without `drop` of them picked uniformly."""
    # One number for all picks: a draw costs more than a division.
    picks = source.below(math.perm(one_bits, drop))
    for number in range(one_bits, one_bits - drop, -1):
        picks, index = divmod(picks, number)
        bits ^= 1 << _position(bits, index, size)
    return bits


def _position(bits: int, index: int, size: int) -> int:
    """The position of the one with this index, from 0, among the ones."""
    low = 0
    while size > 1:
        middle = size // 2
        ones_below = (bits >> low & (1 << middle) - 1).bit_count()
        if index >= ones_below:
            index -= ones_below
            low += middle
            size -= middle
        else:
            size = middle
    return low
