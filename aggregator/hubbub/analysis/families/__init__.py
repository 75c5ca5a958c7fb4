"""Families: what a mechanism answers, asked in one place. A new one is its file and a line here."""

from collections.abc import Mapping
from typing import Final

from hubbub.analysis.families.bloom import Bloom
from hubbub.analysis.families.contract import BitSum, Family, Tier
from hubbub.analysis.families.listed import Listed
from hubbub.analysis.families.mean import Means
from hubbub.analysis.families.pairs import Pairs
from hubbub.analysis.families.ranges import Ranges
from hubbub.analysis.families.sets import Sets
from hubbub.analysis.families.sketch import Sketches
from hubbub.analysis.families.tiers import added, figures_of, merged, tier_scales
from hubbub.analysis.families.tree import Trees
from hubbub.analysis.families.vector import Vectors
from hubbub.analysis.value_estimates import ValueEstimates
from hubbub.mechanisms import AnyMechanism

__all__ = [
    "FAMILIES",
    "BitSum",
    "Tier",
    "ValueEstimates",
    "added",
    "family_for",
    "figures_of",
    "merged",
    "tier_scales",
]

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
