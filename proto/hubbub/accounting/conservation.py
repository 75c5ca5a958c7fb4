"""The conservation law: its terms, and whether they balance."""

from collections.abc import Iterable, Mapping
from typing import Final

__all__ = ["TERMS", "balances", "sum_terms"]

TERMS: Final = (
    "acknowledged",
    "pooled",
    "in_flight",
    "counted",
    "duplicate",
    "rejected",
    "withheld",
)
"""The terms of the conservation law: the first is the sum of the others."""


def balances(terms: Mapping[str, int]) -> bool:
    """Whether everything acknowledged is somewhere, and once."""
    return terms["acknowledged"] == sum(terms[term] for term in TERMS[1:])


def sum_terms(windows: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The terms of the law over all these windows.

    Terms with a reason, such as rejected:expired, count with their own.
    """
    terms = dict.fromkeys(TERMS, 0)
    for window in windows:
        for term, number in window.items():
            terms[term.partition(":")[0]] += number
    return terms
