"""Further answers of a rehearsal: associations of parts, breakdowns by public fields, figures."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from math import sqrt
from typing import Any

import numpy as np

from hubbub.aggregator.query import EstimateQuery, QueryEngine
from hubbub.aggregator.query.breakdowns import breakdown
from hubbub.aggregator.query.derived_answers import cross, figures
from hubbub.aggregator.query.funnel_and_retention_totals import WINDOWS, figure_kind
from hubbub.analysis.answer import OF_NUMBERS
from hubbub.analysis.families.draw_totals import Counts
from hubbub.analysis.funnels_retention_and_rates import Figure
from hubbub.catalog import Metric
from hubbub.errors import BadParameter
from hubbub.simulation.truth import Truth, true_values, with_truth


@dataclass(frozen=True, slots=True, kw_only=True)
class Associated:
    """Association of two parts: the true Cramer's V of all who reported, and the answer.

    `cramers_v` is None if too few values are detected; `p_value` is of the test of independence.
    """

    rows: str
    columns: str
    true: float
    cramers_v: float | None
    low: float
    high: float
    p_value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicRow:
    """The share of one value among the reports with one public value, true and as answered.

    Of numbers it is the mean, in the metric's unit.

    `reports` counts the reports with that public value; `stands_out` is whether its share differs
    significantly from that of all others.
    """

    by: str
    part: str
    value: str
    reports: int
    true: float
    share: float
    low: float
    high: float
    stands_out: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureRow:
    """A figure of a device's own past: true, and as answered; a high of None is unbounded.

    `part` is a value of the public field `by`; both are "" for all devices together.
    """

    by: str
    part: str
    figure: str
    dates: str
    true: float
    estimate: float | None
    low: float
    high: float | None

    @property
    def holds(self) -> bool:
        """Whether the interval contains the true figure."""
        return self.low <= self.true and (self.high is None or self.true <= self.high)


async def figure_rows(
    query: QueryEngine, metric: Metric, question: EstimateQuery, people: Truth
) -> list[FigureRow]:
    """Compares a metric's figures with the truth; empty for metrics without figures.

    The figures are of all devices, then of each value of each public field. `people` are those of
    an epoch, alike in every epoch.
    """
    if not figure_kind(metric):
        return []
    result = []
    for public_field in ("", *(metric.breakdown if people.streams else ())):
        answer = await figures(query, metric.name, question, public_field)
        for part, rows in groupby(answer.values, key=lambda row: row.part):
            part_figures = list(rows)
            counts = people.counts_of(public_field, part)
            truths = _true_figures(answer.kind, metric, counts, people.codes, part_figures)
            result += [
                with_truth(FigureRow, row, by=public_field, true=float(truth))
                for row, truth in zip(part_figures, truths, strict=False)
            ]
    return result


def _true_figures(
    kind: str, metric: Metric, counts: Counts, codes: Sequence[Any], figures: Sequence[Figure]
) -> list[float]:
    """The true figures of devices, of which `counts` have each of `codes`, in order."""
    if kind == "rate":
        numerator, denominator = (np.array(codes, dtype=np.float64).T @ counts).tolist()
        if not denominator:
            raise BadParameter(
                f'the people report no "{(metric.values or ())[1]}", so the rate of metric '
                f'"{metric.name}" has no true value: add a person who does'
            )
        return [numerator / denominator]
    values = np.bincount(codes, weights=counts, minlength=len(metric.values or ()))
    reached = np.cumsum(values[::-1])[::-1]
    match kind:
        case "funnel":
            return [*(reached[1:] / np.maximum(reached[:-1], 1)), reached[-1] / max(reached[0], 1)]
        case "retention":
            return [*(values[1:-1] / max(values[0], 1))]
        case _:
            first = {name: value for _, name, value in WINDOWS}
            return [row.reports * reached[first[row.figure]] / reached[0] for row in figures]


async def associations(
    query: QueryEngine,
    metric: Metric,
    question: EstimateQuery,
    codes: Sequence[Any],
    counts: Counts,
) -> list[Associated]:
    """Compares the association of every two parts of a metric with the truth; empty without parts.

    `counts` is the number of reports of each of `codes`.
    """
    mechanism: Any = metric.randomizer
    if not metric.parts:
        return []
    places = np.array([mechanism.places_of(code) for code in codes])
    result = []
    for (first, rows), (other, columns) in combinations(enumerate(metric.parts), 2):
        table = np.zeros((mechanism.sizes[first], mechanism.sizes[other]))
        np.add.at(table, (places[:, first], places[:, other]), counts)
        answer = (await cross(query, metric.name, question, (rows, columns, ""))).association
        # Cramer's V, without the values that nobody holds.
        degrees = min(table.shape) - 1
        table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
        independent = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
        true_strength = sqrt(
            float(((table - independent) ** 2 / independent).sum() / table.sum()) / degrees
        )
        result.append(
            with_truth(Associated, answer, rows=rows, columns=columns, true=true_strength)
        )
    return result


async def public_rows(
    query: QueryEngine, metric: Metric, question: EstimateQuery, people: Truth, names: Sequence[str]
) -> list[PublicRow]:
    """Compares a metric's breakdown by each public field with the truth.

    `people` are those who reported; `names` are the values' names in answers, in order.
    """
    rows = []
    for public_field in metric.breakdown:
        shares: dict[str, dict[str, float]] = {}
        answer = await breakdown(query, metric.name, question, public_field)
        for row in answer.values:
            if row.part not in shares:
                part_counts = people.counts_of(public_field, row.part)
                true_counts = true_values(metric.randomizer, names, people.codes, part_counts)
                people_of_part = 1 if answer.kind in OF_NUMBERS else max(part_counts.sum(), 1)
                shares[row.part] = dict(zip(names, true_counts / people_of_part, strict=True))
            share = float(shares[row.part].get(row.value, 0.0))
            rows.append(with_truth(PublicRow, row, by=public_field, true=share))
    return rows
