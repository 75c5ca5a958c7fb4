"""Figures: of every value, what totals say and how sure, before anything is judged by it."""

from dataclasses import dataclass

from hubbub.analysis.intervals import Floats, Tail

__all__ = ["Figures"]


@dataclass(frozen=True, slots=True)
class Figures:
    """Of each value, in reports: estimate, its standard error, and that if nobody held the value.

    absent: a value is judged by these. growth: how much variance a report adds to its own value's
        estimate. bend: by how much less with every report that it has already. tail: of what nobody
        holds, where the normal law does not do. step: what one report more makes of an estimate.
    smooth: a likelier shape, where there is one.
    place: of numbers, the sum of their places, 0 at low and 1 at high, and its standard error.
    """

    estimates: Floats
    stderrs: Floats
    absent: Floats
    growth: Floats
    tail: Tail | None = None
    bend: float = 0.0
    step: float = 0.0
    smooth: Floats | None = None
    place: tuple[float, float] | None = None
