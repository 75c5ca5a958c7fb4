"""Floor 1. Answers as rows and columns, in one form for files, notebooks and tables."""

from hubbub.query_results.cell_text import at_least, cell, columns_of, is_of_means, title
from hubbub.query_results.columns import COLUMNS, Column, QueryName
from hubbub.query_results.measured import error_of, measured
from hubbub.query_results.rows import Document, Row, percentile_name, rows, whole_rows
from hubbub.query_results.sentences import (
    association_sentence,
    final_sentence,
    judged_sentences,
    percentile_sentences,
    slice_sentences,
    trend_sentences,
)

__all__ = [
    "COLUMNS",
    "Column",
    "Document",
    "QueryName",
    "Row",
    "association_sentence",
    "at_least",
    "cell",
    "columns_of",
    "error_of",
    "final_sentence",
    "is_of_means",
    "judged_sentences",
    "measured",
    "percentile_name",
    "percentile_sentences",
    "rows",
    "slice_sentences",
    "title",
    "trend_sentences",
    "whole_rows",
]
