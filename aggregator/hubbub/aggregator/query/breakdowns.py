"""Breakdowns: a metric by a public field of devices, each value compared with all others."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from hubbub.aggregator.query.answer_types import Envelope
from hubbub.aggregator.query.conservation_law import upstream_reports
from hubbub.aggregator.query.engine import QueryEngine
from hubbub.aggregator.query.estimating import EstimateQuery, one_look, percentiles_for
from hubbub.aggregator.query.metric_answer import notes_of_outside
from hubbub.aggregator.query.totals import EpochSelection
from hubbub.analysis.answer import OF_NUMBERS, Answer, ValueAnswer
from hubbub.analysis.comparisons.change import Change, changes_of_all
from hubbub.analysis.percentiles import Percentile, percentiles_of
from hubbub.bundles import Bundle
from hubbub.catalog import UNLISTED, Metric, conditions_in
from hubbub.catalog.experiments import Experiment
from hubbub.errors import BadParameter
from hubbub.errors.message_words import did_you_mean
from hubbub.query_results.answer_table import is_folded


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicPart:
    """One value of a public field; "unlisted" for devices with another value.

    Args:
        reports: number of counted reports.
        waiting, withheld: terms of the shuffler; None if unknown.
        percentiles: of the reporters' numbers, for buckets of a number.
    """

    part: str
    reports: int
    waiting: int | None
    withheld: int | None
    answered: bool
    percentiles: list[Percentile]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRow:
    """One value in one part: its share there, or a mean, with its interval.

    Args:
        reports: of the part.
        estimate, stderr: in reports.
        share, low, high: of the part's reporters.
        difference: for the population, from all other values of the field; None for unlisted
            values, or without others.
        stands_out: whether that is beyond chance, at a false discovery rate of 5% over all rows.
    """

    part: str
    value: str
    reports: int
    estimate: float
    stderr: float
    share: float
    low: float
    high: float
    difference: float | None
    difference_low: float | None
    difference_high: float | None
    p_value: float | None
    stands_out: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenDown(Envelope):
    """A metric by one of its public fields.

    Args:
        folded: short tables only need values that stand out.
        values: rows of each part that has the minimum batch.
        notes: on looks, and differences outside their intervals.
    """

    by: str
    min_batch: int
    folded: bool
    parts: list[PublicPart]
    values: list[PartRow]
    notes: list[str]


class Part(NamedTuple):
    """The epochs of one value of a public field, and of the others; None if they are too few."""

    name: str
    own: EpochSelection
    rest: EpochSelection | None

    @property
    def is_answered(self) -> bool:
        """Whether it has the minimum batch."""
        return self.own.reports >= self.own.metric.fewest


def field_of(metric: Metric, by: str) -> str:
    """The public field named `by`, or the first. Raises BadParameter with the list of fields."""
    field = by or next(iter(metric.breakdown), "")
    if field in metric.breakdown:
        return field
    if not metric.breakdown:
        remedy = ": request estimates, or add one with breakdown = { FIELD = [...] }"
        if metric.value_kind.COUNTS:
            remedy = f', and kind = "{metric.kind}" can have none: leave "by" out'
        raise BadParameter(f'metric "{metric.name}" has no breakdown{remedy}')
    experiment = metric.experiment.name if metric.experiment else ""
    fields = ", ".join(name for name in metric.breakdown if name != experiment)
    has = f"public fields: {fields or 'none'}; experiment: {experiment or 'none'}"
    raise BadParameter(
        f'metric "{metric.name}": by "{by[:60]}" is neither its public field nor its experiment '
        f"({has}){did_you_mean(by, metric.breakdown)}"
    )


def parts_by(bundle: Bundle, selection: EpochSelection, by: str = "") -> list[Part]:
    """The requested values of the public field `by` ("" for the first); unlisted values come last.

    Raises BadParameter if the metric has no such field.
    """
    metric = selection.metric
    field = field_of(metric, by)
    conditions = conditions_in(metric.name)
    values = conditions.get(field) or list(metric.breakdown[field])

    def select_cells(condition: str) -> EpochSelection:
        """The same epochs of some cells of the metric."""
        tier = f"/{metric.tier}" if metric.tier else ""
        part = bundle.metric(f"{metric.base_name}@{condition}{tier}")
        counted = {w: count for w, count in selection.counted.items() if w.stream in part.streams}
        return EpochSelection(part, selection.epochs, counted)

    def of_values(chosen: Sequence[str]) -> EpochSelection:
        fields = {**conditions, field: chosen}
        return select_cells(",".join(f"{name}={'+'.join(names)}" for name, names in fields.items()))

    parts = []
    for value in values:
        others = [other_value for other_value in values if other_value != value]
        others_selection = of_values(others) if others else None
        is_large = others_selection is not None and others_selection.reports >= metric.fewest
        parts.append(Part(value, of_values([value]), others_selection if is_large else None))
    if not conditions:
        parts.append(Part(UNLISTED, select_cells(UNLISTED), None))
    return parts


def notes_of_arms(metric: Metric, by: str, parts: Sequence[Part]) -> list[str]:
    """Notes, without full stop, if `by` is the metric's experiment and not another field."""
    if metric.experiment is None or by != metric.experiment.name:
        return []
    notes = ["Intervals and marks by arm are valid for one look"]
    if not one_look(metric):
        notes[0] += f'; those of "hubbub experiment {by}" are valid at every look'
    if metric.experiment.is_over(()):
        notes.append(over_sentence(metric.experiment))
    elif parts[-1].name == UNLISTED and parts[-1].own.reports:
        notes.append(
            f"Reports in no arm ({UNLISTED}) are older than the experiment, followed a notice that "
            "stopped an arm, or have another public value that is not listed"
        )
    return notes


def over_sentence(experiment: Experiment) -> str:
    """Where the reports of an ended experiment count, and what to do; without full stop."""
    live = " and ".join(experiment.live_arms(()))
    return (
        f'The experiment "{experiment.name}" is over: devices get {live}, and new reports are in '
        f"no arm ({UNLISTED}); to compare arms again, begin an experiment of another name"
    )


async def breakdown(
    engine: QueryEngine, name: str, query: EstimateQuery, by: str = ""
) -> BrokenDown:
    """Each value of the public field `by` ("" for the first), compared with all others.

    Values with fewer reports than the minimum batch are named without an answer.
    """
    query, selection, answer = await engine.find_answer(name, query)
    parts = parts_by(engine.collected.bundle, selection, by)
    if not query.candidates and selection.metric.values is None and answer.kind == "values":
        # Each part is queried for the strings that were found in all reports.
        query = replace(query, candidates=tuple(value.value for value in answer.values))
    pairs = {
        part.name: (
            await engine.work(part.own, query),
            await engine.work(part.rest, query) if part.rest else None,
        )
        for part in parts
        if part.is_answered
    }
    answers = {
        name: (own.answer, rest.answer if rest else None) for name, (own, rest) in pairs.items()
    }
    rows = await asyncio.to_thread(part_rows, answers)
    bounds = [
        (row.difference, row.difference_low or 0.0, row.difference_high or 0.0)
        for row in rows
        if row.difference is not None
    ]
    terms = await engine.collected.terms()
    percentiles = percentiles_for(selection.metric, query)
    public_parts = []
    for part in parts:
        ranks = pairs[part.name][0].ranks if part.is_answered else None
        waiting, withheld = upstream_reports(part.own.metric, part.own.epochs, terms)
        public_parts.append(
            PublicPart(
                part=part.name,
                reports=part.own.reports,
                waiting=waiting,
                withheld=withheld,
                answered=part.is_answered,
                percentiles=percentiles_of(ranks, percentiles, query.confidence) if ranks else [],
            )
        )
    by = field_of(selection.metric, by)
    return BrokenDown(
        **engine.envelope(query, answer.kind, selection),
        by=by,
        min_batch=parts[0].own.metric.fewest,
        folded=is_folded(rows, of_numbers=any(part.percentiles for part in public_parts)),
        parts=public_parts,
        values=rows,
        notes=[
            *notes_of_arms(selection.metric, by, parts),
            *notes_of_outside(bounds, "A difference", selection.reports),
        ],
    )


def part_rows(answers: Mapping[str, tuple[Answer, Answer | None]]) -> list[PartRow]:
    """Rows of the table, from the answers to each part and to its others, by the part's name."""
    # Marks are over all rows.
    compared = iter(changes_of_all([(rest, own) for own, rest in answers.values() if rest]))
    return [
        _row(name, answer, *pair)
        for name, (answer, rest) in answers.items()
        for pair in zip(
            answer.values, next(compared) if rest else [None] * len(answer.values), strict=True
        )
    ]


def _row(part: str, answer: Answer, value: ValueAnswer, other: Change | None) -> PartRow:
    of_numbers = answer.kind in OF_NUMBERS
    return PartRow(
        part=part,
        value=value.value,
        reports=answer.reports,
        estimate=value.estimate,
        stderr=value.stderr,
        share=value.estimate if of_numbers else value.share or 0.0,
        low=value.low if of_numbers else value.share_low or 0.0,
        high=value.high if of_numbers else value.share_high or 0.0,
        difference=other.difference if other else None,
        difference_low=other.low if other else None,
        difference_high=other.high if other else None,
        p_value=other.p_value if other else None,
        stands_out=other is not None and other.changed,
    )
