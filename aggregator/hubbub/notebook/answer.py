"""An answer as an object: rows, a table for notebooks, data frames and a picture."""

import importlib
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

from hubbub.errors import MissingDependency
from hubbub.errors.grammar import several
from hubbub.errors.installing import install_with
from hubbub.notebook.pictures import bars, by_size, heat_map, height_inches, lines
from hubbub.query_results.cell_text import cell, columns_of, is_of_means, title
from hubbub.query_results.columns import QueryName
from hubbub.query_results.rows import Row, rows
from hubbub.query_results.sentences import (
    association_sentence,
    final_sentence,
    judged_sentences,
    percentile_sentences,
    slice_sentences,
    trend_sentences,
)

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
        rest = f"<p>... and {rest_count:,} more rows</p>" if rest_count > 0 else ""
        heading, notes = (
            "".join(f"<p><strong>{escape(text)}</strong></p>" for text in paragraphs)
            for paragraphs in (self._notice(), self._title_and_notes[1])
        )
        caption = escape(self._title_and_notes[0])
        return (
            f"{heading}<table><caption>{caption}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>{rest}{notes}"
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
        return _library("pandas").DataFrame(list(self._rows))

    def to_polars(self) -> Any:
        """A polars DataFrame, a row per value."""
        return _library("polars").DataFrame(list(self._rows), infer_schema_length=None)

    def to_arrow(self) -> Any:
        """A pyarrow Table, a row per value."""
        return _library("pyarrow").Table.from_pylist(list(self._rows))

    def to_sklearn(self) -> Any:
        """A model of scikit-learn with these coefficients, that is fitted: it predicts at once.

        Columns are those of the rows, in their order, in their own units: 0 or 1 of a band or of a
        listed value. One of chances ranks people, or classes, as the model does; its chances are of
        a residual that was clipped, so that few rounds leave them too near to the middle. Raises
        TypeError for an answer of another kind, or a model that has no coefficients yet.
        """
        if self.question != "model" or not self._rows:
            raise TypeError("to_sklearn() needs connection.model(), after its first step")
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
        notes += [document[name] for name in ("sizes", "verdict") if name in document]
        notes += percentile_sentences(document)
        notes += trend_sentences(document)
        if "association" in document:
            notes += [association_sentence(document), *slice_sentences(document)]
        if judged := document.get("held_out"):
            level = f"{100 * document['confidence']:g}%"
            notes += [
                f"{judged_sentence}, of {judged['reports']:,} people who did not train it"
                for judged_sentence in judged_sentences(judged, level)
            ]
        return [*notes, *filter(None, [final_sentence(document)])]


def _library(name: str, package: str = "") -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        missing = package or name
        raise MissingDependency(
            f"{missing} is not installed here: pip install {missing}, or {install_with('notebook')}"
        ) from error
