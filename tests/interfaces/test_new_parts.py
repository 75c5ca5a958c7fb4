"""A new column, family of mechanisms or kind of value: one line, one file, and every face has it.

They are put into the product for a moment; nothing else is told of them.
"""

import json
from collections.abc import Callable, Mapping
from math import sqrt
from pathlib import Path
from random import Random
from typing import Any, cast

import numpy as np
import pytest
from playwright.sync_api import expect

import hubbub.notebook
from hubbub.analysis.fake_report_attacks import maximal_gain
from hubbub.analysis.families import FAMILIES, draw, family_for
from hubbub.authoring import read_catalog
from hubbub.catalog.values.value_kind_registry import KINDS
from hubbub.cli.main import main
from hubbub.cli.terminal.answer_tables import show_estimates
from hubbub.client import Outcome
from hubbub.client.testing import FakeShuffler, memory_client
from hubbub.errors import ValueOutOfDomain
from hubbub.mechanisms import REGISTRY, build
from hubbub.query_results.answer_table import COLUMNS, Column
from hubbub.signing.testing import make_bundle
from tests.interfaces.browser import Watched, chromium
from tests.support import web
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.grades import Grade
from tests.support.ordinal import AtMost, OrderedUnary
from tests.support.pages import page_of
from tests.support.waiting import HANG_SECONDS

pytestmark = pytest.mark.thorough


def _catalog(mechanism: str) -> str:
    values = ["small", "medium", "large"]
    fields = {"epsilon": 2.0, "values": values, "lifetime_epsilon": 500.0}
    return catalog_toml(metric_toml("size", mechanism=mechanism, **fields))


TRUE_COUNTS = {0: 3000, 1: 5000, 2: 2000}
Command = Callable[..., str]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command that ends well: what it prints."""

    def run(*words: str) -> str:
        assert main([*words]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    return run


def _simulated(command: Command, catalog: Path, people: str) -> list[dict[str, Any]]:
    """The runs of a rehearsal with people who hold this, and every other command on the way."""
    assert "size" in command("catalog", "check", str(catalog))
    assert "size" in command("privacy", "card", str(catalog))
    assert "size" in command("audit", str(catalog), "--no-proofs", "--samples", "2000")
    file = catalog.with_suffix(".csv")
    file.write_text(people)
    words = ("simulate", "size", "--catalog", str(catalog), "--values", str(file))
    document = json.loads(command(*words, "--runs", "3", "--seed", "1", "--json"))
    return [*document["runs"]]


def test_a_new_column_is_in_every_face_that_shows_tables(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    watched: Watched,
) -> None:
    new = Column(
        field="stderr",
        title="throwaway",
        unit="reports",
        meaning="a column for a moment",
        gauge=True,
    )
    monkeypatch.setitem(cast("Any", COLUMNS), "estimates", (*COLUMNS["estimates"], new))
    with page_of(tmp_path, _catalog("grr"), {"size": TRUE_COUNTS}) as page:
        notebook: Any = hubbub.notebook.connect(page).estimates("size", epochs="all")
        stderrs = {f"{row['stderr']:,.0f}" for row in notebook}
        assert "<th>throwaway</th>" in notebook._repr_html_()
        assert all(f"<td>{stderr}</td></tr>" in notebook._repr_html_() for stderr in stderrs)
        show_estimates(notebook.document)
        [head, _, *lines] = capsys.readouterr().out.splitlines()[2:]
        assert head.split()[-1] == "throwaway"
        assert {line.split()[-1] for line in lines[:3]} == stderrs
        gauges = web.get(f"{page}/metrics").text
        assert "# HELP hubbub_estimate_stderr a column for a moment" in gauges
        assert 'hubbub_estimate_stderr{metric="size",value="large"}' in gauges
        table = watched.open(f"{page}/metric?name=size").locator("#table")
        expect(table.locator("thead th").last).to_have_text("throwaway")
        expect(table.locator("thead th").last).to_have_attribute("title", new.meaning)
        assert set(table.locator("tbody td:last-child").all_inner_texts()) == stderrs


def test_a_new_family_is_its_file_and_a_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: Command
) -> None:
    """From the SDK to the page; each estimate within six standard errors of the truth."""
    monkeypatch.setitem(cast("Any", FAMILIES), "at_most", AtMost())
    monkeypatch.setitem(REGISTRY, "ordered", OrderedUnary)
    text = _catalog("ordered")
    catalog = tmp_path / "own.toml"
    catalog.write_text(text)
    _report(catalog, "medium")
    assert "ordered" in command("privacy", "card", str(catalog))
    mechanism = build("ordered", epsilon=2.0, categories=3)
    runs = _simulated(command, catalog, "small,600\nmedium,300\nlarge,100\n")
    for value, true in (("small", 600), ("medium", 900), ("large", 1000)):
        for run in runs:
            [answer_row] = [member for member in run["values"] if member["value"] == value]
            assert abs(answer_row["estimate"] - true) <= 6 * sqrt(3 * mechanism.variance(0, 1000))
    one_value = maximal_gain(build("unary.oue", epsilon=2.0, categories=3), [2])
    assert maximal_gain(mechanism, [2]).gain(0.01) > one_value.gain(0.01)
    drawn = draw(mechanism, list(TRUE_COUNTS), list(TRUE_COUNTS.values()), np.random.default_rng(1))
    assert family_for(mechanism).plausibility([(mechanism, drawn)]).findings == ()
    _on_every_face(tmp_path, text, {"small": 3000, "medium": 8000, "large": 10_000})


def test_a_new_kind_of_value_is_its_file_and_a_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: Command
) -> None:
    """From the SDK to the page; each estimate within six standard errors of the truth."""
    monkeypatch.setitem(KINDS, "grade", Grade())
    listed = 'values = ["small", "medium", "large"]'
    text = _catalog("grr").replace(listed, 'kind = "grade"')
    catalog, module = tmp_path / "own.toml", tmp_path / "own.py"
    catalog.write_text(text)
    _report(catalog, "B+")
    metric = read_catalog(catalog).metrics["size"]
    assert metric.code("B-") == metric.code("B") == 1
    assert metric.value_kind.example(metric, Random(1)) in {"A-", "B-", "C-"}
    with pytest.raises(ValueOutOfDomain, match="is not one of its 3 values"):
        metric.code("D")
    command("catalog", "codegen", str(catalog), "--python", str(module))
    assert "TypedMetric[str]" in module.read_text()
    command("plan", str(catalog), "--metric", "size", "--reports", "1000")
    assert "size" in command("plan", "attack", str(catalog), "--simulate", "200")
    variance = metric.randomizer.variance(1000, 1000)
    for run in _simulated(command, catalog, "A,300\nA-,300\nB+,300\nC,100\n"):
        for value, true in (("A", 600), ("B", 300), ("C", 100)):
            [answer_row] = [member for member in run["values"] if member["value"] == value]
            assert abs(answer_row["estimate"] - true) <= 6 * sqrt(variance)
    _on_every_face(tmp_path, text, {"A": 3000, "B": 5000, "C": 2000})


def _report(catalog: Path, value: str) -> None:
    shuffler = FakeShuffler()
    client = memory_client(make_bundle(catalog).bundle, transport=shuffler)
    assert client.report("size", value) is Outcome.QUEUED
    assert client.flush(HANG_SECONDS)
    assert len(shuffler.reports()) == 1


def _on_every_face(folder: Path, text: str, truth: Mapping[str, int]) -> None:
    """In the notebook and on the page estimates are the same, and near what HELD holds."""
    with page_of(folder, text, {"size": TRUE_COUNTS}) as page:
        connection = hubbub.notebook.connect(page).estimates("size", epochs="all")
        with chromium() as browser, Watched(browser) as watched:
            stream = watched.open(f"{page}/metric?name=size")
            cells = stream.locator("#table tbody tr").all_inner_texts()
    by_name = {row["value"]: row for row in connection}
    for value, true in truth.items():
        row = by_name[value]
        assert abs(row["estimate"] - true) <= 6 * row["stderr"]
        assert any(f"{row['estimate']:,.0f}" in cell and value in cell for cell in cells)
