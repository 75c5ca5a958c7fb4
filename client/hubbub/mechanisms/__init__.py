"""Floor 1, read this first. A mechanism turns a value into a payload, and totals into estimates.

    value --randomize--> payload      (on the device)
    totals --estimate--> estimates    (at the query)

Everything between handles opaque bytes or integer sums. Standard library and mmh3 only.
"""

from hubbub.fields.rules import is_number
from hubbub.mechanisms.layout import (
    BitVector,
    CohortBits,
    Estimates,
    Layout,
    OneHot,
    Samples,
    Subset,
    Totals,
    tally,
)
from hubbub.mechanisms.mechanism import AnyMechanism, Memo, Memoized
from hubbub.mechanisms.probability import Probability
from hubbub.mechanisms.random_bits import BitSource, KeyedBits, SystemBits
from hubbub.mechanisms.registry import REGISTRY, build, described_parameters, names_of, parameters

__all__ = [
    "REGISTRY",
    "AnyMechanism",
    "BitSource",
    "BitVector",
    "CohortBits",
    "Estimates",
    "KeyedBits",
    "Layout",
    "Memo",
    "Memoized",
    "OneHot",
    "Probability",
    "Samples",
    "Subset",
    "SystemBits",
    "Totals",
    "build",
    "described_parameters",
    "is_number",
    "names_of",
    "parameters",
    "tally",
]
