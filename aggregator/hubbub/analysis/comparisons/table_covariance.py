"""Exact covariance of a table's estimates: randomization, dummies, drawn tables, who reported."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hubbub.analysis.arrays import Floats
from hubbub.analysis.families.draw_totals import numbers_of, vectors_of
from hubbub.analysis.families.tiers_and_rows import Tier, tier_scales
from hubbub.errors import BadParameter
from hubbub.mechanisms import Totals
from hubbub.mechanisms.pairs_of_parts import PairedParts
from hubbub.mechanisms.projective_geometry import Incidence

Counts = npt.NDArray[np.int64]

# Largest product of points, or cells, and squared cells: some seconds of one core.
_MAX_WORK: Final = 1 << 33
_AT_ONCE: Final = 1 << 22
# Largest number of coordinates for which the meetings of three hyperplanes are counted.
_PLANE: Final = 3


@dataclass(frozen=True, slots=True)
class Summed:
    """A reported table whose cells are summed to the requested cells, with its weight among tables.

    Args:
        shares: of the population, one per cell, at least 0, with sum 1.
        lines: places of the cells that are summed for each requested one; shape (requested,
            summed).
    """

    shares: Floats
    lines: Counts
    weight: float = 1.0

    @property
    def sums(self) -> Floats:
        """Shares of the requested cells."""
        result: Floats = self.shares[self.lines].sum(axis=1)
        return result


def table_covariance(
    tiers: Sequence[Tier], variances: Sequence[float], tables: Sequence[Summed], repeats: int
) -> Floats:
    """The covariance of the estimates of a table's cells, in reports squared, for the population.

    `variances` weigh the tiers, one each; `tables` contain these cells, with weights of sum 1;
    `repeats` is the largest number of reports from one person, 0 for the reporters alone. Raises
    BadParameter if the table has too many cells.
    """
    shares = tables[0].sums
    for tier_mechanism, _ in tiers:
        for table in tables:
            _refuse_large(tier_mechanism, table)
    reports = [totals.reports for _, totals in tiers]
    scales = tier_scales(variances, reports) if len(tiers) > 1 else np.ones(1)
    total, sampling_variance = np.zeros((len(shares), len(shares))), 0.0
    for (tier_mechanism, totals), number, scale in zip(
        tiers, reports, scales.tolist(), strict=True
    ):
        mechanism: Any = tier_mechanism
        total += scale**2 * number * _report_covariance(mechanism, tables)
        if totals.dummies:
            total += _dummy_covariance(mechanism, totals, tables[0], of_shares=repeats > 0)
        sampling_variance += number * repeats * scale**2
    total += sampling_variance * (np.diag(shares) - np.outer(shares, shares))
    return total


def _refuse_large(mechanism: Any, table: Summed) -> None:
    space, cells = mechanism.response.transform, table.shares.size
    if space.dimensions < _PLANE:  # no report supports two cells
        cells = len(table.lines)
    times = cells if space.dimensions <= _PLANE else space.points
    if times * cells * cells > _MAX_WORK:
        raise BadParameter(
            f"a table of {cells:,} cells is too large to be crossed at this epsilon; put rare "
            "values under one name, or request its cells as estimates"
        )


def _report_covariance(mechanism: PairedParts, tables: Sequence[Summed]) -> Floats:
    """Covariance of one report's contribution to the requested cells, averaged over the population.

    With probability 1/G a report is of a table with weight w and adds w G (x - even), where x has
    mean 1 for the held cell, else 0: G cov(x) times the sum of w squared, less the mean's.
    """
    shares = tables[0].sums
    groups, uniform = mechanism.groups, 1 / len(shares)
    squares = sum(table.weight**2 for table in tables)
    coins = sum(table.weight**2 * _coin_covariance(mechanism, table) for table in tables)
    diagonal, flat = np.diag(shares), np.add.outer(shares, shares)
    return groups * coins + (groups * squares - 1) * (diagonal - uniform * flat + uniform**2)


def _coin_covariance(mechanism: PairedParts, table: Summed) -> Floats:
    """Covariance of a report's contribution from randomization alone, for the requested cells."""
    shares, lines = table.shares, table.lines.reshape(-1)
    p, q = float(mechanism.channel.p), float(mechanism.channel.q)
    if mechanism.response.transform.dimensions < _PLANE:
        a, gap = table.lines.shape[1] * q, p - q
        once = np.diag((a + gap * table.sums) / gap**2 - table.sums)
        covariance: Floats = (
            once - (a * a + a * gap * np.add.outer(table.sums, table.sums)) / gap**2
        )
        return covariance
    joint_chances = _joint_support_chances(mechanism, shares)
    coins = (joint_chances - q * q - q * (p - q) * np.add.outer(shares, shares)) / (
        p - q
    ) ** 2 - np.diag(shares)
    cells = coins[np.ix_(lines, lines)].reshape(*table.lines.shape, *table.lines.shape)
    added: Floats = cells.sum(axis=(1, 3))
    return added


def _dummy_covariance(
    mechanism: PairedParts, totals: Totals, table: Summed, *, of_shares: bool
) -> Floats:
    """Covariance that noise dummies add to the requested cells, in reports squared.

    A dummy is on one cell, and counts as a report that is not there. `of_shares`: the cells' shares
    are of a number of reports with the same error.
    """
    summed, points, sums = table.lines.shape[1], mechanism.points, table.sums
    scale, q = 1 / mechanism.channel.gap, float(mechanism.channel.q)
    variance = totals.weighted_variance([1.0, *[0.0] * (points - 1)])
    dummy_errors = np.full_like(sums, -summed * q * scale) - of_shares * sums
    traded = summed * (1 / points - q) * scale - sums
    answer: Floats = totals.dummies_variance * np.outer(traded, traded) + variance * (
        summed * scale**2 * np.eye(len(sums))
        + summed * scale * np.add.outer(dummy_errors, dummy_errors)
        + points * np.outer(dummy_errors, dummy_errors)
    )
    return answer


def _joint_support_chances(mechanism: PairedParts, shares: Floats) -> Floats:
    """Probability that a report of the table supports two cells at once, for every two."""
    space, cells = mechanism.response.transform, len(shares)
    keep = float(mechanism.response.keep.exact)
    p_on, p_off = keep / space.on_one, (1 - keep) / (space.points - space.on_one)
    if space.dimensions == _PLANE:
        matrix = p_off * space.on_two + (p_on - p_off) * _shares_at_meeting_points(space, shares)
        chances = space.on_one * shares + space.on_two * (1 - shares)
        np.fill_diagonal(matrix, p_off * space.on_one + (p_on - p_off) * chances)
        return matrix
    planes = vectors_of(space, np.arange(cells))[0].astype(np.float64)  # makes products fast
    matrix = np.zeros((cells, cells))
    step = max(_AT_ONCE // cells, 1)
    for start in range(0, space.points, step):
        points, _ = vectors_of(space, np.arange(start, min(start + step, space.points)))
        meets = (points @ planes.T % space.prime == 0).astype(np.float64)
        likely = p_off + (p_on - p_off) * (meets @ shares)
        matrix += meets.T @ (likely[:, None] * meets)
    return matrix


def _shares_at_meeting_points(space: Incidence, shares: Floats) -> Floats:
    """For every two lines of a plane, the total share of the lines through their common point.

    If k lines meet in a point, they do in k (k - 1) / 2 pairs, and a share is counted k - 1 times.
    """
    matrix = np.zeros((len(shares), len(shares)))
    lines, _ = vectors_of(space, np.arange(len(shares)))
    one, other = np.triu_indices(len(shares), 1)
    points = numbers_of(space, np.cross(lines[one], lines[other]) % space.prime)
    _, places, times = np.unique(points, return_inverse=True, return_counts=True)
    through = (1 + np.sqrt(1 + 8 * times)) / 2
    sums = np.bincount(places, weights=shares[one] + shares[other]) / (through - 1)
    matrix[one, other] = matrix[other, one] = sums[places]
    return matrix
