"""The index of decisions, from their files."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parents[2] / "docs" / "decisions"
_HEAD = """# Decisions

Made by `make reference` from their files; change it there.

One file per topic: context, choice, reasons, what was not chosen, and what would reopen it. All are in force, unless a status is stated.
Measurements are in [docs/research](../research/services.md).

"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """One decision record."""

    path: Path
    number: str
    title: str
    line: str
    status: str

    @property
    def entry(self) -> str:
        """Line of the index: a link to the record, its decision, and its status if it is special."""
        status = f" {self.status}" if self.status else ""
        return f"- [{self.number} {self.title}]({self.path.name}): {self.line}{status}\n"


def page() -> str:
    """The whole page, as Markdown."""
    records = [_record(path) for path in sorted(FOLDER.glob("[0-9]*.md"))]
    return _HEAD + "".join(record.entry for record in records)


def _record(path: Path) -> Record:
    text = path.read_text()
    heading = re.match(r"# (\d{4})[.:] (.*)\n", text)
    status = re.search(r"^\*Status\.\* (.*)$", text, re.MULTILINE)
    line = re.search(r"^\*In a line\.\* (.*)$", text, re.MULTILINE)
    if not (heading and line):
        raise ValueError(f"{path.name} begins with '# NUMBER. Title', then needs '*In a line.*'")
    return Record(
        path=path,
        number=heading[1],
        title=heading[2],
        line=line[1],
        status=status[1] if status else "",
    )
