"""A statement about a number, where it is tried, and how often it held there."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import pi, sqrt
from zlib import crc32

import numpy as np


@dataclass(frozen=True, slots=True)
class Statement:
    """What an answer says of itself.

    level: how often it holds, at least; or, where it speaks of a mistake, how often that happens,
        at most. fields: of answers, those that say it: "ValueAnswer.low".
    """

    says: str
    level: float
    fields: tuple[str, ...]
    mistake: bool = False


mistake = partial(Statement, mistake=True)
"""A statement that speaks of a mistake."""

Counted = tuple[Statement, float, float]
"""Of one drawing: how often a statement held, of how many. Or one share, of 1."""


def needed_width(error: float) -> float:
    """Over many drawings, the mean width of 95% intervals of normal estimates with such errors."""
    return 2 * 1.96 * sqrt(pi / 2) * abs(error)


@dataclass(frozen=True, slots=True)
class Setting:
    """Where statements are tried. once: one drawing from the exact laws, and its answer.

    runs: drawings in `make test`; `make bench` makes many times as many.
    """

    name: str
    runs: int
    once: Callable[[np.random.Generator], Iterator[Counted]]


@dataclass(frozen=True, slots=True)
class Measured:
    """How often a statement held in a setting. off: the standard error of that, if it is true.

    Rows of one run are not independent: runs count as if each had one row.
    """

    statement: Statement
    setting: str
    rate: float
    off: float
    runs: int

    def holds(self, errors: float) -> bool:
        """Whether it is so, up to so many standard errors."""
        short = self.rate - self.statement.level
        return (short if self.statement.mistake else -short) <= errors * self.off + 1e-9


def measure(
    setting: Setting, runs: int, seed: int = 0, clear: Sequence[float] = ()
) -> Sequence[Measured]:
    """Every statement of a setting, over so many runs; the same numbers every time.

    clear: after a quarter of the runs, a half and so on, they end if every statement holds up to
        so many of its standard errors; without it, all are made.
    """
    chance = np.random.default_rng([crc32(setting.name.encode()), seed])
    counts: dict[Statement, list[tuple[float, float]]] = {}
    for run in range(1, runs + 1):
        for statement, hits, number in setting.once(chance):
            counts.setdefault(statement, []).append((hits, number))
        quarter, beyond = divmod(run, max(runs // 4, 1))
        if quarter <= len(clear) and not beyond:
            results = _rates(setting, counts)
            if all(result.holds(clear[quarter - 1]) for result in results):
                return results
    return _rates(setting, counts)


def _rates(
    setting: Setting, counts: Mapping[Statement, Sequence[tuple[float, float]]]
) -> Sequence[Measured]:
    results = []
    for statement, pairs in counts.items():
        hits, number = np.sum(pairs, axis=0).tolist()
        total = sum(1 for _, of in pairs if of)
        if total:
            level = statement.level
            off = sqrt(level * (1 - level) / total)
            results.append(Measured(statement, setting.name, hits / number, off, total))
    return results
