"""Sure enough, and no surer: honest is not all, what there is to see is seen.

Fixed seeds; coverage itself is tried in test_calibration.py.
"""

from collections.abc import Sequence

import numpy as np
import pytest

from hubbub.analysis.answering import answer_tiers
from hubbub.analysis.families import draw, draw_epochs
from hubbub.analysis.strings.rappor_decoding import decode_counts
from hubbub.mechanisms import Totals, build
from tests.statistics.calibration.shapes import Shape, built, equal, sure, zipf
from tests.support.simulated_rappor import Setting, simulate


@pytest.mark.parametrize("repeats", [1, 7])
def test_a_frequent_unlisted_string_is_noticed_despite_permanent_lies(repeats: int) -> None:
    """The candidates leave out what a tenth and more of all devices hold."""
    chance = np.random.default_rng(34)
    setting = Setting(32, 1, 64, 0.25, 0.75, 0.5, "steep zipf", 8, 4, 20, 400_000)
    noticed = 0
    for _ in range(20):
        simulated = simulate(setting, chance, repeats)
        decoded = decode_counts(simulated.collection, simulated.places, repeats=repeats)
        noticed += decoded.misfit is not None and decoded.misfit[1] < 1e-3
    assert noticed >= 10  # which four are listed is drawn: the first is missing in half of them


def test_with_too_many_candidates_others_and_misfit_are_empty() -> None:
    """Of others, and of how well the listed ones explain."""
    many = Setting(32, 2, 64, 0.25, 0.75, 0.5, "zipf", 300, 270, 1730, 100_000)
    simulated = simulate(many, np.random.default_rng(35))
    decoded = decode_counts(simulated.collection, simulated.places)
    assert decoded.others is None
    assert decoded.misfit is None


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("long.unary", {"epsilon": 1.0, "permanent_epsilon": 2.0}),
        ("long.grr", {"epsilon": 1.0, "permanent_epsilon": 2.0}),
        ("rappor.basic", {"f": 0.5, "p": 0.25, "q": 0.75}),
    ],
)
def test_the_error_of_a_week_of_repeated_lies_is_as_stated(
    name: str, parameters: dict[str, float]
) -> None:
    """Of 480 errors the deviation is known to a twentieth; values of one week vary together."""
    mechanism = build(name, **parameters, categories=8)
    chance, names = np.random.default_rng(47), [str(value) for value in range(8)]
    counts = [6000, 4000, 3000, 2500, 2000, 1500, 1000, 0]
    off, stderrs = [], []
    for _ in range(60):
        epochs = list(draw_epochs(mechanism, range(8), counts, 7, chance))
        cells = np.sum([epoch.cells for epoch in epochs], axis=0).tolist()
        totals = Totals(cells=cells, reports=7 * sum(counts))
        answer = answer_tiers([(mechanism, totals)], names, repeats=7).values
        off += [row.estimate - 7 * true for row, true in zip(answer, counts, strict=True)]
        stderrs += [row.stderr for row in answer]
    assert 0.8 <= np.mean(stderrs) / np.std(off) <= 1.25


@pytest.mark.parametrize("epsilon", [1.0, 4.0, 8.0])
@pytest.mark.parametrize("shape", [equal, zipf, sure(1), sure(5)])
def test_the_consistent_picture_is_never_worse_than_the_estimates(
    epsilon: float, shape: Shape
) -> None:
    counts, off, raw = shape(64, 3000), 0.0, 0.0
    chance, mechanism = np.random.default_rng(46), built("grr", epsilon, 64)
    names = [str(value) for value in range(64)]
    for _ in range(40):
        totals = draw(mechanism, range(64), counts, chance)
        values = answer_tiers([(mechanism, totals)], names).values
        array = np.array([value.consistent for value in values], dtype=np.float64)
        off += _squares(array, counts)
        raw += _squares([value.estimate for value in values], counts)
        assert array.sum() == pytest.approx(3000, abs=1)
    assert off <= raw * (1 + 1e-6)


def _squares(
    estimates: "Sequence[float] | np.typing.NDArray[np.float64]", counts: list[int]
) -> float:
    return float(np.square(np.array(estimates) - counts).sum())
