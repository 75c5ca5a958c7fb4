"""Writes numbers with their nouns, for messages and tables."""


def several(number: int, noun: str) -> str:
    """A number with its noun: "1 metric", "2 metrics"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
