"""The index of decisions, from their files."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from docs.reference.tables import table

FOLDER: Final = Path(__file__).parents[2] / "docs" / "decisions"
_HEAD = """# Decisions

Made by `make reference` from their files; change it there.

One file per topic: context, choice, reasons, what was not chosen, and what would reopen it.
Measurements are in [docs/research](../research/services.md).

"""
_EARLIER = """
## Earlier numbers

Records up to 0183 were merged into these files.

"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """One decision record."""

    path: Path
    number: str
    title: str
    line: str
    status: str
    earlier_numbers: tuple[str, ...]

    @property
    def link(self) -> str:
        """Markdown link to the record, by its number."""
        return f"[{self.number}]({self.path.name})"


def page() -> str:
    """The whole page, as Markdown."""
    records = [_record(path) for path in sorted(FOLDER.glob("[0-9]*.md"))]
    index = [(f"{record.link} {record.title}", record.line, record.status) for record in records]
    moves = sorted((number, record.link) for record in records for number in record.earlier_numbers)
    return (
        _HEAD
        + table(("decision", "in a line", "status"), index)
        + _EARLIER
        + table(("earlier", "now"), moves).rstrip()
        + "\n"
    )


def _record(path: Path) -> Record:
    text = path.read_text()
    heading = re.match(r"# (\d{4})[.:] (.*)\n", text)
    status = re.search(r"^\*Status\.\* (.*)$", text, re.MULTILINE)
    line = re.search(r"^\*In a line\.\* (.*)$", text, re.MULTILINE)
    earlier = re.search(r"^\*Earlier numbers\.\* (.*)$", text, re.MULTILINE)
    if not (heading and status and line):
        raise ValueError(
            f"{path.name} begins with '# NUMBER. Title', then needs '*In a line.*' and '*Status.*'"
        )
    return Record(
        path=path,
        number=heading[1],
        title=heading[2],
        line=line[1],
        status=status[1],
        earlier_numbers=tuple(earlier[1].split(", ")) if earlier else (),
    )
