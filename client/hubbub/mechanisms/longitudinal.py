"""The two bounds on epsilon of mechanisms with a permanent and a fresh randomization."""

from fractions import Fraction
from typing import Final

from hubbub.errors import BadParameter
from hubbub.mechanisms.parameter import number
from hubbub.mechanisms.probability import MAX_EPSILON, MIN_EPSILON, exp_at_most

PERMANENT_EPSILON: Final = number(
    "Largest privacy loss of all reports of one unchanged value together, in nats, above "
    "`epsilon`.",
    MIN_EPSILON,
    MAX_EPSILON,
    example=3.0,
)


def odds(epsilon: float, permanent_epsilon: float) -> tuple[Fraction, Fraction]:
    """Just below exp(epsilon) for one report, and for all reports of one value.

    Raises:
        BadParameter: one is out of range, or `epsilon` is not below `permanent_epsilon`.
    """
    report, forever = exp_at_most(epsilon), exp_at_most(permanent_epsilon)
    if not epsilon < permanent_epsilon:
        raise BadParameter(f"epsilon {epsilon} is not below permanent_epsilon {permanent_epsilon}")
    return report, forever
