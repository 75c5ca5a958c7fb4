"""The index of decisions, from their files."""

import re
from pathlib import Path
from typing import Final

from docs.reference.tables import table

FOLDER: Final = Path(__file__).parents[2] / "docs" / "decisions"
_HEAD = """# Decisions

Made by `make reference` from their files; change it there.

One file per decision: context, options, choice, what would reopen it.
A decision holds until another one says that it replaces or amends it.

"""


def page() -> str:
    """The whole page, as Markdown."""
    rows = [_row(path) for path in sorted(FOLDER.glob("[0-9]*.md"))]
    return _HEAD + table(("decision", "in a line", "status"), rows).rstrip() + "\n"


def _row(path: Path) -> tuple[str, str, str]:
    written = path.read_text()
    found = re.match(r"# (\d{4})[.:] (.*)\n", written)
    status = re.search(r"^\*Status\.\* (.*)$", written, re.MULTILINE)
    line = re.search(r"^\*In a line\.\* (.*)$", written, re.MULTILINE)
    if not (found and status and line):
        raise ValueError(
            f"{path.name} begins with '# NUMBER. Title', then needs '*In a line.*' and '*Status.*'"
        )
    number, title = found.groups()
    return f"[{number}]({path.name}) {title}", line[1], status[1]
