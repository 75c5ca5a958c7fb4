"""The conservation law: its terms, and whether they balance."""

from collections.abc import Iterable, Mapping
from typing import Final

_COME: Final = ("acknowledged", "dummies")
TERMS: Final = (
    *_COME,
    "pooled",
    "in_flight",
    "counted",
    "duplicate",
    "rejected",
    "fillers",
    "withheld",
)
"""The terms of the conservation law: the first two add up to what the others do."""


def balances(terms: Mapping[str, int]) -> bool:
    """Whether everything acknowledged, and every dummy, is somewhere, and once."""
    come = sum(terms[term] for term in _COME)
    return come == sum(terms[term] for term in TERMS[len(_COME) :])


def sum_terms(windows: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The terms of the law over all these windows.

    Terms with a reason, such as rejected:expired, count with their own.
    """
    terms = dict.fromkeys(TERMS, 0)
    for window in windows:
        for term, number in window.items():
            terms[term.partition(":")[0]] += number
    return terms
