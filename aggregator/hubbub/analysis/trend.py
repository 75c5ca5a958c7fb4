"""Trend: some values, or a mean, of one epoch's totals, as shares that can be set side by side."""

from collections.abc import Sequence

import numpy as np

from hubbub.analysis.answer import CONFIDENCE, answer_tiers
from hubbub.analysis.figures import figures, merged
from hubbub.analysis.intervals import interval
from hubbub.analysis.mean import Mean, mean_of
from hubbub.mechanisms import AnyMechanism, Rappor, Totals

__all__ = ["shares"]


def shares(
    tiers: Sequence[tuple[AnyMechanism, Totals]],
    places: Sequence[int],
    candidates: Sequence[str] = (),
    confidence: float = CONFIDENCE,
    repeats: int = 1,
) -> list[Mean]:
    """Of the values at these places of the list, or of `candidates`: shares with intervals.

    Of numbers, whatever the places: their mean alone, in the metric's own unit. The estimates are
    `answer_tiers`' own; the intervals are plain ones, since nothing was selected by them.
    """
    heard = [tier for tier in tiers if tier[1].reports] or list(tiers[:1])
    mechanism, _ = heard[0]
    reports = sum(one.reports for _, one in heard)
    if isinstance(mechanism, Rappor):
        values = answer_tiers(heard, None, candidates, confidence).values
        estimates = np.array([values[place].estimate for place in places])
        stderrs = np.array([values[place].stderr for place in places])
    else:
        numbers = [one.reports for _, one in heard]
        found = merged(
            [figures(*tier, candidates, repeats, shape=False) for tier in heard], numbers
        )
        mean = mean_of(mechanism, found, reports, confidence)
        if mean:
            return [mean]
        estimates, stderrs = found.estimates[list(places)], found.stderrs[list(places)]
    estimates, stderrs = estimates / max(reports, 1), stderrs / max(reports, 1)
    columns = (estimates, stderrs, *interval(estimates, stderrs, confidence))
    return [Mean(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
