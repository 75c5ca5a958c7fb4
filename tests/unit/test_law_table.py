"""`hubbub status`: what fits a screen, and what must never be missing from it."""

import os
import re
from typing import Any

import pytest

from hubbub.cli.commands.status import show_pipeline
from hubbub.cli.terminal.output import explain
from hubbub.conservation import TERMS, balances, sum_terms
from tests.support.commands import Capture

DAYS = 14


def _window(stream: str, day: int, **terms: int) -> dict[str, Any]:
    """One in which all was counted, but for these."""
    counts = dict.fromkeys(TERMS, 0) | {"acknowledged": 100, "counted": 100} | terms
    date = f"2026-11-{day:02}"
    return {"stream": stream, "epoch": day, "date": date, **counts, "balanced": balances(counts)}


def _law(windows: list[dict[str, Any]], *, complete: bool = True) -> dict[str, Any]:
    total = sum_terms({term: line[term] for term in TERMS} for line in windows)
    balanced = all(line["balanced"] for line in windows)
    return {
        "notice": "",
        "waiting": "",
        "complete": complete,
        "balanced": balanced,
        "total": {**total, "balanced": balanced, "deleted": 0},
        "windows": windows,
    }


def _forty_windows() -> list[dict[str, Any]]:
    """A stream among forty lost a report, and in another some wait."""
    windows = [_window(f"stream_{n:02}", day) for n in range(40) for day in range(1, DAYS + 1)]
    windows[-1] |= {"acknowledged": 101, "balanced": False}
    windows[30 * DAYS] = _window("stream_30", 1, acknowledged=107, pooled=7)
    return windows


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_any_number_of_streams_fits_a_screen(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    show_pipeline(_law(_forty_windows()))
    text = re.sub(r"\x1b\[\d*m", "", capsys.readouterr().out)
    assert len(text.splitlines()) <= (55 if columns == 60 else 24), text
    assert all(len(line) <= columns for line in text.splitlines())
    assert "THE LAW DOES NOT BALANCE." in " ".join(text.split())
    matches = re.findall(r"stream_\d\d", text)
    assert matches[:2] == ["stream_39", "stream_30"], "what asks for a look stands first"
    assert "28 streams more" in " ".join(text.split())


def test_status_names_no_single_omitted_stream(capsys: Capture) -> None:
    windows = [_window(f"stream_{number}", 1, acknowledged=107, pooled=7) for number in range(14)]
    show_pipeline(_law(windows[:13]))
    assert "stream_12" in (text := capsys.readouterr().out)
    assert "more" not in text
    show_pipeline(_law(windows))
    captured = capsys.readouterr()
    assert "and 2 streams more: hubbub status --all" in captured.out + captured.err


def test_every_window_is_shown_when_asked(capsys: Capture) -> None:
    windows = _forty_windows()
    show_pipeline(_law(windows), whole=True)
    output = capsys.readouterr().out
    assert len(re.findall(r"^ +stream_\d\d ", output, re.MULTILINE)) == len(windows)


def test_a_lost_report_stays_lost_beside_balanced_epochs(capsys: Capture) -> None:
    show_pipeline(_law([_window("theme", 1), _window("theme", 2, acknowledged=101)]))
    output = capsys.readouterr().out
    assert re.search(r"theme +2 epochs +201 +200 +NO", output), output
    assert "0 in all of them: dummies, pooled" in output


def test_unknown_terms_of_the_shuffler_are_not_shown_as_zero(capsys: Capture) -> None:
    unknown = {"acknowledged": None, "dummies": None, "pooled": None, "withheld": None}
    windows = [{**_window("theme", day), **unknown, "balanced": None} for day in (1, 2)]
    document = _law([_window("theme", 1)], complete=False)
    document |= {"windows": windows, "total": {**document["total"], **unknown}, "balanced": None}
    show_pipeline(document)
    output = capsys.readouterr().out
    assert output.startswith("? acknowledged = ? pooled + "), output
    assert re.search(r"theme +2 epochs +\? +\? +\? +200 +\? +\?", output), output
    assert "BALANCE" not in output.upper().replace("BALANCED", "")


def test_hidden_waiting_reports_are_neither_zero_nor_a_column(capsys: Capture) -> None:
    sentence = "Waiting reports are not shown, and a stream is listed after its first batch"
    law = {**_law([{**_window("theme", day), "pooled": 0} for day in (1, 2)]), "waiting": sentence}
    law["total"]["pooled"] = None
    for window in law["windows"]:
        window["pooled"] = None
    show_pipeline(law)
    output = capsys.readouterr().out
    assert output.startswith("200 acknowledged = pooled (not shown) + 0 in flight"), output
    heading = next(line for line in output.splitlines() if "stream" in line)
    assert "pooled" not in heading
    assert "0 in all of them: dummies, in flight" in output
    assert sentence in output
    show_pipeline({**law, "windows": []})
    assert "0 in all of them" not in capsys.readouterr().out


def test_sentences_are_cut_between_words_and_whole_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    sentence = "the intervals cover the randomization noise\nsecond " + "x" * 30
    explain(sentence)
    assert capsys.readouterr().out == sentence + os.linesep
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    explain(sentence)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "the intervals cover the randomization",
        "  noise",
        "second " + "x" * 30,
    ]
