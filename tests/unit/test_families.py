"""A mechanism of a family is answered, planned, checked, attacked and released as the family is."""

import json
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from hubbub.aggregator.query.estimating import AnswerPlan, one_look
from hubbub.aggregator.query.metric_answer import notes
from hubbub.analysis.answering import Followed, answer, joined_shares
from hubbub.analysis.fake_report_attacks import maximal_gain
from hubbub.analysis.families import FAMILIES, draw, family_for
from hubbub.analysis.families.contract import Family
from hubbub.analysis.families.listed_values import Listed
from hubbub.authoring import read_catalog
from hubbub.authoring.auto_mechanism import choose
from hubbub.catalog import Release
from hubbub.cli.main import main
from hubbub.client import Outcome
from hubbub.client.testing import FakeShuffler, memory_client
from hubbub.mechanisms import REGISTRY, KeyedBits, tally
from hubbub.privacy.central_releases import release
from hubbub.privacy.metric_draft import MetricDraft
from hubbub.privacy.planner import row
from hubbub.signing.testing import make_bundle
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.recipe import example
from tests.support.waiting import HANG_SECONDS


def test_the_recipe_s_mechanism_is_answered_as_its_family_is() -> None:
    """Nothing but its own file knows of it: 5,000 people, each figure within 6 standard errors."""
    mechanism = example()(epsilon=2.0, categories=4)  # type: ignore[call-arg]
    true_counts, names = [3000, 1500, 500, 0], ["a", "b", "c", "d"]
    coins, chance = KeyedBits(b"recipe".ljust(32)), np.random.default_rng(1)
    payloads = [
        mechanism.randomize(value, coins) for value in np.repeat(range(4), true_counts).tolist()
    ]
    totals = tally(mechanism.layout, payloads)
    result = answer(mechanism, totals, names)
    for member, true in zip(result.values, true_counts, strict=True):
        assert abs(member.estimate - true) <= 6 * member.stderr
    [point] = joined_shares([Followed([(mechanism, totals)], [0])])
    assert point.low < 0.6 < point.high
    assert family_for(mechanism).plausibility([(mechanism, totals)]).findings == ()
    assert maximal_gain(mechanism, [3]).gain(0.01) > 0.01
    errors = family_for(mechanism).expected(mechanism, range(4), np.array(true_counts) / 5000, 5000)
    stderrs = [value.stderr / 5000 for value in result.values]
    assert errors.stderrs == pytest.approx(stderrs, rel=0.1)
    assert draw(mechanism, range(4), true_counts, chance).reports == 5000
    policy = Release("laplace", 1.0)
    released = release([(mechanism, totals)], names, "histogram", "", policy=policy, reports_each=1)
    assert [estimate.value for estimate in released] == names


CATALOG = catalog_toml(
    metric_toml(
        "theme",
        mechanism="forced",
        epsilon=2.0,
        values=["a", "b", "c", "d"],
        lifetime_epsilon=500.0,
    )
)


class Doubled(Listed):
    """A throwaway family: one file would hold it, and one line of FAMILIES."""

    SHARES = "Shares of a throwaway family."
    ONE_LOOK = "a throwaway family is looked at once"


@pytest.mark.slow
@pytest.mark.parametrize("family", ["listed", "doubled"])
def test_one_registry_line_adds_a_mechanism_everywhere(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    family: str,
) -> None:
    """The recipe's mechanism beside the others, for a moment, and perhaps a family of its own."""
    named = 'NAME = "forced"', f'NAME = "forced"\n    FAMILY = "{family}"'
    monkeypatch.setitem(REGISTRY, "forced", example(named))
    monkeypatch.setitem(cast("dict[str, Family]", FAMILIES), "doubled", Doubled())
    catalog, people = tmp_path / "metrics.toml", tmp_path / "people.csv"
    catalog.write_text(CATALOG)
    people.write_text("a,600\nb,300\nc,100\n")

    def command(*words: str) -> str:
        assert main([*words]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    assert choose(2.0, 4, {"reports": 1000}).best.mechanism
    rows = json.loads(
        command("plan", "--values", "4", "--epsilon", "2", "--reports", "1000", "--format", "json")
    )
    # Of several families for one question `plan` recommends those that are listed.
    assert ("forced" in {row["mechanism"] for row in rows["rows"]}) == (family == "listed")
    plan_row = row(
        MetricDraft(kind="values", size=4), "forced", {"epsilon": 2.0, "categories": 4}, 1000
    )
    assert 0 < plan_row.stderr < plan_row.detectable < 1
    assert "theme" in command("catalog", "check", str(catalog))
    assert "forced" in command("privacy", "card", str(catalog))
    assert "theme" in command("audit", str(catalog), "--no-proofs", "--samples", "2000")
    document = json.loads(
        command(
            "simulate",
            "theme",
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
    assert len(document["runs"]) == 3
    assert {value["value"] for value in document["runs"][0]["values"]} == {"a", "b", "c", "d"}
    shuffler = FakeShuffler()
    client = memory_client(make_bundle(catalog).bundle, transport=shuffler)
    assert client.report("theme", "a") is Outcome.QUEUED
    assert client.flush(HANG_SECONDS)
    assert len(shuffler.reports()) == 1
    metric = read_catalog(catalog).metrics["theme"]
    drawn = draw(metric.randomizer, range(4), [600, 300, 100, 0], np.random.default_rng(1))
    result = answer(metric.randomizer, drawn, metric.values)
    of_family = family == "doubled"
    assert ("Shares of a throwaway family." in notes(AnswerPlan.of(metric), result)) == of_family
    assert (one_look(metric) == "a throwaway family is looked at once") == of_family
    assert "theme" in command("plan", "attack", str(catalog), "--simulate", "200")
