"""Every question is answered from files of totals as from Redis, to the last digit."""

import itertools
import json
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pytest

import hubbub.notebook
from hubbub.cli.main import main
from hubbub.epochs import epoch_date
from hubbub.errors import BatchTooSmall, UnknownList, UnknownMetric
from hubbub.history import open_totals
from hubbub.notebook import Answer, Connection
from tests.interfaces.running_aggregator import DAYS, STRINGS, House
from tests.support.bundles import DAY
from tests.support.commands import output_of, refusal_of
from tests.support.waiting import eventually

# The last three still take reports, and have no file.
CLOSED = DAYS - 3
ESTIMATED = 7
SHORT = ("theme", "launches", "seconds", "homepage")
METRICS = (*SHORT, "theme/0.5", "hostile", "profile", "crashed")


def _days(home: House, first: int = 1, last: int = CLOSED) -> str:
    """Some of the closed days, counted from 1."""
    ends = (epoch_date(home.today - DAYS + day, DAY) for day in (first, last))
    return "..".join(ends)


def _complete_files(home: House) -> Path:
    """The files, once all are there."""
    law = hubbub.notebook.connect(home.page).status().document["windows"]
    streams = {line["stream"] for line in law if line["counted"]}

    def number(pattern: str) -> int:
        return len(list(home.files.glob(pattern)))

    eventually(lambda: number("totals/*/*.parquet") == CLOSED * len(streams))
    eventually(lambda: number("estimates/*/*.parquet") == CLOSED * ESTIMATED)
    return home.files


QUESTIONS: dict[str, Callable[[Connection, House, str], Answer]] = {
    "estimates": lambda c, h, m: c.estimates(m, epochs=_days(h), **_strings(m)),
    "at another confidence": lambda c, h, m: c.estimates(
        m, epochs=_days(h, 3, 3), confidence=0.5, **_strings(m)
    ),
    "top": lambda c, h, m: c.top(m, 3, epochs=_days(h), **_strings(m)),
    "compare": lambda c, h, m: c.compare(m, _days(h, 1, 4), _days(h, 6, 9), **_strings(m)),
    "trend": lambda c, h, m: c.trend(m, epochs=_days(h), **_strings(m)),
}


def _strings(metric: str) -> dict[str, Any]:
    return {"candidates": STRINGS} if metric == "homepage" else {}


@pytest.fixture(scope="module")
def filed(home: House) -> Connection:
    return open_totals(_complete_files(home))


@pytest.mark.parametrize(
    ("question", "metric"),
    [  # A mean has no most frequent values.
        pytest.param(question, metric, marks=() if metric in SHORT else pytest.mark.thorough)
        for question, metric in itertools.product(QUESTIONS, METRICS)
        if (question, metric) != ("top", "seconds")
    ],
)
def test_files_answer_as_the_service_does(
    home: House, filed: Connection, question: str, metric: str
) -> None:
    ask = QUESTIONS[question]
    served = ask(hubbub.notebook.connect(home.page), home, metric).document
    assert json.dumps(ask(filed, home, metric).document) == json.dumps(served)


def test_crosses_breakdowns_percentiles_and_the_list_of_metrics_are_answered_too(
    home: House, filed: Connection
) -> None:
    served = hubbub.notebook.connect(home.page)
    days = _days(home)
    crosses = [c.cross("profile", "theme", "country", epochs=days) for c in (served, filed)]
    breakdowns = [c.breakdown("crashed", "os", epochs=days) for c in (served, filed)]
    ranks = [c.percentiles("launches", below=[6.0], epochs=days) for c in (served, filed)]
    followed = [c.trend("launches", percentiles=[50.0], epochs=days) for c in (served, filed)]
    for of_service, of_files in (crosses, breakdowns, ranks, followed):
        assert of_files.document == of_service.document
    lines = {line["name"]: line for line in filed.metrics().document["metrics"]}
    assert lines["theme"]["reports"] == 11 * (20_000 + 2000)
    assert filed.status().document["total"]["counted"] > 0
    with pytest.raises(UnknownMetric, match="is not in the bundle"):
        filed.estimates("themes")
    with pytest.raises(UnknownList):
        filed.estimates("homepage", lists=["mine"])
    with pytest.raises(BatchTooSmall, match="0 reports in the requested epochs"):
        filed.estimates("theme", epochs=epoch_date(home.today, DAY))


def test_the_command_answers_from_files_in_every_format(
    home: House, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    places = (["--url", home.page], ["--totals", str(_complete_files(home))])

    def both_answers(*words: str) -> list[str]:
        outputs = []
        for place in places:
            assert main([*words, "--epochs", _days(home), *place]) == 0
            outputs.append(capsys.readouterr().out)
        return outputs

    for words in (
        ("query", "theme"),
        ("query", "launches", "--format", "json"),
        ("top", "hostile"),
        ("trend", "theme", "--value", "dark"),
        ("trend", "theme", "--number", "50", "--format", "csv"),
        ("breakdown", "crashed"),
        ("cross", "profile", "theme", "country"),
    ):
        [served, filed] = both_answers(*words)
        assert filed == served
    paths = [tmp_path / "served.parquet", tmp_path / "filed.parquet"]
    for place, path in zip(places, paths, strict=True):
        assert main(["query", "theme", "--epochs", _days(home), "--out", str(path), *place]) == 0
    assert paths[0].read_bytes() == paths[1].read_bytes()
    capsys.readouterr()
    bundle = ["--bundle", str(home.signed.path)]
    assert main(["query", "theme", "--epochs", _days(home), *places[1], *bundle]) == 0
    assert main(["query", "theme", *places[0], *places[1]]) == 2
    assert "--totals replaces a service: leave --url out" in capsys.readouterr().err
    assert main(["query", "theme", "--totals", str(tmp_path)]) == 2
    assert "contains no totals of hubbub" in capsys.readouterr().err


def test_an_answer_without_unreadable_epochs_names_them(
    home: House, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = shutil.copytree(_complete_files(home), tmp_path / "copy")
    [first, second, third, *_] = sorted((copy / "totals" / "theme").iterdir())
    first.unlink()
    second.write_bytes(b"x")
    [tier] = (copy / "totals" / "theme%2F0.5").glob(f"{third.name[:10]}.*")
    tier.unlink()
    days = [_days(home, day, day).partition("..")[0] for day in (1, 2, 3)]
    readable = open_totals(home.files).estimates("theme", epochs=_days(home, 4)).document
    question = ["--epochs", _days(home), "--totals", str(copy)]
    refusal = refusal_of(capsys, "query", "theme", *question)
    assert f"totals/theme: the file of {days[0]} is missing, which the index has" in refusal
    assert "(and so 2 more); or leave its epoch out: --skip-unreadable" in refusal
    as_csv = ("query", "theme", "--format", "csv")
    for options in (("query", "theme"), as_csv, ("trend", "theme", "--value", "dark")):
        sentence = " ".join(output_of(capsys, *options, *question, "--skip-unreadable").split())
        assert f"files of totals cannot be read: theme of {days[0]}..{days[2]}." in sentence
    skipping = open_totals(copy, skip_unreadable=True)
    answer = skipping.estimates("theme", epochs=_days(home)).document
    assert answer["notice"].startswith("Left out, because")
    assert json.dumps({**answer, "notice": ""}) == json.dumps(readable)
    with pytest.raises(BatchTooSmall, match=f"^Left out.* theme of {days[0]}. .* 0 reports in"):
        skipping.estimates("theme", epochs=days[0])
    assert not skipping.estimates("launches", epochs=_days(home)).document["notice"]


def test_files_are_compared_with_redis_and_estimated_without_it(
    home: House,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = str(_complete_files(home))
    monkeypatch.setenv("HUBBUB_REDIS_URL", home.redis_url)
    bundle = ["--bundle", str(home.signed.path)]
    assert main(["totals", "verify", files, *bundle]) == 0
    assert re.search(r": (\d+) windows of Redis compared, \1 files intact", capsys.readouterr().out)
    assert main(["totals", "write", files, *bundle]) == 0
    assert re.search(r"0 windows written of \d+ closed; hubbub totals", capsys.readouterr().out)
    assert main(["totals", "verify", str(tmp_path / "none"), *bundle]) == 1
    absent = re.findall(r"has no file of (\S+), \d.*; (.*)", capsys.readouterr().out)
    assert ("theme", "hubbub totals write creates it") in absent
    assert len(absent) == len(set(absent)), "one line for all dates with the same remedy"
    assert main(["totals", "write", str(tmp_path / "again"), *bundle]) == 0
    again = {path.name: path.read_bytes() for path in _of_totals(tmp_path / "again")}
    assert again == {path.name: path.read_bytes() for path in _of_totals(home.files)}
    # Without Redis the table of estimates is made anew, the same.
    monkeypatch.delenv("HUBBUB_REDIS_URL")
    assert main(["totals", "estimates", files, str(tmp_path / "table")]) == 0
    made = {path.name: path.read_bytes() for path in (tmp_path / "table").rglob("theme/*")}
    contents = {path.name: path.read_bytes() for path in home.files.rglob("estimates/theme/*")}
    assert made == contents
    copy = shutil.copytree(files, tmp_path / "copy")
    damaged = min((copy / "totals" / "theme").iterdir())
    damaged.write_bytes(damaged.read_bytes()[:-9])
    assert main(["totals", "estimates", str(copy), str(tmp_path / "less")]) == 1
    [line] = [line for line in capsys.readouterr().out.splitlines() if "skipped" in line]
    assert "delete it and run hubbub totals write" in line


def _of_totals(files: Path) -> list[Path]:
    return [
        path
        for folder in ("totals", "bundles")
        for path in (files / folder).rglob("*.*")
        if path.is_file()
    ]


def test_the_table_of_estimates_has_what_answers_have_for_every_tool(home: House) -> None:
    table = f"{_complete_files(home)}/estimates/*/*.parquet"
    day = _days(home, 2, 2).partition("..")[0]
    answer = hubbub.notebook.connect(home.page).estimates("theme", epochs=day).document
    database: Any = duckdb.connect()
    rows = database.sql(
        f"SELECT * FROM read_parquet('{table}') "  # noqa: S608 a path of ours
        f"WHERE metric = 'theme' AND epoch_start = '{day}T00:00:00Z' ORDER BY estimate DESC"
    ).to_arrow_table()
    values = sorted(answer["values"], key=lambda value: -value["estimate"])
    fields = ("value", "estimate", "low", "high", "stderr", "share", "detected")
    assert rows.select(fields).to_pylist() == [
        {field: value[field] for field in fields} for value in values
    ]
    first = rows.to_pylist()[0]
    assert first["epoch_end"].astimezone(UTC) == datetime.fromisoformat(answer["until"])
    assert (first["reports"], first["local_epsilon"]) == (answer["reports"], answer["epsilon"])
    assert first["central_epsilon"] == answer["promised"]["epsilon"]
    assert len(first["definition"]) == 16
    every = database.sql(f"SELECT count(*) FROM read_parquet('{table}')")  # noqa: S608 as above
    counts = {
        "duckdb": every.fetchall()[0][0],
        "polars": pl.scan_parquet(table).select(pl.len()).collect().item(),
        "pandas": len(pd.read_parquet(sorted(Path(home.files).glob("estimates/*/*.parquet")))),
    }
    assert len(set(counts.values())) == 1, counts
    named = set(pl.scan_parquet(table).select("metric").unique().collect()["metric"])
    assert named == {"theme", "hostile", "launches", "seconds", "profile", "crashed"}
