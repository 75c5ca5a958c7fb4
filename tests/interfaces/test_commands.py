"""The command line: pictures on a terminal, plain in a pipe; files, completion, watching."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import pytest
from pyarrow import parquet

from hubbub.cli.main import main
from hubbub.cli.terminal import answer_tables
from hubbub.cli.terminal.answer_tables import bars
from hubbub.epochs import epoch_date
from tests.interfaces.running_aggregator import DAYS, LISTED, House
from tests.support.bundles import DAY
from tests.support.commands import Capture, document_of, output_of, refusal_of
from tests.support.waiting import HANG_SECONDS, eventually
from tests.system.chaos.faulty_connection import Line


def _terminal(columns: int, *words: str) -> str:
    """What a command shows on a terminal so wide, without colours."""
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "hubbub.cli", *words],
        stdout=child,
        stdin=child,
        stderr=subprocess.STDOUT,
        env={**os.environ, "COLUMNS": str(columns), "TERM": "xterm"},
    )
    os.close(child)
    output = b""
    while True:
        ready, _, _ = select.select([parent], [], [], HANG_SECONDS)
        assert ready, output
        try:
            part = os.read(parent, 65_536)
        except OSError:  # the terminal is closed: it has ended
            break
        if not part:
            break
        output += part
    os.close(parent)
    assert process.wait() == 0, output
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", output.decode()).replace("\r", "")


def test_bars_stand_on_one_scale_with_their_whiskers() -> None:
    wide = bars([(100.0, 90.0, 110.0), (10.0, 5.0, 15.0), (-20.0, -30.0, -10.0)], 40)
    assert [line.count("┼") for line in wide] == [1, 1, 1]
    assert wide[0].index("┼") > wide[1].index("┼") > wide[2].index("┼")
    assert all(line.index("├") < line.index("┼") < line.index("┤") for line in wide)
    assert wide[0].count("█") > 3 * wide[1].count("█")
    assert bars([]) == []
    assert bars([(0, 0, 0)]) == ["│"]


@pytest.mark.parametrize("columns", [70, 140])
def test_a_terminal_shows_bars_that_fit(home: House, columns: int) -> None:
    for words in (("query", "theme"), ("top", "theme"), ("trend", "theme", "-n", "1")):
        output = _terminal(columns, *words, "--url", home.page)
        assert output.count("┼") >= 4, output
        assert all(len(line) <= columns for line in output.splitlines() if "┼" in line)
        assert "…" not in output, output


@pytest.mark.parametrize("columns", [60, 80])
def test_a_narrow_terminal_shows_every_figure_whole(
    home: House,
    columns: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    catalog = str(home.signed.path.parent / "metrics.toml")
    commands = [
        ["status"],
        ["status", "--all"],
        ["metrics"],
        ["query", "theme"],
        ["trend", "theme", "-n", "2"],
        ["compare", "theme"],
        ["catalog", "check", catalog],
        ["privacy", "card", catalog],
    ]
    for words in commands:
        where = [] if catalog in words else ["--url", home.page]
        assert main([*words, *where]) in {0, 1}
        wide = capsys.readouterr().out
        with monkeypatch.context() as narrow:
            narrow.setenv("COLUMNS", str(columns))
            narrow.setattr("sys.stdout.isatty", lambda: True)
            assert main([*words, *where]) in {0, 1}
        text = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
        assert "…" not in text
        tables = [line for line in text.splitlines() if re.search(r"\S {2,}\S|[│├─]", line)]
        assert tables
        assert all(len(line) <= columns for line in text.splitlines()), text
        figures = set(re.findall(r"[\d,.%]+", wide))
        assert set(re.findall(r"[\d,.%]+", "\n".join(tables))) <= figures, "none is cut"
        assert "…" not in wide


def test_all_values_of_a_trend_are_drawn_on_one_scale(
    home: House, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    words = ["trend", "theme", "--value", "dark", "--value", "contrast", "--epoch", "yesterday"]
    assert main([*words, "--url", home.page]) == 0
    dark, contrast = (line for line in capsys.readouterr().out.splitlines() if "┼" in line)
    assert dark.count("█") > 5 * contrast.count("█")


def test_output_in_a_pipe_has_no_picture(home: House, capsys: Capture) -> None:
    where = ["--url", home.page]
    output = output_of(capsys, "query", "theme", *where)
    assert "┼" not in output
    assert "not final: these epochs still accept reports" in output
    output = output_of(capsys, "query", "launches", "--epochs", "closed", *where)
    assert re.search(r"^mean [\d.]+ h, [\d.]+ to [\d.]+$", output, re.MULTILINE)
    assert "not final" not in output
    assert main(["top", "theme", "-n", "2", *where]) == 0
    assert "these are the most frequent with a confidence of 99.9%" in capsys.readouterr().out
    before, after = epoch_date(home.today - DAYS + 1, DAY), "today"
    assert main(["compare", "theme", "--epochs", before, "--to", after, *where]) == 0
    assert re.search(r"dark .*%  +\+\d+\.\d+ .*yes", capsys.readouterr().out)
    assert main(["compare", "theme", *where]) == 0
    [old, new] = (epoch_date(home.today - ago, DAY) for ago in (4, 3))
    output = capsys.readouterr().out
    assert f"22,000 reports of {old}, then 22,000 of {new}" in output
    still = epoch_date(home.today - 2, DAY)
    assert (
        f"the two newest epochs that accept no more reports; {still} may still change until"
        in output
    )
    assert main(["compare", "theme", "--to", "yesterday", *where]) == 0
    [old, new] = (epoch_date(home.today - ago, DAY) for ago in (2, 1))
    assert f"22,000 reports of {old}, then 22,000 of {new}" in capsys.readouterr().out
    assert main(["compare", "unheard", *where]) == 2
    assert "a comparison needs two epochs that accept no more reports" in capsys.readouterr().err
    assert "mean" in output_of(capsys, "trend", "seconds", *where)
    output = output_of(capsys, "metrics", *where)
    assert f"{LISTED} metrics" in output
    assert re.search(r"unheard .* never", output)
    output = output_of(capsys, "query", "hostile", *where)
    assert r"\u202egnp.exe" in output
    assert "\x1b[2J" not in output


def test_status_calls_the_law_unknown_without_the_shufflers_terms(
    home: House, capsys: Capture
) -> None:
    where = ["--url", home.page]
    assert main(["status", *where]) == 1
    output = capsys.readouterr().out
    assert re.search(r"all +\? +\? +\? +\? +[\d,]+ +\? +\?", output)
    assert main(["status", "--all", *where]) == 1
    every = capsys.readouterr().out
    assert re.search(r"all +\? +\? +\? +\? +[\d,]+ +0 +0 +0 +\? +\?", every)
    assert len(every.splitlines()) > len(output.splitlines())
    assert "the aggregator with --shuffler-status" in output
    assert main(["status", *where, "--format", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["acknowledged"], document["balanced"]) == (None, None)
    assert document["counted"] == sum(line["counted"] for line in document["windows"]) > 0


def test_a_value_may_be_called_mean(home: House, capsys: Capture) -> None:
    """It is followed as a share, and not taken for the mean of numbers, nor for another value."""
    where = ["--url", home.page, "--epochs", "all", "--value", "mean"]
    [series] = document_of(capsys, "trend", "hostile", *where, "--format", "json")["series"]
    assert series["value"] == "mean"
    # By asking for every epoch alone.
    words = ["query", "hostile", "--url", home.page, "--format", "json"]
    epochs = document_of(capsys, *words, "--epochs", "all")["epochs"]
    shares = []
    for epoch in epochs:
        values = document_of(capsys, *words, "--epochs", str(epoch))["values"]
        shares += [member["share"] for member in values if member["value"] == "mean"]
    assert [point["share"] for point in series["points"]] == shares
    assert "share" in output_of(capsys, "trend", "hostile", *where).splitlines()[2]


def test_files_are_written_by_their_names(home: House, tmp_path: Path, capsys: Capture) -> None:
    where = ["--url", home.page]
    for name in ("a.csv", "a.json", "a.parquet"):
        path = tmp_path / name
        assert main(["query", "theme", "--out", str(path), *where]) == 0
        assert path.stat().st_size > 0
    assert "bytes" in capsys.readouterr().out
    document = json.loads((tmp_path / "a.json").read_text())
    table = parquet.read_table(tmp_path / "a.parquet").to_pylist()
    assert [row["low"] for row in table] == [value["low"] for value in document["values"]]
    by_epoch = tmp_path / "b.csv"
    assert main(["trend", "theme", "--out", str(by_epoch), *where]) == 0
    assert len(by_epoch.read_text().splitlines()) == 1 + 4 * DAYS
    capsys.readouterr()
    for words, message in (
        (["query", "theme", "--out", str(tmp_path / "a.txt")], "name it .csv"),
        (["query", "theme", "--out", str(tmp_path / "no" / "a.csv")], "cannot be written"),
        (["top", "theme", "-n", "0"], "--number 0 is outside [1, 1000]"),
        (["trend", "theme", "-n", "51"], "--number 51 is outside [1, 50]"),
        (["trend", "theme", "--value", "nope"], 'one of its values, as in its estimates: "'),
        (["export", "theme"], "hubbub query METRIC --out FILE; with a row per epoch, hubbub trend"),
        (["query", "theme", "--confidence", "nan"], "--confidence nan is outside [1e-06, 0.999"),
        (["model", "churn", "--confidence", "95"], "--confidence 95.0 is outside"),
        (["query", ""], "metric: '' is not a name; hubbub metrics lists the names"),
        (["discover", ""], "metric: '' is not a name"),
        (["cross", ""], "metric: '' is not a name"),
        (["model", ""], "model: '' is not a name"),
        (["discover", "theme", "--likely", "nan"], "--likely nan is outside [0, 1)"),
        (["watch", "--every", "0"], "--every 0 is outside [0.1, 3600] seconds"),
        (["status", "--watch", "--every", "-1"], "--every -1 is outside"),
    ):
        assert message in refusal_of(capsys, *words, *where)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["query", "theme", "--out", "a.gif"], "--out a.gif: name it .csv, .parquet or .json"),
        (["query", "theme", "--out", "no/a.csv"], "--out no/a.csv: cannot be written"),
        (["query", "theme", "--out", "."], "--out .: cannot be written: Is a directory"),
        (["query", "theme", "--format", "table", "--out", "a"], "--out needs --format json"),
        (
            ["query", "theme", "--format", "csv", "--out", "t.json"],
            "--out t.json does not end in .csv, as --format says; leave out --format, or name",
        ),
        (["discover", "words", "--as-candidates", "no/a"], "cannot be written"),
        (["demo", "--json", "no/a.json"], "--json no/a.json: cannot be written"),
        (["query", "theme", "--epochs", ""], "'' names no epochs"),
        (["query", "theme", "--last", " "], "'' names no epochs"),
        (["compare", "theme", "--to", ""], "'' names no epochs"),
        (
            ["plan", "--values", "4", "--epsilon", "1", "--reports", "9", "--plot", "a.gif"],
            "--plot a.gif: the name must end in .png or .svg",
        ),
    ],
)
def test_impossible_requests_are_refused_before_the_work(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
    words: list[str],
    message: str,
) -> None:
    """Nothing listens at the address of the service, and nothing is printed."""
    monkeypatch.chdir(tmp_path)
    try:
        code = main(words)
    except SystemExit as end:
        code = int(end.code or 0)
    output = capsys.readouterr()
    assert (code, output.out) == (2, "")
    assert message in output.err


def test_ranges_of_epochs_that_cannot_be_meant_are_refused(home: House, capsys: Capture) -> None:
    for words, message in (
        (["query", "theme", "--last", "99999999999d"], '"99999999999d" is outside [1, 999,999]'),
        (["query", "theme", "--epochs", "all,newest"], "epochs all cannot be combined with other"),
        (["query", "theme", "--last", "0"], '"0" is outside [1, 999,999]'),
        (["compare", "theme", "--epochs", "newest"], "add --to, or over HTTP to_epochs"),
        (["compare", "theme", "--epochs", "all", "--to", "all"], "independent; choose others"),
    ):
        assert message in refusal_of(capsys, *words, "--url", home.page)


def test_a_change_is_from_the_earlier_epochs_to_the_later_whichever_are_named_first(
    home: House, capsys: Capture
) -> None:
    outputs = []
    for ranges in (("--epochs", "yesterday", "--to"), ("--to", "yesterday", "--epochs")):
        words = ["compare", "theme", *ranges, str(home.today - 5)]
        assert main([*words, "--url", home.page]) == 0
        outputs.append(capsys.readouterr().out)
    swapped, in_order = (output.splitlines() for output in outputs)
    [note] = [line for line in swapped if line not in in_order]
    assert [line for line in swapped if line != note] == in_order
    assert note.startswith("the range that was named second, "), note


def test_watching_shows_what_changed_until_ctrl_c(home: House) -> None:
    line = Line(home.page.removeprefix("http://"))
    watch = [sys.executable, "-m", "hubbub.cli", "watch", "theme", "--every", "0.2"]
    watch += ["--url", f"http://{line.address}"]
    process = subprocess.Popen(watch, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert "theme: 22,000 reports" in process.stdout.readline()
    connections = line.connections
    eventually(lambda: line.connections >= connections + 3)
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate()
    assert process.returncode == 130
    line.close()
    assert rest.count("22,000 reports") == 0, "nothing changed: nothing is said again"


def test_watch_refuses_metrics_that_it_can_never_show(home: House, capsys: Capture) -> None:
    for name, message in (
        ("nope", 'metric "nope" is not in the bundle'),
        ("homepage", "candidates"),
    ):
        assert message in refusal_of(capsys, "watch", name, "--url", home.page)


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_shell_completes_commands(shell: str, capsys: Capture) -> None:
    script = output_of(capsys, "completion", shell)
    words = ("compare", "trend", "--confidence", "--epochs", "privacy")
    services = ("--operator-listen", "--gateway", "--oidc-audience", "--shuffler-status")
    for word in (*words, *services):
        assert word in script
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)
        shell_input = (
            script + "\nCOMP_WORDS=(hubbub tre); COMP_CWORD=1; _shtab_hubbub; echo ${COMPREPLY[@]}"
        )
        done = subprocess.run(
            ["bash"], input=shell_input, text=True, capture_output=True, check=True
        )
        assert "trend" in done.stdout


def test_status_and_metrics_name_what_has_expired(
    home: House, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of the command is a century ahead."""

    class Later(datetime):
        @classmethod
        def now(cls, _zone: object = None) -> Self:
            return cls(2126, 11, 28, tzinfo=UTC)

    monkeypatch.setattr(answer_tables, "datetime", Later)
    for command in ("status", "metrics"):
        main([command, "--url", home.page])
        assert "theme: expired on 20" in capsys.readouterr().out
