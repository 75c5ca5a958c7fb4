"""The papers of a catalog: each statement follows the catalog, and what it cannot say is marked."""

import csv
import io
import plistlib
import subprocess
import sys
from pathlib import Path

import pytest

from hubbub.authoring import read_with_promises
from hubbub.catalog import Metric
from hubbub.privacy.card import card
from hubbub.privacy.leaflet_and_reviewer_claims import right_of_100
from hubbub.privacy.legal_papers import DECIDE, Paper, papers, store_files
from tests.support.bundles import crowd_text

CATALOG = """
shuffler = "shuffler.example.org:443"

[metrics.theme]
description = "Colour theme in use"
owner = "desktop@example.org"
expires = 2098-06-30
epoch = "week"
mechanism = "grr"
epsilon = 1.0
values = ["light", "dark", "system"]
min_batch = 150
keep = "400d"
limits = { reports_per_epoch = 2, lifetime_epsilon = 40.0 }

[caps]
epsilon_per_year = 300.0

[runs]
shuffler = "Example Foundation, Oslo"
aggregator = "Example Ltd, Dublin"
"""


def papers_of(folder: Path, text: str = CATALOG) -> dict[str, Paper]:
    path = folder / "metrics.toml"
    path.write_text(text)
    return {paper.name: paper for paper in papers(read_with_promises(path))}


def lines(by_name: dict[str, Paper]) -> set[tuple[str, str, str]]:
    return {
        (name, statement.subject, statement.text)
        for name, paper in by_name.items()
        for statement in paper.statements
    }


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("Colour theme in use", "Colours", {"record-of-processing", "consent"}),
        ("desktop@example.org", "web@example.org", {"record-of-processing", "consent"}),
        ("2098-06-30", "2097-06-30", {"record-of-processing", "consent"}),
        ('"week"', '"day"', {"record-of-processing"}),
        ('"grr"', '"unary.oue"', {"record-of-processing", "impact-assessment"}),
        ("epsilon = 1.0", "epsilon = 0.5", {"impact-assessment"}),
        ("epsilon = 1.0", "epsilon = 5.0", {"impact-assessment", "consent"}),
        ('"system"]', '"system", "other"]', {"record-of-processing"}),
        ("min_batch = 150", "min_batch = 300", {"record-of-processing", "impact-assessment"}),
        ('keep = "400d"', 'keep = "30d"', {"record-of-processing"}),
        ('keep = "400d"\n', "", {"record-of-processing"}),
        ("reports_per_epoch = 2", "reports_per_epoch = 1", {"record-of-processing"}),
        ("lifetime_epsilon = 40.0", "lifetime_epsilon = 2.0", {"impact-assessment", "consent"}),
        ("epsilon_per_year = 300.0", "epsilon_per_year = 90.0", {"impact-assessment"}),
        ("Foundation, Oslo", "Foundation, Bern", {"record-of-processing", "stores"}),
        ("Example Ltd, Dublin", "Example Foundation, Oslo", {"record-of-processing", "stores"}),
        ('description = "Col', 'kem = "x-wing"\ndescription = "Col', {"impact-assessment"}),
    ],
)
def test_a_changed_field_changes_the_papers(
    tmp_path: Path, old: str, new: str, where: set[str]
) -> None:
    assert old in CATALOG
    before = lines(papers_of(tmp_path))
    after = lines(papers_of(tmp_path, CATALOG.replace(old, new)))
    assert {name for name, _, _ in before ^ after} >= where


def test_the_figures_are_those_that_the_mechanism_proves(tmp_path: Path) -> None:
    (tmp_path / "metrics.toml").write_text(CATALOG)
    metric: Metric = read_with_promises(tmp_path / "metrics.toml").metrics["theme"]
    risk = next(
        statement.text
        for statement in papers_of(tmp_path)["impact-assessment"].statements
        if statement.subject == "Risk: theme"
    )
    assert f"{metric.report_loss:.3f}" in risk
    assert f"right {right_of_100(metric.report_loss)} times in 100 at most" in risk


EVENTS = """
[experiments.menu]
arms = { control = 1, fresh = 1 }

[metrics.crashes]
description = "Crashes per start"
owner = "desktop@example.org"
expires = 2098-06-30
epoch = "day"
rate = { of = "crashed", per = "started", most = 20 }
mechanism = "auto"
reports = 10000
epsilon = 1.0
min_batch = 150
limits = { reports_per_epoch = 1, lifetime_epsilon = 40.0 }
"""


def test_a_rate_is_two_counts_of_events_also_by_arm(
    tmp_path: Path,
) -> None:
    tried = CATALOG.replace("min_batch = 150", 'min_batch = 150\nexperiment = "menu"')
    by_name = papers_of(tmp_path, tried + EVENTS)
    record = {s.subject: s.text for s in by_name["record-of-processing"].statements}
    assert "(2 numbers together;" in record["Data: crashes"]
    assert "until it reports on that epoch" in record["Erasure of events on the device: crashes"]
    assessment = {s.subject: s.text for s in by_name["impact-assessment"].statements}
    assert "(menu) separate groups of devices" in assessment["Risk: all answers of a year"]
    [sentence] = [
        m.sentence
        for m in card(read_with_promises(tmp_path / "metrics.toml")).metrics
        if m.name == "crashes"
    ]
    assert "which it keeps, not randomized, until it has reported" in sentence
    for paper, clear in (("consent", "beside the answer: menu."), ("stores", "beside them: menu.")):
        assert any(f"In the clear {clear}" in s.text for s in by_name[paper].statements)
    for catalog in (CATALOG, (tried + EVENTS).replace("fresh = 1", "fresh = 0")):
        by_name = papers_of(tmp_path, catalog)
        plain = {s.subject: s.text for s in by_name["impact-assessment"].statements}
        assert "nothing that links them" in plain["Risk: all answers of a year"]
        texts = [s.text for paper in by_name.values() for s in paper.statements]
        cards = card(read_with_promises(tmp_path / "metrics.toml")).metrics
        assert "menu" not in "".join([*texts, *(metric.sentence for metric in cards)])


@pytest.mark.slow
def test_the_promise_of_a_crowd_stands_beside_the_local_one(tmp_path: Path) -> None:
    by_name = papers_of(tmp_path, 'shuffler = "shuffler.example.org:443"\n' + crowd_text(20_000))
    texts = {s.subject: s.text for s in by_name["impact-assessment"].statements}
    assert "epsilon 1 at delta 1e-08, 74 times in 100" in texts["Risk: theme"]


def test_a_weakly_hidden_answer_is_named_as_a_residual_risk(tmp_path: Path) -> None:
    weak = CATALOG.replace("epsilon = 1.0", "epsilon = 8.0")
    texts = {s.subject: s.text for s in papers_of(tmp_path, weak)["impact-assessment"].statements}
    assert "theme" in texts["Residual risk"]
    assert texts["Prior consultation (Article 36)"].endswith('as the row "Residual risk" suggests.')
    strong = CATALOG.replace("epsilon = 1.0", "epsilon = 0.1").replace("= 40.0", "= 0.5")
    texts = {s.subject: s.text for s in papers_of(tmp_path, strong)["impact-assessment"].statements}
    assert "stay hidden" in texts["Residual risk"]


def test_the_consent_text_gives_the_figure_and_does_not_claim_that_answers_are_often_untrue(
    tmp_path: Path,
) -> None:
    """At epsilon 8 a device sends the truth of three values 999 times in 1,000."""
    weak = CATALOG.replace("epsilon = 1.0", "epsilon = 8.0")
    consent = papers_of(tmp_path, weak)["consent"].statements
    [asked] = [s.text for s in consent if s.subject == "We would like to know"]
    assert "right 100 times in 100 at most" in asked
    protected = " ".join(s.text for s in consent if s.subject == "How you are protected")
    assert "need not be the true one" in protected
    assert "often" not in protected


def test_each_statement_names_its_source_and_each_paper_has_decisions(tmp_path: Path) -> None:
    for paper in papers_of(tmp_path).values():
        assert all(statement.source and statement.text for statement in paper.statements)
        assert any(statement.source == DECIDE for statement in paper.statements)


def test_without_runs_the_papers_name_nobody(tmp_path: Path) -> None:
    by_name = papers_of(tmp_path, CATALOG[: CATALOG.index("[runs]")])
    text = {statement.subject: statement.text for statement in by_name["stores"].statements}
    assert text["Google: shared?"].startswith(DECIDE)


@pytest.mark.slow
def test_the_files_of_the_stores_are_read_by_their_own_formats(tmp_path: Path) -> None:
    manifest = plistlib.loads(store_files()["PrivacyInfo.xcprivacy"])
    assert manifest["NSPrivacyTracking"] is False
    [collected] = manifest["NSPrivacyCollectedDataTypes"]
    assert collected["NSPrivacyCollectedDataTypeLinked"] is False
    rows = list(csv.DictReader(io.StringIO(store_files()["google-play.csv"].decode())))
    questions = {
        (r["Question ID (machine readable)"], r["Response ID (machine readable)"]) for r in rows
    }
    assert len(questions) == len(rows)
    assert {row["Response value"] for row in rows} == {"true", "false"}
    papers_of(tmp_path)
    command = [sys.executable, "-m", "hubbub.cli", "privacy", "papers", "metrics.toml"]
    subprocess.run([*command, "--out", "p"], cwd=tmp_path, check=True, capture_output=True)
    names = {path.name for path in (tmp_path / "p").iterdir()}
    assert names >= {"PrivacyInfo.xcprivacy", "google-play.csv", "consent.md", "stores.html"}
    assert (tmp_path / "p" / "PrivacyInfo.xcprivacy").read_bytes() == store_files()[
        "PrivacyInfo.xcprivacy"
    ]
    edited = tmp_path / "p" / "consent.md"
    edited.write_text("as our lawyer wants it")
    again = subprocess.run(
        [*command, "--out", "p"], cwd=tmp_path, check=False, capture_output=True, text=True
    )
    assert again.returncode == 2
    assert "p/PrivacyInfo.xcprivacy exists; nothing is overwritten: give another" in again.stderr
    assert edited.read_text() == "as our lawyer wants it"
