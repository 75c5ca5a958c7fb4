"""Trend: some values, or a mean, of one epoch's totals, as shares that can be set side by side."""

from collections.abc import Sequence

import numpy as np

from hubbub.analysis.answer import CONFIDENCE
from hubbub.analysis.answering import with_reports
from hubbub.analysis.families import Tier, family_for, figures_of
from hubbub.analysis.numbers import Mean, mean_of
from hubbub.analysis.uncertainty.intervals import held_between, pushed_up, reach_of
from hubbub.analysis.uncertainty.sampling import sampled

__all__ = ["shares"]


def shares(
    tiers: Sequence[Tier],
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
    heard = with_reports(tiers)
    mechanism, _ = heard[0]
    own = family_for(mechanism)
    reports = sum(one.reports for _, one in heard)
    figures = figures_of(own, heard, candidates, repeats, shape=False)
    ends = own.ends(mechanism)
    if ends:
        return [mean_of(figures.place or figures, ends, reports, confidence, repeats=repeats)]
    rows = list(places)
    estimates, stderrs = figures.estimates[rows], figures.stderrs[rows]
    absent, growth = figures.absent[rows], figures.growth[rows]
    held = np.clip(estimates / max(reports, 1), 0.0, 1.0)
    stderrs = np.sqrt(stderrs**2 + reports**2 * sampled(held, reports / repeats))
    # Of t reports, who happens to report varies by t (1 - t / reports), and as often as each does.
    growth, bend = growth + repeats, figures.bend + repeats / max(reports, 1)
    plain = reach_of(confidence)
    down = pushed_up(np.array(picked), confidence) if picked else plain
    between = held_between(
        (estimates, absent, growth),
        bend,
        reports,
        down=down,
        up=plain,
        step=figures.step,
        tail=figures.tail,
    )
    columns = (column / max(reports, 1) for column in (estimates, stderrs, *between))
    return [Mean(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
