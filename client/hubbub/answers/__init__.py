"""Floor 1. Answers as rows and columns, once for every face: files, notebooks, tables."""

from hubbub.answers.columns import COLUMNS, Question
from hubbub.answers.rows import Document, Row, rows, whole_rows

__all__ = ["COLUMNS", "Document", "Question", "Row", "rows", "whole_rows"]
