"""What a score foretells: a chance of a logistic model, else a number."""

from typing import Final

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.models.definition import Kind

# A chance is told apart from 0 and 1 no further, and nothing overflows.
_MAX_SCORE: Final = 40.0


def foretold(kind: Kind, score: Floats) -> Floats:
    """Of each score, shape as it: a chance in (0, 1), or the score itself."""
    if kind != "logistic":
        return score
    found: Floats = 1 / (1 + np.exp(-np.clip(score, -_MAX_SCORE, _MAX_SCORE)))
    return found
