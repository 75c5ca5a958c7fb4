"""Floor 1. Answers as rows and columns, once for every face: files, notebooks, tables."""

from hubbub.query_results.association import association_said
from hubbub.query_results.cell_text import cell, columns_of, is_of_means, title
from hubbub.query_results.columns import COLUMNS, Column, QueryName
from hubbub.query_results.joined import joined_said
from hubbub.query_results.line_said import line_said
from hubbub.query_results.rows import Document, Row, rows, whole_rows

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
