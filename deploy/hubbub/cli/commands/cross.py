"""`hubbub cross`: two parts of a metric as a table, or by a third, and how they go together."""

from collections.abc import Mapping, Sequence
from math import floor, log10
from shutil import get_terminal_size
from typing import Any, Final

from hubbub.cli.terminal.answer_tables import say_final, say_notice, say_whose, show_table
from hubbub.cli.terminal.output import explain, table
from hubbub.cli.terminal.query_options import AnswerOptions, read_metric_name
from hubbub.errors.printable import visible
from hubbub.notebook import Connection
from hubbub.programs.command_line import command
from hubbub.programs.options import argument, options
from hubbub.query_results.rows import Row, rows
from hubbub.query_results.sentences import association_sentence, slice_sentences

Answer = Mapping[str, Any]

# Larger tables belong in a file.
_CELLS: Final = 50
_MARK: Final = "*"
_SHORTEST: Final = 1e-6
# Between two columns, and before the first.
_GAP: Final = 3


@options
class CrossOptions:
    metric: str = argument(
        "name of the metric; NAME/EPSILON for a single tier", read=read_metric_name
    )
    rows: str = argument("part whose values are the rows", default="", metavar="PART")
    columns: str = argument("part whose values are the columns", default="", metavar="PART")
    by: str = argument("part that has a table for each of its values", default="", metavar="PART")
    answer: AnswerOptions


@command(
    "cross",
    description="For a metric with parts: for each value of the first part, the share of each "
    "value of the second part, with intervals; and whether the two parts depend on "
    "each other. Name two parts if the metric has more; without names the first "
    "two are used. A third part has a table for each of its values, if devices "
    "report three parts together.",
)
def _cross(options: CrossOptions) -> None:
    parts = options.rows, options.columns, options.by
    options.answer.ask(Connection.cross, show_cross, options.metric, *parts)


def show_cross(answer: Answer) -> None:
    """Shows shares within rows with intervals, and the association of the parts.

    With a third part it shows a table for each of its values.
    """
    cells = rows("cross", answer)
    crossed = f"{answer['columns']} within {answer['rows']}"
    crossed += f" by {answer['by']}" if answer["by"] else ""
    heading = f"{answer['metric']}: {crossed}, {answer['reports']:,} reports, {answer['dates']}"
    split = [(part["value"], part["share"]) for part in answer["slices"]] or [("", 1.0)]
    grids = [_grid(answer, [cell for cell in cells if cell["slice"] == of]) for of, _ in split]
    if all(grids):
        say_notice(answer)
        if answer["by"]:
            explain(heading)
        for (of, share), grid in zip(split, grids, strict=True):
            part = f"{answer['by']}={visible(of)}, {share:.1%} of the reports"
            table(part if answer["by"] else heading, *(grid or ()))
        level = f"{100 * answer['confidence']:.6g}%"
        explain(f"share of its row, with its {level} interval; {_MARK} is beyond chance")
    else:
        table_rows = sorted(cells, key=lambda row: -abs(row["score"]))[:_CELLS]
        show_table("cross", answer, heading, table_rows)
        explain("cells that differ most from independent parts come first")
        if rest_count := len(cells) - len(table_rows):
            explain(f"... and {rest_count:,} more cells: --format csv shows them all")
    for sentence in (association_sentence(answer), *slice_sentences(answer)):
        explain(sentence)
    say_whose(answer)
    if len(answer["parts"]) > 2:  # noqa: PLR2004 a table has two
        third = " PART" if answer["by"] else ""
        explain(
            f"other tables: hubbub cross {answer['metric']} PART PART{third}; its parts are "
            f"{', '.join(map(visible, answer['parts']))}"
        )
    say_final(answer)


def _grid(answer: Answer, cells: Sequence[Row]) -> tuple[list[str], list[list[str]]] | None:
    """Heads and lines of the whole table; None if it is too wide for the terminal."""
    names = list(dict.fromkeys(cell["column"] for cell in cells))
    lines = [cells[first : first + len(names)] for first in range(0, len(cells), len(names) or 1)]
    head = [answer["rows"], *names]
    body = [[line[0]["row"], *map(_share, line)] for line in lines]
    columns = zip(head, *body, strict=True)
    widths = [max(len(visible(text)) for text in column) for column in columns]
    if sum(width + _GAP for width in widths) > get_terminal_size().columns:
        return None
    return head, body


def _share(row: Row) -> str:
    low, high = row["within_low"], row["within_high"]
    # Rounding must leave an interval, however many reports there are.
    digits = max(0, floor(-log10(max(high - low, _SHORTEST))) - 1)
    ends = f"{100 * low:.{digits}f}-{100 * high:.{digits}f}"
    return f"{row['within']:z.{digits}%} {ends}{_MARK if row['departs'] else ' '}"
