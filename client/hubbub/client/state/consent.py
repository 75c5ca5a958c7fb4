"""Consent: the person's decisions, counted by a number, and the epsilon that they allow.

The number is even while this device may report. A payload has the number under which it was drawn,
and is never sent under another.
"""

import math
from dataclasses import replace
from typing import Final

from hubbub.fields.frozen import frozen

CONSENT_UNKNOWN: Final = "consent_unknown"
"""The mishap that a state was lost, and nothing is left that knows what the person said."""

_MAX_TURNS: Final = 1 << 31  # a journal keeps the number in four bytes
_MAX_SECONDS: Final = 2.5e11  # the year 9892, within the range of datetime


@frozen()
class Consent:
    """A person's last decisions. Raises ValueError for values that no decisions can produce.

    Args:
        generation: number of decisions so far; odd means off.
        preference: largest epsilon of a report that the person allows (central, for a metric with a
            crowd); infinity by default.
        since: time of the last forgetting, in seconds since 1970, or 0; it closes open epochs.
        max_local: largest local epsilon that the person allows; None for `preference`.
    """

    generation: int = 0
    preference: float = math.inf
    since: float = 0.0
    max_local: float | None = None

    def __post_init__(self) -> None:
        local = self.preference if self.max_local is None else self.max_local
        object.__setattr__(self, "max_local", local)
        if not (type(self.generation) is int and 0 <= self.generation < _MAX_TURNS):
            raise ValueError("the number of the consent is invalid")
        if not (type(self.preference) in (int, float) and self.preference >= 0):
            raise ValueError("the preferred epsilon is invalid")
        if not (type(local) in (int, float) and local >= 0):
            raise ValueError("the preferred local epsilon is invalid")
        if not (type(self.since) in (int, float) and 0 <= self.since <= _MAX_SECONDS):
            raise ValueError("the time of forgetting is invalid")

    @property
    def local(self) -> float:
        """Returns the largest local epsilon of any report."""
        return self.preference if self.max_local is None else self.max_local


def is_on(generation: int) -> bool:
    """Returns whether the person lets this device report."""
    return generation % 2 == 0


def turned(generation: int, *, on: bool) -> int:
    """Returns the number after reporting is switched; unchanged if it was so before."""
    return generation + (on != is_on(generation))


def agreed(earlier: Consent, later: Consent, *, ordered: bool) -> Consent:
    """Returns the consent that follows from two copies of the state.

    If `ordered`, the later copy continues the earlier one and holds; otherwise the stricter values.
    """
    generation = max(earlier.generation, later.generation)
    preference, local = later.preference, later.local
    if not ordered:
        is_enabled = is_on(earlier.generation) and is_on(later.generation)
        generation = turned(generation, on=is_enabled)
        preference = min(earlier.preference, later.preference)
        local = min(earlier.local, later.local)
    return Consent(generation, preference, max(earlier.since, later.since), local)


def unknown(consent: Consent, now: float) -> Consent:
    """Returns an opt-out, for a lost state without known consent; running epochs count as over."""
    return forgotten_at(replace(consent, generation=turned(consent.generation, on=False)), now)


def forgotten_at(consent: Consent, now: float) -> Consent:
    """Returns a consent after a forgetting, whatever time the clock shows."""
    return replace(consent, since=min(max(consent.since, now), _MAX_SECONDS))
