"""A new column, and a new family of mechanisms: one line, one file, and every face has them.

Both are put into the product for a moment; nothing else is told of them.
"""

import json
from math import sqrt
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from playwright.sync_api import expect

import hubbub.notebook
from hubbub.analysis import maximal_gain, plausibility
from hubbub.analysis.families import FAMILIES, draw
from hubbub.cli.main import main
from hubbub.cli.terminal.answer_tables import show_estimates
from hubbub.client import Outcome
from hubbub.client.testing import FakeShuffler, memory_client
from hubbub.mechanisms import REGISTRY, build
from hubbub.query_results import COLUMNS, Column
from hubbub.signing.testing import make_bundle
from tests.interfaces.browser import Watched, chromium, needs_browser
from tests.support import web
from tests.support.ordinal import AtMost, OrderedUnary
from tests.support.pages import page_of
from tests.support.waiting import HANG_SECONDS

pytestmark = pytest.mark.thorough

CATALOG = """
shuffler = "127.0.0.1:1"
[metrics.size]
description = "The size that people choose"
owner = "owner@example.org"
expires = 2099-01-01
epoch = "day"
mechanism = "{mechanism}"
epsilon = 2.0
values = ["small", "medium", "large"]
min_batch = 100
limits = {{ reports_per_epoch = 1, lifetime_epsilon = 500.0 }}
"""
HELD = {0: 3000, 1: 5000, 2: 2000}


@needs_browser
def test_a_new_column_is_in_every_face_that_shows_tables(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = Column(
        field="stderr",
        title="throwaway",
        unit="reports",
        meaning="a column for a moment",
        gauge=True,
    )
    monkeypatch.setitem(cast("Any", COLUMNS), "estimates", (*COLUMNS["estimates"], new))
    with page_of(tmp_path, CATALOG.format(mechanism="grr"), {"size": HELD}) as page:
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
        with chromium() as browser, Watched(browser) as watched:
            stream = watched.open(f"{page}/metric?name=size")
            table = stream.locator("#table")
            expect(table.locator("thead th").last).to_have_text("throwaway")
            expect(table.locator("thead th").last).to_have_attribute("title", new.meaning)
            assert set(table.locator("tbody td:last-child").all_inner_texts()) == stderrs


@needs_browser
def test_a_new_family_is_its_file_and_a_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the SDK to the page; each estimate within six standard errors of the truth."""
    monkeypatch.setitem(cast("Any", FAMILIES), "at_most", AtMost())
    monkeypatch.setitem(REGISTRY, "ordered", OrderedUnary)
    text = CATALOG.format(mechanism="ordered")
    catalog, people = tmp_path / "own.toml", tmp_path / "people.csv"
    catalog.write_text(text)
    people.write_text("small,600\nmedium,300\nlarge,100\n")

    def command(*words: str) -> str:
        assert main([*words]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    shuffler = FakeShuffler()
    client = memory_client(make_bundle(catalog).bundle, transport=shuffler)
    assert client.report("size", "medium") is Outcome.QUEUED
    assert client.flush(HANG_SECONDS)
    assert len(shuffler.reports()) == 1
    assert "size" in command("catalog", "check", str(catalog))
    assert "ordered" in command("privacy", "card", str(catalog))
    assert "size" in command("audit", str(catalog), "--no-proofs", "--samples", "2000")
    mechanism = build("ordered", epsilon=2.0, categories=3)
    simulated = json.loads(
        command(
            "simulate",
            "size",
            "--catalog",
            str(catalog),
            "--values",
            str(people),
            "--runs",
            "3",
            "--seed",
            "1",
            "--json",
        )
    )
    for value, true in (("small", 600), ("medium", 900), ("large", 1000)):
        for run in simulated["runs"]:
            [answer_row] = [member for member in run["values"] if member["value"] == value]
            assert abs(answer_row["estimate"] - true) <= 6 * sqrt(3 * mechanism.variance(0, 1000))
    one_value = maximal_gain(build("unary.oue", epsilon=2.0, categories=3), [2])
    assert maximal_gain(mechanism, [2]).gain(0.01) > one_value.gain(0.01)
    drawn = draw(mechanism, list(HELD), list(HELD.values()), np.random.default_rng(1))
    assert plausibility(mechanism, drawn).findings == ()
    with page_of(tmp_path, text, {"size": HELD}) as page:
        connection = hubbub.notebook.connect(page).estimates("size", epochs="all")
        with chromium() as browser, Watched(browser) as watched:
            stream = watched.open(f"{page}/metric?name=size")
            cells = stream.locator("#table tbody tr").all_inner_texts()
    by_name = {row["value"]: row for row in connection}
    for value, true in (("small", 3000), ("medium", 8000), ("large", 10_000)):
        row = by_name[value]
        assert abs(row["estimate"] - true) <= 6 * row["stderr"]
        assert any(f"{row['estimate']:,.0f}" in cell and value in cell for cell in cells)
