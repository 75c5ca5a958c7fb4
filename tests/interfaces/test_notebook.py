"""hubbub.notebook as a notebook uses it: frames, a rich display, pictures, clear errors."""

import builtins
import re
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

import hubbub.notebook
from hubbub.errors import (
    BadParameter,
    BatchTooSmall,
    MissingDependency,
    ServiceUnavailable,
    TooFewEpochs,
    UnknownList,
    UnknownMetric,
)
from hubbub.errors.message_words import visible
from tests.interfaces.running_aggregator import DAYS, LISTED, STRINGS, THEMES, House

mpl.use("Agg")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def connection(home: House) -> hubbub.notebook.Connection:
    return hubbub.notebook.connect(home.page)


def test_frames_have_a_row_per_value_and_every_digit(
    connection: hubbub.notebook.Connection,
) -> None:
    answer = connection.estimates("theme", last="7d")
    assert [row["value"] for row in answer] == THEMES
    pandas, polars, arrow = answer.to_pandas(), answer.to_polars(), answer.to_arrow()
    for place, row in enumerate(answer):
        assert pandas.iloc[place]["low"] == row["low"]
        assert polars.row(place, named=True)["low"] == row["low"]
        assert arrow.to_pylist()[place]["low"] == row["low"]
    assert repr(answer) == f"<theme: {answer.document['reports']:,} reports: 4 rows>"
    assert repr(connection).startswith("<connection to http://127.0.0.1:")
    assert list(answer.df["low"]) == [row["low"] for row in answer]
    trend = connection.trend("theme", ["dark"])
    assert len(trend) == len(trend.to_pandas()) == DAYS
    assert "number" in connection.trend("seconds").df.columns
    assert len(connection.metrics().to_polars()) == LISTED


def test_a_notebook_shows_a_table_with_its_warnings(
    connection: hubbub.notebook.Connection,
) -> None:
    table_html = connection.estimates("hostile")._repr_html_()
    assert "<td>plain</td>" in table_html
    assert "&lt;script&gt;" in table_html
    assert "<script" not in table_html
    assert "<img" not in table_html
    assert "not final" in table_html
    for answer in (
        connection.metrics(),
        connection.top("theme"),
        connection.trend("theme"),
        connection.status(),
    ):
        assert answer._repr_html_().startswith("<table><caption>")


def test_pictures_have_every_interval(connection: hubbub.notebook.Connection) -> None:
    for answer in (
        connection.estimates("theme"),
        connection.estimates("hostile"),
        connection.top("homepage", 2, candidates=STRINGS),
        connection.estimates("seconds"),
        # Of strings that nobody holds half of the estimates are below zero.
        connection.estimates("homepage", candidates=[*STRINGS, *map(str, range(15))]),
    ):
        axes = answer.plot()
        [errors] = [container for container in axes.containers if hasattr(container, "has_xerr")]
        whiskers = errors.lines[2][0].get_segments()
        drawn = [(segment[0][0], segment[1][0]) for segment in whiskers]
        largest = sorted(answer, key=lambda row: -row["estimate"])
        for (low, high), row in zip(drawn, largest, strict=True):
            assert (low, high) == pytest.approx((row["low"], row["high"]))
        labels = ["".join(text.get_text().split("\n")) for text in axes.get_yticklabels()]
        assert labels == [
            visible(row["value"][:200] + "..." * (len(row["value"]) > 200)) for row in largest
        ]
        mpl.pyplot.close(axes.figure)  # type: ignore[attr-defined]
    axes = connection.trend("theme").plot()
    assert len(axes.lines) == 8, "a line each, and its days"
    assert len(axes.collections) == 4, "a band each"
    axes.figure.canvas.draw()
    mpl.pyplot.close(axes.figure)  # type: ignore[attr-defined]
    day_axes = connection.trend("theme", ["dark"], epochs="yesterday").plot()
    [tick] = day_axes.get_xticklabels()
    assert tick.get_text() == connection.estimates("theme", epochs="yesterday").document["dates"]
    assert day_axes.get_xlim()[1] - day_axes.get_xlim()[0] < 1, (
        "around the one day there is, not years"
    )
    day_axes.figure.canvas.draw()
    mpl.pyplot.close(day_axes.figure)  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="no estimates to plot"):
        connection.status().plot()
    with pytest.raises(TypeError, match="no estimates to plot"):
        connection.metrics().plot()


def test_missing_libraries_and_wrong_arguments_are_named(
    connection: hubbub.notebook.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UnknownMetric, match='metric "colour" is not in the bundle'):
        connection.estimates("colour")
    with pytest.raises(
        BatchTooSmall, match="no report is counted yet; an answer needs its minimum batch of 1,000"
    ):
        connection.estimates("unheard")
    with pytest.raises(BadParameter, match="candidates"):
        connection.estimates("homepage")
    with pytest.raises(UnknownList, match="; none is saved; save one with"):
        connection.estimates("homepage", lists=["mine"])
    with pytest.raises(TooFewEpochs, match="and there is none; wait"):
        connection.compare("unheard")
    first = connection.trend("theme").document["epochs"][0]["date"]
    with pytest.raises(TooFewEpochs, match=f"no epoch before {first} has 1,000 reports or more"):
        connection.compare("theme", after=first)
    with pytest.raises(BadParameter, match='mechanism = "tree"'):
        connection.discover("theme")
    with pytest.raises(BadParameter, match="name a metric"):
        connection.estimates("")
    with pytest.raises(BadParameter, match="candidates: write a list of texts"):
        connection.estimates("homepage", candidates="often.example")
    with pytest.raises(BadParameter, match="timeout_seconds -1 is not above 0"):
        hubbub.notebook.connect("http://127.0.0.1:1", timeout_seconds=-1)
    with pytest.raises(BadParameter, match=r"confidence: must be 0\.999999999 or less"):
        connection.estimates("theme", confidence=2)
    with pytest.raises(UnknownMetric, match=r'has no tier "\.\./status"; it has 0\.5'):
        connection.estimates("theme/../status")
    for last, epochs, message in (
        ("bad", "", "write 7, 12h"),
        ("", "bad", "write newest"),
        ("", "x" * 500, "at most 400 characters"),
    ):
        with pytest.raises(BadParameter, match=message) as refused:
            connection.estimates("theme", last=last, epochs=epochs)
        assert "[0-9]" not in str(refused.value), "words, and no regular expression"
    with pytest.raises(ServiceUnavailable, match="does not answer as hubbub does"):
        hubbub.notebook.connect("http://127.0.0.1:1").metrics()
    answer = connection.estimates("theme")
    real = builtins.__import__

    def hidden(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] in {"pandas", "polars", "pyarrow", "matplotlib"}:
            raise ImportError(name)
        return real(name, *rest, **more)

    for name in [*sys.modules]:
        if name.partition(".")[0] in {"pandas", "polars", "pyarrow", "matplotlib"}:
            monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(builtins, "__import__", hidden)
    for make, library in (
        (answer.to_pandas, "pandas"),
        (answer.to_polars, "polars"),
        (answer.to_arrow, "pyarrow"),
        (answer.plot, "matplotlib"),
    ):
        with pytest.raises(MissingDependency, match=f"pip install {library}"):
            make()


def test_the_example_of_the_document_runs(home: House) -> None:
    text = (ROOT / "docs" / "query.md").read_text()
    [code] = re.findall(r'```python title="notebook"\n(.*?)```', text, re.DOTALL)
    code = code.replace("http://127.0.0.1:7076", home.page).replace('"education"', '"theme"')
    namespace: dict[str, Any] = {}
    exec(compile(code, "docs/query.md", "exec"), namespace)  # noqa: S102 the document's own
    assert len(namespace["answer"]) == len(THEMES)
    mpl.pyplot.close("all")  # type: ignore[attr-defined]
