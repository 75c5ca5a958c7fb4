"""Replay: a BitSource that walks every outcome, so that a randomizer yields its exact distribution.

The randomizer under test is the shipping one; only its coins are answered from here.
"""

from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from math import prod

from hubbub.mechanisms import Probability


class Replay:
    """Answers the questions of one run along one path, and notes where the path could fork."""

    def __init__(self, path: list[int]) -> None:
        self.path = path
        self.taken: list[tuple[int, int]] = []  # (branch, number of branches)
        self.weight = Fraction(1)

    def _branch(self, branches: int) -> int:
        depth = len(self.taken)
        branch = self.path[depth] if depth < len(self.path) else 0
        self.taken.append((branch, branches))
        return branch

    # As BitSource has them, but every answer is one of those still to be walked.

    def chance(self, probability: Probability, /) -> bool:
        return bool(self.mask(probability, 1))

    def below(self, limit: int, /) -> int:
        self.weight /= limit
        return self._branch(limit)

    def mask(self, probability: Probability, width: int, /) -> int:
        if probability.exact in (0, 1):  # no coin: no fork
            return ((1 << width) - 1) * int(probability.exact)
        bits = self._branch(1 << width)
        ones = bits.bit_count()
        self.weight *= probability.exact**ones * (1 - probability.exact) ** (width - ones)
        return bits


class TooMany(Exception):
    """There are more outcomes than should be walked."""


def distribution(run: Callable[[Replay], bytes], most: int | None = None) -> dict[bytes, Fraction]:
    """The exact chance of every output that `run` can give, zero chances left out.

    Raises:
        TooMany: more than `most` runs would be needed.
    """
    chances: dict[bytes, Fraction] = defaultdict(Fraction)
    path: list[int] = []
    walked = 0
    while True:
        source = Replay(path)
        output = run(source)
        walked += 1
        outcomes = prod(branches for _, branches in source.taken)
        if most is not None and max(walked, outcomes) > most:
            raise TooMany
        chances[output] += source.weight
        choices = source.taken
        while choices and choices[-1][0] == choices[-1][1] - 1:
            choices.pop()
        if not choices:
            return {output: chance for output, chance in chances.items() if chance}
        path = [branch for branch, _ in choices]
        path[-1] += 1
