"""Reports that are points of a geometry, in a crowd: prefix trees and parts."""

from collections.abc import Mapping
from math import ceil
from typing import Any, Final

from hubbub.authoring.crowds.accountant import Accountant, Planned
from hubbub.catalog.crowds.central_promise import CentralPromise
from hubbub.errors import BadParameter
from hubbub.mechanisms import build
from hubbub.mechanisms.even_noise import EvenLies, even_lies
from hubbub.mechanisms.probability import MAX_EPSILON, MIN_EPSILON

# How near the epsilon is found, and in which steps it is looked for from above.
_GRAIN: Final = 1e-3
_STEP: Final = 0.1


def planned_geometry(
    name: str,
    own: Mapping[str, Any],
    table: Mapping[str, Any],
    promise: CentralPromise,
    accountant: Accountant,
) -> Planned:
    """Plan of a mechanism as written, with the largest local epsilon that keeps the promise.

    `own` are its parameters besides epsilon. Its geometry depends on epsilon, so the lies of each
    candidate are computed.

    Raises:
        BadParameter: no such mechanism exists, or no epsilon keeps the promise.
    """

    def lies_at(epsilon: float) -> EvenLies:
        mechanism = build(name, epsilon=epsilon, **own)
        return even_lies(mechanism, mechanism.privacy_loss())

    def holds(epsilon: float) -> bool:
        try:
            lies = lies_at(epsilon)
        except BadParameter:
            return False  # its geometry is too large, as it grows with the epsilon
        loss_shape = lies.categories, lies.epsilon, lies.groups
        return lies.epsilon <= MAX_EPSILON and accountant.keeps(promise, *loss_shape)

    most = min(float(table.get("epsilon", promise.max_local_epsilon)), promise.max_local_epsilon)
    low = min(max(promise.epsilon / promise.epochs, MIN_EPSILON), most)
    lies_at(low)  # refuses numbers of which none is made
    # Geometries come and go as it falls, so halving alone would miss some.
    steps = (most - step * _STEP for step in range(ceil((most - low) / _STEP)))
    low = next(filter(holds, steps), low)
    if promise.epsilon / promise.epochs < low and not holds(low):
        raise BadParameter(promise.unkept())
    high = min(low + _STEP, most)
    while high - low > _GRAIN:
        middle = round((low + high) / 2, 4)
        low, high = (middle, high) if holds(middle) else (low, middle)
    lies = lies_at(low)
    return Planned(
        mechanism=name, parameters={}, categories=lies.categories, groups=lies.groups, epsilon=low
    )
