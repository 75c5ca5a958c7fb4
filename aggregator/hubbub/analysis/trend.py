"""Trend: some values, or a mean, of one epoch's totals, as shares that can be set side by side."""

from collections.abc import Sequence
from math import sqrt

import numpy as np

from hubbub.analysis.answer import CONFIDENCE, answer_tiers
from hubbub.analysis.figures import figures, merged
from hubbub.analysis.intervals import held_between
from hubbub.analysis.mean import Mean, mean_of, span, within
from hubbub.analysis.sampling import sampled
from hubbub.mechanisms import AnyMechanism, Rappor, Totals

__all__ = ["shares"]


def shares(
    tiers: Sequence[tuple[AnyMechanism, Totals]],
    places: Sequence[int],
    candidates: Sequence[str] = (),
    confidence: float = CONFIDENCE,
    *,
    repeats: int = 1,
    picked: Sequence[float] = (),
) -> list[Mean]:
    """Of the values at these places of the list, or of `candidates`: shares with intervals.

    Of numbers, whatever the places: their mean alone, in the metric's own unit. The estimates are
    `answer_tiers`' own, the errors those of the population's share.
    picked: of what is followed because it was frequent, its place among all, in (0, 1]: how far
        chance may have pushed it up; see `ranked`. Without, nothing was picked.
    """
    heard = [tier for tier in tiers if tier[1].reports] or list(tiers[:1])
    mechanism, _ = heard[0]
    reports = sum(one.reports for _, one in heard)
    if isinstance(mechanism, Rappor):
        values = answer_tiers(heard, None, candidates, confidence).values
        estimates = np.array([values[place].estimate for place in places])
        stderrs = np.array([values[place].stderr for place in places])
        absent, growth = stderrs, np.zeros_like(stderrs)
    else:
        numbers = [one.reports for _, one in heard]
        found = merged(
            [figures(*tier, candidates, repeats, shape=False) for tier in heard], numbers
        )
        mean = mean_of(mechanism, found, reports, confidence)
        if mean:
            return [_of_population(mechanism, mean, reports / repeats, confidence)]
        own = list(places)
        estimates, stderrs = found.estimates[own], found.stderrs[own]
        absent, growth = found.absent[own], found.growth[own]
    held = np.clip(estimates / max(reports, 1), 0.0, 1.0)
    stderrs = np.sqrt(stderrs**2 + reports**2 * sampled(held, reports / repeats))
    # Every report of a value stands for those that another draw of people would have made.
    growth = growth + repeats * (1 - held)
    among = np.array(picked) if picked else None
    ends = held_between(estimates, absent, growth, reports, confidence, places=among)
    columns = (column / max(reports, 1) for column in (estimates, stderrs, *ends))
    return [Mean(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _of_population(mechanism: AnyMechanism, mean: Mean, people: float, confidence: float) -> Mean:
    """The same mean, with the error of who reported."""
    low, high = span(mechanism) or (0.0, 1.0)
    unit = high - low
    place = np.array([(mean.estimate - low) / unit])
    drawn = unit**2 * float(sampled(place, people)[0])
    return within(mean.estimate, sqrt(mean.stderr**2 + drawn), confidence, (low, high))
