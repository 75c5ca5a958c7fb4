"""Totals of the same devices over several epochs, drawn from their exact law.

Without a permanent response epochs are independent. With one, what was drawn once for life is drawn
once here, and only the fresh step over it for every epoch: of a bit, how many devices hold a
permanent 1; of an index, how many hold each permanent one. `buckets` has no fresh step: its devices
say the same again.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from hubbub.errors import BadParameter
from hubbub.mechanisms import AnyMechanism, Memoized, Rappor, Totals
from hubbub.mechanisms.buckets import BucketFlips
from hubbub.mechanisms.long_grr import LongitudinalGrr
from hubbub.mechanisms.long_hash import LongitudinalHash
from hubbub.mechanisms.long_unary import LongitudinalUnary
from hubbub.mechanisms.rappor_basic import BasicRappor
from hubbub.privacy.draws import Counts, bits_held, cohorts_held, draw, hashed, named

_HALF: Final = 0.5


def draw_epochs(
    mechanism: AnyMechanism,
    values: Sequence[Any],
    counts: Sequence[int],
    epochs: int,
    chance: np.random.Generator,
) -> Iterator[Totals]:
    """Per epoch the totals of counts[i] devices that hold values[i] and report once.

    Raises:
        BadParameter: too much to draw, or a permanent step that has no law here.
    """
    one: Callable[[], Totals] = partial(draw, mechanism, values, counts, chance)
    if epochs > 1 and isinstance(mechanism, Memoized):
        one = _again(mechanism, values, np.array(counts, dtype=np.int64), chance)
    for _ in range(epochs):
        yield one()


def _again(
    mechanism: Any,
    values: Sequence[Any],
    held: Counts,
    chance: np.random.Generator,
) -> Callable[[], Totals]:
    """Draws what is permanent; what it answers draws one epoch's totals from that."""
    reports = int(held.sum())
    match mechanism:
        case BucketFlips():
            same = draw(mechanism, values, held.tolist(), chance)
            return lambda: same
        case LongitudinalGrr():
            again = _named(mechanism, bits_held(mechanism, values, held), chance)
            return lambda: Totals(again().tolist(), reports)
        case LongitudinalHash():
            own = hashed(mechanism, values, held, chance)
            again = _named(mechanism.response, own, chance)
            return lambda: Totals(again().tolist(), reports)
        case LongitudinalUnary() | BasicRappor():
            ones = _bits(mechanism, bits_held(mechanism, values, held), held.sum(), chance)
            return lambda: Totals(ones().tolist(), reports)
        case Rappor():
            ones_held, sizes = cohorts_held(mechanism, values, held, chance)
            seen = _bits(mechanism, ones_held, sizes[:, None], chance)
            return lambda: Totals(np.column_stack([sizes, seen()]).reshape(-1).tolist(), reports)
        case _:
            raise BadParameter(f"{mechanism.NAME} cannot be drawn over several epochs")


def _named(
    mechanism: LongitudinalGrr, held: Counts, chance: np.random.Generator
) -> Callable[[], Counts]:
    """How many reports name each, per row of devices; each device's lies are drawn for life."""
    others = mechanism.categories - 1
    forever, fresh = (
        float(keep.complement.exact) / others for keep in (mechanism.permanent, mechanism.fresh)
    )
    permanent = named(held, forever, chance)
    return lambda: named(permanent, fresh, chance).reshape(-1)


def _bits(
    mechanism: LongitudinalUnary | BasicRappor | Rappor,
    own: Counts,
    reports: "Counts | np.int64",
    chance: np.random.Generator,
) -> Callable[[], Counts]:
    """Of how many reports each bit is sent as 1, anew at every call; `own`: of how many it is 1."""
    if isinstance(mechanism, LongitudinalUnary):
        stay, rise = _HALF, float(mechanism.rare.exact)
        low = float(mechanism.flip.exact)
        high = 1 - low
    else:
        rise = float(mechanism.chain.flip.exact)
        stay = 1 - rise
        high = float(mechanism.chain.one_after_one.exact)
        low = float(mechanism.chain.one_after_zero.exact)
    permanent = chance.binomial(own, stay) + chance.binomial(reports - own, rise)

    def ones() -> Counts:
        sent: Counts = chance.binomial(permanent, high)
        return sent + chance.binomial(reports - permanent, low)

    return ones
