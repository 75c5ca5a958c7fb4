"""Ranks: the share of numbers below each edge of a range's parts, with its uncertainty.

`score` is the distance, in standard errors, of a hypothetical share from the totals.
`analysis.percentiles` inverts it for percentiles and for shares below a number.

Sums and least squares may decrease from edge to edge: a percentile's interval includes all edges at
which it may be, by their own estimates. `shares` never decrease; they are used for estimates only.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from hubbub.analysis.families import family_for
from hubbub.analysis.families.joint_errors import pair_covariances
from hubbub.analysis.families.listed_values import Listed
from hubbub.analysis.families.tiers_and_rows import Tier, merged_tiers
from hubbub.analysis.ranks.ranks_by_fit import IndexRanks
from hubbub.analysis.ranks.ranks_by_sums import LinearRanks
from hubbub.analysis.value_estimates import ValueEstimates
from hubbub.mechanisms import Totals

Ranks = LinearRanks | IndexRanks
"""Shares of the numbers below the edges of a range's parts."""


def ranks_of(
    tiers: Sequence[Tier],
    edges: Sequence[float],
    repeats: int = 1,
    least: float = -inf,
    *,
    population: bool = False,
) -> Ranks | None:
    """The ranks of one metric's totals; None without reports, or without parts of a range.

    `edges` are those of listed values that are parts of a range, empty if the mechanism has the
    range; `least` is the smallest number that exists; `population` selects intervals for the
    population, with `repeats` reports from one device at most, instead of the reporters.
    """
    live_tiers = [tier for tier in tiers if tier[1].reports]
    sampled = repeats if population else 0
    if not live_tiers:
        return None
    mechanism: Any = live_tiers[0][0]
    family = family_for(mechanism)
    if family.is_spread(mechanism):
        return IndexRanks(live_tiers, sampled, least)  # type: ignore[arg-type]  # of such a mechanism
    edges = edges or family.edges(mechanism)
    if not len(edges):
        return None
    parts, scales = family.scaled(live_tiers, (), repeats)
    if isinstance(family, Listed):
        parts = [
            _with_covariances(*tier, figures, repeats)
            for tier, figures in zip(live_tiers, parts, strict=True)
        ]
    numbers = [totals.reports for _, totals in live_tiers]
    figures = merged_tiers(parts, numbers, scales) if numbers[1:] else parts[0]
    return LinearRanks(
        edges=np.array(edges, dtype=np.float64),
        figures=figures,
        reports=sum(numbers),
        repeats=sampled,
        least=least,
    )


def _with_covariances(
    mechanism: Any, totals: Totals, figures: ValueEstimates, repeats: int
) -> ValueEstimates:
    """The figures with variances that are right for sums with weights whose mean is 0.

    Such a sum takes from each variance the covariance with another value.
    """
    own_and_other, two_others = pair_covariances(mechanism, repeats)
    dummies = totals.spread() / mechanism.channel.gap**2 / (len(figures.absent) - 1)
    return replace(
        figures,
        absent=np.sqrt(np.maximum(figures.absent**2 - totals.reports * two_others + dummies, 0.0)),
        growth=figures.growth + 2 * (two_others - own_and_other),
    )
