"""`hubbub plan`: before launch, which mechanism, how many reports, which epsilon, what machines."""

import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from math import inf, isfinite
from pathlib import Path
from typing import Any, Final, Literal

from hubbub.analysis import EFFECT_PERCENTILES, POPULATION, REPORTERS, Whose, detectable_effect
from hubbub.analysis.strings.tree_search import found_from
from hubbub.analysis.uncertainty.intervals import reach_of
from hubbub.catalog import Metric, days_of_period
from hubbub.catalog.discovery import counting
from hubbub.catalog.values.past_kinds import Retention
from hubbub.cli.planning.subject import SubjectOptions, draft_of
from hubbub.cli.terminal.output import listing, say, say_json, table
from hubbub.cli.terminal.percentile_text import read_percentile
from hubbub.errors import BadParameter
from hubbub.errors.grammar import several
from hubbub.errors.installing import install_with
from hubbub.errors.printable import visible
from hubbub.fields.rules import Interval
from hubbub.mechanisms.probability import MIN_EPSILON
from hubbub.mechanisms.tree import PrefixTree
from hubbub.privacy.metric_draft import MEANS, MetricDraft
from hubbub.privacy.planner import (
    CONFIDENCE,
    Row,
    Target,
    epsilon_for,
    plan,
    ranked,
    ratio_error,
    reports_for,
    row,
)
from hubbub.programs.command_line import command
from hubbub.programs.options import Exclusive, Group, option, options
from hubbub.programs.unwritable import refuse_unwritable
from hubbub.query_results import percentile_name
from hubbub.simulation.totals_of_plan import check_rank_goal, rank_error, simulate

_BAR: Final = 20
_POINTS: Final = 25
# The minimum batch of a planned metric; a larger one shows effects a little sooner.
_FEWEST: Final = 100


def plot(question: MetricDraft, rows: Sequence[Row], path: Path) -> None:
    """Draws the smallest detectable share, or a mean's interval, against the number of reports.

    Raises:
        BadParameter: matplotlib is missing, another kind of file, or it cannot be written.
    """
    if path.suffix not in {".png", ".svg"}:
        raise BadParameter(f"--plot {path}: the name must end in .png or .svg")
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 an extra, and slow to load
    except ImportError as error:
        raise BadParameter(f"--plot needs matplotlib: {install_with('plots')}") from error
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    counts = [row.reports for row in rows if isfinite(row.reports)]
    low, high = min(counts, default=1e4) / 30, max(counts, default=1e6) * 30
    steps = [low * (high / low) ** (i / (_POINTS - 1)) for i in range(_POINTS)]
    for plan_row in rows:
        line = [
            row(question, plan_row.mechanism, plan_row.parameters, reports) for reports in steps
        ]
        shares = [min(each.detectable, 1.0) for each in line]
        (drawn,) = axes.plot(
            steps, shares, label=f"{plan_row.mechanism}, epsilon {plan_row.epsilon:.2f}"
        )
        if isfinite(plan_row.reports) and plan_row.detectable <= 1:
            axes.plot([plan_row.reports], [plan_row.detectable], "o", color=drawn.get_color())
    axes.set(xscale="log", yscale="log", xlabel="reports")
    mean = question.kind in MEANS
    axes.set_ylabel("half width of the 95% interval" if mean else "smallest share detected (95%)")
    axes.yaxis.set_major_formatter(lambda share, _place: f"{share:.2%}")
    axes.grid(visible=True, which="both", alpha=0.25)
    axes.legend(fontsize="small")
    with refuse_unwritable(f"--plot {path}", BadParameter):
        figure.savefig(path, dpi=150)


_EPILOG: Final = """
examples:
  hubbub plan --values 128 --epsilon 1 --reports 100000
  hubbub plan --values 128 --epsilon 1 --detect 0.01        how many reports do I need?
  hubbub plan --values 128 --reports 1e6 --error 0.001      which epsilon do I need?
  hubbub plan metrics.toml --metric theme --reports 50000 --simulate
  hubbub plan --ranges 64 0 60 --epsilon 1 --percentile 95 --within 0.02
  hubbub plan --values 2 --epsilon 1 --effect 0.05          how many reports of each arm?
  hubbub plan --values 3 --epsilon 1 --ratio 0.1 0.4 --error 0.025     a conversion of 25%
  hubbub plan --set 40 5 --epsilon 2 --reports 100000       sets of 5 of 40 values
  hubbub plan --parts 7 16 14 2 --epsilon 1 --reports 1e5   tables of every two answers
  hubbub plan --vector 16 1 --epsilon 2 --reports 1e5       the mean of 16 numbers
"""
_FIGURES: Final = Group("two of these three; the third is computed")
_GOAL: Final = Exclusive()


@options
class PlanOptions:
    subject: SubjectOptions
    reports: int | None = option("number of reports", metavar="N", group=_FIGURES)
    epsilon: float | None = option("privacy loss of one report, nats", group=_FIGURES)
    error: float | None = option(
        "standard error that you want, as a share of all reports; of a mean, as a share of the "
        "width of its range",
        metavar="SHARE",
        group=_FIGURES,
        exclusive=_GOAL,
    )
    detect: float | None = option(
        "smallest share that should be detected; of a mean, half the width of its 95%% interval",
        metavar="SHARE",
        group=_FIGURES,
        exclusive=_GOAL,
    )
    percentile: float | None = option(
        "for a number with parts: percentile whose error is shown",
        metavar="P",
        parse=read_percentile,
    )
    within: float | None = option(
        "half the width of its 95%% interval, in rank: 0.02 of p95 is from p93 to p97",
        metavar="SHARE",
        group=_FIGURES,
        exclusive=_GOAL,
        needs="percentile",
    )
    effect: float | None = option(
        "difference of two arms of an experiment that a look shows with a chance of 80%%, "
        "with intervals that hold at every look: a share; for a mean, as a share of the "
        "width of its range; with --percentile, in rank. --reports are those of one arm",
        metavar="SHARE",
        group=_FIGURES,
        exclusive=_GOAL,
    )
    ratio: tuple[float, float] | None = option(
        "for a conversion, a retention or a rate: shares of the reports in its numerator "
        "and denominator, such as 0.1 0.4 (with --vector, means as shares of LENGTH); "
        "--error is then the standard error of the ratio",
        metavar=("A", "B"),
    )
    apart: bool = option(
        "numerator and denominator come from two epochs, as for a retention; --reports are of each",
        needs="ratio",
    )
    whose: Whose = option(
        "what --error refers to: shares of the population, or shares of those who report "
        "(%(default)s)",
        default=POPULATION,
        needs="error",
    )
    permanent_epsilon: float | None = option(
        "privacy loss of a lifetime, for values that are reported repeatedly"
    )
    simulate: bool = option(
        "draw totals with the first mechanism and show true shares beside estimated shares"
    )
    seed: int = option(
        "seed of --simulate (%(default)s)", default=1, within=Interval(0), needs="simulate"
    )
    plot: Path | None = option("draw to FILE (.png or .svg)", metavar="FILE")
    format: Literal["table", "json"] = option("format of the output (%(default)s)", default="table")


@command("plan", epilog=_EPILOG)
def _plan(options: PlanOptions) -> None:
    question, metric = draft_of(options.subject)
    if options.permanent_epsilon is not None:
        if metric is not None or question.kind not in {"values", "strings"}:
            raise BadParameter("--permanent-epsilon goes with --values and --strings: leave it out")
        question = replace(question, permanent_epsilon=options.permanent_epsilon)
    _check_percentile(options, question, metric)
    rows = _rows(options, question, metric)
    own = None
    if metric is not None and options.reports is not None:
        own = row(question, metric.mechanism, metric.arguments, options.reports)
    errors = rank_errors(question, [*rows, *([own] if own else [])], options.percentile)
    drawing = simulate(question, own or rows[0], options.seed) if options.simulate else None
    if options.format == "json":
        document = _document(question, rows, own, metric)
        by_name = {item.mechanism: error for item, error in zip(rows, errors, strict=False)}
        by_name = {name: error for name, error in by_name.items() if isfinite(error)}
        document |= {"rank_errors": by_name} if by_name else {}
        if options.ratio is not None:
            document["ratio_error"] = _target(options, question, metric)(rows[0])
        say_json(document | ({"simulated": drawing} if drawing else {}))
    else:
        ranks = (percentile_name(options.percentile), errors) if options.percentile else None
        show(question, rows, own, metric, ranks=ranks)
        if options.effect is not None:
            say(
                "reports: for each arm, from people who report once; further metrics and "
                "arms of an experiment widen the intervals of all"
            )
        if options.ratio is not None:
            say(
                f"the ratio {options.ratio[0]:g} / {options.ratio[1]:g} by {rows[0].mechanism}: "
                f"standard error {_target(options, question, metric)(rows[0]):.3%}"
            )
        if drawing:
            show_simulated(drawing)
    if options.plot:
        plot(question, [*rows, *([own] if own else [])], options.plot)
        print(visible(f"drawn to {options.plot}"), file=sys.stderr)  # noqa: T201 beside the answer


def _document(
    question: MetricDraft, rows: list[Row], own: Row | None, metric: Metric | None
) -> dict[str, Any]:
    document: dict[str, Any] = {
        "question": asdict(question),
        "recommended": rows[0].mechanism,
        "rows": [row_json(plan_row) for plan_row in rows],
        "metric": None if own is None else row_json(own),
    }
    if metric is not None:
        document["people_a_report"] = people_a_report(metric)
    if question.kind == "strings":
        document["found_unlisted"] = found_unlisted(rows[0])
    return document


def _rows(options: PlanOptions, question: MetricDraft, metric: Metric | None) -> list[Row]:
    """The recommended mechanism and others, each with the figure that was not given."""
    goals = (options.error, options.detect, options.within, options.effect)
    goal = next((share for share in goals if share is not None), None)
    reports, epsilon, target = options.reports, options.epsilon, _target(options, question, metric)
    if metric is not None and epsilon is None and (goal is None or reports is None):
        epsilon = metric.epsilon
    if reports is not None and epsilon is not None and goal is None:
        rows = plan(question, epsilon, reports)
        own = options.percentile is not None or options.ratio is not None
        return ranked(rows, lambda row: target(row) ** 2) if own else rows
    if reports is None and epsilon is not None and goal is not None:
        needed = [
            reports_for(question, name, parameters, target, goal)
            for name, parameters in question.suitable(epsilon).items()
        ]
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
    tried = [
        epsilon_for(question, name, reports, target, goal)
        for name in question.suitable(MIN_EPSILON)
    ]
    rows = [item for item in tried if item is not None]
    if not rows:
        raise BadParameter(
            f"{reports:,} reports are too few for this goal at any epsilon up to 16; "
            "accept a larger error, or gather more reports"
        )
    return ranked(rows, lambda item: item.epsilon)


def _check_percentile(options: PlanOptions, question: MetricDraft, metric: Metric | None) -> None:
    """Raises BadParameter for a percentile of a question without parts of a range."""
    numeric = question.kind == "ranges" or (metric is not None and metric.edges)
    other_goal = options.detect or options.within or options.effect or options.percentile
    if options.ratio is not None and other_goal:
        raise BadParameter("--ratio needs --error, its standard error: leave other goals out")
    if options.percentile is None:
        if numeric and options.effect is not None:
            raise BadParameter("--effect for a number with parts needs a --percentile: add one")
        return
    if not numeric:
        raise BadParameter(
            "--percentile goes with --ranges, or with --metric of a number with edges or of wave"
        )
    check_rank_goal(options.percentile, options.within or options.effect)


def rank_errors(
    question: MetricDraft, rows: Sequence[Row], percentile: float | None
) -> list[float]:
    """The error in rank of a percentile, by row; infinite if no number of reports suffices."""
    if percentile is None:
        return []
    return [
        rank_error(question, item.mechanism, item.parameters, item.reports, percentile)
        if isfinite(item.reports)
        else inf
        for item in rows
    ]


def _target(options: PlanOptions, question: MetricDraft, metric: Metric | None) -> Target:
    """The figure of a row that must reach the goal."""

    def off_in_rank(row: Row) -> float:
        percentile = options.percentile or 0.0
        return rank_error(question, row.mechanism, row.parameters, row.reports, percentile)

    if options.effect is not None:
        count, fewest = _effects_of(options, question, metric), metric.fewest if metric else _FEWEST

        def shows(row: Row) -> float:
            stderr = row.population
            if options.percentile is not None:
                stderr = off_in_rank(row) / reach_of(CONFIDENCE)
            return detectable_effect(stderr, count, row.reports, fewest)

        return shows
    if options.percentile is not None:
        return off_in_rank
    if options.ratio is not None:
        ratio = options.ratio
        is_apart = options.apart or (
            metric is not None and isinstance(metric.value_kind, Retention)
        )
        return lambda row: ratio_error(question, row, ratio, is_apart=is_apart)
    if options.error is None:
        return lambda row: row.detectable
    return (lambda row: row.stderr) if options.whose == REPORTERS else (lambda row: row.population)


def _effects_of(options: PlanOptions, question: MetricDraft, metric: Metric | None) -> int:
    """The number of a metric's effects in an experiment that share one confidence level."""
    arms = len(metric.experiment.arms) if metric and metric.experiment else 2
    measures = question.size if question.size > 2 else 1  # noqa: PLR2004 as of a boolean
    if options.percentile is not None:
        measures = len(EFFECT_PERCENTILES)
    return measures * (arms - 1)


def row_json(row: Row) -> dict[str, Any]:
    """A row as JSON, with None for missing and infinite figures."""
    fields = asdict(row)
    return {
        name: None if isinstance(cell, float) and not isfinite(cell) else cell
        for name, cell in fields.items()
    }


def found_unlisted(row: Row) -> float | None:
    """The share from which a prefix tree finds a string in as many reports; None if never."""
    if not isfinite(row.reports):
        return None
    share = found_from(PrefixTree(epsilon=row.epsilon), row.reports)
    return share if share < 1 else None


def people_a_report(metric: Metric) -> float:
    """The number of people per report of an epoch, for metrics that ask them in turn."""
    days = len(days_of_period(metric.period, 0)) if metric.report_on else 1
    return days / counting(metric)


def _domain_text(question: MetricDraft) -> str:
    return {
        "values": f"{question.size:,} listed values",
        "strings": f"any string, with {question.size:,} candidates",
        "mean": f"the mean of a number in [{question.low:g}, {question.high:g}]",
        "ranges": f"{question.size:,} parts of [{question.low:g}, {question.high:g}]",
        "vector": f"the mean of {question.size:,} numbers, a vector up to {question.high:g} long",
        "sets": f"sets of {question.size:,} listed values, {question.most:,} of them reported",
        "parts": f"{len(question.parts)} parts, {question.size:,} cells of "
        f"{question.ways} parts in all",
    }[question.kind]


def show(
    question: MetricDraft,
    rows: list[Row],
    own: Row | None,
    metric: Metric | None,
    *,
    ranks: tuple[str, list[float]] | None = None,
) -> None:
    """Shows the rows as a table, the catalog's own last, and explains its columns.

    `ranks` is a percentile's name, and its error in rank by row.
    """
    lines = [*rows, *([replace(own, mechanism=f"{own.mechanism} *")] if own else [])]
    worst = max(line.stderr for line in lines)
    mean = question.kind in MEANS
    percentile, errors = ranks or ("", [])
    header = ["mechanism", "reports", "epsilon"]
    header += [f"{percentile} in rank"] if ranks else []
    header += ["for life", "std. error", "of population"]
    header += ["95% interval" if mean else "detects", "bytes", "cells"]
    table(
        _domain_text(question) if not metric else f"{metric.name}: {_domain_text(question)}",
        [*header, ""] if sys.stdout.isatty() else header,
        [
            (
                row.mechanism,
                "never" if row.reports == float("inf") else f"{row.reports:,.0f}",
                f"{row.epsilon:.3f}",
                *([f"+-{errors[place]:.2%}" if isfinite(errors[place]) else "no"] if ranks else []),
                "" if row.permanent_epsilon is None else f"{row.permanent_epsilon:.3f}",
                f"{row.stderr:.3%}",
                f"{row.population:.3%}",
                f"{'+-' if mean else ''}{row.detectable:.3%}" if isfinite(row.detectable) else "no",
                f"{row.payload_bytes:,}",
                f"{row.cells:,}",
                *(["█" * max(1, round(_BAR * row.stderr / worst))] if sys.stdout.isatty() else []),
            )
            for place, row in enumerate(lines)
        ],
    )
    say(
        f"recommended: {rows[0].mechanism}, the shortest payload within 5% of the least "
        f"{'squared error in rank' if ranks else 'variance'}, reports or epsilon"
    )
    if ranks:
        say(
            f"{percentile} in rank: half the width of its 95% interval; +-2% of p95 is from p93 to "
            "p97"
        )
    _say_columns(question, rows[0])
    if own:
        say("*: as the catalog has it")
    if metric:
        _say_people(metric)


def _say_columns(question: MetricDraft, best: Row) -> None:
    """Explains the columns of errors, and for strings what is found without a list."""
    mean = question.kind in MEANS
    wide = f", {2 * question.high:g} wide" if question.kind == "vector" else ""
    unit = f"of the range{wide}" if mean else "of all reports"
    say(f"std. error: of one estimate, as a share {unit}")
    say("of population: includes the choice of who reports from the population")
    if mean:
        say(f"95% interval: of the population's mean, as a share {unit}")
    else:
        say(
            "detects: the smallest share that stands out from zero with a chance of 95%, at "
            "5% corrected for the number of values"
        )
    say("for life: privacy loss of all reports of one unchanged value, where it is bounded")
    if question.kind == "strings" and (share := found_unlisted(best)) is not None:
        say(
            f"unlisted strings: {PrefixTree.NAME} finds a string that {share:.3%} of "
            f"{best.reports:,.0f} reports at epsilon {best.epsilon:.3g} hold, 95 times in "
            "100; docs/discover.md"
        )


def _say_people(metric: Metric) -> None:
    """Says how many people are needed if only some are asked in each epoch."""
    if (of := people_a_report(metric)) != 1:
        say(
            f"reports: of one {metric.epoch}, from {of:,.4g} times as many people, since each "
            + ("reports on one day of a period" if metric.report_on else "is asked by chance")
        )


def show_simulated(drawing: dict[str, Any]) -> None:
    """Shows a simulated collection: true beside estimated, the most frequent first."""
    listing(
        f"one drawing of {several(drawing['reports'], 'report')} by {drawing['mechanism']}, "
        f"seed {drawing['seed']}: "
        f"root mean square error {drawing['rms']:.3%}, predicted {drawing['predicted']:.3%}",
        drawing["values"][:20],
        {
            "value": "{value}",
            "true": "{true:.3%}",
            "estimated": "{estimated:.3%}",
            "std. error": "{stderr:.3%}",
            "off by": lambda row: f"{(row['estimated'] - row['true']) / row['stderr']:+.1f} s.e.",
        },
    )
