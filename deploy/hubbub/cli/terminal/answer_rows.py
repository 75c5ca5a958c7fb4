"""Rows of an answer as a table: every column with its title, its cells, and when it gives way."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final

from hubbub.cli.terminal.output import table
from hubbub.query_results import Column, QueryName, Row, cell, is_of_means, title

_TEXTS: Final = ("text", "time")


def show_rows(
    question: QueryName,
    answer: Mapping[str, Any],
    heading: str,
    columns: Sequence[Column],
    table_rows: Iterable[Row],
) -> None:
    """A table of some of an answer's columns, and some of its rows."""
    of_means = is_of_means(question, answer)
    table(
        heading,
        [title(column, question, answer) for column in columns],
        [[cell(column, row, of_means=of_means) for column in columns] for row in table_rows],
        text_columns=leading_texts(columns),
        spare=[column.spare for column in columns],
    )


def leading_texts(columns: Iterable[Column]) -> int:
    """How many columns stand before the first of figures."""
    return sum(1 for _ in takewhile(lambda column: column.unit in _TEXTS, columns))
