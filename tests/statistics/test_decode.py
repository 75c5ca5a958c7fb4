"""Decoding strings: against the original tools' results, and on collections with known truth."""

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.analysis.strings.rappor_decoding import Decoded, decode, decode_counts, shrunk
from hubbub.analysis.strings.rappor_equations import (
    Collection,
    Design,
    bloom_places,
    fit,
    non_negative,
)
from hubbub.cli.commands.rappor import read_collection, read_map
from hubbub.errors import BadParameter, BatchTooSmall, ShapeMismatch
from hubbub.mechanisms import KeyedBits, Totals, build, tally
from hubbub.mechanisms.rappor import Rappor
from tests.support.simulated_rappor import Setting, Simulated, simulate

REFERENCE = Path(__file__).parents[1] / "data" / "rappor"
# As the reference collections are: 100 strings, of which the candidates lack ten, and others.
DEMO = (32, 1, 64, 0.25, 0.75, 0.5)
SETTINGS = [
    Setting(*DEMO, "uniform", 100, 90, 100, 10**6),
    Setting(*DEMO, "gauss", 100, 90, 100, 10**6),
    Setting(*DEMO, "exponential", 100, 90, 100, 10**6),
    Setting(*DEMO, "zipf", 100, 90, 100, 10**6),
    Setting(*DEMO, "steep zipf", 100, 90, 100, 10**6),
    Setting(8, 2, 128, 0.39, 0.61, 0.45, "exponential", 100, 90, 20, 10**6),
    Setting(*DEMO, "exponential", 100, 100, 4000, 10**6),
    Setting(*DEMO, "zipf", 200, 180, 4000, 10**6),
    Setting(64, 2, 32, 0.0, 1.0, 0.5, "zipf", 300, 290, 4000, 10**5),
    Setting(32, 2, 64, 0.25, 0.75, 0.5, "steep zipf", 100, 80, 400, 10**6),
]


def _decode(simulated: Simulated) -> Decoded:
    return decode_counts(simulated.collection, simulated.places)


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", ["demo1", "demo2", "demo3", "small_typical_exp"])
def test_the_decoder_finds_more_strings_with_less_error_than_the_original(name: str) -> None:
    folder = REFERENCE / name
    truth = {row["value"]: int(row["count"]) for row in _rows(folder / "true.csv")}
    theirs = {r["string"]: float(r["proportion"]) for r in _rows(folder / "reference_decode.csv")}
    collection = read_collection(folder / "params.csv", folder / "counts.csv")
    names, cells = read_map(folder / "map.csv.gz", collection)
    decoded = decode_counts(collection, cells)

    false = sum(string not in truth for string in theirs)
    ranked = [names[i] in truth for i in np.argsort(decoded.p_values, kind="stable")]
    wrong = np.cumsum([not true for true in ranked])
    assert sum(np.array(ranked) & (wrong <= false)) >= len(theirs) - false
    detected = [names[i] in truth for i in np.nonzero(decoded.detected)[0]]
    assert detected.count(False) <= false

    def variation(estimates: dict[str, float]) -> float:
        return sum(
            abs(estimates.get(string, 0) - truth.get(string, 0) / collection.reports)
            for string in estimates.keys() | truth.keys()
        )

    ours = dict(zip(names, (decoded.fitted / collection.reports).tolist(), strict=True))
    assert variation(ours) <= 0.95 * variation(theirs)


def test_a_higher_false_discovery_rate_marks_more_strings_and_never_fewer_than_its_p_values() -> (
    None
):
    """Of the reference collections together the false share is at most the rate."""
    marked = []
    for rate in (0.01, 0.05, 0.2):
        true, shares = 0, []
        for name in ("demo1", "demo2", "demo3", "small_typical_exp"):
            folder = REFERENCE / name
            truth = {row["value"] for row in _rows(folder / "true.csv") if int(row["count"])}
            collection = read_collection(folder / "params.csv", folder / "counts.csv")
            names, cells = read_map(folder / "map.csv.gz", collection)
            decoded = decode_counts(collection, cells, rate)
            p = np.sort(decoded.p_values)
            stepped_up = np.nonzero(p <= rate * np.arange(1, len(p) + 1) / len(p))[0].max() + 1
            assert decoded.detected.sum() >= stepped_up
            hits = [names[i] in truth for i in np.nonzero(decoded.detected)[0]]
            shares.append(hits.count(False) / len(hits))
            true += sum(hits)
        assert np.mean(shares) <= rate
        marked.append(true)
    assert marked[0] < marked[1] < marked[2]


@pytest.mark.thorough
def test_detections_and_intervals_hold_as_often_as_stated() -> None:
    """60 collections of ten kinds: at most 5% of the detected are false in expectation, and the
    detected ones' intervals hold the truth in 95%.

    The share of false ones is .027 on average, with an error of .004: six below .05. The number of
    covered strings may be 4.8 standard deviations below 95%: a chance of 8e-7.
    """
    false, covered, detected, everywhere = [], 0, 0, []
    chance = np.random.default_rng(20)
    for setting in SETTINGS:
        for _ in range(6):
            simulated = simulate(setting, chance)
            decoded, truth = _decode(simulated), simulated.truth
            detections = decoded.detected
            false.append((detections & (truth == 0)).sum() / max(detections.sum(), 1))
            holds = (decoded.low - 1e-6 <= truth) & (truth <= decoded.high + 1e-6)
            covered += int(holds[detections].sum())
            detected += int(detections.sum())
            everywhere.append(holds.mean())
    assert detected > 1800
    assert np.mean(false) <= 0.05
    assert covered >= 0.95 * detected - 4.8 * np.sqrt(0.95 * 0.05 * detected)
    assert np.mean(everywhere) >= 0.95


def test_estimates_are_unbiased_with_the_standard_error_they_state() -> None:
    """Scores of 40 collections x 190 candidates: mean 0 and deviation 1 (5.2 sigma, 2e-7)."""
    chance = np.random.default_rng(21)
    scores = []
    for _ in range(40):
        simulated = simulate(SETTINGS[2], chance)
        decoded = _decode(simulated)
        scores.append((decoded.estimates - simulated.truth) / decoded.stderrs)
    flat = np.concatenate(scores)
    assert abs(flat.mean()) < 5.2 / np.sqrt(len(flat)) * 2
    assert abs(flat.std() - 1) < 5.2 / np.sqrt(2 * len(flat)) * 2


def test_the_misfit_shows_strings_that_no_candidate_explains() -> None:
    chance = np.random.default_rng(22)
    setting = Setting(*DEMO, "uniform", 100, 60, 50, 10**6)
    shares = []
    for _ in range(20):
        decoded = _decode(simulate(setting, chance))
        assert decoded.others is not None
        amount, stderr = decoded.others
        shares.append((amount - 400_000) / stderr)
    assert abs(np.mean(shares)) < 5.2 / np.sqrt(20)
    full = Setting(*DEMO, "uniform", 100, 100, 50, 10**6)
    for setting, explained in ((full, True), (SETTINGS[3], False)):
        misfit = _decode(simulate(setting, chance)).misfit
        assert misfit is not None
        assert (misfit[1] > 1e-6) == explained


def test_more_candidates_than_equations_are_screened() -> None:
    simulated = simulate(
        Setting(128, 2, 16, 0.0, 1.0, 0.5, "zipf", 300, 300, 9700, 10**6),
        np.random.default_rng(23),
    )
    decoded = _decode(simulated)
    assert decoded.detected[:3].all()
    assert (decoded.detected & (simulated.truth == 0)).sum() <= 3
    scores = (decoded.estimates - simulated.truth) / decoded.stderrs
    assert abs(scores.std() - 1) < 0.05


def test_indistinguishable_candidates_are_named_and_share_their_figures() -> None:
    simulated = simulate(SETTINGS[2], np.random.default_rng(24))
    cells = simulated.places[[0, 1, 0, 2, 0]]
    decoded = decode_counts(simulated.collection, cells)
    assert decoded.twins == ((0, 2, 4),)
    assert decoded.estimates[0] == decoded.estimates[2] == decoded.estimates[4]
    assert decoded.detected[[0, 2, 4]].all()


def test_rows_that_add_up_to_each_other_do_not_stop_a_decode() -> None:
    """One cohort, bits a, b, ab, c, d, cd and the rest: sums of columns are other columns."""
    counts = np.array([[100_000, 30_000, 30_000, 30_000, 30_000] + [10_000] * 36])
    both = build("rappor", bits=40, hashes=2, cohorts=1, f=0.1, p=0.0, q=1.0)
    assert isinstance(both, Rappor)
    cells = np.array([[0, 40], [1, 40], [0, 1], [2, 40], [3, 40], [2, 3]], dtype=np.int32)
    decoded = decode_counts(Collection(counts, 2, both.chain.channel), cells)
    assert np.isfinite(decoded.estimates).all()


def test_an_empty_cohort_is_left_out() -> None:
    simulated = simulate(SETTINGS[2], np.random.default_rng(25))
    counts = simulated.collection.counts.copy()
    counts[7] = 0
    collection = Collection(counts, 1, simulated.collection.channel)
    decoded = decode_counts(collection, simulated.places)
    scores = (decoded.estimates - simulated.truth * 63 / 64) / decoded.stderrs
    assert abs(scores.std() - 1) < 0.3
    with pytest.raises(BatchTooSmall, match="no reports"):
        decode_counts(Collection(counts * 0, 1, collection.channel), simulated.places)
    with pytest.raises(ShapeMismatch, match="a place is outside"):
        decode_counts(collection, simulated.places + 2000)


def test_our_own_totals_decode_to_what_was_reported() -> None:
    mechanism = build("rappor", bits=32, hashes=2, cohorts=16, f=0.25, p=0.2, q=0.8)
    assert isinstance(mechanism, Rappor)
    strings = [f"site-{n}.example" for n in range(40)]
    coins = KeyedBits(b"own totals".ljust(32, b"."))
    reported = [strings[n % 4] for n in range(20_000)]
    totals = tally(mechanism.layout, (mechanism.randomize(s, coins) for s in reported))
    decoded = decode(mechanism, totals, strings)
    assert decoded.detected[:4].all()
    scores = (decoded.estimates[:4] - 5000) / decoded.stderrs[:4]
    assert np.abs(scores).max() < 5.2


@pytest.mark.parametrize("hashes", [1, 3, 4, 5, 8])
def test_hashing_many_strings_is_hashing_each(hashes: int) -> None:
    mechanism = build("rappor", bits=20, hashes=hashes, cohorts=3, f=0.25, p=0.2, q=0.8)
    assert isinstance(mechanism, Rappor)
    strings = [f"日本 {n}" for n in range(50)]
    for string, row in zip(strings, bloom_places(mechanism, strings), strict=True):
        cells = sorted(
            cohort * 20 + bit
            for cohort, positions in enumerate(mechanism.positions(string))
            for bit in positions
        )
        assert sorted(cell for cell in row.tolist() if cell < 60) == cells
    assert bloom_places(mechanism, []).shape == (0, 3 * hashes)


def test_a_decode_needs_candidates_and_its_own_totals() -> None:
    mechanism = build("rappor", bits=32, hashes=2, cohorts=16, f=0.25, p=0.2, q=0.8)
    assert isinstance(mechanism, Rappor)
    nothing = Totals(cells=[0] * mechanism.layout.size, reports=0)
    with pytest.raises(BadParameter, match="occurs twice"):
        decode(mechanism, nothing, ["a", "a"])
    with pytest.raises(BadParameter, match="name the strings to look for"):
        decode(mechanism, nothing, [])
    with pytest.raises(ShapeMismatch):
        decode(mechanism, Totals(cells=[0], reports=0), ["a"])
    with pytest.raises(BatchTooSmall):
        decode(mechanism, nothing, ["a"])


def test_the_sparse_fit_is_the_dense_one() -> None:
    """Estimates, errors and added variables, against numpy's own least squares."""
    simulated = simulate(SETTINGS[5], np.random.default_rng(26))
    design = Design(simulated.collection, simulated.places)
    rows = np.zeros((len(design), len(design.target)))
    for candidate in range(len(design)):
        rows[candidate] = design.compose(np.array([candidate]), np.ones(1))
    fitted = np.array([3, 1, 60])
    solution = fit(design, fitted)
    dense = np.column_stack([*rows[fitted], design.others])
    amounts, squares, *_ = np.linalg.lstsq(dense, design.target)
    np.testing.assert_allclose(solution.estimates[fitted], amounts[:-1], rtol=1e-8)
    np.testing.assert_allclose(solution.others[0], amounts[-1], rtol=1e-8)
    np.testing.assert_allclose(solution.squares, squares[0], rtol=1e-8)
    errors = np.sqrt(np.diag(np.linalg.inv(dense.T @ dense)) * squares[0] / solution.freedom)
    np.testing.assert_allclose(solution.stderrs[fitted], errors[:-1], rtol=1e-8)
    added = np.column_stack([*rows[fitted], design.others, rows[20]])
    np.testing.assert_allclose(
        solution.estimates[20], np.linalg.lstsq(added, design.target)[0][-1], rtol=1e-8
    )


@given(st.integers(0, 10**6), st.integers(1, 30))
def test_a_non_negative_fit_is_optimal(seed: int, size: int) -> None:
    """The conditions of Karush, Kuhn and Tucker, which hold at the optimum alone."""
    chance = np.random.default_rng(seed)
    rows = chance.normal(size=(size + 5, size))
    matrix, side = rows.T @ rows, chance.normal(size=size) * 10
    answer = non_negative(matrix, side)
    slope = matrix @ answer - side
    assert (answer >= 0).all()
    assert (slope > -1e-7).all()
    assert np.abs(slope[answer > 0]).max(initial=0) < 1e-7


def test_shrinkage_takes_from_luck_and_leaves_the_strong_alone() -> None:
    chance = np.random.default_rng(27)
    nothing = chance.normal(size=2000)
    assert shrunk(nothing).max() < 0.6
    truths = np.concatenate([np.zeros(500), np.full(100, 3.0), np.full(20, 40.0)])
    scores = truths + chance.normal(size=len(truths))
    better = shrunk(scores)
    assert ((better - truths) ** 2).mean() < ((scores - truths) ** 2).mean() / 2
    assert (better <= np.maximum(scores, 0)).all()
    np.testing.assert_allclose(better[-20:], scores[-20:], atol=0.06)
    assert shrunk(np.zeros(0)).size == 0
