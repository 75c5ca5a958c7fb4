"""The table and the picture of `hubbub plan`, and what their columns mean."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from io import BytesIO
from math import floor, isfinite, log10
from pathlib import Path
from typing import Any, Final

from hubbub.analysis.strings.tree_search import detectable_share
from hubbub.catalog import Metric, days_of_period
from hubbub.catalog.discovery import counting
from hubbub.catalog.values.event_history_kinds import PastKind
from hubbub.cli.terminal.output import listing, say
from hubbub.errors import BadParameter
from hubbub.errors.message_words import at_most, install_with, several
from hubbub.mechanisms.tree import PrefixTree
from hubbub.privacy.metric_draft import MEANS, MetricDraft
from hubbub.privacy.planner import TREE_CELLS, Row, planned_tree, row
from hubbub.programs.atomic_write import read_output, write_output
from hubbub.query_results.answer_table import percentile_name

_BAR: Final = 20
_POINTS: Final = 25


def _domain_text(question: MetricDraft, metric: Metric | None) -> str:
    if metric and metric.edges:
        return f"a number in {question.size:,} ranges"
    noun = "listed values"
    if metric and isinstance(metric.value_kind, PastKind):
        noun = f"values ({metric.kind})"
    return {
        "values": f"{question.size:,} {noun}",
        "strings": f"any string, with {question.size:,} candidates",
        "mean": f"the mean of a number in [{question.low:g}, {question.high:g}]",
        "ranges": f"{question.size:,} buckets of [{question.low:g}, {question.high:g}]",
        "vector": f"the mean of {question.size:,} numbers, a vector up to {question.high:g} long",
        "sets": f"sets of {question.size:,} listed values, {question.most:,} of them reported",
        "parts": f"{len(question.parts)} parts, {question.size:,} cells of "
        f"{question.ways} parts in all",
    }[question.kind]


def show(
    question: MetricDraft,
    rows: Sequence[Row],
    metric_row: Row | None,
    metric: Metric | None,
    *,
    percentiles: Sequence[float] = (),
    errors: Sequence[float] = (),
    by_auto: bool = False,
) -> None:
    """Shows the rows as a table, the catalog's own last, and explains its columns.

    `errors` are those of the `percentiles`, in rank, by row;
    `by_auto` is whether the first row has what `auto` chooses, whichever is cheapest.
    """
    lines = [*rows]
    if metric_row:
        lines.append(replace(metric_row, mechanism=f"{metric_row.mechanism} *"))
    percentile = " to ".join(map(percentile_name, sorted({*percentiles[:1], *percentiles[-1:]})))
    worst = max(line.stderr for line in lines)
    mean = question.kind in MEANS
    ranks = dict(zip((line.mechanism for line in lines), errors, strict=False))
    columns: dict[str, str | Callable[[Row], str]] = {
        "mechanism": "{mechanism}",
        "reports": lambda row: f"{row.reports:,.0f}" if isfinite(row.reports) else "never",
        "epsilon": lambda row: at_most(row.epsilon, ".3f"),
    }
    if percentile:
        columns[f"{percentile} in rank"] = lambda row: _share_text(ranks[row.mechanism], "+-", 2)
    columns |= {
        "for life": lambda row: (
            "" if row.permanent_epsilon is None else at_most(row.permanent_epsilon, ".3f")
        ),
        "std. error": lambda row: _share_text(row.stderr, "", 3),
        "of population": lambda row: _share_text(row.population, "", 3),
        "95% interval" if mean else "detects": lambda row: _share_text(
            row.detectable, "+-" if mean else "", 3
        ),
        "bytes": "{payload_bytes:,}",
        "cells": "{cells:,}",
    }
    if sys.stdout.isatty():
        columns[""] = lambda row: "█" * max(1, round(_BAR * row.stderr / worst))
    name = f"{metric.name}: " if metric else ""
    listing(name + _domain_text(question, metric), lines, columns)
    say(f"recommended: {rows[0].mechanism}, {_reason(question, percentiles, by_auto=by_auto)}")
    if percentile:
        say(
            f"{percentile} in rank: half the width of its 95% interval (of several: root mean "
            "square), which ends at edges of buckets, if numbers are spread evenly; +-2% of p95 is "
            "from p93 to p97"
        )
    _say_columns(question, rows[0])
    if metric_row:
        say("*: as the catalog has it")
    if metric and (people := people_a_report(metric)) != 1:
        say(
            f"reports: of one {metric.epoch}, from {people:,.4g} times as many people, since each "
            + ("reports on one day of a period" if metric.report_on else "is asked by chance")
        )


def _reason(question: MetricDraft, percentiles: Sequence[float], *, by_auto: bool) -> str:
    if not by_auto:
        least = "squared error in rank" if percentiles else "variance"
        return f"the shortest payload within 5% of the least {least}, reports or epsilon"
    if question.kind == "mean":
        return 'as mechanism = "auto" chooses, by the noise of the reports alone'
    numbers = ", ".join(f"{percentile:g}" for percentile in percentiles)
    return (
        f'as mechanism = "auto" chooses with buckets = {question.size} and percentiles = '
        f"[{numbers}]: auto weighs all edges within 10% of people around each percentile, because "
        "few numbers are spread as evenly as in this table"
    )


def _share_text(share: float, sign: str, digits: int) -> str:
    if not isfinite(share):
        return "no"
    # Two figures at least, of what would be rounded to 0.
    if share > 0:
        digits = max(digits, -floor(log10(share)) - 1)
    return f"{sign}{share:.{digits}%}"


def tree_fields(tree: PrefixTree) -> str:
    """The fields in metrics.toml that make this tree, but for its epsilon."""
    cells = "" if tree.cells == TREE_CELLS else f", cells = {tree.cells}"
    return f'mechanism = "{PrefixTree.NAME}"{cells}'


def found_unlisted(row: Row) -> float | None:
    """The share from which a prefix tree finds a string in as many reports; None if never."""
    if not isfinite(row.reports):
        return None
    share = detectable_share(planned_tree(lambda _cells: row.epsilon), row.reports)
    return share if share < 1 else None


def people_a_report(metric: Metric) -> float:
    """The number of people per report of an epoch, for metrics that ask them in turn."""
    days = len(days_of_period(metric.period, 0)) if metric.report_on else 1
    return days / counting(metric)


def _say_columns(question: MetricDraft, best: Row) -> None:
    """Explains the columns of errors, and for strings what is found without a list."""
    mean = question.kind in MEANS
    width_text = f", {2 * question.high:g} wide" if question.kind == "vector" else ""
    unit = f"of the range{width_text}" if mean else "of all reports"
    say(f"std. error: of one estimate, as a share {unit}")
    say("of population: includes the choice of who reports from the population")
    if mean:
        say(f"95% interval: of the population's mean, as a share {unit}")
    else:
        say(
            "detects: the smallest share that is detected with a chance of 95%, by a test at 5% "
            "that is corrected for the number of values"
        )
    say("for life: privacy loss of all reports of one unchanged value, where it is bounded")
    if question.kind == "strings" and (share := found_unlisted(best)) is not None:
        tree = planned_tree(lambda _cells: best.epsilon)
        say(
            f"unlisted strings: {tree_fields(tree)} finds a string "
            f"that {share:.3%} of {best.reports:,.0f} reports at epsilon "
            f"{at_most(best.epsilon, '.3g')} hold, 95 times in 100; docs/discover.md"
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


def read_drawing(name: str, path: Path) -> Path:
    """Returns the path of a picture that can be drawn.

    Raises BadParameter if it has another ending, matplotlib is missing, or it cannot be written.
    """
    if path.suffix not in {".png", ".svg"}:
        raise BadParameter(f"{name} {path}: the name must end in .png or .svg")
    if not find_spec("matplotlib"):
        raise BadParameter(f"{name} needs matplotlib: {install_with('plots')}")
    return read_output(name, path)


def plot(question: MetricDraft, rows: Sequence[Row], path: Path) -> None:
    """Draws the smallest detectable share, or a mean's interval, against the number of reports.

    Raises BadParameter if it cannot be written.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415 an extra, and slow to load

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    counts = [row.reports for row in rows if isfinite(row.reports)]
    low, high = min(counts, default=1e4) / 30, max(counts, default=1e6) * 30
    steps = [low * (high / low) ** (i / (_POINTS - 1)) for i in range(_POINTS)]
    for best in rows:
        line = [row(question, best.mechanism, best.parameters, reports) for reports in steps]
        shares = [min(each.detectable, 1.0) for each in line]
        (drawn,) = axes.plot(
            steps, shares, label=f"{best.mechanism}, epsilon {at_most(best.epsilon, '.2f')}"
        )
        if isfinite(best.reports) and best.detectable <= 1:
            axes.plot([best.reports], [best.detectable], "o", color=drawn.get_color())
    axes.set(xscale="log", yscale="log", xlabel="reports")
    mean = question.kind in MEANS
    axes.set_ylabel("half width of the 95% interval" if mean else "smallest share detected (95%)")
    axes.yaxis.set_major_formatter(lambda share, _place: f"{share:.2%}")
    axes.grid(visible=True, which="both", alpha=0.25)
    axes.legend(fontsize="small")
    picture = BytesIO()
    figure.savefig(picture, dpi=150, format=path.suffix[1:])
    write_output("--plot", path, picture.getvalue())
