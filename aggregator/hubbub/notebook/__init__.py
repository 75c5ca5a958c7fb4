"""Estimates in a notebook: `hubbub.notebook.connect(url).estimates("theme", last="7d")`.

It speaks HTTP/JSON to the aggregator, with the standard library alone. What is answered keeps every
digit; `.to_pandas()`, `.to_polars()`, `.to_arrow()` and `.plot()` need `hubbub[notebook]`.
"""

from hubbub.notebook.answer import Answer
from hubbub.notebook.connection import Connection, connect

__all__ = ["Answer", "Connection", "connect"]
