"""Draws answers with matplotlib: bars by size and lines over dates, with every interval."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from importlib import import_module
from itertools import pairwise
from textwrap import fill
from typing import Any, Final

from hubbub.errors.printable import visible
from hubbub.query_results.cell_text import is_of_means
from hubbub.query_results.columns import QueryName
from hubbub.query_results.rows import Document, Row

# A label is whole, in lines of so many letters; what fills pages is cut as tables cut it.
_LINE: Final = 36
_LONGEST: Final = 200
# From this share on, a cell of a heat map is dark enough for white text.
_DARK: Final = 0.6
_MIN_INCHES: Final = 3.0
_INCHES_A_LINE: Final = 0.18
# Up to this number of epochs, each has a date below it; else matplotlib chooses.
_DATES: Final = 7


def bars(axes: Any, rows: Sequence[Row], question: QueryName, document: Document) -> None:
    """Draws a bar per row, the first on top."""
    number = _number(question)
    places = range(len(rows))
    axes.barh(places, [row[number] for row in rows])
    # About their own middle: an estimate below zero is outside its interval of what can be.
    middle = [(row["low"] + row["high"]) / 2 for row in rows]
    errors = [(row["high"] - row["low"]) / 2 for row in rows]
    axes.errorbar(middle, places, xerr=errors, fmt="none", ecolor="black", capsize=3)
    # Names are what people said: nothing in them is a formula of matplotlib's.
    axes.set_yticks(places, [_label(row["value"]) for row in rows], parse_math=False)
    axes.invert_yaxis()
    of_means = is_of_means("estimates", document)
    unit = document.get("unit") if of_means else ""
    if question == "compare":
        axes.set_xlabel(f"difference of means, in {unit}" if unit else "difference of the shares")
    elif question == "breakdown" and not of_means:
        axes.set_xlabel("share of the part's reports")
    else:
        mean = f"mean, in {unit}" if unit else "mean"
        axes.set_xlabel(mean if of_means else "reports")


def heat_map(axes: Any, rows: Sequence[Row], document: Document) -> None:
    """Draws a cell per row, as dark as its share of its row, with the ends of its interval.

    Paler cells are less certain; bold ones are significant.
    """
    names = list(dict.fromkeys(row["column"] for row in rows))
    cells = [rows[first : first + len(names)] for first in range(0, len(rows), len(names))]
    shares = [[row["within"] for row in line] for line in cells]
    sureness = [[1 - (row["within_high"] - row["within_low"]) for row in line] for line in cells]
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto", alpha=sureness)
    axes.set_xticks(range(len(names)), [_label(name) for name in names], parse_math=False)
    labels = [_label(": ".join(filter(None, (line[0]["slice"], line[0]["row"])))) for line in cells]
    axes.set_yticks(range(len(labels)), labels, parse_math=False)
    axes.set_xlabel(_label(document["columns"]), parse_math=False)
    whose = ": ".join(filter(None, (document["by"], document["rows"])))
    axes.set_ylabel(_label(whose), parse_math=False)
    for row_number, line in enumerate(cells):
        for column_number, row in enumerate(line):
            label = f"{row['within']:.0%}\n{row['within_low']:.0%} to {row['within_high']:.0%}"
            dark = row["within"] * sureness[row_number][column_number] > _DARK
            weight = "bold" if row["departs"] else "normal"
            place = {"ha": "center", "va": "center", "fontsize": 8}
            ink = "white" if dark else "black"
            axes.text(column_number, row_number, label, color=ink, fontweight=weight, **place)


def by_size(rows: Sequence[Row], question: QueryName, document: Document) -> list[Row]:
    """The rows in drawing order: largest first; ranges, steps and weeks in their own order.

    Parts are listed under their names, also in their own order.
    """
    if question == "breakdown":
        return [{**row, "value": f"{row['part']}: {row['value']}"} for row in rows]
    is_ordered = document.get("kind") == "ranges" or document.get("lowest") is not None
    if (is_ordered or document.get("figures")) and question == "estimates":
        return list(rows)
    number = _number(question)
    size = abs if question == "compare" else float
    return sorted(rows, key=lambda row: -size(row[number]))


def height_inches(rows: Sequence[Row]) -> float:
    """The height of a picture with room for every line of every label, in inches."""
    longest = max((_label(row["value"]).count("\n") for row in rows), default=0)
    return min(max(_MIN_INCHES, 1.2 + len(rows) * (0.12 + _INCHES_A_LINE * (1 + longest))), 60)


def lines(axes: Any, rows: Sequence[Row], most: int, document: Document) -> None:
    """Draws a line per value with its band, and estimates as dots; a single epoch as a point.

    If there is no trend line through all epochs, it connects the estimates.
    """
    dates: dict[datetime, str] = {}
    for name in list(dict.fromkeys(row["value"] for row in rows))[:most]:
        points = [row for row in rows if row["value"] == name]
        times = [datetime.fromisoformat(row["begins"]).astimezone(UTC) for row in points]
        dates |= dict(zip(times, (row["date"] for row in points), strict=True))
        low, high = [row["low"] for row in points], [row["high"] for row in points]
        label = _label(name).lstrip("_")
        shares = [row["share"] for row in points]
        if all(row.get("line") is not None for row in points):
            [line] = axes.plot(times, [row["line"] for row in points], label=label)
            axes.plot(times, shares, linestyle="", marker=".", alpha=0.5, color=line.get_color())
            low = [row["line_low"] for row in points]
            high = [row["line_high"] for row in points]
        else:
            [line] = axes.plot(times, shares, label=label, marker=".")
        axes.fill_between(times, low, high, alpha=0.2, color=line.get_color())
        if len(points) == 1:
            axes.vlines(times, low, high, color=line.get_color())
    legend = axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1))  # covers no line
    for text in legend.get_texts():
        text.set_parse_math(False)
    _mark_dates(axes, dates)
    unit = f", in {document['unit']}" if document.get("unit") else ""
    axes.set_ylabel("share of the reports" if document.get("kind") == "values" else f"mean{unit}")
    axes.set_xlabel("UTC")


def _mark_dates(axes: Any, dates: dict[datetime, str]) -> None:
    times = sorted(dates)
    if not times:
        return
    if len(times) <= _DATES:
        axes.set_xticks(times, [dates[time].replace("T", "\n") for time in times])
        steps = [after - before for before, after in pairwise(times)]
        half_step = min(steps, default=timedelta(hours=1)) / 2
        axes.set_xlim(times[0] - half_step, times[-1] + half_step)
        return
    marks: Any = import_module("matplotlib.dates")  # who draws has it

    locator = marks.AutoDateLocator(tz=UTC, maxticks=_DATES)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(marks.ConciseDateFormatter(locator, tz=UTC))


def _number(question: QueryName) -> str:
    return {"compare": "difference", "breakdown": "share"}.get(question, "estimate")


def _label(name: str) -> str:
    text = visible(name if len(name) <= _LONGEST else name[:_LONGEST] + "...")
    return fill(text, _LINE, drop_whitespace=False, replace_whitespace=False) or name
