"""`hubbub simulate`: a metric rehearsed before its launch, on a file of values that are known."""

import argparse
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, TypeVar

from hubbub.catalog import Bundle, days_of_period, metric_name_of
from hubbub.catalog.discovery import counting
from hubbub.cli.commands.simulate_days import say_above_most, simulate_days
from hubbub.cli.commands.simulate_model import simulate_model
from hubbub.cli.terminal.candidate_file import read_candidates
from hubbub.cli.terminal.catalog_reading import read_aloud
from hubbub.cli.terminal.output import say, several, table
from hubbub.cli.terminal.progress import progress
from hubbub.errors import BadParameter, BatchTooSmall, UnknownMetric
from hubbub.simulation.days_file import has_days
from hubbub.simulation.model_file import read_model
from hubbub.simulation.people_file import read_truth
from hubbub.simulation.rehearsal import Plan, Run, central_of_plan, rehearse
from hubbub.simulation.tally import Summary, Tally

Made = TypeVar("Made")

_RUNS: Final = 200
_MAX_RUNS: Final = 100_000
_MAX_EPOCHS: Final = 1000
_MAX_REPORTS: Final = 10**12
_ROWS: Final = 20
_EPILOG: Final = """
examples:
  hubbub simulate theme --values people.csv             one value a line, or value,count
  hubbub simulate theme --values people.csv --reports 50000 --epochs 7 --seed 1
  hubbub simulate theme --values days.csv --runs 20     lines of person,day,value: days and lines
  hubbub simulate plugins --values sets.csv             a set: git|vim,1200 (and ,300 of nothing)
  hubbub simulate profile --values people.csv           a head of parts: theme,country,count
  hubbub simulate crashed --values people.csv           told apart: a head of value,os,count
  hubbub simulate churn --values train.csv --test test.csv     a model: a column a feature
"""


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `simulate` to the command line."""
    parser = commands.add_parser(
        "simulate",
        description="Draws the reports of people whose values are known, answers as every face "
        "does, and sets the answers beside the truth. All report at the metric's own epsilon. "
        "Nothing is sent and nothing is kept.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=_EPILOG,
    )
    parser.add_argument("metric", help="its name in the catalog, or that of a model")
    parser.add_argument(
        "--catalog", type=Path, default=Path("metrics.toml"), help="the catalog (%(default)s)"
    )
    parser.add_argument(
        "--values",
        type=Path,
        required=True,
        metavar="FILE",
        help="CSV, plain or .gz: a person's value a line, or value,count; of a set its values with "
        "| between them; of parts, of public fields, and of a vector's coordinates, a column each "
        "under a head of their names; with a column day beside them, and person or count, days; of "
        "a model, a column a feature and one the label",
    )
    parser.add_argument(
        "--test", type=Path, metavar="FILE", help="of a model: people held out, to judge it by"
    )
    parser.add_argument(
        "--reports", type=int, metavar="N", help="draw N people as from a population like the file"
    )
    parser.add_argument(
        "--epochs", type=int, default=1, help="in which the same people report (%(default)s)"
    )
    parser.add_argument(
        "--runs", type=int, help=f"how often it is repeated ({_RUNS}; a model 5 times)"
    )
    parser.add_argument("--seed", type=int, help="of the coins; without it the system's")
    parser.add_argument(
        "--candidates", type=Path, help="file of strings to look for beside those of --values"
    )
    parser.add_argument(
        "--confidence", type=float, default=0.95, help="of the intervals (%(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="every run, whole")
    parser.set_defaults(run=_simulate)


def _simulate(arguments: argparse.Namespace) -> int:
    for option, most in (
        ("runs", _MAX_RUNS),
        ("epochs", _MAX_EPOCHS),
        ("reports", _MAX_REPORTS),
    ):
        number = getattr(arguments, option)
        if number is not None and not 1 <= number <= most:
            raise BadParameter(f"--{option} {number} is outside [1, {most}]")
    if arguments.seed is not None and arguments.seed < 0:
        raise BadParameter(f"--seed {arguments.seed} is below 0")
    if planned := read_model(arguments.catalog, arguments.metric):
        return simulate_model(arguments, planned, _watched)
    if arguments.test:
        raise BadParameter("--test is of a model, and this is a metric; leave it out")
    if arguments.runs is None:
        arguments.runs = _RUNS
    return _simulate_metric(arguments)


def _simulate_metric(arguments: argparse.Namespace) -> int:
    started = time.monotonic()
    bundle = _bundle(arguments.catalog, arguments.metric)
    if has_days(arguments.values, bundle.metric(arguments.metric)):
        return simulate_days(arguments, bundle, _watched)
    plan = Plan(
        bundle,
        metric := bundle.metric(arguments.metric),
        read_truth(arguments.values, metric),
        arguments.epochs,
        arguments.reports,
        arguments.confidence,
        tuple(read_candidates(arguments.candidates)) if arguments.candidates else (),
    )
    tally = Tally()
    runs: list[Run] = []
    for run in _watched(rehearse(plan, arguments.runs, arguments.seed), arguments.runs):
        tally.add(run)
        if not arguments.json and run.answered:
            runs.clear()  # the last one that was answered is shown
        runs.append(run)
    if tally.refused == arguments.runs:
        most = max(run.reports for run in runs)
        if metric.crowd:
            raise BatchTooSmall(
                f'metric "{metric.name}": no epoch of any run has a crowd of {metric.crowd:,}, so '
                "all are withheld; draw more people (--reports), or lower crowd, which makes the "
                "local epsilon smaller"
            )
        raise BatchTooSmall(
            f'metric "{metric.name}": no run has more reports than {most:,}, '
            f"below its minimum batch of {metric.min_batch:,}; draw more people (--reports), more "
            "--epochs, or lower min_batch"
        )
    found = tally.summary()
    seconds = time.monotonic() - started
    if arguments.json:
        say(json.dumps(_document(plan, arguments, runs, found, seconds), ensure_ascii=False))
    else:
        _show(plan, next(run for run in runs if run.answered), found)
        say(f"{several(arguments.runs, 'run')} in {seconds:.1f} s")
    return 0


def _bundle(path: Path, name: str) -> Bundle:
    """What would be built of a catalog, as far as one of its metrics is asked about."""
    catalog = read_aloud(path)
    whole = metric_name_of(name)
    if whole not in catalog.metrics:
        raise UnknownMetric(
            f'metric "{name[:60]}" is not in {path}; it has {", ".join(sorted(catalog.metrics))}'
        )
    return Bundle({whole: catalog.metrics[whole]}, (), catalog.shuffler, None, {})


def _watched(runs: Iterable[Made], total: int) -> Iterator[Made]:
    with progress() as bars:
        bar = bars.add_task("rehearsing", total=total)
        for run in runs:
            bars.advance(bar)
            yield run


def _document(
    plan: Plan, arguments: argparse.Namespace, runs: Sequence[Run], found: Summary, seconds: float
) -> dict[str, Any]:
    return {
        "metric": plan.metric.name,
        "mechanism": plan.metric.mechanism,
        "epsilon": plan.metric.report_loss,
        "people": plan.reports or plan.truth.people,
        "people_above_most": plan.above_most,
        "epochs": plan.epochs,
        "central": asdict(told) if (told := central_of_plan(plan)) else None,
        "confidence": plan.confidence,
        "seed": arguments.seed,
        "seconds": seconds,
        "summary": asdict(found),
        "runs": [asdict(run) for run in runs],
    }


def _show(plan: Plan, last: Run, found: Summary) -> None:
    """The last run as a table, and what all of them say."""
    metric = plan.metric
    mean = bool(last.values) and last.values[0].detected is None
    digits = ",.5g" if mean else ",.0f"
    rows = sorted(last.values, key=lambda row: -row.estimate)
    table(
        f"{metric.name}: {several(last.reports, 'report')} by {metric.mechanism}, "
        f"epsilon {metric.report_loss:.3f} per report; the last run",
        (
            *("value", "true", "estimate", f"{100 * plan.confidence:g}% interval"),
            *("" if mean else "detected", ""),
        ),
        [
            (
                f"{row.value}…" if row.beginning else row.value,
                f"{row.true:{digits}}",
                f"{row.estimate:{digits}}",
                f"{row.low:{digits}} to {row.high:{digits}}",
                "yes" if row.detected else "",
                "" if row.low <= row.true <= row.high else "misses",
            )
            for row in rows[:_ROWS]
        ],
    )
    if len(rows) > _ROWS:
        say(f"and {len(rows) - _ROWS:,} more: --json has them all")
    _show_crowds(plan, found)
    if metric.report_on:
        days = len(days_of_period(metric.period, 0))
        say(f"each person reports on one of {days} days, of which {plan.epochs:,} are rehearsed")
    if (share := counting(metric)) < 1:
        people = plan.reports or plan.truth.people
        say(f"of {people:,} people {share:.1%} report in an epoch")
    if found.refused:
        say(
            f"{several(found.refused, 'run')} without an answer: fewer reports than the minimum "
            f"batch of {metric.min_batch:,}"
        )
    _say_recall(last, found)
    _say_beside(plan, last, found)
    if mean:
        say(f"intervals that hold the truth: {_percent(found.coverage)}")
    else:
        say(
            f"intervals that hold the truth: {_percent(found.coverage)} of all, "
            f"{_percent(found.coverage_shown)} of those that a top list shows"
        )
        say(
            f"flagged though nobody holds it: {found.false_flags:.2g} values a run, "
            f"{found.false_share:.1%} of the flags"
        )
    unit = "" if mean else " reports"
    say(f"error of an estimate (root of the mean square): {found.rms_error:,.4g}{unit}")


def _say_recall(last: Run, found: Summary) -> None:
    """How many of the frequent strings were found, and what was only begun."""
    if found.recall is not None:
        begun = found.recall_begun
        more = f", {_percent(begun)} by its beginning at least" if begun != found.recall else ""
        said = f"found of the strings that are found 95 times in 100: {_percent(found.recall)}"
        say(f"{said} whole{more}" if more else said)
    if any(row.beginning for row in last.values):
        say(
            "of strings that end in …, only the beginning is told apart: raise `bits`, or list "
            "what they begin with in `beginnings`"
        )


def _say_beside(plan: Plan, last: Run, found: Summary) -> None:
    """What is said of two parts, of public values, and of people whose sets are too large."""
    say_above_most(plan.metric, plan.truth.codes, plan.truth.counts)
    for one in last.associations:
        told = "cannot be said" if one.cramers_v is None else f"{one.cramers_v:.3f}"
        say(
            f"Cramer's V of {one.rows} and {one.columns}: true {one.true:.3f}, told {told}, "
            f"{one.low:.3f} to {one.high:.3f}"
        )
    if last.associations:
        say(f"intervals of V that hold it: {_percent(found.coverage_associations)}")
    if last.public:
        table(
            "told apart by what is public",
            ("", "value", "true share", "share", "interval", ""),
            [
                (
                    *(f"{row.by}={row.part}", row.value, f"{row.true:.2%}", f"{row.share:.2%}"),
                    f"{row.low:.2%} to {row.high:.2%}",
                    "" if row.low <= row.true <= row.high else "misses",
                )
                for row in last.public[:_ROWS]
            ],
        )
        if len(last.public) > _ROWS:
            say(f"and {len(last.public) - _ROWS:,} more: --json has them all")
        say(f"intervals of public values that hold it: {_percent(found.coverage_public)}")


def _show_crowds(plan: Plan, found: Summary) -> None:
    """What the epochs say of one person, and how many did not leave."""
    metric = plan.metric
    if told := central_of_plan(plan):
        say(
            f"to who sees the epochs shuffled: epsilon {told.epoch:.4g} at delta {told.delta:g} of "
            f"one person in one of {metric.crowd:,} reports, {metric.honest:.0%} of them honest"
            + (f"; {told.all_epochs:.4g} in all {plan.epochs:,}" if plan.epochs > 1 else "")
        )
    if found.withheld:
        say(
            f"{several(found.withheld, 'epoch')} withheld: fewer reports than the crowd of "
            f"{metric.crowd:,}"
        )


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{share:.1%}"
