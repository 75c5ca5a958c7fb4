"""`hubbub simulate`: a metric rehearsed before its launch, on a file of values that are known.

Of a file with a column `day` it shows each day's truth beside its answer.
"""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from math import inf
from typing import Any, Final

from hubbub.bundles import Bundle
from hubbub.catalog import Metric, days_of_period
from hubbub.catalog.discovery import counting
from hubbub.cli.commands.simulate_model import FEWER_RUNS, RUNS, SimulateOptions, simulate_model
from hubbub.cli.terminal.catalog_reading import chosen_metrics
from hubbub.cli.terminal.output import say, table
from hubbub.cli.terminal.percentile_and_candidate_options import read_candidates
from hubbub.cli.terminal.progress import tracked
from hubbub.errors import BadParameter, BatchTooSmall
from hubbub.errors.message_words import at_most, several
from hubbub.fields.rules import metric_name_of
from hubbub.programs.command_line import command
from hubbub.programs.text_files import csv_rows, first_row_and_rest, read_text
from hubbub.query_results.answer_table import error_of, number_text, percentile_name
from hubbub.simulation.days_rehearsal import (
    DayRun,
    DaySeries,
    DaySummary,
    rehearse_days,
    summary_of_days,
)
from hubbub.simulation.model_and_people_files import read_model
from hubbub.simulation.people_file import Rows, has_days, read_days, read_truth
from hubbub.simulation.rehearsal import Plan, Run, central_of_plan, rehearse
from hubbub.simulation.rehearsal_summary import Summary, summary_of
from hubbub.simulation.truth import above_most

_ROWS: Final = 20
_SERIES: Final = 5
_DAY_ROWS: Final = 40


@command(
    "simulate",
    description="Draws the reports of people with known values, estimates as the aggregator "
    "does, and compares the answers with the truth. Everyone reports at the "
    "epsilon of the metric. Nothing is sent and nothing is stored.",
)
def _simulate(options: SimulateOptions) -> None:
    text = None  # a file that cannot be read is refused by the catalog's reader
    with suppress(ValueError):
        text = read_text(options.catalog)
    if planned := read_model(options.catalog, text, options.metric):
        simulate_model(options, planned)
        return
    if options.test:
        raise BadParameter("--test is only for a model, and this is a metric; leave it out")
    started = time.monotonic()
    # The bundle that would be built of a catalog, as far as one of its metrics needs it.
    catalog = options.last.read(options.catalog, text)
    [chosen_metric] = chosen_metrics(catalog, options.catalog, [metric_name_of(options.metric)])
    metrics, shuffler = {chosen_metric.name: chosen_metric}, catalog.shuffler
    bundle = Bundle(metrics=metrics, keys=(), shuffler=shuffler, roots=None, history={})
    metric = bundle.metric(options.metric)
    head, rows = first_row_and_rest(csv_rows(options.values, "--values"))
    if has_days(head, metric):
        _simulate_days(options, bundle, rows)
        return
    plan = Plan(
        bundle=bundle,
        metric=metric,
        truth=read_truth(options.values, rows, metric),
        epochs=options.epochs,
        reports=options.reports,
        confidence=options.confidence,
        candidates=tuple(read_candidates(options.candidates)) if options.candidates else (),
        percentiles=options.ranks.percentiles,
    )
    runs, number = list[Run](), options.runs or RUNS

    def rehearsed() -> Iterator[Run]:
        for run in tracked(rehearse(plan, number, options.seed), number, "rehearsing", FEWER_RUNS):
            if not options.json and run.answered:
                runs.clear()  # the last one that was answered is shown
            runs.append(run)
            yield run

    summary = summary_of(rehearsed())
    if summary.refused == number:
        max_reports = max(run.reports for run in runs)
        if metric.crowd:
            raise BatchTooSmall(
                f'metric "{metric.name}": no epoch of any run has a crowd of {metric.fewest:,}, so '
                "all are withheld; draw more people (--reports), or lower crowd, which makes the "
                "local epsilon smaller"
            )
        raise BatchTooSmall(
            f'metric "{metric.name}": the largest run has {max_reports:,} reports, below the '
            f"minimum batch of {metric.min_batch:,}; draw more people (--reports), more --epochs, "
            "or lower min_batch"
        )
    seconds = time.monotonic() - started
    if options.json:
        document = _document(plan, runs, summary) | {"seed": options.seed, "seconds": seconds}
        say(json.dumps(document, ensure_ascii=False))
    else:
        _show(plan, next(run for run in runs if run.answered), summary)
        say(f"{several(number, 'run')} in {seconds:.1f} s")


def _document(plan: Plan, runs: Sequence[Run], summary: Summary) -> dict[str, Any]:
    return {
        "metric": plan.metric.name,
        "mechanism": plan.metric.mechanism,
        "epsilon": plan.metric.report_loss,
        "people": plan.reports or plan.truth.people,
        "people_above_most": plan.above_most,
        "epochs": plan.epochs,
        "central": asdict(central) if (central := central_of_plan(plan)) else None,
        "confidence": plan.confidence,
        "summary": asdict(summary),
        "runs": [asdict(run) for run in runs],
    }


def _show(plan: Plan, last_run: Run, summary: Summary) -> None:
    metric = plan.metric
    mean = bool(last_run.values) and last_run.values[0].detected is None
    digits = ",.5g" if mean else ",.0f"
    rows = sorted(last_run.values, key=lambda row: -row.estimate)
    _say_percentiles(metric, last_run, summary)
    heads = "value", "true", "estimate", f"{100 * plan.confidence:g}% interval"
    table(
        f"{metric.name}: {several(last_run.reports, 'report')} by {metric.mechanism}, "
        f"epsilon {at_most(metric.report_loss, '.3f')} per report; the last run",
        (*heads, "" if mean else "detected", ""),
        [
            (
                f"{row.value}…" if row.beginning else row.value,
                f"{row.true:{digits}}",
                f"{row.estimate:{digits}}",
                f"{row.low:{digits}} to {row.high:{digits}}",
                "yes" if row.detected else "",
                miss_text(row.true, row.low, row.high, digits),
            )
            for row in rows[:_ROWS]
        ],
    )
    if len(rows) > _ROWS:
        say(f"and {len(rows) - _ROWS:,} more: --json shows them all")
    _show_crowds(plan, summary)
    if metric.report_on:
        days = len(days_of_period(metric.period, 0))
        say(f"each person reports on one of {days} days, of which {plan.epochs:,} are rehearsed")
    if (share := counting(metric)) < 1:
        people = plan.reports or plan.truth.people
        say(f"of {people:,} people {share:.1%} report in an epoch")
    if summary.refused:
        say(
            f"{several(summary.refused, 'run')} without an answer: fewer reports than the minimum "
            f"batch of {metric.min_batch:,}"
        )
    _say_recall(last_run, summary)
    _say_further_results(plan, last_run, summary, digits=",.5g" if mean else ".2%")
    _say_figures(last_run, summary)
    if mean:
        say(f"intervals that contain the truth: {_percent(summary.coverage)}")
    else:
        say(
            f"intervals that contain the truth: {_percent(summary.coverage)} of all, "
            f"{_percent(summary.coverage_shown)} of those that a top list shows"
        )
        say(
            f"detected although nobody holds it: {summary.false_flags:.2g} values a run, "
            f"{summary.false_share:.1%} of all detected"
        )
    unit = "" if mean else " reports"
    say(f"error of an estimate (root of the mean square): {summary.rms_error:,.4g}{unit}")


def _say_recall(last_run: Run, summary: Summary) -> None:
    """Says how many of the frequent strings were found, completely or in part."""
    if summary.recall is not None:
        begun = summary.recall_begun
        text = f"strings found, of those detectable 95 times in 100: {_percent(summary.recall)}"
        if begun != summary.recall:
            text += f" whole, {_percent(begun)} by its beginning at least"
        say(text)
    if any(row.beginning for row in last_run.values):
        say(
            "strings that end in … are only known by their beginning: raise `bits`, or list their "
            "beginnings in `beginnings`"
        )


def _say_percentiles(metric: Metric, last_run: Run, summary: Summary) -> None:
    """Shows percentiles with the buckets that contain the true ones."""
    if not last_run.percentiles:
        return
    table(
        f"percentiles{metric.unit and f' in {metric.unit}'}",
        ("", "true bucket", "estimate", "interval", ""),
        [
            (
                percentile_name(row.percentile),
                _interval(row.true_low, row.true_high),
                number_text(row.estimate, error_of(row.low, row.high)),
                _interval(row.low, row.high),
                miss_text(
                    row.true_low if row.true_low < row.low else row.true_high,
                    row.low,
                    row.high,
                    ",.5g",
                ),
            )
            for row in last_run.percentiles
        ],
    )
    say(f"intervals that contain the true percentile: {_percent(summary.coverage_percentiles)}")


def _interval(low: float, high: float) -> str:
    return f"{number_text(low, end='low')} to {number_text(high, end='high')}"


def _say_figures(last_run: Run, summary: Summary) -> None:
    if not last_run.figures:
        return
    table(
        "figures",
        ("", "", "true", "estimate", "interval", ""),
        [
            (
                f"{row.by}={row.part}" if row.by else "",
                row.figure,
                f"{row.true:,.4g}",
                "" if row.estimate is None else f"{row.estimate:,.4g}",
                f"{row.low:,.4g} " + ("up" if row.high is None else f"to {row.high:,.4g}"),
                miss_text(row.true, row.low, inf if row.high is None else row.high, ",.4g"),
            )
            for row in last_run.figures[:_ROWS]
        ],
    )
    say(f"intervals that contain the true figure: {_percent(summary.coverage_figures)}")


def _say_further_results(plan: Plan, last_run: Run, summary: Summary, *, digits: str) -> None:
    """Says how associations, public fields and too large sets came out."""
    _say_above_most(plan.metric, plan.truth.codes, plan.truth.counts)
    for association in last_run.associations:
        value_text = "unknown" if association.cramers_v is None else f"{association.cramers_v:.3f}"
        say(
            f"Cramer's V of {association.rows} and {association.columns}: true "
            f"{association.true:.3f}, estimated {value_text}, {association.low:.3f} to "
            f"{association.high:.3f}"
        )
    if last_run.associations:
        say(f"intervals that contain the true V: {_percent(summary.coverage_associations)}")
    if last_run.public:
        table(
            "differences by public field",
            ("", "value", "true", "estimate", "interval", ""),
            [
                (
                    f"{row.by}={row.part}",
                    row.value,
                    f"{row.true:{digits}}",
                    f"{row.share:{digits}}",
                    f"{row.low:{digits}} to {row.high:{digits}}",
                    miss_text(row.true, row.low, row.high, digits),
                )
                for row in last_run.public[:_ROWS]
            ],
        )
        if len(last_run.public) > _ROWS:
            say(f"and {len(last_run.public) - _ROWS:,} more: --json has them all")
        say(f"intervals that contain a public value's share: {_percent(summary.coverage_public)}")
    for effect in last_run.effects:
        say(f"{effect.measure}: {effect.verdict}")
    if summary.effects_shown is not None:
        say(f"runs that show an effect: {_percent(summary.effects_shown)}")


def _show_crowds(plan: Plan, summary: Summary) -> None:
    """Shows the central epsilon of the epochs, and how many did not leave."""
    metric = plan.metric
    if guarantee := central_of_plan(plan):
        together = at_most(guarantee.all_epochs, ".4g")
        say(
            f"to an observer of shuffled epochs: epsilon {at_most(guarantee.epoch, '.4g')} at "
            f"delta {guarantee.delta:g} of one person in one of {guarantee.crowd:,} reports, "
            f"{guarantee.honest:.0%} of them honest"
            + (f"; {together} in all {plan.epochs:,}" if plan.epochs > 1 else "")
        )
    if summary.withheld:
        say(
            f"{several(summary.withheld, 'epoch')} withheld: fewer reports than the crowd of "
            f"{metric.fewest:,}"
        )


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{share:.1%}"


def _simulate_days(options: SimulateOptions, bundle: Bundle, rows: Rows) -> None:
    for name, value in (
        ("epochs", options.epochs != 1),
        ("reports", options.reports),
        ("candidates", options.candidates),
        ("percentile", options.ranks.percentiles),
    ):
        if value:
            raise BadParameter(f"--{name} is only for files without a column day; leave it out")
    metric = bundle.metric(options.metric)
    days = read_days(options.values, rows, metric)
    started = time.monotonic()
    number = options.runs or RUNS
    confidence, seed = options.confidence, options.seed
    rehearsal = rehearse_days(bundle, metric, days, confidence, runs=number, seed=seed)
    runs = list(tracked(rehearsal, number, "rehearsing", FEWER_RUNS))
    summary, seconds = summary_of_days(runs), time.monotonic() - started
    if summary.refused == len(runs):
        max_reports = max(run.reports for run in runs)
        raise BatchTooSmall(
            f'metric "{metric.name}": no day of any run reaches the minimum batch of '
            f"{metric.fewest:,}; {several(len(days.days), 'day')} together: at most "
            f"{several(max_reports, 'report')}; give more people, or lower min_batch"
        )
    counts = days.all_counts.sum(axis=0).tolist()  # a person once a day
    if options.json:
        document = {
            "metric": metric.name,
            "mechanism": metric.mechanism,
            "epsilon": metric.report_loss,
            "period": metric.period or None,
            "days": len(days.days),
            "people_above_most": above_most(metric, days.codes, counts),
            "confidence": options.confidence,
            "seed": options.seed,
            "seconds": seconds,
            "summary": asdict(summary),
            "runs": [asdict(run) for run in runs],
        }
        say(json.dumps(document, ensure_ascii=False))
        return
    last_run = [run for run in runs if run.answered][-1]
    for series in last_run.series[:_SERIES]:
        _show_day(metric, series)
    if len(last_run.series) > _SERIES:
        say(f"and {len(last_run.series) - _SERIES:,} more values: --json has them all")
    _say_above_most(metric, days.codes, counts)
    _say_day_summary(metric, last_run, summary)
    say(f"{several(number, 'run')} in {seconds:.1f} s")


def _say_above_most(metric: Metric, codes: Sequence[Any], counts: Sequence[int]) -> None:
    """Says which share of the people holds too large sets, if any."""
    if above := above_most(metric, codes, counts):
        largest = max(code.bit_count() for code in codes)
        say(
            f"{above / sum(counts):.1%} of the people hold more than "
            f"most = {metric.parameters['most']}, so estimates are low and intervals miss: "
            f"raise most, to {largest} at most"
        )


def miss_text(true: float, low: float, high: float, digits: str) -> str:
    """A mark if an interval misses the truth, and by how much if these digits do not show it."""
    if low <= true <= high:
        return ""
    end = low if true < low else high
    if f"{end:{digits}}" != f"{true:{digits}}":
        return "misses"
    return f"misses by {abs(true - end):.1g}"


def _show_day(metric: Metric, series: DaySeries) -> None:
    """Shows the newest days of a value in the last run."""
    digits = ".2%" if metric.values is not None else ",.5g"
    table(
        f"{metric.name}: {series.value}; the last run",
        ("day", "true", "reports", "estimate", "interval", "line", "band", ""),
        [
            (
                row.date,
                f"{row.true:{digits}}",
                f"{row.reports:,}",
                f"{row.share:{digits}}",
                f"{row.low:{digits}} to {row.high:{digits}}",
                "" if row.line is None else f"{row.line:{digits}}",
                "" if row.line is None else f"{row.line_low:{digits}} to {row.line_high:{digits}}",
                miss_text(row.true, row.low, row.high, digits),
            )
            for row in series.rows[-_DAY_ROWS:]
        ],
    )
    for step in series.shifts:
        say(
            f"a step of {step.difference:+{digits}}, {step.low:+{digits}} to "
            f"{step.high:+{digits}}, on {step.date}"
        )


def _say_day_summary(metric: Metric, last_run: DayRun, summary: DaySummary) -> None:
    if metric.report_on and last_run.missed:
        say(f"{last_run.missed:,} times a person was absent on the one day of their period")
    if last_run.below:
        say(
            f"{last_run.below:,} days have no answer: fewer reports than min_batch, "
            f"{metric.fewest:,}"
        )
    digits = ".4%" if metric.values is not None else ",.5g"
    for kind, hold, error in (
        ("estimates of a day", summary.coverage, summary.rms_error),
        ("lines", summary.line_coverage, summary.line_rms_error),
    ):
        if hold is not None and error is not None:
            say(
                f"{kind}: off by {error:{digits}} (root of the mean square), intervals contain the "
                f"truth {hold:.1%} of the time"
            )
    say(f"steps found: {summary.steps:.3g} a run")
