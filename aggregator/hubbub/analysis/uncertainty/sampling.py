"""Sampling: who happened to report is chance too, where a population is meant and not its reports.

Shares are of those who reported, exactly as unsure as their coins. Whoever compares two epochs, or
draws a line through some, means the people that they are from: others report each time.
"""

from typing import Final, Literal

import numpy as np

from hubbub.analysis.arrays import Floats

Whose = Literal["reporters", "population"]
REPORTERS: Final[Whose] = "reporters"
POPULATION: Final[Whose] = "population"


def sampled(shares: Floats, people: float) -> Floats:
    """The variance of these shares for having been drawn: s (1 - s) / n.

    shares: in [0, 1], or estimates of that. people: how many reported; where some may have done so
        r times, an r-th of the reports, which is the fewest.

    Of places in [0, 1], the most that a mean at that place can vary (Bhatia and Davis 2000).
    Whoever is in two such draws makes their difference surer than is said.
    """
    inside = np.clip(shares, 0.0, 1.0)
    answer: Floats = inside * (1 - inside) / max(people, 1)
    return answer
