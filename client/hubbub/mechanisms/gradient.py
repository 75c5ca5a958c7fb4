"""A person's part of a model as a unit vector: where their columns lie, or how weights are wrong.

What is longer than its clip is told shorter. What is shorter is told at full length, its sign
turned with chance (1 - length)/2: then its mean stays. Whatever comes out is a unit vector, and the
mechanism's promise is of any; so floats decide here, and no claim rests on them.
"""

import math
from collections.abc import Sequence
from typing import Final, Literal

from hubbub.mechanisms.bits import BitSource
from hubbub.mechanisms.probability import Probability

ModelKind = Literal["logistic", "linear", "ridge"]
KINDS: Final = ("logistic", "linear", "ridge")

CLIP: Final = {"logistic": 0.5, "linear": 0.25, "ridge": 0.25}
"""To which length a residual is clipped; of a number's label, in its range."""

# Of columns in the first round: seven that are 1, which more bands of fewer features seldom have.
_LONGEST: Final = 2.7
# A chance is told apart from 0 and 1 no further, and nothing overflows.
_MAX_SCORE: Final = 40.0


def longest(columns: int) -> float:
    """To which length the columns of the first round's people are clipped.

    Who is longer is told shorter, and the centre is then nearer to 0 than people are: it may be
    anywhere, and the rounds after it are only slower.
    """
    return min(math.sqrt(columns), _LONGEST)


def place(columns: Sequence[float]) -> list[float]:
    """Columns in [0, 1] as the first round has them: over their clip, with a last one of 0."""
    return [*(one / longest(len(columns)) for one in columns), 0.0]


def gradient(
    kind: ModelKind,
    columns: Sequence[float],
    label: float,
    centre: Sequence[float],
    weights: Sequence[float],
) -> list[float]:
    """A person's gradient over the clip: of length 1 at most, one number more than columns.

    columns, label: in [0, 1]. centre: where columns lie. weights: of columns about it, then of the
    intercept.
    """
    about = _about(columns, centre)
    foretold = score(columns, centre, weights)
    if kind == "logistic":
        foretold = 1 / (1 + math.exp(-min(max(foretold, -_MAX_SCORE), _MAX_SCORE)))
    residual = min(max((foretold - label) / CLIP[kind], -1.0), 1.0)
    length = math.sqrt(math.fsum(x * x for x in about))
    return [residual * x / length for x in about]


def score(columns: Sequence[float], centre: Sequence[float], weights: Sequence[float]) -> float:
    """What a model's weights come to for a person; all as `gradient` has them."""
    return math.fsum(x * w for x, w in zip(_about(columns, centre), weights, strict=True))


def _about(columns: Sequence[float], centre: Sequence[float]) -> list[float]:
    return [*(x - c for x, c in zip(columns, centre, strict=True)), 1.0]


def unit(vector: Sequence[float], source: BitSource) -> list[float]:
    """The vector at length 1, turned about by a coin so that its mean stays where it was."""
    # Squares of what is tiny are 0: its direction is taken of numbers of its own size.
    largest = max(map(abs, vector))
    scaled = [x / largest for x in vector] if largest else [1.0, *([0.0] * (len(vector) - 1))]
    length = math.sqrt(math.fsum(x * x for x in scaled))
    # Nothing has no direction: any will do, turned every second time.
    turned = source.chance(Probability.at_most((1 - min(length * largest, 1.0)) / 2))
    found = [x / length for x in scaled]
    return [-x for x in found] if turned else found
