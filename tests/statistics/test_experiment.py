"""An experiment asked of the query engine: effects, sizes of arms, and a verdict in words."""

import asyncio
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub.aggregator.query.engine import QueryEngine
from hubbub.aggregator.query.experiments import Experimented, experimented
from hubbub.aggregator.store.contract import WindowTotals
from hubbub.analysis.comparisons.effect import ArmEstimate, effect_confidence, effects
from hubbub.analysis.families import draw
from hubbub.analysis.families.joint_errors import Joint
from hubbub.analysis.funnels_retention_and_rates import conversions
from hubbub.analysis.uncertainty.intervals import difference_of, fieller, reach_of
from hubbub.bundles import Bundle
from hubbub.conservation import Window
from hubbub.errors import UnknownMetric
from hubbub.mechanisms import build
from hubbub.privacy.metric_draft import MetricDraft
from hubbub.privacy.planner import row
from hubbub.signing.testing import make_bundle
from hubbub.simulation.rehearsal import DrawnStore
from tests.support.commands import document_of, refusal_of
from tests.unit.test_experiments import CATALOG

EPOCH = 20_000


def _experiment_answer(
    folder: Path, yes: tuple[float, float], reports: tuple[int, int], text: str = CATALOG
) -> Experimented:
    """Of the arms control and new: which share of how many reports is yes."""
    chance = np.random.default_rng(10)
    people = {
        arm: chance.multinomial(count, [1 - share, share]).tolist()
        for arm, share, count in zip(("control", "new"), yes, reports, strict=True)
    }
    return _answer(_bundle(folder, text), [0, 1], people)


def _bundle(folder: Path, text: str) -> Bundle:
    path = folder / "metrics.toml"
    text = text.replace("epsilon = 1.0", "epsilon = 2.0")
    path.write_text(text.replace("reports_per_epoch = 9", "reports_per_epoch = 1"))
    return make_bundle(path).bundle


def _answer(bundle: Bundle, values: list[Any], *people: dict[str, list[int]]) -> Experimented:
    """people: by epoch, of each arm how many have each value."""
    chance, totals = np.random.default_rng(11), {}
    arms = [(epoch, arm) for epoch, by_arm in enumerate(people, EPOCH) for arm in by_arm]
    for epoch, arm in arms:
        counts = people[epoch - EPOCH][arm]
        drawn = draw(bundle.metric("saved").randomizer, values, counts, chance)
        totals[Window(f"saved@new_menu={arm}", epoch)] = WindowTotals(
            cells=np.array(drawn.cells),
            counted=drawn.reports,
            batch_reports=drawn.reports,
            at=0,
            dummies=0,
        )
    engine = QueryEngine(bundle, DrawnStore(totals), clock=lambda: (EPOCH + 9) * 86_400.0)
    with pytest.raises(UnknownMetric, match='did you mean "new_menu"'):
        asyncio.run(experimented(engine, "new_men"))
    return asyncio.run(experimented(engine, "new_menu"))


def test_an_effect_is_shown_with_its_interval_and_a_sentence(tmp_path: Path) -> None:
    answer = _experiment_answer(tmp_path, (0.3, 0.5), (5000, 5050))
    [row] = answer.values
    assert (row.metric, row.arm, row.measure) == ("saved", "new", "share of true")
    assert row.low < 0.2 < row.high
    assert row.shown
    assert answer.ratio_fits
    assert answer.reports == 10_050
    assert "saved, share of true: new is higher by" in answer.verdict


def test_an_experiment_with_too_few_reports_shows_no_effect(tmp_path: Path) -> None:
    faint = CATALOG.replace("epsilon = 1.0", "epsilon = 0.1")
    answer = _experiment_answer(tmp_path, (0.5, 0.5), (200, 200), faint)
    assert answer.values[0].detectable > 1
    assert "no effect of new shown (too few reports for any): between -100" in answer.verdict
    listed = f'values = {[f"v{number}" for number in range(9)]}\nmechanism = "grr"'
    bundle = _bundle(tmp_path, faint.replace('kind = "boolean"\nmechanism = "rr"', listed))
    answer = _answer(bundle, [*range(9)], {"control": [200] * 9, "new": [200] * 9})
    assert "saved, 3 more in the table: none beyond chance." in answer.verdict


def test_the_planned_number_of_reports_shows_an_effect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _experiment_answer(tmp_path, (0.5, 0.5), (100, 100))
    words = ["plan", str(tmp_path / "metrics.toml"), "--metric", "saved", "--effect", "0.05"]
    count = int(document_of(capsys, *words, "--format", "json")["rows"][0]["reports"])
    answer = _experiment_answer(tmp_path, (0.5, 0.5), (count, count))
    assert answer.values[0].detectable == pytest.approx(0.05, rel=0.01)


@pytest.mark.parametrize(
    ("metric", "plan", "values", "measure"),
    [
        (
            'kind = "funnel"\nsteps = ["visit", "cart", "paid"]\nmechanism = "grr"',
            "--ratio 0.1 0.4",
            {0: 0.6, 1: 0.3, 2: 0.1},
            "share from cart to paid",
        ),
        pytest.param(
            'rate = { of = "crashed", per = "started", most = 20 }\nmechanism = "auto"',
            "--ratio 0.177 0.354",
            {(5.0, 10.0): 1.0},
            "crashed per started",
            marks=pytest.mark.thorough,
        ),
    ],
    ids=["funnel", "rate"],
)
def test_an_effect_on_a_ratio_is_found_at_the_planned_number_of_reports(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    metric: str,
    plan: str,
    values: dict[Any, float],
    measure: str,
) -> None:
    text = CATALOG.replace('kind = "boolean"\nmechanism = "rr"', metric)
    bundle = _bundle(tmp_path, text)
    words = ["plan", str(tmp_path / "metrics.toml"), "--metric", "saved", "--format", "json"]
    assert "add --ratio" in refusal_of(capsys, *words, "--effect", "0.1")
    document = document_of(capsys, *words, *plan.split(), "--effect", "0.1")
    count = int(document["rows"][0]["reports"])
    people = [round(count * share) for share in values.values()]
    answer = _answer(bundle, [*values], {"control": people, "new": people})
    rows = {row.measure: row for row in answer.values}
    assert rows[measure].low <= 0 <= rows[measure].high
    # A plan takes people to differ as much as is possible; of the rate they are alike.
    assert 0.085 <= rows[measure].detectable <= 0.102
    few = {arm: [n * 150 // count for n in people] for arm in ("control", "new")}
    answer = _answer(bundle, [*values], few)
    if not answer.values:  # a rate has no upper end
        assert "the number of started is not clearly above 0" in answer.unanswered[0].why


@pytest.mark.thorough
def test_a_far_move_of_a_conversion_is_shown_as_often_as_planned(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """400 experiments of a conversion from .25 to 1: of 80% below .7 once in a million."""
    words = "plan --values 3 --epsilon 4 --ratio 0.1 0.4 --effect 0.75 --format json"
    count = int(document_of(capsys, *words.split())["rows"][0]["reports"])
    mechanism, chance = build("grr", epsilon=4.0, categories=3), np.random.default_rng(12)
    surer = effect_confidence(0.95, 3, (count, count), 1, 100)

    def arm(shares: list[float]) -> ArmEstimate:
        totals = draw(mechanism, range(3), chance.multinomial(count, shares).tolist(), chance)
        figures = conversions(Joint([(mechanism, totals)], 1), "abc", 1, "", surer)
        return ArmEstimate(figures={figures[1].figure: figures[1].bounds})

    pairs = ((arm([0.6, 0.3, 0.1]), arm([0.6, 0.0, 0.4])) for _ in range(400))
    assert sum(row.shown for pair in pairs for row in effects(*pair, surer)) >= 280


def test_a_rate_that_nearly_triples_is_shown_as_often_as_planned(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """10,000 experiments with normal errors of both means: of 80% below .78 once in a million.

    By a normal law of the ratio it was shown in .757.
    """
    words = "plan --vector 2 1 --epsilon 4 --ratio 0.1 0.2 --effect 0.9 --format json"
    best, runs = document_of(capsys, *words.split())["rows"][0], 10_000
    count, chance = float(best["reports"]), np.random.default_rng(12)
    question = MetricDraft(kind="vector", size=2)
    parameters = question.suitable(4.0)["vector.codes"]
    error = 2 * row(question, "vector.codes", parameters, count).population
    reach = reach_of(effect_confidence(0.95, 1, (count, count), 1, 100))
    arms = []
    for ratio in (0.5, 1.4):
        numerators, denominators = chance.normal([0.2 * ratio, 0.2], error, (runs, 2)).T
        variances = error**2 * np.array([1, 0, 1])[:, None] * np.ones(runs)
        arms.append(
            fieller(numerators, denominators, variances, variances[0], reach=reach, most=inf)
        )
    _, low, _ = difference_of(np.array(arms).swapaxes(0, 1), (0.0, inf))
    assert (low > 0).mean() > 0.78


def test_an_effect_on_a_percentile_beyond_the_range_is_uncertain(tmp_path: Path) -> None:
    text = CATALOG.replace('kind = "boolean"', 'kind = "duration"\nunit = "s"\nedges = [0, 1, 9]')
    text = text.replace('mechanism = "rr"', 'mechanism = "grr"')
    answer = _experiment_answer(tmp_path, (0.3, 0.9), (5000, 5000), text)
    rows = {row.measure: row for row in answer.values}
    assert rows["p95"].reaches == "high"
    assert rows["p95"].verdict.endswith("where the range ends; the truth may lie beyond")


def test_arms_whose_sizes_do_not_fit_their_weights_are_shown_first(tmp_path: Path) -> None:
    answer = _experiment_answer(tmp_path, (0.3, 0.3), (6000, 5000))
    assert not answer.ratio_fits
    assert answer.ratio_p_value is not None
    assert answer.ratio_p_value < 1e-6
    assert answer.verdict.startswith("The arms' sizes do not fit their weights")
    assert "they do not fit either" in answer.verdict
    for equal, new, cause in ((4000, 8000, "they fit: an arm"), (300, 5000, "there are too few")):
        epochs = [{"control": [a, 0], "new": [b, 0]} for a, b in ((equal, equal), (4000, new))]
        answer = _answer(_bundle(tmp_path, CATALOG), [0, 1], *epochs)
        assert "do not fit" in answer.sizes
        assert f"In the first epoch alone (p = 1) {cause}" in answer.verdict


def test_more_returning_devices_in_an_arm_are_no_sign_of_wrong_sizes(tmp_path: Path) -> None:
    text = CATALOG.replace('kind = "boolean"\nmechanism = "rr"', 'kind = "retention"\nweeks = 1')
    text = text.replace('epoch = "day"', 'epoch = "week"\nmechanism = "grr"')
    people = {"control": [5000, 1000, 0], "new": [5000, 3000, 0]}
    answer = _answer(_bundle(tmp_path, text), [0, 1, 2], people)
    assert answer.ratio_p_value is None
    assert answer.ratio_fits


def test_an_arm_below_the_minimum_batch_has_no_answer(tmp_path: Path) -> None:
    answer = _experiment_answer(tmp_path, (0.3, 0.3), (6000, 99))
    assert not answer.values
    [gap] = answer.unanswered
    assert "below the minimum batch of 100" in gap.why
    assert "once its day is over" not in gap.why
    assert answer.verdict.endswith(f"saved, new: no answer: {gap.why}.")
    funnel = 'kind = "funnel"\nsteps = ["a", "b"]\nmechanism = "grr"'
    text = CATALOG.replace('kind = "boolean"\nmechanism = "rr"', funnel)
    few = {"control": [200, 50], "new": [9, 9]}
    [gap] = _answer(_bundle(tmp_path, text), [0, 1], few).unanswered
    assert gap.why.endswith("; devices report a funnel once its day is over")
    text = text.replace('funnel"\nsteps =', 'set"\nmost = 1\nvalues =').replace("grr", "privset")
    [gap] = _answer(_bundle(tmp_path, text), [0, 1], few).unanswered
    assert gap.why.endswith('"hubbub breakdown saved --by new_menu" are for one look')
