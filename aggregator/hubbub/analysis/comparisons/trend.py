"""Comparable shares, or a mean, of some values in one epoch's totals.

The totals are of one metric, or of several that ask the same question under different names.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hubbub.analysis.answer import CONFIDENCE
from hubbub.analysis.answering import with_reports
from hubbub.analysis.families import Tier, ValueEstimates, added, family_for, reports_of
from hubbub.analysis.numbers import Mean, mean_of, means_of
from hubbub.analysis.uncertainty.intervals import held_between, pushed_up, reach_of


@dataclass(frozen=True, slots=True)
class Followed:
    """One metric's reports, and the places of the followed values in its list.

    Args:
        repeats: largest number of reports from one device.
    """

    tiers: Sequence[Tier]
    places: Sequence[int]
    repeats: int = 1


def joined_shares(
    sources: Sequence[Followed],
    candidates: Sequence[str] = (),
    confidence: float = CONFIDENCE,
    *,
    picked: Sequence[float] = (),
    part: float = 1.0,
) -> list[Mean]:
    """Shares, with intervals for the population, of the values at these places, or of `candidates`.

    The reports are those of all sources, metrics with the same values, or the same range; a device
    may have reported to each of them. For numbers the only row is their mean in the metric's unit;
    for a vector a mean per coordinate. `picked` is, for values that were followed because they were
    frequent, their place among all, in (0, 1] (see `ranked`); `part` is the share of these reports
    among those in which they were frequent, in (0, 1].
    """
    live_sources = [replace(source, tiers=with_reports(source.tiers)) for source in sources]
    reports = sum(reports_of(source.tiers) for source in live_sources)
    repeats = sum(source.repeats for source in live_sources)
    mechanism, _ = live_sources[0].tiers[0]
    own = family_for(mechanism)
    ends, of_vector = own.ends(mechanism), own.KIND == "vector"
    of_numbers = bool(ends) and not of_vector
    figures = added(
        [_figures(source, candidates, of_numbers=of_numbers) for source in live_sources]
    )
    if ends and of_vector:
        # The errors that reports of a vector show include those of the population.
        return means_of(figures, ends, reports, confidence)
    if ends:
        return [mean_of(figures, ends, reports, confidence, repeats=repeats)]
    number, plain = max(reports, 1), reach_of(confidence)
    shared = figures.of_shares(reports, repeats)
    between = held_between(
        (shared.estimates, shared.absent, shared.growth),
        shared.bend,
        reports,
        down=pushed_up(np.array(picked), confidence, part=part) if picked else plain,
        up=plain,
        step=shared.step,
        tail=shared.tail,
    )
    columns = (column / number for column in (shared.estimates, shared.stderrs, *between))
    return [Mean(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _figures(source: Followed, candidates: Sequence[str], *, of_numbers: bool) -> ValueEstimates:
    """Estimates of the followed values, in their order; for numbers, of the sum of their places."""
    mechanism, _ = source.tiers[0]
    own = family_for(mechanism)
    figures = own.figures_of(source.tiers, candidates, source.repeats)
    if of_numbers:
        return figures.place or figures
    rows = list(source.places)
    return replace(
        figures,
        estimates=figures.estimates[rows],
        stderrs=figures.stderrs[rows],
        absent=figures.absent[rows],
        growth=figures.growth[rows],
    )
