"""Families of mechanisms: how each answers queries. A new family is a file, and a line here."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.random import Generator

from hubbub.analysis.families.bloom import Bloom
from hubbub.analysis.families.contract import Family
from hubbub.analysis.families.draw_totals import People
from hubbub.analysis.families.listed_values import Listed
from hubbub.analysis.families.mean import Means
from hubbub.analysis.families.part_tables import Pairs
from hubbub.analysis.families.prefix_tree import Trees
from hubbub.analysis.families.ranges import Ranges
from hubbub.analysis.families.sets import Sets
from hubbub.analysis.families.sketch import Sketches
from hubbub.analysis.families.vector import Vectors
from hubbub.mechanisms import AnyMechanism, Memoized, Totals

FAMILIES: Final[Mapping[str, Family]] = {
    "listed": Listed(),
    "sketch": Sketches(),
    "bloom": Bloom(),
    "ranges": Ranges(),
    "mean": Means(),
    "tree": Trees(),
    "pairs": Pairs(),
    "sets": Sets(),
    "vector": Vectors(),
}


def family_for(mechanism: AnyMechanism) -> Family:
    """The family of this mechanism."""
    return FAMILIES[mechanism.FAMILY]


def draw(
    mechanism: AnyMechanism, values: Sequence[Any], counts: Sequence[int], rng: Generator
) -> Totals:
    """Draws totals of counts[i] reports of values[i]. Raises BadParameter as `draw_epochs`."""
    [totals] = draw_epochs(mechanism, values, counts, 1, rng)
    return totals


def draw_epochs(
    mechanism: AnyMechanism,
    values: Sequence[Any],
    counts: Sequence[int],
    epochs: int,
    rng: Generator,
) -> Iterator[Totals]:
    """Draws, for each epoch, totals of counts[i] devices that hold values[i] and report once.

    Epochs are independent, except that a mechanism's permanent step is drawn only once. Raises
    BadParameter for too many values and cells to draw, or a permanent step without a law here.
    """
    people, family = People(values, np.array(counts, dtype=np.int64)), family_for(mechanism)
    lasts = epochs > 1 and isinstance(mechanism, Memoized)
    lasting = family.draw_lasting(mechanism, people, rng) if lasts else None
    for _ in range(epochs):
        cells = lasting() if lasting else family.draw(mechanism, people, rng)
        yield Totals(cells=cells.tolist(), reports=int(people.counts.sum()))
