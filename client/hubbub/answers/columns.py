"""What people see of an answer's rows, and in which order; the rest of a row is for programs."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

__all__ = ["COLUMNS", "HEADS", "Question"]

Question = Literal["estimates", "top", "compare", "trend", "metrics"]

COLUMNS: Final[Mapping[Question, Sequence[str]]] = {
    "estimates": ("value", "estimate", "stderr", "low", "high", "share", "rank", "detected"),
    "top": ("value", "rank", "estimate", "low", "high", "share", "ahead_confidence"),
    "compare": ("value", "before", "after", "difference", "low", "high", "p_value", "changed"),
    "trend": ("value", "epoch", "begins", "reports", "share", "low", "high"),
    "metrics": ("name", "kind", "mechanism", "epsilon", "reports", "waiting", "updated"),
}

HEADS: Final[Mapping[Question, Sequence[str]]] = {
    "estimates": (
        *("metric", "since", "until", "final"),
        *("reports", "mechanism", "epsilon", "confidence"),
    ),
    "top": ("metric", "reports", "confidence", "set_confidence", "order_confidence"),
    "compare": ("metric", "before_reports", "after_reports", "confidence"),
    "trend": ("metric", "kind", "confidence"),
    "metrics": (),
}
"""What an answer says of all of its rows, and a row that stands alone says itself."""
