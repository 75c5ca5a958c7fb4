"""`hubbub plan`: before launch, which mechanism, how many reports, which epsilon, what machines."""

import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, replace
from functools import partial
from math import ceil, isfinite
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from hubbub.aggregator.query.funnel_and_retention_totals import effect_measure
from hubbub.analysis.comparisons.effect import (
    EFFECT_PERCENTILES,
    SHOWN_POWER,
    detectable_effect,
    effect_confidence,
)
from hubbub.analysis.funnels_retention_and_rates import step_pairs
from hubbub.analysis.percentiles import check_percentiles
from hubbub.analysis.uncertainty.intervals import POPULATION, REPORTERS, Whose, reach_of
from hubbub.authoring.auto_mechanism import MAX_EXPECTED, choose
from hubbub.authoring.rank_errors import RANK_VARIANCES, USUAL_PERCENTILES
from hubbub.catalog import Metric
from hubbub.catalog.values.event_history_kinds import Retention
from hubbub.cli.commands.plan_table import (
    found_unlisted,
    people_a_report,
    plot,
    read_drawing,
    show,
    show_simulated,
)
from hubbub.cli.commands.planned_question import SubjectOptions, draft_of
from hubbub.cli.terminal.output import say, say_json
from hubbub.cli.terminal.percentile_and_candidate_options import flatten, list_of, read_percentile
from hubbub.cli.terminal.progress import Step, tracked
from hubbub.errors import BadParameter
from hubbub.errors.message_words import visible
from hubbub.fields.rules import Interval
from hubbub.mechanisms.probability import MAX_EPSILON, MIN_EPSILON
from hubbub.privacy.metric_draft import MetricDraft
from hubbub.privacy.planner import (
    CONFIDENCE,
    MAX_REPORTS,
    PRECISION,
    Row,
    Target,
    check_ratio,
    epsilon_for,
    moved_error,
    plan,
    ranked,
    ratio_error,
    ratio_power,
    reports_for,
    row,
)
from hubbub.programs.command_line import command
from hubbub.programs.option_parsing import Exclusive, Group, option, options
from hubbub.simulation.plan_simulation import (
    check_rank_goal,
    error_drawn_once,
    share_errors,
    simulate,
)

# The minimum batch of a planned metric; a larger one shows effects a little sooner.
_FEWEST: Final = 100
_FIGURES: Final = Group(
    "two of --reports, --epsilon, and a goal (--error, --detect, --within or --effect); the third "
    "is computed"
)
_GOAL: Final = Exclusive()
# Errors of percentiles are drawn, and known to some percent: 1.2% of reports or epsilon.
_DRAWN_PRECISION: Final = 5e-3


def _read_share(name: str, share: float) -> float:
    if not 0 < share < 1:
        raise BadParameter(f"{name} {share:g} is outside (0, 1): write 2% as 0.02")
    return share


@options
class PlanOptions:
    subject: SubjectOptions
    reports: int | None = option("number of reports", metavar="N", group=_FIGURES)
    epsilon: float | None = option(
        "privacy loss of one report, nats",
        within=Interval(MIN_EPSILON, MAX_EPSILON),
        group=_FIGURES,
    )
    error: float | None = option(
        "standard error that you want, as a share of all reports; of a mean, as a share of the "
        "width of its range",
        metavar="SHARE",
        read=_read_share,
        group=_FIGURES,
        exclusive=_GOAL,
    )
    detect: float | None = option(
        "smallest share that should be detected; for a mean, half the width of its 95%% interval",
        metavar="SHARE",
        read=_read_share,
        group=_FIGURES,
        exclusive=_GOAL,
    )
    percentile: tuple[float, ...] = option(
        "percentiles whose error the plan shows (numbers with buckets), as 95 or 50,90; by default "
        "(without a goal but --effect) those of --metric, or p50, p90, p95 with wave or haar",
        metavar="P,...",
        parse=list_of(read_percentile),
        read=flatten,
    )
    within: float | None = option(
        "half the width of the percentile's 95%% interval, in rank: with 0.02, that of p95 is from "
        "p93 to p97",
        metavar="SHARE",
        read=_read_share,
        group=_FIGURES,
        exclusive=_GOAL,
        needs="percentile",
    )
    effect: float | None = option(
        "smallest difference between an experiment's arms that has an 80%% chance to show at one "
        "look. Its unit is a share; for a mean, a share of its range's width; "
        "with --percentile a rank, with --ratio the ratio. The intervals hold at every look. "
        "--reports are those of one arm",
        metavar="SHARE",
        read=_read_share,
        group=_FIGURES,
        exclusive=_GOAL,
    )
    ratio: tuple[float, float] | None = option(
        "for a conversion, a retention or a rate: shares of the reports in its numerator "
        "and denominator, such as 0.1 0.4 (with --vector, means as shares of LENGTH); "
        "--error is then the standard error of the ratio, and --effect its difference",
        metavar=("A", "B"),
    )
    apart: bool = option(
        "numerator and denominator come from two epochs, as for a retention; each has --reports",
        needs="ratio",
    )
    whose: Whose = option(
        "what --error refers to: shares of the population, or shares of those who report "
        "(%(default)s)",
        default=POPULATION,
        needs="error",
    )
    permanent_epsilon: float | None = option(
        "privacy loss of all reports of one unchanged value, for values reported repeatedly",
        within=Interval(MIN_EPSILON, MAX_EPSILON),
    )
    simulate: bool = option(
        "simulate totals with the metric's or the recommended mechanism; show true and estimated "
        "shares"
    )
    seed: int = option(
        "seed of --simulate (%(default)s)", default=1, within=Interval(0), needs="simulate"
    )
    plot: Path | None = option(
        "draw the plan into FILE (.png or .svg)", metavar="FILE", read=read_drawing
    )
    format: Literal["table", "json"] = option("format of the output (%(default)s)", default="table")


@command("plan")
def _plan(options: PlanOptions) -> None:
    question, metric = draft_of(options.subject)
    if options.permanent_epsilon is not None:
        if metric is not None or question.kind not in {"values", "strings"}:
            raise BadParameter(
                "--permanent-epsilon is only for --values and --strings: leave it out"
            )
        question = replace(question, permanent_epsilon=options.permanent_epsilon)
    options = _with_goals(options, question, metric)
    for percentile in options.percentile:
        parts = None if options.within is None else question.size
        check_rank_goal(percentile, options.within or options.effect, parts)
    percentiles = _percentiles(options, metric)
    error_in_rank = error_drawn_once(question, percentiles)
    target = _target(options, question, metric, error_in_rank if percentiles else None)
    rows, metric_row = _rows(options, question, metric, target), None
    # In a crowd, auto does not compare mechanisms.
    weighed = () if metric and metric.crowd else percentiles
    rows, by_auto = _as_auto(question, rows, weighed)
    if metric is not None and options.reports is not None:
        metric_row = row(question, metric.mechanism, metric.arguments, options.reports)
    lines = [*rows, *([metric_row] if metric_row else [])]
    errors = [error_in_rank(line) for line in lines] if percentiles else []
    names = metric.values if metric else None
    drawing = (
        simulate(question, metric_row or rows[0], options.seed, names) if options.simulate else {}
    )
    stderr = None if options.ratio is None else _ratio_error(options, question, metric, rows[0])
    if options.format == "json":
        rows_with_errors = zip((item.mechanism for item in rows), errors, strict=False)
        further = {
            "rank_errors": {name: error for name, error in rows_with_errors if isfinite(error)},
            "ratio_error": stderr,
            "simulated": drawing,
        }
        document = _document(question, rows, metric_row, metric)
        say_json(document | {name: figure for name, figure in further.items() if figure})
    else:
        ranks = {"percentiles": percentiles, "errors": errors}
        show(question, rows, metric_row, metric, **ranks, by_auto=by_auto)
        if options.effect is not None:
            say(
                "reports: for each arm, from people who report once; further metrics and "
                "arms of an experiment widen the intervals of all"
            )
        if options.ratio is not None:
            say(
                f"the ratio {options.ratio[0]:g} / {options.ratio[1]:g} by {rows[0].mechanism}: "
                f"standard error {stderr:.3%}"
            )
        if drawing:
            show_simulated(drawing)
    if options.plot:
        plot(question, lines, options.plot)
        print(visible(f"drawn to {options.plot}"), file=sys.stderr)  # noqa: T201 beside the answer


def _document(
    question: MetricDraft, rows: list[Row], metric_row: Row | None, metric: Metric | None
) -> dict[str, Any]:
    document: dict[str, Any] = {
        "question": asdict(question),
        "recommended": rows[0].mechanism,
        "rows": [_row_json(plan_row) for plan_row in rows],
        "metric": None if metric_row is None else _row_json(metric_row),
    }
    if metric is not None:
        document["people_a_report"] = people_a_report(metric)
    if question.kind == "strings":
        document["found_unlisted"] = found_unlisted(rows[0])
    return document


def _row_json(row: Row) -> dict[str, Any]:
    """A row as JSON, with None for missing and infinite figures."""
    return {
        name: None if isinstance(cell, float) and not isfinite(cell) else cell
        for name, cell in asdict(row).items()
    }


def _rows(
    options: PlanOptions, question: MetricDraft, metric: Metric | None, target: Target
) -> list[Row]:
    """The recommended mechanism and others, each with the figure that was not given.

    `target` is what must reach the goal; without a goal, what the rows are ordered by.
    """
    goals = (options.error, options.detect, options.within, options.effect)
    goal = next((share for share in goals if share is not None), None)
    reports, epsilon = options.reports, options.epsilon
    precision = _DRAWN_PRECISION if options.percentile else PRECISION
    if metric is not None and epsilon is None and (goal is None or reports is None):
        epsilon = metric.epsilon
    if reports is not None and epsilon is not None and goal is None:
        rows = plan(question, epsilon, reports)
        if not _percentiles(options, metric) and options.ratio is None:
            return rows
        costs = {row.mechanism: target(row) ** 2 for row in _with_progress(rows, options)}
        return ranked(rows, lambda row: costs[row.mechanism])
    if reports is None and epsilon is not None and goal is not None:
        needed = [
            reports_for(question, name, parameters, target, goal, precision=precision)
            for name, parameters in _with_progress(question.suitable(epsilon).items(), options)
        ]
        if not any(isfinite(item.reports) for item in needed):
            raise BadParameter(
                f"no number of reports up to {MAX_REPORTS:.0e} reaches this goal at epsilon "
                f"{epsilon:g}; accept a larger error, or raise epsilon"
            )
        return ranked(needed, lambda item: item.reports)
    if reports is None or epsilon is not None or goal is None:
        if metric is not None and reports is None and goal is None:
            raise BadParameter(
                "give --reports, or one of --error, --detect, --within or --effect; epsilon is "
                "that of the metric; for example: hubbub plan --metric "
                f"{metric.name} --reports 100000"
            )
        raise BadParameter(
            "give two of --reports, --epsilon and --error, --detect, --within or --effect: the "
            "third is computed; for example: hubbub plan --values 9 --epsilon 1 --reports 100000"
        )
    names = question.suitable(MIN_EPSILON)
    tried = [
        epsilon_for(question, name, reports, target, goal, precision=precision)
        for name in _with_progress(names, options)
    ]
    rows = [item for item in tried if item is not None]
    if not rows:
        raise BadParameter(
            f"{reports:,} reports are too few for this goal at any epsilon up to 16; "
            "accept a larger error, or gather more reports"
        )
    return ranked(rows, lambda item: item.epsilon)


def _as_auto(
    question: MetricDraft, rows: list[Row], percentiles: Sequence[float]
) -> tuple[list[Row], bool]:
    """The rows, the mechanism first that `auto` chooses, and whether `auto` answers the question.

    It does for a mean, and for percentiles.
    """
    best = rows[0]
    expected = ceil(min(best.reports, MAX_EXPECTED))
    wishes: dict[str, Any] = {"low": question.low, "high": question.high, "reports": expected}
    if question.kind == "ranges" and percentiles:
        wishes["buckets"] = question.size
    elif question.kind != "mean":
        return rows, False
    chosen = choose(best.epsilon, None, wishes, percentiles).best.mechanism
    # A mechanism that never reaches the goal stays behind those that do.
    return sorted(rows, key=lambda row: row.mechanism != chosen or not isfinite(row.reports)), True


def _percentiles(options: PlanOptions, metric: Metric | None) -> Sequence[float]:
    """The percentiles whose error is planned; without a goal the metric's, or the usual ones."""
    goals = (options.error, options.detect, options.effect, options.ratio)
    if options.percentile or metric is None or any(goal is not None for goal in goals):
        return check_percentiles(options.percentile)
    usual = USUAL_PERCENTILES if metric.mechanism in RANK_VARIANCES else ()
    return metric.percentiles or usual


def _with_goals(options: PlanOptions, question: MetricDraft, metric: Metric | None) -> PlanOptions:
    """The options, with the percentiles that an experiment of a metric compares.

    Raises BadParameter for a goal that the question or the other options do not have.
    """
    numeric = question.kind == "ranges" or (metric is not None and metric.edges)
    if options.ratio is not None and (options.detect or options.within or options.percentile):
        raise BadParameter(
            "--ratio needs --error, its standard error, or --effect: leave other goals out"
        )
    if options.ratio is not None:
        check_ratio(question, options.ratio)
    if options.effect is not None:
        if metric and effect_measure(metric) and options.ratio is None:
            raise BadParameter(
                f'--effect of metric "{metric.name}" needs a ratio: add --ratio, with the shares '
                "of reports in numerator and denominator"
            )
        if options.ratio is not None and (options.apart or (metric and not effect_measure(metric))):
            raise BadParameter(
                "an experiment compares ratios only for a funnel or a rate; for a retention it "
                "compares the shares of weeks: leave --ratio and --apart out"
            )
        numerator, denominator = options.ratio or (1.0, 1.0)
        room = max(numerator, denominator - numerator)
        if question.kind != "vector" and options.effect * denominator > room:
            raise BadParameter(
                f"--effect {options.effect:g}: a ratio of {numerator / denominator:.3g} moves by "
                f"{room / denominator:.3g} at most, to 0 or 1; write a smaller one"
            )
        if numeric and not options.percentile:
            if metric is None:
                raise BadParameter("--effect with --ranges needs a --percentile: name one")
            return replace(options, percentile=metric.percentiles or EFFECT_PERCENTILES)
    if options.percentile and not numeric:
        raise BadParameter(
            "--percentile goes with --ranges, or with --metric of a number with buckets"
        )
    return options


def _ratio_error(
    options: PlanOptions,
    question: MetricDraft,
    metric: Metric | None,
    row: Row,
) -> float:
    is_apart = options.apart or (metric is not None and isinstance(metric.value_kind, Retention))
    return ratio_error(question, row, options.ratio or (1.0, 1.0), is_apart=is_apart)


def _with_progress(mechanisms: Collection[Step], options: PlanOptions) -> Iterable[Step]:
    """The mechanisms, with a progress bar if each may take a minute, as percentiles do."""
    if not options.percentile:
        return mechanisms
    return tracked(mechanisms, len(mechanisms), "comparing mechanisms")


def _target(
    options: PlanOptions,
    question: MetricDraft,
    metric: Metric | None,
    error_in_rank: Target | None,
) -> Target:
    """The figure of a row that must reach the goal; `error_in_rank` is of percentiles, if any."""
    error_of_ratio = partial(_ratio_error, options, question, metric)
    if (effect := options.effect) is not None:
        # All effects of an experiment share one confidence level.
        arms = len(metric.experiment.arms) if metric and metric.experiment else 2
        measures = question.size if question.size > 2 else 1  # noqa: PLR2004 as of a boolean
        if options.percentile:
            compared = (metric and metric.percentiles) or EFFECT_PERCENTILES
            measures = max(len(compared), len(options.percentile))
        if options.ratio is not None:
            # Of a funnel: from each step to the next, and from the first to the last.
            measures = 1 if question.kind == "vector" else len(step_pairs(question.size))
        count, fewest = measures * (arms - 1), metric.fewest if metric else _FEWEST

        def shows(row: Row) -> float:
            if options.percentile:
                share_error, reach = share_errors(question, row), reach_of(CONFIDENCE)
                # A share of 50% has the largest error: the effect moves it there.
                moves = [
                    (percentile, percentile + 100 * effect * (1 if percentile < 50 else -1))  # noqa: PLR2004 half
                    for percentile in options.percentile
                ]
                stderrs = [[share_error(end) / reach for end in move] for move in moves]
                errors = [partial(np.interp, xp=(0.0, effect), fp=ends) for ends in stderrs]
                return max(
                    detectable_effect(error_at, count, row.reports, fewest) for error_at in errors
                )
            if options.ratio is not None:
                numerator, denominator = options.ratio
                control = numerator / denominator
                is_up = question.kind == "vector" or 2 * control < 1  # a rate has no end above
                moved = control + (effect if is_up else -effect)
                arm_reports = row.reports, row.reports
                reach = reach_of(effect_confidence(CONFIDENCE, count, arm_reports, 1, fewest))
                power = ratio_power(question, row, (control, moved), denominator, reach)
                # The search needs the effect itself at the shown power, and more below it.
                return effect * 10 ** (SHOWN_POWER - power)
            moved_errors = partial(moved_error, question, row)
            return detectable_effect(moved_errors, count, row.reports, fewest)

        return shows
    if error_in_rank:
        return error_in_rank
    if options.ratio is not None:
        return error_of_ratio
    if options.error is None:
        return lambda row: row.detectable
    return (lambda row: row.stderr) if options.whose == REPORTERS else (lambda row: row.population)
