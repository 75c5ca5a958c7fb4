"""Proof of the coins: the installed source, given chosen digits, returns the right answers.

Only the operating system's random bits are replaced, for the duration of a call; the comparisons
are the shipping ones. A source that compares floats, uses too few digits, uses another generator or
repeats itself does not pass.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import product
from typing import Final
from unittest.mock import patch

from hubbub.mechanisms import BitSource, Probability, bits
from hubbub.mechanisms.probability import DIGITS
from hubbub.privacy.proofs.enumeration import hold

_THRESHOLDS: Final = (1, 3, 2**32 + 1, 2**53 + 1, 2**63 - 1, 2**63 + 1, 2**64 - 1)
_HALF: Final = Probability.at_most(Fraction(1, 2))


def prove_coins(source: BitSource) -> None:
    """Proves a source that draws from the operating system; raises ProofFailed."""
    for threshold in _THRESHOLDS:
        for fraction, expected in ((threshold - 1, True), (threshold, False)):
            with _drawing(fraction, DIGITS):
                hold(
                    source.chance(Probability(threshold)) is expected,
                    "a chance is not compared with all 64 digits of its probability",
                )
            # A mask takes the most significant digits first.
            with _drawing(int(f"{fraction:0{DIGITS}b}"[::-1], 2), DIGITS):
                hold(
                    source.mask(Probability(threshold), 1) == int(expected),
                    "a mask is not compared with all 64 digits of its probability",
                )
    for sixteenths, width in product(range(17), (1, 2)):
        probability = Probability.at_most(Fraction(sixteenths, 16))
        chances = dict.fromkeys(range(1 << width), Fraction(0))
        for supply in range(1 << 4 * width):
            with _drawing(supply, 4 * width):
                chances[source.mask(probability, width)] += Fraction(1, 1 << 4 * width)
        for mask, chance in chances.items():
            one_bits = mask.bit_count()
            exact = probability.exact**one_bits * (1 - probability.exact) ** (width - one_bits)
            hold(chance == exact, "the bits of a mask do not have exactly their chance")
    three = 3  # the first of these draws that is below 5
    with _drawing(0b011_101_110_111, 12):
        hold(source.below(5) == three, "a number below a limit is folded over, not drawn again")
    masks = {source.mask(_HALF, 256) for _ in range(64)}
    hold(len(masks) == 64, "the source repeats its coins")  # noqa: PLR2004 as drawn


@contextmanager
def _drawing(supply: int, width: int) -> Iterator[None]:
    """Context in which the operating system returns these bits, lowest first, and no more."""
    stock = [supply, width]

    def draw(bit_count: int) -> int:
        drawn = stock[0] & ((1 << bit_count) - 1)
        stock[0] >>= bit_count
        stock[1] -= bit_count
        hold(stock[1] >= 0, "more digits are drawn than the answer needs")
        return drawn

    with patch.object(bits, "_system", draw):
        yield
