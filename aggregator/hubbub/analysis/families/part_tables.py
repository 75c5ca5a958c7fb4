"""Parts: tables of every two or three parts, or of all, with cells estimated linearly."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.random import Generator

from hubbub.analysis.arrays import Floats
from hubbub.analysis.estimators.consistency import consistent_tables, consistent_triples
from hubbub.analysis.estimators.fast_support_counts import supports_of
from hubbub.analysis.families import draw_totals
from hubbub.analysis.families.contract import NO_SUMS, BitSum, Expected, Family, support_deviations
from hubbub.analysis.families.listed_values import Listed
from hubbub.analysis.families.tiers_and_rows import Columns, Tier
from hubbub.analysis.value_estimates import ValueEstimates
from hubbub.errors import BadParameter
from hubbub.mechanisms import Totals
from hubbub.mechanisms.pairs_of_parts import PairedParts
from hubbub.mechanisms.part_and_cell_names import cell_names
from hubbub.mechanisms.pure_protocols import report_variances

_LISTED: Final = Listed()
_AGREEING: Final = {2: consistent_tables, 3: consistent_triples}


class Pairs(Family):
    """Mechanisms that report one random pair of parts, or triple; "pair" means both below.

    Where all parts are reported together there is one table, whose cells are listed values.

    A cell is estimated from its pair's own reports, times the number of pairs. Reports of other
    pairs count as `even`, the cell's share in a uniform table: this makes the estimate depend
    little on how many reports fell to its pair, and keeps it linear.
    """

    KIND = "values"
    ONE_LOOK = NO_SUMS
    SHARES = "Each table of parts has shares of its own, which add up to 100%."
    COUNTS_BY_CELL = False
    UNRELEASED = "a metric of parts cannot be released: make a metric of each part"

    def figures(
        self, mechanism: PairedParts, totals: Totals, candidates: Sequence[str]
    ) -> ValueEstimates:
        totals.check(mechanism.layout)
        if mechanism.groups == 1:
            return _LISTED.figures(mechanism.response, totals, candidates)
        n, uniform = totals.reports, _even(mechanism)
        support_counts, trials = _supports(mechanism, np.array(totals.cells))
        channel = mechanism.channel
        raw_counts = (support_counts - trials * float(channel.q)) / float(channel.p - channel.q)
        estimates = mechanism.groups * (raw_counts - trials * uniform) + n * uniform
        other_variance, growth = _spreads(mechanism)
        true_counts = np.clip(estimates, 0.0, n)
        return ValueEstimates(
            estimates=estimates,
            stderrs=np.sqrt(n * other_variance + true_counts * growth),
            absent=np.sqrt(n * other_variance),
            growth=growth,
        )

    def consistent(
        self, tiers: Sequence[Tier], scales: Floats, figures: ValueEstimates, judged: Columns
    ) -> Floats:
        """Tables that agree about every part; of four parts or more, the nearest histogram."""
        mechanism: Any = tiers[0][0]
        if agreeing := _AGREEING.get(mechanism.ways):
            return agreeing(mechanism.sizes, figures.estimates, figures.absent, judged.reports)
        return super().consistent(tiers, scales, figures, judged)

    def sums(self, mechanism: PairedParts, cells: Floats, totals: Totals) -> Iterator[BitSum]:
        """Supports of each cell, between q and p of its table's reports."""
        if mechanism.groups == 1:
            yield from _LISTED.sums(mechanism.response, cells, totals)
            return
        counts = _supports(mechanism, cells.astype(np.int64))
        support_counts, trials = (numbers.astype(np.float64) for numbers in counts)
        yield from support_deviations("cell", support_counts, trials, mechanism.channel)

    def weights(self, mechanism: PairedParts, targets: Sequence[int]) -> tuple[Floats, float]:
        """Weights by whether a payload supports a target's cell, in the group of its table."""
        channel, uniform = mechanism.channel, _even(mechanism)
        gap, q = float(channel.p - channel.q), float(channel.q)
        ends = np.cumsum(mechanism.cells)
        weights = np.zeros((mechanism.groups, mechanism.points))
        for target in targets:
            if not 0 <= target < len(uniform):
                raise BadParameter(f"target {target} is not one of the {len(uniform)} cells")
            group = int(np.searchsorted(ends, target, side="right"))
            # A point lies on another's hyperplane where that lies on its own.
            point = np.zeros(mechanism.points, dtype=np.int64)
            point[target - (ends[group] - mechanism.cells[group])] = 1
            meets = supports_of(mechanism.response, point, mechanism.points)
            weights[group] += mechanism.groups * ((meets - q) / gap - uniform[target])
        return weights.reshape(-1), float(uniform[list(targets)].sum())

    def expected(
        self, mechanism: PairedParts, values: Sequence[object], shares: Floats, reports: float
    ) -> Expected:
        true_shares = np.zeros(sum(mechanism.cells))
        for value, share in zip(values, shares.tolist(), strict=True):
            true_shares += share * np.array(mechanism.row(value), dtype=np.float64)  # type: ignore[arg-type]
        other_variance, growth = _spreads(mechanism)
        return Expected(
            np.sqrt((other_variance + growth * true_shares) / reports),
            np.sqrt(other_variance / reports),
        )

    def labels(self, mechanism: PairedParts, values: Sequence[str] | None) -> Sequence[str]:
        """Every cell, as "theme=dark, country=de"."""
        return cell_names(values or (), mechanism.ways)

    def draw(
        self, mechanism: PairedParts, people: draw_totals.People, rng: Generator
    ) -> draw_totals.Counts:
        large = sum(mechanism.cells) * mechanism.points > draw_totals.LARGEST
        if large:  # report by report, as there are more chances than can be worked out
            draw_totals.check_size(mechanism, int(people.counts.sum()) // draw_totals.QUICK)
        groups = mechanism.groups
        sent = rng.multinomial(people.counts, np.full(groups, 1 / groups))
        places = [mechanism.places_of(value) for value in people.values]
        cells = np.zeros((groups, mechanism.points), dtype=np.int64)
        for group, size in enumerate(mechanism.cells):
            reports_by_cell = np.zeros(size, dtype=np.int64)
            np.add.at(
                reports_by_cell, [mechanism.cell(place, group) for place in places], sent[:, group]
            )
            if large:
                planes = np.repeat(np.arange(size, dtype=np.int32), reports_by_cell)
                cells[group] = draw_totals.draw_points(mechanism.response, planes, rng)
                continue
            for cell in np.flatnonzero(reports_by_cell).tolist():
                chances = draw_totals.one_hot_chances(mechanism.response, cell)
                cells[group] += rng.multinomial(reports_by_cell[cell], chances)
        return cells.reshape(-1)

    def question(self, mechanism: PairedParts) -> Mapping[str, Any]:
        return {
            "kind": "parts",
            "size": sum(mechanism.cells),
            "parts": mechanism.sizes,
            "ways": mechanism.ways,
            "permanent_epsilon": None,
        }

    def far_apart(self, mechanism: PairedParts) -> tuple[int, int]:
        return 0, mechanism.value_of([size - 1 for size in mechanism.sizes])

    def ways(self, mechanism: PairedParts) -> int:
        return mechanism.ways


def _supports(
    mechanism: PairedParts, cells: draw_totals.Counts
) -> tuple[draw_totals.Counts, draw_totals.Counts]:
    """Number of reports that support each cell, and of those of its table."""
    table_cells = cells.reshape(mechanism.groups, -1)
    tables = zip(table_cells, mechanism.cells, strict=True)
    support_counts = [supports_of(mechanism.response, table, size) for table, size in tables]
    return np.concatenate(support_counts), np.repeat(table_cells.sum(axis=1), mechanism.cells)


def _even(mechanism: PairedParts) -> Floats:
    """Each cell's share in a uniform table."""
    cells = np.array(mechanism.cells)
    return np.repeat(1 / cells, cells)


def _spreads(mechanism: PairedParts) -> tuple[Floats, Floats]:
    """Variance that a report adds to each cell, and how much more if it holds the cell.

    With probability 1/G it adds G (x - even); x has mean h, variance v: G v + (G - 1) (h - even)^2.
    """
    groups, uniform, channel = mechanism.groups, _even(mechanism), mechanism.channel
    true_variance, other_variance = report_variances(channel)
    growth = groups * (true_variance - other_variance) + (groups - 1) * (1 - 2 * uniform)
    return groups * other_variance + (groups - 1) * uniform**2, growth
