"""Finds where a figure that takes long to compute reaches a limit."""

from collections.abc import Callable
from math import isfinite


def crossing(
    excess: Callable[[float], float],
    inside: float,
    outside: float,
    precision: float,
    slope: float = 0.0,
) -> tuple[float, float]:
    """Two places at most `precision` apart, from `inside` to `outside`, with the limit between.

    The line through the last two places finds the next one, and every third is halfway, so that
    also a figure that is not smooth takes a few dozen calls at most.

    Args:
        excess: the figure less its limit; inf if there is none. Not called at either end.
        inside: a place where the excess is 0 or less.
        outside: a place where it is above 0; below `inside`, or above.
        precision: largest distance of the two places that are returned.
        slope: approximate growth of the excess from one place to the next; 0 if it is unknown.
    """
    guess = before = (inside + outside) / 2
    latest, calls = float("inf"), 0
    while abs(outside - inside) > precision:
        low, high = sorted((inside, outside))
        place = min(max(guess, low + precision / 2), high - precision / 2)
        former, latest = latest, excess(place)
        inside, outside = (place, outside) if latest <= 0 else (inside, place)
        calls += 1
        guess = (inside + outside) / 2
        if isfinite(latest - former) and latest != former and calls % 3:
            guess = place - latest * (place - before) / (latest - former)
        elif slope and calls == 1 and isfinite(latest):
            guess = place - latest / slope
        before = place
    return inside, outside
