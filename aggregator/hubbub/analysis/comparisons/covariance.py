"""Covariance of a table's estimates, exact: of coins, of which pair was drawn, of who reported."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.families.contract import Tier
from hubbub.analysis.families.tiers import tier_scales
from hubbub.errors import BadParameter
from hubbub.mechanisms.geometry import Incidence
from hubbub.mechanisms.pairs import PairedParts

# Points times cells squared: some seconds of one core.
_MAX_WORK: Final = 1 << 33
_AT_ONCE: Final = 1 << 22


def table_covariance(
    tiers: Sequence[Tier], variances: Sequence[float], shares: Floats, repeats: int
) -> Floats:
    """Of the estimates of one table's cells, in reports squared, for the population.

    variances: by which tiers are weighed, one for each. shares: of the population, one a cell, not
    below 0 and adding up to 1. repeats: how many reports one person may have made.

    Raises:
        BadParameter: a table of more cells than can be reckoned with.
    """
    for given, _ in tiers:
        _refuse_large(given, len(shares))
    reports = [totals.reports for _, totals in tiers]
    scales = tier_scales(variances, reports) if len(tiers) > 1 else np.ones(1)
    total, drawn = np.zeros((len(shares), len(shares))), 0.0
    for (given, _), number, scale in zip(tiers, reports, scales.tolist(), strict=True):
        mechanism: Any = given
        total += scale**2 * number * _of_a_report(mechanism, shares)
        drawn += number * repeats * scale**2
    total += drawn * (np.diag(shares) - np.outer(shares, shares))
    return total


def _refuse_large(mechanism: Any, cells: int) -> None:
    if mechanism.points * cells * cells > _MAX_WORK:
        raise BadParameter(
            f"a table of {cells:,} cells is too large to be crossed at this epsilon; put rare "
            "values under one name, or ask for its cells as estimates"
        )


def _of_a_report(mechanism: PairedParts, shares: Floats) -> Floats:
    """Covariance of what one report adds to a table, on average over who holds what.

    With a chance of 1 in G it is of the table and adds G (x - even); x has the mean 1 at what it
    holds and 0 elsewhere. So it is G cov(x) + (G - 1) of the mean's square, both less `even`.
    """
    groups, even = mechanism.groups, 1 / len(shares)
    p, q = float(mechanism.channel.p), float(mechanism.channel.q)
    held, flat = np.diag(shares), np.add.outer(shares, shares)
    both = _supported_together(mechanism, shares)
    coins = (both - q * q - q * (p - q) * flat) / (p - q) ** 2 - held
    answer: Floats = groups * coins + (groups - 1) * (held - even * flat + even**2)
    return answer


def _supported_together(mechanism: PairedParts, shares: Floats) -> Floats:
    """How likely a report of the table supports two cells at once, for every two."""
    space, cells = mechanism.response.transform, len(shares)
    keep = float(mechanism.response.keep.exact)
    on, off = keep / space.on_one, (1 - keep) / (space.points - space.on_one)
    planes = _vectors(space, range(cells))
    found = np.zeros((cells, cells))
    step = max(_AT_ONCE // cells, 1)
    for first in range(0, space.points, step):
        points = _vectors(space, range(first, min(first + step, space.points)))
        meets = (points @ planes.T % space.prime == 0).astype(np.float64)
        likely = off + (on - off) * (meets @ shares)
        found += meets.T @ (likely[:, None] * meets)
    return found


def _vectors(space: Incidence, numbers: range) -> Floats:
    """Whole numbers, as floats: products of a few coordinates stay exact."""
    return np.array([space.vector(number) for number in numbers], dtype=np.float64)
