"""`hubbub simulate` of a file with a column `day`: each day's truth beside its answer."""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from hubbub.bundles import Bundle
from hubbub.catalog import Metric
from hubbub.cli.commands.simulate_options import FEWER_RUNS, RUNS, SimulateOptions
from hubbub.cli.terminal.output import say, table
from hubbub.cli.terminal.progress import tracked
from hubbub.errors import BadParameter, BatchTooSmall
from hubbub.errors.grammar import several
from hubbub.simulation.days_rehearsal import (
    DayRun,
    DaySeries,
    DaySummary,
    rehearse_days,
    summary_of,
)
from hubbub.simulation.people_file import Rows, read_days
from hubbub.simulation.truth import above_most

_SERIES: Final = 5
_ROWS: Final = 40


def simulate_days(options: SimulateOptions, bundle: Bundle, rows: Rows) -> None:
    """Rehearses every day of a file, and shows each day's truth beside its answer."""
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
    summary, seconds = summary_of(runs), time.monotonic() - started
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
        _show(metric, series)
    if len(last_run.series) > _SERIES:
        say(f"and {len(last_run.series) - _SERIES:,} more values: --json has them all")
    say_above_most(metric, days.codes, counts)
    _say_summary(metric, last_run, summary)
    say(f"{several(number, 'run')} in {seconds:.1f} s")


def say_above_most(metric: Metric, codes: Sequence[Any], counts: Sequence[int]) -> None:
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


def _show(metric: Metric, series: DaySeries) -> None:
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
            for row in series.rows[-_ROWS:]
        ],
    )
    for step in series.shifts:
        say(
            f"a step of {step.difference:+{digits}}, {step.low:+{digits}} to "
            f"{step.high:+{digits}}, on {step.date}"
        )


def _say_summary(metric: Metric, last_run: DayRun, summary: DaySummary) -> None:
    """Summarises all runs."""
    if metric.report_on and last_run.missed:
        say(f"{last_run.missed:,} times a person was absent on the one day of their period")
    if last_run.below:
        say(
            f"{last_run.below:,} days have no answer: fewer reports than min_batch, "
            f"{metric.fewest:,}"
        )
    digits = ".4%" if metric.values is not None else ",.5g"
    for what, hold, error in (
        ("estimates of a day", summary.coverage, summary.rms_error),
        ("lines", summary.line_coverage, summary.line_rms_error),
    ):
        if hold is not None and error is not None:
            say(
                f"{what}: off by {error:{digits}} (root of the mean square), intervals contain the "
                f"truth {hold:.1%} of the time"
            )
    say(f"steps found: {summary.steps:.3g} a run")
