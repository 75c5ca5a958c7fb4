"""How a figure is taken: several runs, the median, and the limit measured beside it."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: ours against a limit, and what should be reached.

    more: whether a larger ratio is better; of what is timed a smaller one is.
    """

    stage: str
    ours: str
    limit: str
    ratio: float
    reach: str
    more: bool = False


def rate(work: Callable[[], int], rounds: int = ROUNDS) -> float:
    """Median things per second of something that says how many things it did."""
    rates = []
    for _ in range(rounds):
        start = time.perf_counter()
        done = work()
        rates.append(done / (time.perf_counter() - start))
    return statistics.median(rates)
