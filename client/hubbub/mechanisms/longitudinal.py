"""What mechanisms with a permanent lie under a fresh one share: two bounds, one below the other."""

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
    """Just below exp of both: of one report, and of all reports of one value.

    Raises:
        BadParameter: one is outside its range, or one report may say as much as all.
    """
    report, forever = exp_at_most(epsilon), exp_at_most(permanent_epsilon)
    if not epsilon < permanent_epsilon:
        raise BadParameter(f"epsilon {epsilon} is not below permanent_epsilon {permanent_epsilon}")
    return report, forever
