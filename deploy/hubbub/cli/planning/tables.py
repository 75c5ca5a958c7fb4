"""What `hubbub plan` shows: its rows as a table or as JSON, and a drawing beside the truth."""

import sys
from dataclasses import asdict, replace
from math import isfinite
from typing import Any, Final

from hubbub.analysis.strings.tree_search import found_from
from hubbub.catalog import Metric, days_of_period
from hubbub.catalog.discovery import counting
from hubbub.cli.terminal.output import say, several, table
from hubbub.mechanisms.tree import PrefixTree
from hubbub.privacy.metric_draft import MEANS, MetricDraft
from hubbub.privacy.planner import Row

_BAR: Final = 20


def row_json(row: Row) -> dict[str, Any]:
    """A row with None for what does not exist: JSON has no infinity."""
    fields = asdict(row)
    return {
        name: None if isinstance(cell, float) and not isfinite(cell) else cell
        for name, cell in fields.items()
    }


def found_unlisted(row: Row) -> float | None:
    """The share from which a prefix tree finds a string by as many reports; None if never."""
    if not isfinite(row.reports):
        return None
    share = found_from(PrefixTree(epsilon=row.epsilon), row.reports)
    return share if share < 1 else None


def people_a_report(metric: Metric) -> float:
    """How many people there are for each report of an epoch, of those that are asked in turn."""
    days = len(days_of_period(metric.period, 0)) if metric.report_on else 1
    return days / counting(metric)


def _asked(question: MetricDraft) -> str:
    return {
        "values": f"{question.size:,} listed values",
        "strings": f"any string, {question.size:,} of them looked for",
        "mean": f"the mean of a number in [{question.low:g}, {question.high:g}]",
        "ranges": f"{question.size:,} parts of [{question.low:g}, {question.high:g}]",
        "vector": f"the mean of {question.size:,} numbers, a vector up to {question.high:g} long",
        "sets": f"sets of {question.size:,} listed values, {question.most:,} of them told",
        "parts": f"{len(question.parts)} parts, {question.size:,} cells of "
        f"{('two', 'three')[question.ways - 2]} parts in all",
    }[question.kind]


def show(question: MetricDraft, rows: list[Row], own: Row | None, metric: Metric | None) -> None:
    """The rows as a table, the catalog's own last, and what its columns mean."""
    lines = [*rows, *([replace(own, mechanism=f"{own.mechanism} *")] if own else [])]
    worst = max(line.stderr for line in lines)
    mean = question.kind in MEANS
    header = ["mechanism", "reports", "epsilon", "for life", "std. error", "of population"]
    header += ["95% interval" if mean else "detects", "bytes", "cells"]
    table(
        _asked(question) if not metric else f"{metric.name}: {_asked(question)}",
        [*header, ""] if sys.stdout.isatty() else header,
        [
            (
                row.mechanism,
                "never" if row.reports == float("inf") else f"{row.reports:,.0f}",
                f"{row.epsilon:.3f}",
                "" if row.permanent_epsilon is None else f"{row.permanent_epsilon:.3f}",
                f"{row.stderr:.3%}",
                f"{row.population:.3%}",
                f"{'+-' if mean else ''}{row.detectable:.3%}" if isfinite(row.detectable) else "no",
                f"{row.payload_bytes:,}",
                f"{row.cells:,}",
                *(["█" * max(1, round(_BAR * row.stderr / worst))] if sys.stdout.isatty() else []),
            )
            for row in lines
        ],
    )
    say(
        f"recommended: {rows[0].mechanism}, the shortest payload within 5% of the least "
        "variance, reports or epsilon"
    )
    wide = f", {2 * question.high:g} wide" if question.kind == "vector" else ""
    unit = f"of the range{wide}" if mean else "of all reports"
    say(f"std. error: of one estimate, as a share {unit}")
    say("of population: with who happens to report, for the population that reports are from")
    if mean:
        say(f"95% interval: of the population's mean, as a share {unit}")
    else:
        say(
            "detects: the smallest share that stands out from zero with a chance of 95%, at "
            "5% corrected for the number of values"
        )
    say("for life: what all reports of one unchanged value say, where that is bounded")
    if question.kind == "strings" and (share := found_unlisted(rows[0])) is not None:
        say(
            f"strings that nobody lists: {PrefixTree.NAME} finds one that {share:.3%} of "
            f"{rows[0].reports:,.0f} reports at epsilon {rows[0].epsilon:.3g} hold, 95 times in "
            "100; docs/discover.md"
        )
    if own:
        say("*: as the catalog has it")
    if metric:
        _say_people(metric)


def _say_people(metric: Metric) -> None:
    """Of whose people a part is asked, how many there are."""
    if (of := people_a_report(metric)) != 1:
        say(
            f"reports: of one {metric.epoch}, from {of:,.4g} times as many people, since each "
            + ("reports on one day of a period" if metric.report_on else "is asked by chance")
        )


def show_simulated(drawing: dict[str, Any]) -> None:
    """What was drawn: true beside estimated, the most frequent first."""
    table(
        f"one drawing of {several(drawing['reports'], 'report')} by {drawing['mechanism']}, "
        f"seed {drawing['seed']}: "
        f"root mean square error {drawing['rms']:.3%}, predicted {drawing['predicted']:.3%}",
        ("value", "true", "estimated", "std. error", "off by"),
        [
            (
                str(value["value"]),
                f"{value['true']:.3%}",
                f"{value['estimated']:.3%}",
                f"{value['stderr']:.3%}",
                f"{(value['estimated'] - value['true']) / value['stderr']:+.1f} s.e.",
            )
            for value in drawing["values"][:20]
        ],
    )
