"""Totals of reported sets, drawn from their exact law."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hubbub.errors import BadParameter
from hubbub.mechanisms.privset import PrivSet
from hubbub.mechanisms.subsets import members

Counts = npt.NDArray[np.int64]

# Different sets times values times how many are sent: some seconds.
_LARGEST = 1 << 28
# People with more than they may tell, each of whom is drawn.
_MAX_DRAWN = 1 << 20


def draw_sets(
    mechanism: PrivSet, values: Sequence[int], held: Counts, chance: np.random.Generator
) -> Counts:
    """Totals of held[i] people who hold values[i].

    How many of a choice are of the set is multinomial; which they are is drawn element by element,
    of the set and beside it apart, for all who hold the same together.

    Raises:
        BadParameter: more different sets than can be drawn.
    """
    told = _told(mechanism, values, held, chance)
    size, k, most = mechanism.layout.size, mechanism.layout.ones, mechanism.most
    if len(told) * size * k > _LARGEST:
        raise BadParameter(
            f"{len(told):,} different sets of {mechanism.categories:,} values are too much to "
            "draw; keep the most frequent"
        )
    own = np.zeros((len(told), size), dtype=np.bool_)
    for place, value in enumerate(told):
        filled = [*members(value), *range(mechanism.categories, size - value.bit_count())]
        own[place, filled] = True
    people = np.array(list(told.values()), dtype=np.int64)
    met = chance.binomial(people, float(mechanism.meet.exact))
    ways = np.diff([0.0, *(float(upto / mechanism.ways[-1]) for upto in mechanism.ways)])
    some = np.zeros((len(told), most + 1), dtype=np.int64)
    some[:, 1 : len(ways) + 1] = chance.multinomial(met, ways / ways.sum())
    some[:, 0] = people - met
    beside = np.zeros((len(told), k + 1), dtype=np.int64)
    for inside in range(min(most, k) + 1):
        beside[:, k - inside] = some[:, inside]
    return _picked(own, some, chance) + _picked(~own, beside, chance)


def _picked(own: npt.NDArray[np.bool_], left: Counts, chance: np.random.Generator) -> Counts:
    """How often each element is picked, of own[i] by left[i, j] people who pick j of them."""
    cells = np.zeros(own.shape[1], dtype=np.int64)
    to_come = own.sum(axis=1)
    to_pick = np.arange(left.shape[1])
    for element in range(own.shape[1]):
        rows = np.flatnonzero(own[:, element])
        chances = np.minimum(to_pick / to_come[rows, None], 1.0)
        picked = chance.binomial(left[rows], chances)
        cells[element] = picked.sum()
        moved = left[rows] - picked
        moved[:, :-1] += picked[:, 1:]
        left[rows] = moved
        to_come[rows] -= 1
    return cells


def _told(
    mechanism: PrivSet, values: Sequence[int], held: Counts, chance: np.random.Generator
) -> dict[int, int]:
    """What people tell of their sets, and how many do: of larger ones `most` members, drawn."""
    told: Counter[int] = Counter()
    drawn = 0
    for value, people in zip(values, held.tolist(), strict=True):
        mechanism.check(value)
        own = list(members(value))
        if len(own) <= mechanism.most:
            told[value] += people
            continue
        drawn += people
        if drawn > _MAX_DRAWN:
            raise BadParameter("too many people hold more than `most` to be drawn; draw fewer")
        for _ in range(people):
            part = chance.choice(len(own), mechanism.most, replace=False).tolist()
            told[sum(1 << own[place] for place in part)] += 1
    return {value: people for value, people in told.items() if people} or {0: 0}
