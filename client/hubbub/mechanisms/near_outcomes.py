"""A window over a line of outcomes: near ones likely, far ones not. `mean.*` and `wave`.

There are `starts` places where a window of `width` outcomes may begin, so starts + width - 1
outcomes in all. With probability `inside` a report falls in its window, uniformly, else outside it,
uniformly.
"""

from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction
from typing import Protocol

from hubbub.fields.frozen import frozen, set_derived
from hubbub.mechanisms.layout import OneHot
from hubbub.mechanisms.number_range import OverRange
from hubbub.mechanisms.probability import DIGITS, Probability, exp_at_most, log_at_least
from hubbub.mechanisms.random_bits import BitSource


@frozen()
class Window:
    """The randomizer, for epsilon in nats."""

    epsilon: float
    starts: int
    width: int
    inside: Probability = field(init=False, repr=False)

    def __post_init__(self) -> None:
        near_weight = exp_at_most(self.epsilon) * self.width
        # PRIVACY: down, to uniform.
        inside = Probability.at_most(near_weight / (near_weight + self.starts - 1))
        set_derived(self, inside=inside)

    @property
    def layout(self) -> OneHot:
        """One index over all outcomes."""
        return OneHot(self.starts + self.width - 1)

    @property
    def near(self) -> Fraction:
        """The chance of one outcome in the window."""
        return self.inside.exact / self.width

    @property
    def far(self) -> Fraction:
        """The chance of one outcome outside it."""
        return self.inside.complement.exact / (self.starts - 1)

    def chance(self, start: int, outcome: int, up: int = 0) -> Fraction:
        """The chance of an outcome: the window begins at `start`, or one further (`up` / 2**64)."""
        if up:
            share = Fraction(up, 1 << DIGITS)
            further = self.chance(start + 1, outcome)
            return (1 - share) * self.chance(start, outcome) + share * further
        return self.near if start <= outcome < start + self.width else self.far

    def privacy_loss(self) -> float:
        """Of one report, in nats: an outcome may be near for one value and far for another."""
        return log_at_least(self.near / self.far)

    def total_variation(self) -> Fraction:
        """Of the outcomes of two windows: of those that overlap least, at both ends."""
        return (self.near - self.far) * min(self.width, self.starts - 1)

    def draw(self, start: int, source: BitSource, up: int = 0) -> bytes:
        """The payload for a window that begins at `start`; `up` as of `chance`."""
        if up:
            start += source.chance(Probability(up))
        if source.chance(self.inside):
            return self.layout.encode(start + source.below(self.width))
        other_start = source.below(self.starts - 1)  # skip over the window
        return self.layout.encode(other_start + self.width * (other_start >= start))


class Windowed(OverRange, Protocol):
    """A mechanism over a range whose report is a place in or outside a window."""

    __slots__ = ()

    @property
    def window(self) -> Window:
        """The randomizer."""

    @property
    def layout(self) -> OneHot:
        return self.window.layout

    def privacy_loss(self) -> float:
        return self.window.privacy_loss()

    def total_variation(self) -> Fraction:
        return self.window.total_variation()

    def step(self, value: float) -> tuple[int, int]:
        """The window at or below a number, and the chance of the next one, in 2**-64."""

    def randomize(self, value: float, source: BitSource) -> bytes:
        start, up_chance = self.step(value)
        return self.window.draw(start, source, up_chance)

    def likelihood(self, value: float, cells: Mapping[int, int]) -> Fraction:
        start, up = self.step(value)
        return self.window.chance(start, next(iter(cells)), up)
