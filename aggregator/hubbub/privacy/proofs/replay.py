"""A BitSource that enumerates every outcome, so that a randomizer yields its exact distribution.

The randomizer under test is the shipping one; only its coins come from here.
"""

from collections import Counter, defaultdict
from collections.abc import Callable
from fractions import Fraction
from math import prod

from hubbub.mechanisms import Probability
from hubbub.mechanisms.probability import DIGITS


class Replay:
    """Answers the calls of one run along one path, and records where the path could fork."""

    def __init__(self, path: list[int]) -> None:
        self.path = path
        self.taken: list[tuple[int, int]] = []  # (branch, number of branches)
        # The chance of the path. Integers: a fraction would be reduced at every question.
        self.numerator = self.denominator = 1

    def _branch(self, branches: int) -> int:
        depth = len(self.taken)
        branch = self.path[depth] if depth < len(self.path) else 0
        self.taken.append((branch, branches))
        return branch

    # The methods of BitSource; each returns one of the answers still to be explored.

    def chance(self, probability: Probability, /) -> bool:
        return bool(self.mask(probability, 1))

    def below(self, limit: int, /) -> int:
        self.denominator *= limit
        return self._branch(limit)

    def mask(self, probability: Probability, width: int, /) -> int:
        threshold, denominator = probability.threshold, 1 << DIGITS
        if threshold in (0, denominator):  # no coin: no fork
            return ((1 << width) - 1) * (threshold >> DIGITS)
        bits = self._branch(1 << width)
        one_bits = bits.bit_count()
        self.numerator *= threshold**one_bits * (denominator - threshold) ** (width - one_bits)
        self.denominator <<= DIGITS * width
        return bits


class TooMany(Exception):
    """There are too many outcomes to enumerate."""


def distribution(run: Callable[[Replay], bytes], most: int | None = None) -> dict[bytes, Fraction]:
    """Exact probability of every possible output of `run`. Raises TooMany beyond `most` runs."""
    chances: dict[bytes, Counter[int]] = defaultdict(Counter)  # numerators by denominator
    path: list[int] = []
    walked = 0
    while True:
        source = Replay(path)
        output = run(source)
        walked += 1
        if most is not None:
            outcomes = prod(branches for _, branches in source.taken)
            if max(walked, outcomes) > most:
                raise TooMany
        chances[output][source.denominator] += source.numerator
        choices = source.taken
        while choices and choices[-1][0] == choices[-1][1] - 1:
            choices.pop()
        if not choices:
            return {
                output: sum((Fraction(*term[::-1]) for term in terms.items()), Fraction())
                for output, terms in chances.items()
            }
        path = [branch for branch, _ in choices]
        path[-1] += 1
