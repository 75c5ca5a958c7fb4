"""Experiments: each metric by its arms, the effect of every arm, and a verdict in words.

An answer covers all epochs so far: its intervals are valid at every look, as long as each look
includes the reports of the one before.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf
from typing import Final

from hubbub.aggregator.query.breakdowns import over_sentence, parts_by
from hubbub.aggregator.query.derived_answers import figures_of
from hubbub.aggregator.query.engine import QueryEngine
from hubbub.aggregator.query.epoch_range import EpochRange
from hubbub.aggregator.query.estimating import EstimateQuery, one_look
from hubbub.aggregator.query.funnel_and_retention_totals import effect_measure, figure_kind
from hubbub.aggregator.query.metric_answer import notes_of_outside
from hubbub.aggregator.query.totals import EpochSelection
from hubbub.analysis.answer import CONFIDENCE
from hubbub.analysis.comparisons.effect import (
    EFFECT_PERCENTILES,
    ArmEstimate,
    Effect,
    effect_confidence,
    effects,
    ratio_p_value,
    rows_of,
)
from hubbub.bundles import Bundle
from hubbub.catalog import Metric, reports_of_one
from hubbub.catalog.experiments import Experiment, experiment_named
from hubbub.catalog.values.event_history_kinds import Rate
from hubbub.errors import UnknownMetric
from hubbub.errors.message_words import several
from hubbub.query_results.answer_table import error_of, number_text

# Arms whose sizes have a lower p-value get a warning: a false one in 1 of 100 experiments.
_RATIO_DOUBT: Final = 0.01
# Epochs whose smallest arm may be below the minimum batch are not used to check sizes.
_SURELY: Final = 2
# Number of each metric's effects in the verdict.
_LISTED: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmReports:
    """How many reports one metric has in one arm, in the epochs in which every arm has some."""

    metric: str
    arm: str
    weight: int
    reports: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectRow(Effect):
    """One measure of one metric in one arm, compared with the control arm; a share has unit ""."""

    metric: str
    arm: str
    unit: str
    verdict: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """A metric and an arm without an answer, and why."""

    metric: str
    arm: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Experimented:
    """The current results of an experiment: the effect of each arm on each measure.

    Args:
        control: the arm that the others are compared with.
        over: whether the catalog has ended the experiment.
        dates: compared epochs, of all metrics.
        reports: of all arms and metrics.
        ratio_p_value: upper bound on the probability of arm sizes so far from their weights; None
            before any can be judged.
        ratio_fits: whether the sizes fit the weights.
        sizes: p-value and fit in words.
        confidence: of all intervals of all looks together.
        verdict: in words, a line for each effect and for each metric without an answer yet.
    """

    experiment: str
    control: str
    over: bool
    confidence: float
    final: bool
    dates: str
    reports: int
    ratio_p_value: float | None
    ratio_fits: bool
    sizes: str
    verdict: str
    notice: str
    arms: list[ArmReports]
    values: list[EffectRow]
    unanswered: list[Unanswered]


@dataclass(frozen=True, slots=True)
class Arms:
    """The reports of one metric by arm, of the epochs in which every arm has some."""

    metric: Metric
    experiment: Experiment
    selections: Mapping[str, EpochSelection]

    @property
    def repeats(self) -> int:
        """Largest number of an arm's reports from one device."""
        return max(reports_of_one(self.metric, self.selections[self.experiment.control].epochs), 1)

    @property
    def sizes(self) -> list[ArmReports]:
        """Number of reports of each arm."""
        name = self.metric.name
        return [
            ArmReports(metric=name, arm=arm, weight=weight, reports=self.selections[arm].reports)
            for arm, weight in self.experiment.arms.items()
        ]

    def pair(self, arm: str) -> tuple[EpochSelection, EpochSelection]:
        """The selections of the control arm and of another."""
        return self.selections[self.experiment.control], self.selections[arm]

    def why_not(self, arm: str) -> str:
        """Why the arm's effect has no answer yet; "" if it has."""
        if not effect_measure(self.metric) and (why := one_look(self.metric)):
            once = f'those of "hubbub breakdown {self.metric.name} --by {self.experiment.name}"'
            return f"there are no intervals valid at every look: {why}; {once} are for one look"
        fewest, later = self.metric.fewest, ""
        if self.metric.value_kind.COUNTS:
            later = f"; devices report a {self.metric.kind} once its {self.metric.epoch} is over"
        for name in (self.experiment.control, arm):
            if (reports := self.selections[name].reports) < fewest:
                return (
                    f"{name} has {several(reports, 'report')} in epochs in which every arm has "
                    f"some, below the minimum batch of {fewest:,}{later}"
                )
        return ""

    def ratio(self, epochs: int | None = None, *, of_all: bool = False) -> float | None:
        """P-value of the arms' sizes in the first `epochs`, or all, that are large enough to judge.

        `of_all`: by the sizes of all these epochs, not by the weights. None without such an epoch,
        or if an arm ended, since earlier reports follow weights that the catalog no longer has.
        Of a retention or an activity the number of reports is what an arm may change.
        """
        weights = list(self.experiment.arms.values())
        kind = figure_kind(self.metric)
        if 0 in weights or (kind and kind.spans_epochs):
            return None
        by_epoch = [selection.by_epoch() for selection in self.selections.values()]
        least = min(weights) / sum(weights)
        judged = [
            counts
            for epoch in by_epoch[0]
            if least * sum(counts := [arm_counts[epoch] for arm_counts in by_epoch])
            >= _SURELY * self.metric.fewest
        ]
        if not judged:
            return None
        # A returning device has the same arm, so it is no further evidence.
        repeats = self.metric.limits.reports_per_epoch if epochs == 1 else self.repeats
        sums = [sum(column) / repeats for column in zip(*judged[:epochs], strict=True)]
        return ratio_p_value(sums, [*map(sum, zip(*judged, strict=True))] if of_all else weights)


def _experiment(bundle: Bundle, name: str) -> Experiment:
    """The experiment of this name. Raises UnknownMetric, which names that of a metric."""
    metric = bundle.metrics.get(name)
    if metric and metric.experiment:
        raise UnknownMetric(
            f'"{name}" is a metric; ask for its experiment, "{metric.experiment.name}"'
        )
    return experiment_named(bundle.experiments, name)


async def experimented(
    query: QueryEngine, name: str, confidence: float = CONFIDENCE
) -> Experimented:
    """An experiment's effect on each of its metrics, over all epochs.

    `confidence` is that of all intervals of all looks together. Raises UnknownMetric if no metric
    of the bundle measures it.
    """
    experiment = _experiment(query.collected.bundle, name)
    arms_by_metric = [
        await _arms_of(query, metric, experiment)
        for metric in query.collected.bundle.metrics.values()
        if metric.experiment == experiment
    ]
    treatments = [arm for arm in experiment.arms if arm != experiment.control]
    pairs = [(arms, arm, arms.why_not(arm)) for arms in arms_by_metric for arm in treatments]
    unanswered = [
        Unanswered(metric=arms.metric.name, arm=arm, why=why) for arms, arm, why in pairs if why
    ]
    answered = [(arms, arm) for arms, arm, why in pairs if not why]
    # The number of rows decides the width of each interval.
    controls = [
        await _arm_estimate(query, arms, experiment.control, confidence) for arms, _ in answered
    ]
    rows = sum(map(rows_of, controls))
    values = []
    for arms, arm in answered:
        control, other = (selection.reports for selection in arms.pair(arm))
        fewest = arms.metric.min_batch
        surer = effect_confidence(confidence, rows, (control, other), arms.repeats, fewest)
        control_estimate = await _arm_estimate(query, arms, experiment.control, surer)
        arm_estimate = await _arm_estimate(query, arms, arm, surer)
        arm_effects = await asyncio.to_thread(effects, control_estimate, arm_estimate, surer)
        values += [_row_of(arms.metric, arm, effect) for effect in arm_effects]
        unanswered += await _unbounded_figures(query, arms, arm, surer)
    p_value = _ratio_of(arms.ratio() for arms in arms_by_metric)
    fits = p_value is None or p_value >= _RATIO_DOUBT
    selections = [part for arms in arms_by_metric for part in arms.selections.values()]
    reports = sum(selection.reports for selection in selections)
    # The epochs of several metrics may have different lengths.
    dates = [selection.date(epoch) for selection in selections for epoch in selection.epochs]
    return Experimented(
        experiment=experiment.name,
        control=experiment.control,
        over=experiment.is_over(()),
        confidence=confidence,
        final=all(map(query.collected.is_final, selections)),
        dates="..".join(sorted({min(dates), max(dates)})) if dates else "",
        reports=reports,
        ratio_p_value=p_value,
        ratio_fits=fits,
        sizes=_sizes_sentence(arms_by_metric, p_value, fits=fits),
        verdict="\n".join(_sentences(arms_by_metric, values, unanswered, reports, fits=fits)),
        notice=query.notice,
        arms=[row for arms in arms_by_metric for row in arms.sizes],
        values=values,
        unanswered=unanswered,
    )


def _ratio_of(ratios: Iterable[float | None]) -> float | None:
    """P-value of the arms' sizes in all metrics together, from those of each (Bonferroni)."""
    p_values = [ratio for ratio in ratios if ratio is not None]
    return min(min(p_values) * len(p_values), 1.0) if p_values else None


async def _arm_estimate(query: QueryEngine, arms: Arms, arm: str, confidence: float) -> ArmEstimate:
    metric, selection = arms.metric, arms.selections[arm]
    if measure := effect_measure(metric):
        bounds = {
            measure.format(figure=figure.figure): figure.bounds
            for figure in await figures_of(query, selection, confidence)
        }
        return ArmEstimate(figures=bounds, most=inf if isinstance(metric.value_kind, Rate) else 1.0)
    work = await query.work(selection, EstimateQuery(confidence=confidence))
    percentiles = metric.percentiles or EFFECT_PERCENTILES
    return ArmEstimate(answer=work.answer, ranks=work.population, percentiles=percentiles)


async def _unbounded_figures(
    query: QueryEngine, arms: Arms, arm: str, confidence: float
) -> list[Unanswered]:
    if not effect_measure(arms.metric):
        return []
    return [
        Unanswered(metric=arms.metric.name, arm=name, why=f"{figure.figure}: {figure.note}")
        for name, part in zip((arms.experiment.control, arm), arms.pair(arm), strict=True)
        for figure in await figures_of(query, part, confidence)
        if figure.bounds is None
    ]


async def _arms_of(query: QueryEngine, metric: Metric, experiment: Experiment) -> Arms:
    selection = await query.collected.find(metric.name, EpochRange(epochs="all"))
    all_parts = parts_by(query.collected.bundle, selection, experiment.name)
    parts = {part.name: part.own for part in all_parts if part.name in experiment.arms}
    common = sorted(set.intersection(*(set(part.by_epoch()) for part in parts.values())))
    return Arms(metric, experiment, {arm: parts[arm].pick(common) for arm in experiment.arms})


def _row_of(metric: Metric, arm: str, effect: Effect) -> EffectRow:
    unit = "" if effect.of_share else metric.unit
    verdict = _verdict(arm, effect, unit)
    return EffectRow(metric=metric.name, arm=arm, unit=unit, verdict=verdict, **asdict(effect))


def _verdict(arm: str, effect: Effect, unit: str) -> str:
    scale, unit = (100, "points") if effect.of_share else (1, unit)
    low, high = scale * effect.low, scale * effect.high
    error = error_of(low, high)
    unit = f" {unit}" if unit else ""
    power = f"one of {scale * effect.detectable:.3g}{unit} is shown with a chance of 80%"
    if scale > 1 and effect.detectable >= 1:  # no two shares differ by more
        power = "too few reports for any"
    if effect.reaches:
        unit += ", where the range ends; the truth may lie beyond"
    if not effect.shown:
        return (
            f"no effect of {arm} shown ({power}): between "
            f"{number_text(low, error, sign='+', end='low')} and "
            f"{number_text(high, error, sign='+', end='high')}{unit}"
        )
    nearer, farther = sorted((abs(low), abs(high)))
    direction = "higher" if low > 0 else "lower"
    # An effect that is shown is at least a little more than 0.
    start = number_text(nearer, min(error, nearer), end="low")
    ends = f"{start} to {number_text(farther, error, end='high')}"
    return f"{arm} is {direction} by {ends}{unit}"


def _sentences(
    metrics_arms: Sequence[Arms],
    rows: Sequence[EffectRow],
    unanswered: Sequence[Unanswered],
    reports: int,
    *,
    fits: bool,
) -> Iterator[str]:
    experiment = metrics_arms[0].experiment
    if experiment.is_over(()):
        yield f"{over_sentence(experiment)}."
    first_p_value = _ratio_of(arms.ratio(1) for arms in metrics_arms)
    moved_p_value = _ratio_of(arms.ratio(1, of_all=True) for arms in metrics_arms)
    if not fits and first_p_value is not None and moved_p_value is not None:
        yield (
            "The arms' sizes do not fit their weights: find out why before you trust an effect. "
            "They count reports, not devices: an arm whose people leave sends fewer."
        )
        begin = f"In the first epoch alone (p = {first_p_value:.3g})"
        if first_p_value < _RATIO_DOUBT:
            yield f"{begin} they do not fit either: find devices that do not get or send an arm."
        elif moved_p_value >= _RATIO_DOUBT:
            yield f"{begin} there are too few reports to tell whether an arm keeps more people."
        else:
            yield (
                f"{begin} they fit: an arm keeps more people. For an effect without this, ask "
                f"about that epoch: hubbub breakdown METRIC --by {experiment.name} --epochs DATE."
            )
    rows_by_metric: dict[str, list[EffectRow]] = {}
    for row in sorted(rows, key=lambda row: not row.shown):
        rows_by_metric.setdefault(row.metric, []).append(row)
    for metric, metric_rows in rows_by_metric.items():
        yield from (f"{metric}, {row.measure}: {row.verdict}." for row in metric_rows[:_LISTED])
        if others := metric_rows[_LISTED:]:
            shown = sum(row.shown for row in others) or "none"
            yield f"{metric}, {len(others):,} more in the table: {shown} beyond chance."
    bounds = [(row.difference, row.low, row.high) for row in rows]
    yield from (f"{note}." for note in notes_of_outside(bounds, "An effect", reports))
    for gap in unanswered:
        yield f"{gap.metric}, {gap.arm}: no answer: {gap.why}."


def _sizes_sentence(metrics_arms: Sequence[Arms], p_value: float | None, *, fits: bool) -> str:
    """Sentence with the number of reports of each arm, and whether it fits the weights."""
    parts = [
        f"{arms.metric.name}: " + ", ".join(f"{row.arm} {row.reports:,}" for row in arms.sizes)
        for arms in metrics_arms
    ]
    if p_value is not None:
        judged = "fit" if fits else "do not fit"
        parts.append(f"they {judged} their weights (p = {p_value:.3g}, right at every look)")
    return f"Reports by arm: {'; '.join(parts)}"
