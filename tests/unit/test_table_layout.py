"""Tables at every width: no figure is ever cut."""

import re

import pytest
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from hubbub.cli.terminal import output
from hubbub.cli.terminal.output import Sized, blocks, fitting_columns, table_lines
from hubbub.cli.terminal.output import cell_len as own_cell_len

HEAD = ["stream", "what it asks for", "acknowledged", "counted", "balanced"]
ROWS = [
    ["theme", "Colour theme in use at the end of the day", "30,162", "30,162", "yes"],
    ["a_metric_of_a_long_name_indeed", "a" * 90, "1,234,567,890", "2,583 to 3,308", "NO"],
]
FIGURES = ["30,162", "1,234,567,890", "2,583 to 3,308"]


@pytest.mark.parametrize("width", [30, 40, 60, 80, 120])
@pytest.mark.parametrize("spare", [[], [0, 1, 0, 2, 0]])
def test_no_width_cuts_a_figure(
    width: int,
    spare: list[int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    output.table("Where every report is", HEAD, ROWS, text_columns=2, spare=spare)
    text = re.sub(r"\x1b\[[01]m", "", capsys.readouterr().out)
    assert "…" not in text
    assert all(cell_len(line) <= width for line in text.splitlines())
    for figure in FIGURES:
        assert figure in text or (figure == "2,583 to 3,308" and spare)
    assert "a_metric_of_a_long_name" in text


def test_columns_go_in_their_order_before_rows_become_blocks() -> None:
    columns = [
        Sized(head="value", cells=["dark"], shortest=14),
        Sized(head="estimate", cells=["1,000"]),
        Sized(head="rank", cells=["1"], spare=2),
        Sized(head="consistent", cells=["999"], spare=1),
    ]
    for width, number in ((40, 4), (39, 3), (27, 3), (26, 2), (20, 2), (19, 0)):
        assert [column for column, _ in fitting_columns(columns, width)] == columns[:number], width
    assert blocks(columns, 40) == [("dark", ["estimate 1,000   rank 1   consistent 999"])]
    assert blocks(columns, 39) == [("dark", ["estimate 1,000   rank 1", "consistent 999"])]


def test_output_in_a_pipe_has_no_border(capsys: pytest.CaptureFixture[str]) -> None:
    output.table("wide", [f"column {n}" for n in range(40)], [[f"{n:,}" for n in range(40)]])
    [row] = [line for line in capsys.readouterr().out.splitlines() if " 39" in line][1:]
    assert row.split() == [str(n) for n in range(40)]


def test_a_table_is_drawn_as_rich_draws_it() -> None:
    texts = ["light", "a setting of many words", "b" * 30, "日本語の設定", "naïve", ""]
    columns = [
        (Sized(head="value", cells=texts, shortest=24), 12),
        (Sized(head="estimate", cells=["1", "22", "333", "4,444", "5", "60"]), 8),
        (Sized(head="bars", cells=["▏█", "▏██", "▏", "  █", "", "█▏"], picture=True), 6),
    ]
    rich_table = Table(box=SIMPLE_HEAD)
    for column, width in columns:
        justify: JustifyMethod = "left" if column.is_left else "right"
        rich_table.add_column(Text(column.head), justify=justify, width=width, overflow="fold")
    for cells in zip(*(column.cells for column, _ in columns), strict=True):
        rich_table.add_row(*map(Text, cells))
    with (console := Console(width=60, color_system=None)).capture() as capture:
        console.print(rich_table)
    assert table_lines(columns, "─") == [line.rstrip() for line in capture.get().split("\n")[:-1]]


@pytest.mark.parametrize("text", ["", "a", "naïve café", "日本", "e\u0301", "\u200d", "한글 ½ ①"])
def test_a_text_is_as_wide_as_rich_says(text: str) -> None:
    assert own_cell_len(text) == cell_len(text)
