"""An answer as a small object: rows, a table that a notebook shows, frames and a picture."""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any, Final

from hubbub.answers import Question, Row, cell, columns_of, is_of_means, rows, title
from hubbub.errors import MissingDependency

__all__ = ["Answer"]

_SHOWN: Final = 20


class Answer(Sequence[Row]):
    """The rows of an answer, one dict each. `document` is the whole of it, as the service said it.

    Every method that needs a library raises MissingDependency where it is not installed.
    """

    def __init__(self, question: Question, document: Mapping[str, Any]) -> None:
        self.question: Question = question
        self.document = document
        self._rows = rows(question, document)
        self._told = self._title(), self._notes()

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: Any) -> Any:
        return self._rows[place]

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __repr__(self) -> str:
        return f"<{self._told[0]}: {len(self)} rows>"

    def _repr_html_(self) -> str:
        columns = columns_of(self.question, self.document)
        of_means = is_of_means(self.question, self.document)
        titles = [title(column, self.question, self.document) for column in columns]
        cells = [
            [cell(column, row, of_means=of_means) for column in columns]
            for row in self._rows[:_SHOWN]
        ]
        head = "".join(f"<th>{escape(one)}</th>" for one in titles)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(one)}</td>" for one in row) + "</tr>" for row in cells
        )
        more = len(self) - _SHOWN
        rest = f"<p>... and {more:,} more rows</p>" if more > 0 else ""
        notes = "".join(f"<p><strong>{escape(note)}</strong></p>" for note in self._told[1])
        caption = escape(self._told[0])
        return (
            f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>{rest}{notes}"
        )

    def to_pandas(self) -> Any:
        """A pandas DataFrame, a row per value."""
        return _library("pandas").DataFrame(list(self._rows))

    def to_polars(self) -> Any:
        """A polars DataFrame, a row per value."""
        return _library("polars").DataFrame(list(self._rows), infer_schema_length=None)

    def to_arrow(self) -> Any:
        """A pyarrow Table, a row per value."""
        return _library("pyarrow").Table.from_pylist(list(self._rows))

    def plot(self, most: int = 20, axes: Any = None) -> Any:
        """Matplotlib axes with every interval drawn: bars, or for a trend lines with bands.

        Args:
            most: values to draw.
            axes: where; new ones without.
        """
        pyplot = _library("matplotlib.pyplot", "matplotlib")
        axes = pyplot.subplots()[1] if axes is None else axes
        if self.question in {"metrics", "status"}:
            raise TypeError(f"{self.question} has no estimates to plot: ask for estimates")
        if self.question == "trend":
            _lines(axes, self._rows, most)
        else:
            _bars(axes, self._rows[:most], self.question)
        axes.set_title(self._told[0])
        return axes

    def _title(self) -> str:
        found = self.document
        match self.question:
            case "metrics":
                return f"{found['total']} metrics"
            case "status":
                return f"{len(found['windows'])} streams and epochs"
            case "compare":
                return (
                    f"{found['metric']}: {found['before_reports']:,} reports, then "
                    f"{found['after_reports']:,}"
                )
            case "trend":
                return f"{found['metric']}: {len(found['epochs'])} epochs"
            case _:
                return f"{found['metric']}: {found['reports']:,} reports"

    def _notes(self) -> list[str]:
        """What an analyst should not miss."""
        found = self.document
        notes = [f"not from honest reports alone: {one}" for one in found.get("findings", ())]
        if found.get("final") is False:
            notes.append("not final: reports of these epochs are still taken")
        return notes


def _bars(axes: Any, rows: Sequence[Row], question: Question) -> None:
    number = "difference" if question == "compare" else "estimate"
    middle = [row[number] for row in rows]
    off = [
        [row[number] - row["low"] for row in rows],
        [row["high"] - row[number] for row in rows],
    ]
    names = [row["value"][:40] for row in rows]
    axes.barh(range(len(rows)), middle, xerr=off, capsize=3)
    # Names are what people said: nothing in them is a formula of matplotlib's.
    axes.set_yticks(range(len(rows)), names, parse_math=False)
    axes.invert_yaxis()
    axes.set_xlabel("change of the share" if question == "compare" else number)


def _lines(axes: Any, rows: Sequence[Row], most: int) -> None:
    for name in list(dict.fromkeys(row["value"] for row in rows))[:most]:
        own = [row for row in rows if row["value"] == name]
        times = [datetime.fromisoformat(row["begins"]).astimezone(UTC) for row in own]
        [line] = axes.plot(times, [row["share"] for row in own], label=name[:40].lstrip("_"))
        low, high = [row["low"] for row in own], [row["high"] for row in own]
        axes.fill_between(times, low, high, alpha=0.2, color=line.get_color())
    legend = axes.legend()
    for text in legend.get_texts():
        text.set_parse_math(False)
    axes.set_ylabel("share")


def _library(name: str, package: str = "") -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        missing = package or name
        raise MissingDependency(
            f"{missing} is not installed here: pip install {missing}, or 'hubbub[notebook]'"
        ) from error
