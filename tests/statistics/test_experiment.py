"""An experiment asked of the query engine: effects, sizes of arms, and a verdict in words."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from hubbub.aggregator.query.engine import QueryEngine
from hubbub.aggregator.query.experiments import Experimented
from hubbub.aggregator.store.contract import WindowTotals
from hubbub.analysis.families import draw
from hubbub.conservation import Window
from hubbub.errors import UnknownMetric
from hubbub.signing.testing import make_bundle
from hubbub.simulation.rehearsal import DrawnStore
from tests.unit.test_experiments import CATALOG

EPOCH = 20_000


def _asked(folder: Path, yes: dict[str, float], reports: dict[str, int]) -> Experimented:
    path = folder / "metrics.toml"
    text = CATALOG.replace("epsilon = 1.0", "epsilon = 2.0")
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
    with pytest.raises(UnknownMetric, match='write "new_menu" if that is meant'):
        asyncio.run(engine.experiment("new_men"))
    return asyncio.run(engine.experiment("new_menu"))


def test_an_effect_is_shown_with_its_interval_and_said_in_words(tmp_path: Path) -> None:
    answer = _asked(tmp_path, {"control": 0.3, "new": 0.5}, {"control": 5000, "new": 5050})
    [row] = answer.values
    assert (row.metric, row.arm, row.measure) == ("saved", "new", "share of true")
    assert row.low < 0.2 < row.high
    assert row.shown
    assert answer.ratio_fits
    assert answer.reports == 10_050
    assert "saved, share of true: new is higher by" in answer.verdict


def test_arms_of_other_sizes_than_their_weights_are_told_first(tmp_path: Path) -> None:
    answer = _asked(tmp_path, {"control": 0.3, "new": 0.3}, {"control": 6000, "new": 5000})
    assert not answer.ratio_fits
    assert answer.ratio_p_value is not None
    assert answer.ratio_p_value < 1e-6
    assert answer.verdict.startswith("The arms' sizes do not fit their weights")


def test_an_arm_below_the_minimum_batch_has_no_answer(tmp_path: Path) -> None:
    answer = _asked(tmp_path, {"control": 0.3, "new": 0.3}, {"control": 6000, "new": 99})
    assert not answer.values
    assert "below the minimum batch of 100" in answer.unanswered[0].why
    assert answer.verdict.endswith("There is no answer yet: an arm has too few reports.")
