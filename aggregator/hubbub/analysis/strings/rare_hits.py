"""How sure a sum of rare hits is: what chance makes as rarely, in standard errors of a normal law.

Where only a few reports are expected at a place by chance, two or three of them are many standard
errors, and no news. Hits by chance are at most as scattered as a Poisson law's.
"""

from typing import Final

import numpy as np
from scipy.special import gammainc, ndtri

from hubbub.analysis.arrays import Floats

_RAREST: Final = 1e-290
# Of hits by chance: of no report at all there are none.
_FEWEST: Final = 1e-9
_STEPS: Final = np.concatenate([np.linspace(0, 10, 1001), np.geomspace(10.01, 1e4, 2000)])


class RareHits:
    """Scores in standard errors of so many hits by chance, and as a normal law has them."""

    def __init__(self, by_chance: float) -> None:
        by_chance = max(by_chance, _FEWEST)
        hits = by_chance + _STEPS * np.sqrt(by_chance)
        # Of as many hits or more; between whole numbers, too.
        chance = np.minimum(gammainc(hits, by_chance), 0.5)
        usable = chance > _RAREST
        self._scores = _STEPS[usable]
        self._sure = np.minimum(-ndtri(chance[usable]), self._scores)

    def sure(self, score: float) -> float:
        """What is as rare by chance as a score, under a normal law; never more than it."""
        if score >= self._scores[-1]:
            return float(self._sure[-1] + score - self._scores[-1])
        return float(np.interp(score, self._scores, self._sure)) if score > 0 else score

    def scores(self, sure: Floats) -> Floats:
        """From which score on it is as sure as this."""
        beyond = np.maximum(sure - self._sure[-1], 0.0)
        result: Floats = np.interp(sure, self._sure, self._scores) + beyond
        return np.asarray(np.maximum(result, sure))
