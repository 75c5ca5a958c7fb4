"""What `make bench` says of a figure that fell."""

from pathlib import Path

import pytest

from benchmarks.__main__ import RESULTS, document
from benchmarks.history import Run, fell, newest, read_history, unkept, write_run
from benchmarks.measure import Row


def _row(stage: str, ratio: float, *, more: bool = False) -> Row:
    return Row(stage, "ours", "limit", ratio, "", more)


@pytest.mark.parametrize(
    ("before", "now", "more", "message"),
    [
        (1.0, 0.8, True, "WORSE by 20%"),  # a rate that fell
        (1.0, 0.9, True, ""),
        (0.5, 1.0, True, ""),
        (1.0, 1.2, False, "WORSE by 20%"),  # a duration that grew
        (1.0, 1.1, False, ""),
        (2.0, 1.0, False, ""),
    ],
)
def test_a_figure_that_is_worse_by_more_than_15_percent_is_pointed_out(
    before: float, now: float, more: bool, message: str
) -> None:
    history = [
        Run("2026-01-01, x", [_row("a", 0.1, more=more)]),
        Run("2026-01-02, x", [_row("a", before, more=more), _row("b", 9.0)]),
        Run("2026-01-03, x", [_row("b", 9.0)]),
    ]
    warning = fell(_row("a", now, more=more), history)
    assert warning.startswith(message)
    assert bool(warning) == bool(message)
    if warning:
        assert "2026-01-02" in warning, "beside the last run that had it"


def test_a_stage_without_history_is_no_loss() -> None:
    assert fell(_row("new", 0.001, more=True), []) == ""


def test_every_run_is_kept_and_the_newest_figure_of_each_stage_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    runs = [
        Run("one", [_row("a", 1), _row("b", 2)], {"mechanisms": [["x"]]}),
        Run("two", [_row("a", 3)]),
    ]
    assert read_history(path) == []
    for run in runs:
        write_run(run, path)
    assert read_history(path) == runs
    with path.open("a") as file:  # as before there were several tables
        file.write('{"made": "zero", "rows": [], "grid": [["y"]]}\n')
    assert read_history(path)[-1] == Run("zero", [], {"mechanisms": [["y"]]})
    figures = newest(read_history(path))
    assert {stage: (row.ratio, date) for stage, (row, date) in figures.items()} == {
        "a": (3, "two"),
        "b": (2, "one"),
    }


def test_rows_that_only_the_page_has_are_put_back_before_a_run_makes_it_anew() -> None:
    runs = [
        Run("2026-01-01, x", [_row("a", 0.5), _row("b", 2.25)]),
        Run("2026-01-02, x", [_row("b", 4.0), _row("c", 1.0)]),
    ]
    page = "\n".join(document(runs))
    assert "of 2026-01-01, x" in page
    assert unkept(page, runs) == []
    assert unkept(page, runs[:1]) == [Run("2026-01-02, x", [_row("c", 1.0)])]
    lost = unkept(page, [])
    remark = "WORSE by 78% than on 2026-01-01"
    assert document(lost) == page.replace(remark, "").split("\n")
    assert {run.made: {row.stage for row in run.rows} for run in lost} == {
        "2026-01-01, x": {"a"},
        "2026-01-02, x": {"b", "c"},
    }


def test_the_page_of_results_is_what_the_history_says() -> None:
    assert RESULTS.read_text() == "\n".join(document(read_history())) + "\n"
