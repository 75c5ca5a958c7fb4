"""Variance per report if a device reports several times with the same permanent lie.

The permanent lie of r reports of a device is one random draw: per report, it adds r times the
variance of a single report's. The fresh lie is drawn anew each time. How often each device
reported is unknown, so the largest possible number is assumed.
"""

from fractions import Fraction
from typing import Any

from hubbub.mechanisms import AnyMechanism, Memoized
from hubbub.mechanisms.long_grr import LongitudinalGrr
from hubbub.mechanisms.long_hash import LongitudinalHash
from hubbub.mechanisms.long_unary import LongitudinalUnary
from hubbub.mechanisms.rappor_basic import BasicRappor


def spreads(mechanism: Any, repeats: int) -> tuple[float, float]:
    """Variance that one report adds to an estimate: of the value it holds, and of another value.

    `repeats` is the largest number of reports from one device.
    """
    true_spread, other = mechanism.variance(1.0, 1), mechanism.variance(0.0, 1)
    lasts = isinstance(mechanism, Memoized)
    if repeats == 1 or not lasts:
        return true_spread, other
    step = permanent_step(mechanism)
    if step is None:
        return true_spread * repeats, other * repeats
    keep_chance, lied, fresh_gap = step
    # Variance of a permanent bit with chance b, seen through the fresh step: seen^2 b (1 - b).
    unit = (fresh_gap / (mechanism.channel.p - mechanism.channel.q)) ** 2
    again = repeats - 1
    return true_spread + again * float(
        unit * keep_chance * (1 - keep_chance)
    ), other + again * float(unit * lied * (1 - lied))


def permanent_step(mechanism: AnyMechanism) -> tuple[Fraction, Fraction, Fraction] | None:
    """Probabilities that a value's permanent bit is set: for the held value, and for another value.

    The third number is the increase of a report's support probability if the bit is set. None if no
    part of a lie is fresh.
    """
    match mechanism:
        case LongitudinalGrr():
            others = mechanism.categories - 1
            keep_chance = mechanism.permanent.exact
            lied = mechanism.permanent.complement.exact / others
            fresh_gap = mechanism.fresh.exact - mechanism.fresh.complement.exact / others
        case LongitudinalHash():  # the function is for life, too, and who collides under it
            step = permanent_step(mechanism.response)
            assert step is not None  # noqa: S101 a long.grr has one
            keep_chance, other, fresh_gap = step
            collide = mechanism.transform.collisions
            lied = collide * keep_chance + (1 - collide) * other
        case LongitudinalUnary():
            keep_chance, lied = Fraction(1, 2), mechanism.rare.exact
            fresh_gap = 1 - 2 * mechanism.flip.exact
        case BasicRappor():
            lied = mechanism.chain.flip.exact
            keep_chance = 1 - lied
            fresh_gap = mechanism.chain.one_after_one.exact - mechanism.chain.one_after_zero.exact
        case _:
            return None
    return keep_chance, lied, fresh_gap
