"""An experiment asked of the query engine: effects, sizes of arms, and a verdict in words."""

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest

from hubbub.aggregator.query.engine import QueryEngine
from hubbub.aggregator.query.experiments import Experimented, experimented
from hubbub.aggregator.store.contract import WindowTotals
from hubbub.analysis.families import draw
from hubbub.cli.main import main
from hubbub.conservation import Window
from hubbub.errors import UnknownMetric
from hubbub.signing.testing import make_bundle
from hubbub.simulation.rehearsal import DrawnStore
from tests.unit.test_experiments import CATALOG

EPOCH = 20_000


def _experiment_answer(
    folder: Path, yes: dict[str, float], reports: dict[str, int], text: str = CATALOG
) -> Experimented:
    path = folder / "metrics.toml"
    text = text.replace("epsilon = 1.0", "epsilon = 2.0")
    path.write_text(text.replace("reports_per_epoch = 9", "reports_per_epoch = 1"))
    bundle = make_bundle(path).bundle
    chance, totals = np.random.default_rng(11), {}
    for arm, count in reports.items():
        counts = chance.multinomial(count, [1 - yes[arm], yes[arm]]).tolist()
        drawn = draw(bundle.metric("saved").randomizer, [0, 1], counts, chance)
        totals[Window(f"saved@new_menu={arm}", EPOCH)] = WindowTotals(
            cells=np.array(drawn.cells), counted=count, batch_reports=count, at=0, dummies=0
        )
    engine = QueryEngine(bundle, DrawnStore(totals), clock=lambda: (EPOCH + 9) * 86_400.0)
    with pytest.raises(UnknownMetric, match='did you mean "new_menu"'):
        asyncio.run(experimented(engine, "new_men"))
    return asyncio.run(experimented(engine, "new_menu"))


def test_an_effect_is_shown_with_its_interval_and_said_in_words(tmp_path: Path) -> None:
    answer = _experiment_answer(
        tmp_path, {"control": 0.3, "new": 0.5}, {"control": 5000, "new": 5050}
    )
    [row] = answer.values
    assert (row.metric, row.arm, row.measure) == ("saved", "new", "share of true")
    assert row.low < 0.2 < row.high
    assert row.shown
    assert answer.ratio_fits
    assert answer.reports == 10_050
    assert "saved, share of true: new is higher by" in answer.verdict


def test_as_many_reports_as_are_planned_for_an_effect_would_show_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _experiment_answer(tmp_path, {"control": 0.5, "new": 0.5}, {"control": 100, "new": 100})
    words = ["plan", str(tmp_path / "metrics.toml"), "--metric", "saved", "--effect", "0.05"]
    assert main([*words, "--format", "json"]) == 0
    count = int(json.loads(capsys.readouterr().out)["rows"][0]["reports"])
    answer = _experiment_answer(
        tmp_path, {"control": 0.5, "new": 0.5}, {"control": count, "new": count}
    )
    assert answer.values[0].detectable == pytest.approx(0.05, rel=0.01)


def test_a_percentile_that_may_lie_beyond_the_range_is_no_sure_effect(tmp_path: Path) -> None:
    text = CATALOG.replace('kind = "boolean"', 'kind = "duration"\nunit = "s"\nedges = [0, 1, 9]')
    text = text.replace('mechanism = "rr"', 'mechanism = "grr"')
    yes = {"control": 0.3, "new": 0.9}
    answer = _experiment_answer(tmp_path, yes, {"control": 5000, "new": 5000}, text)
    rows = {row.measure: row for row in answer.values}
    assert rows["p95"].reaches == "high"
    assert rows["p95"].verdict.endswith("where the range ends; the truth may lie beyond")


def test_arms_of_other_sizes_than_their_weights_are_told_first(tmp_path: Path) -> None:
    answer = _experiment_answer(
        tmp_path, {"control": 0.3, "new": 0.3}, {"control": 6000, "new": 5000}
    )
    assert not answer.ratio_fits
    assert answer.ratio_p_value is not None
    assert answer.ratio_p_value < 1e-6
    assert answer.verdict.startswith("The arms' sizes do not fit their weights")


def test_an_arm_below_the_minimum_batch_has_no_answer(tmp_path: Path) -> None:
    answer = _experiment_answer(
        tmp_path, {"control": 0.3, "new": 0.3}, {"control": 6000, "new": 99}
    )
    assert not answer.values
    [gap] = answer.unanswered
    assert "below the minimum batch of 100" in gap.why
    assert answer.verdict.endswith(f"saved, new: no answer: {gap.why}.")
