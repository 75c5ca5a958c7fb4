"""Floor 1. Answers as rows and columns, once for every face: files, notebooks, tables."""

from hubbub.answers.association import association_said
from hubbub.answers.cells import cell, columns_of, is_of_means, title
from hubbub.answers.columns import COLUMNS, Column, QueryName
from hubbub.answers.joined import joined_said
from hubbub.answers.line_said import line_said
from hubbub.answers.rows import Document, Row, rows, whole_rows

__all__ = [
    "COLUMNS",
    "Column",
    "Document",
    "QueryName",
    "Row",
    "association_said",
    "cell",
    "columns_of",
    "is_of_means",
    "joined_said",
    "line_said",
    "rows",
    "title",
    "whole_rows",
]
