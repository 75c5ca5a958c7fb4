"""BitSource: the only source of randomness of mechanisms, with two implementations.

No float takes part and no generator keeps state: random bits are compared, one by one, with the 64
binary digits of a `Probability`, so that an event has exactly that chance.
"""

import os
from collections.abc import Callable
from typing import Final, Protocol

from hubbub.errors import BadParameter
from hubbub.mechanisms.probability import DIGITS, Probability

_BLOCK_BYTES: Final = 32  # one HMAC-SHA256

Draw = Callable[[int], int]
"""Asked for so many bits, answers an integer uniform over that many bits."""


class BitSource(Protocol):
    """A source of random decisions. Mechanisms use only these methods, so tests can supply all."""

    def chance(self, probability: Probability, /) -> bool:
        """True with exactly this probability."""

    def below(self, limit: int, /) -> int:
        """Uniform in [0, limit), for limit >= 1."""

    def mask(self, probability: Probability, width: int, /) -> int:
        """`width` independent decisions with this chance, packed in an int: decision i is bit i."""


class SystemBits:
    """Randomness of the operating system: without state, so that no forked process repeats it."""

    __slots__ = ()

    def chance(self, probability: Probability, /) -> bool:
        # All digits of one fraction at once: quicker than digit by digit, where coins are cheap.
        return _system(DIGITS) < probability.threshold

    def below(self, limit: int, /) -> int:
        return _below(_system, limit)

    def mask(self, probability: Probability, width: int, /) -> int:
        return _mask(_system, probability, width)


class KeyedBits:
    """Randomness determined by a key: the same key gives the same answers for ever.

    HMAC-SHA256 in counter mode. Without the key it is indistinguishable from true randomness (the
    PRF assumption); so a permanent response is repeated without being stored.
    """

    __slots__ = ("_bits_left", "_counter", "_key", "_left_bits")

    def __init__(self, key: bytes) -> None:
        if len(key) < _BLOCK_BYTES:
            raise BadParameter(f"a key of {len(key)} bytes is below {_BLOCK_BYTES}")
        self._key = key
        self._counter = 0
        self._bits_left = 0
        self._left_bits = 0

    def chance(self, probability: Probability, /) -> bool:
        return bool(_mask(self._draw, probability, 1))

    def below(self, limit: int, /) -> int:
        return _below(self._draw, limit)

    def mask(self, probability: Probability, width: int, /) -> int:
        return _mask(self._draw, probability, width)

    def _draw(self, bits: int) -> int:
        while self._left_bits < bits:
            import hmac  # noqa: PLC0415 as in hubbub.sealing.hpke

            block = hmac.digest(self._key, self._counter.to_bytes(8, "big"), "sha256")
            self._bits_left |= int.from_bytes(block, "little") << self._left_bits
            self._left_bits += 8 * _BLOCK_BYTES
            self._counter += 1
        answer = self._bits_left & ((1 << bits) - 1)
        self._bits_left >>= bits
        self._left_bits -= bits
        return answer


def _system(bits: int) -> int:
    return int.from_bytes(os.urandom((bits + 7) // 8), "little") >> (-bits % 8)


def _below(draw: Draw, limit: int) -> int:
    if not limit >= 1:
        raise BadParameter(f"limit {limit} is below 1")
    bits = (limit - 1).bit_length()
    while (answer := draw(bits)) >= limit:  # at most one try in two fails
        pass
    return answer


def _mask(draw: Draw, probability: Probability, width: int) -> int:
    """Compare `width` random binary fractions with the threshold at once, first digits first.

    `undecided` holds the positions whose fraction equals the threshold so far. A position is
    decided by the first digit that differs: true where it has 0 and the threshold 1. The digits
    after the threshold's last 1 are all 0, and a fraction equal so far is then not below it.
    """
    all_ones = (1 << width) - 1
    threshold = probability.threshold
    if threshold >> DIGITS:
        return all_ones
    undecided, answer = all_ones, 0
    digit = DIGITS
    last_digit = (threshold & -threshold).bit_length() if threshold else DIGITS + 1
    while undecided and digit >= last_digit:
        # Each round halves what is undecided: with these, seven in eight masks need one draw.
        rounds = min(digit - last_digit + 1, width.bit_length() + 3)
        coins = draw(width * rounds)
        for _ in range(rounds):
            digit -= 1
            fraction = coins & all_ones
            coins >>= width
            if threshold >> digit & 1:
                answer |= undecided & ~fraction
                undecided &= fraction
            else:
                undecided &= ~fraction
    return answer
