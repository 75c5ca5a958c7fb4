"""Cross tables for people: a line a row where that fits the terminal, else a line a cell."""

from collections.abc import Mapping, Sequence
from shutil import get_terminal_size
from typing import Any, Final

from hubbub.cli.terminal.answer_rows import show_rows
from hubbub.cli.terminal.output import explain, table
from hubbub.errors.printable import visible
from hubbub.query_results import (
    Row,
    association_sentence,
    columns_of,
    final_sentence,
    rows,
    slice_sentences,
)

Answer = Mapping[str, Any]

# More cells than this are for a file, not for eyes.
_CELLS: Final = 50
_MARK: Final = "*"
# Between two columns, and before the first.
_GAP: Final = 3


def show_cross(found: Answer) -> None:
    """Shares within rows with their intervals; then how the parts go together.

    By a third part a table for each of its values.
    """
    cells = rows("cross", found)
    crossed = f"{found['columns']} within {found['rows']}"
    crossed += f" by {found['by']}" if found["by"] else ""
    heading = f"{found['metric']}: {crossed}, {found['reports']:,} reports, {found['dates']}"
    if found["notice"]:
        explain(found["notice"])
    split = [(one["value"], one["share"]) for one in found["slices"]] or [("", 1.0)]
    grids = [_grid(found, [one for one in cells if one["slice"] == of]) for of, _ in split]
    if all(grids):
        if found["by"]:
            explain(heading)
        for (of, share), grid in zip(split, grids, strict=True):
            part = f"{found['by']}={visible(of)}, {share:.1%} of the reports"
            table(part if found["by"] else heading, *(grid or ()))
        level = f"{100 * found['confidence']:.6g}%"
        explain(f"share of its row, with its {level} interval; {_MARK} is beyond chance")
    else:
        _list(heading, found, cells)
    for said in (association_sentence(found), *slice_sentences(found)):
        explain(said)
    whose = "of the population that reports are from: intervals hold who happened to report too"
    explain(whose)
    if len(found["parts"]) > 2:  # noqa: PLR2004 a table has two
        third = " PART" if found["by"] else ""
        explain(
            f"other tables: hubbub cross {found['metric']} PART PART{third}; its parts are "
            f"{', '.join(map(visible, found['parts']))}"
        )
    if said := final_sentence(found):
        explain(said)


def _grid(found: Answer, cells: Sequence[Row]) -> tuple[list[str], list[list[str]]] | None:
    """Heads and lines of the whole table; None if it is wider than the terminal."""
    names = list(dict.fromkeys(one["column"] for one in cells))
    lines = [cells[first : first + len(names)] for first in range(0, len(cells), len(names) or 1)]
    head = [found["rows"], *names]
    body = [[line[0]["row"], *map(_share, line)] for line in lines]
    every = zip(head, *body, strict=True)
    widths = [max(len(visible(text)) for text in column) for column in every]
    if sum(width + _GAP for width in widths) > get_terminal_size().columns:
        return None
    return head, body


def _share(one: Row) -> str:
    ends = f"{100 * one['within_low']:.0f}-{100 * one['within_high']:.0f}"
    return f"{one['within']:.0%} {ends}{_MARK if one['departs'] else ' '}"


def _list(heading: str, found: Answer, cells: Sequence[Row]) -> None:
    """A line a cell, the farthest from independence first."""
    shown = sorted(cells, key=lambda one: -abs(one["score"]))[:_CELLS]
    show_rows("cross", found, heading, columns_of("cross", found), shown)
    explain("the farthest from what independent parts would have first")
    if len(cells) > len(shown):
        explain(f"... and {len(cells) - len(shown):,} more cells: --format csv shows them all")
