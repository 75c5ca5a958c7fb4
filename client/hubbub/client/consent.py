"""Consent as a number that grows with every yes and no: even while this device may report.

A payload carries the number that it was drawn under, and is never sent under another.
"""

__all__ = ["is_on", "turned"]


def is_on(generation: int) -> bool:
    """Whether the person lets this device report."""
    return generation % 2 == 0


def turned(generation: int, *, on: bool) -> int:
    """The number once reporting is switched; the same if it was so before."""
    return generation + (on != is_on(generation))
