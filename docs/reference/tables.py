"""Tables in Markdown."""

import re
from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """One, with an empty line behind it; nothing if it has no rows."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    if not lines:
        return ""
    return "\n".join([f"| {' | '.join(head)} |", "|" + "---|" * len(head), *lines]) + "\n\n"


def cell(text: str) -> str:
    """Prose for a cell: on one line, without what would end the cell or be taken for markup."""
    return prose(text).replace("|", r"\|")


def prose(text: str) -> str:
    """Prose outside tables: on one line, without what would be taken for markup."""
    return re.sub(r"([<*])", r"\\\1", " ".join(text.split()))
