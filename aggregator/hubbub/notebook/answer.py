"""An answer as an object: rows, a table for notebooks, data frames, and a picture by matplotlib."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from html import escape
from importlib import import_module
from itertools import pairwise
from textwrap import fill
from typing import Any, Final

from hubbub.errors import MissingDependency
from hubbub.errors.message_words import install_with, several, visible
from hubbub.query_results import sentences
from hubbub.query_results.answer_table import (
    Document,
    QueryName,
    Row,
    cell,
    columns_of,
    is_of_means,
    rows,
    table_rows,
    title,
)

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
    elif question == "figures":
        figure = {"rate": "rate", "activity": "devices"}.get(document["kind"], "share")
        axes.set_xlabel(f"{figure}, in {unit}" if unit else figure)
    else:
        mean = f"mean, in {unit}" if unit else "mean"
        axes.set_xlabel(mean if of_means else "reports")


def heat_map(axes: Any, rows: Sequence[Row], document: Document) -> None:
    """Draws a cell per row, as dark as its share of its row, with the ends of its interval.

    Paler cells are less certain; bold ones are significant.
    """
    names = list(dict.fromkeys(row["column"] for row in rows))
    cells = [rows[start : start + len(names)] for start in range(0, len(rows), len(names))]
    shares = [[row["within"] for row in line] for line in cells]
    sureness = [[1 - (row["within_high"] - row["within_low"]) for row in line] for line in cells]
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto", alpha=sureness)
    axes.set_xticks(range(len(names)), [_label(name) for name in names], parse_math=False)
    labels = [_label(": ".join(filter(None, (line[0]["slice"], line[0]["row"])))) for line in cells]
    axes.set_yticks(range(len(labels)), labels, parse_math=False)
    axes.set_xlabel(_label(document["columns"]), parse_math=False)
    subject = ": ".join(filter(None, (document["by"], document["rows"])))
    axes.set_ylabel(_label(subject), parse_math=False)
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

    Parts are listed under their names, and figures with both ends, also in their own order.
    """
    if question == "breakdown":
        return [{**row, "value": f"{row['part']}: {row['value']}"} for row in rows]
    if question == "figures":
        bounded = [row for row in rows if None not in (row["estimate"], row["high"])]
        names = [filter(None, (row["part"], row["figure"], row["dates"])) for row in bounded]
        return [{**row, "value": ", ".join(name)} for row, name in zip(bounded, names, strict=True)]
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
    quantities = {"values": "share of the reports", "ranges": f"number{unit}"}
    axes.set_ylabel(quantities.get(document.get("kind", ""), f"mean{unit}"))
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


_MAX_ROWS: Final = 20


class Answer(Sequence[Row]):
    """The rows of an answer, one dict each. `document` is the whole of it, as the service said it.

    Every method that needs a library raises MissingDependency where it is not installed.
    """

    def __init__(self, question: QueryName, document: Mapping[str, Any]) -> None:
        self.question: QueryName = question
        self.document = document
        self._rows = rows(question, document)
        self._title_and_notes = self._title(), self._notes()

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: Any) -> Any:
        return self._rows[place]

    def __repr__(self) -> str:
        return f"<{' '.join([*self._notice(), self._title_and_notes[0]])}: {len(self)} rows>"

    def _repr_html_(self) -> str:
        columns = columns_of(self.question, self.document)
        of_means = is_of_means(self.question, self.document)
        titles = [title(column, self.question, self.document) for column in columns]
        cells = [
            [cell(column, row, of_means=of_means) for column in columns]
            for row in self._rows[:_MAX_ROWS]
        ]
        head = "".join(f"<th>{escape(title)}</th>" for title in titles)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in cells
        )
        rest_count = len(self) - _MAX_ROWS
        rest_text = f"<p>... and {rest_count:,} more rows</p>" if rest_count > 0 else ""
        heading, notes = (
            "".join(f"<p><strong>{escape(text)}</strong></p>" for text in paragraphs)
            for paragraphs in (self._notice(), self._title_and_notes[1])
        )
        caption = escape(self._title_and_notes[0])
        return (
            f"{heading}<table><caption>{caption}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>{rest_text}{notes}"
        )

    @property
    def df(self) -> Any:
        """A data frame, a row per value: of pandas, or of polars where that alone is installed."""
        try:
            return self.to_pandas()
        except MissingDependency:
            return self.to_polars()

    def to_pandas(self) -> Any:
        """A pandas DataFrame, a row per value."""
        return _library("pandas").DataFrame(table_rows(self.question, self.document))

    def to_polars(self) -> Any:
        """A polars DataFrame, a row per value."""
        return _library("polars").DataFrame(
            table_rows(self.question, self.document), infer_schema_length=None
        )

    def to_arrow(self) -> Any:
        """A pyarrow Table, a row per value."""
        return _library("pyarrow").Table.from_pylist(table_rows(self.question, self.document))

    def to_sklearn(self) -> Any:
        """A model of scikit-learn with these coefficients, that is fitted: it predicts at once.

        Columns are those of the rows, in their order, in their own units: 0 or 1 of a band or of a
        listed value. One of chances ranks people, or classes, as the model does; its chances are of
        a residual that was clipped, so that few rounds leave them too near to the middle. Raises
        TypeError for an answer of another kind, or a model that has no coefficients yet.
        """
        if self.question != "model" or not self._rows:
            raise TypeError("to_sklearn() needs connection.model() of a trained model")
        linear, arrays = _library("sklearn.linear_model", "scikit-learn"), _library("numpy")
        classes = list(dict.fromkeys(row.get("of_class", "") for row in self._rows))
        size = len(self._rows) // len(classes)
        coefficients = arrays.array([row["coefficient"] for row in self._rows]).reshape(-1, size)
        if (kind := self.document["kind"]) in {"logistic", "softmax"}:
            model = linear.LogisticRegression()
            model.classes_ = arrays.array(classes if kind == "softmax" else [0, 1])
            model.coef_, model.intercept_ = coefficients[:, :-1], coefficients[:, -1]
        else:
            model = linear.LinearRegression()
            model.coef_, model.intercept_ = coefficients[0, :-1], coefficients[0, -1]
        model.n_features_in_ = size - 1
        model.feature_names_in_ = arrays.array(
            [row["name"] for row in self._rows[: size - 1]], dtype=object
        )
        return model

    def plot(self, most: int = 20, axes: Any = None) -> Any:
        """Matplotlib axes with every interval drawn.

        Bars by size; of a trend lines with bands; of a cross table a heat map.

        Args:
            most: values to draw.
            axes: where; new ones without.
        """
        pyplot = _library("matplotlib.pyplot", "matplotlib")
        if self.question in {"metrics", "status", "model", "percentiles", "experiment"}:
            raise TypeError(f"{self.question} has no estimates to plot: request estimates")
        trend = self.question == "trend"
        drawn = trend or self.question == "cross"
        rows = [] if drawn else by_size(self._rows, self.question, self.document)[:most]
        if axes is None:
            size = None if drawn else (8, height_inches(rows))
            axes = pyplot.subplots(figsize=size, layout="constrained")[1]
        if self.question == "cross":
            heat_map(axes, self._rows, self.document)
        elif trend:
            lines(axes, self._rows, most, self.document)
        else:
            bars(axes, rows, self.question, self.document)
        axes.set_title("\n".join([*self._notice(), self._title_and_notes[0]]))
        return axes

    def _title(self) -> str:
        document = self.document
        match self.question:
            case "metrics":
                return several(document["total"], "metric")
            case "status":
                return f"{len(document['windows'])} streams and epochs"
            case "compare":
                return (
                    f"{document['metric']}: {document['before_reports']:,} reports, then "
                    f"{document['after_reports']:,}"
                )
            case "trend":
                return f"{document['metric']}: {several(len(document['epochs']), 'epoch')}"
            case "cross":
                return f"{document['metric']}: {document['columns']} within {document['rows']}"
            case _:
                name = document.get("metric") or document.get("model") or document["experiment"]
                return f"{name}: {several(document['reports'], 'report')}"

    def _notice(self) -> list[str]:
        """The sentences to show before an answer; each metric of a list has its own."""
        documents = self._rows if self.question == "metrics" else [self.document]
        return list(filter(None, dict.fromkeys(part.get("notice") for part in documents)))

    def _notes(self) -> list[str]:
        """The sentences that an analyst should not miss."""
        document = self.document
        notes = [
            f"not only from honest reports: {finding}" for finding in document.get("findings", ())
        ]
        notes += document.get("notes", ())
        for name in ("sizes", "verdict"):
            notes += document.get(name, "").splitlines()
        notes += sentences.percentile_sentences(document)
        notes += sentences.trend_sentences(document)
        if "association" in document:
            notes += [
                sentences.association_sentence(document),
                *sentences.slice_sentences(document),
            ]
        if judged := document.get("held_out"):
            level = f"{100 * document['confidence']:g}%"
            notes += [
                f"{judged_sentence}, of {judged['reports']:,} people who did not train it"
                for judged_sentence in sentences.judged_sentences(judged, level)
            ]
        return [*notes, *filter(None, [sentences.final_sentence(document)])]


def _library(name: str, package: str = "") -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        missing = package or name
        raise MissingDependency(
            f"{missing} is not installed here: pip install {missing}, or {install_with('notebook')}"
        ) from error
