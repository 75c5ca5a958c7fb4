"""What analysis makes of totals beyond a mechanism's own estimates: transforms, sketches, waves."""

import math
from collections import Counter

import numpy as np
import pytest

from hubbub.analysis.answering import answer
from hubbub.analysis.estimators.distribution import smooth, unbiased
from hubbub.analysis.families.listed_values import estimates_of
from hubbub.analysis.families.sketch import Sketch, Sketches, buckets
from hubbub.analysis.strings.rappor_equations import sketch_buckets
from hubbub.errors import BadParameter, BatchTooSmall, ShapeMismatch
from hubbub.mechanisms import Totals, build, tally
from hubbub.mechanisms.cms import CountMeanSketch
from hubbub.mechanisms.hadamard import WalshHadamard
from hubbub.mechanisms.mean_lookup_table import TableMean
from hubbub.mechanisms.mean_one_bit import OneBitMean
from hubbub.mechanisms.mean_piecewise import PiecewiseMean
from hubbub.mechanisms.projective_geometry import Incidence
from hubbub.mechanisms.wave import SquareWave
from tests.statistics.test_real_sizes import SeededBits
from tests.unit.test_poisoning import BUILD, BUILT, VALUES


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
@pytest.mark.parametrize("categories", [2, 3, 29, 100, 364])
@pytest.mark.parametrize("name", ["hadamard", "projective", "long.hash"])
def test_a_fast_transform_is_the_plain_one(name: str, categories: int, epsilon: float) -> None:
    lasting = {"permanent_epsilon": 2 * epsilon} if name == "long.hash" else {}
    mechanism = build(name, epsilon=epsilon, categories=categories, **lasting)
    cells = np.random.default_rng(categories).integers(0, 10**6, mechanism.layout.size)
    totals = Totals(cells=cells.tolist(), reports=int(cells.sum()))
    plain, (values, variances) = mechanism.estimate(totals), estimates_of(mechanism, totals)
    np.testing.assert_allclose(values, plain.values, rtol=1e-12)
    np.testing.assert_allclose(variances, plain.variances, rtol=1e-12)
    with pytest.raises(ShapeMismatch):
        estimates_of(mechanism, Totals(cells=[1], reports=1))


@pytest.mark.parametrize(
    "name", [pytest.param("hadamard", marks=pytest.mark.thorough), "projective"]
)
def test_a_million_values_read_back_exactly_what_one_report_supports(name: str) -> None:
    """One report of a value supports it, or does not; and another one a known share of the time."""
    mechanism = build(name, epsilon=1.0, categories=1 << 20)
    coins = SeededBits(name)
    value = 777_777
    totals = tally(mechanism.layout, (mechanism.randomize(value, coins) for _ in range(2000)))
    values, _ = estimates_of(mechanism, totals)
    sigma = math.sqrt(mechanism.variance(2000, 2000))
    assert abs(values[value] - 2000) < 5.2 * sigma
    others = np.delete(values, value)
    # The others' mean: each is within sigma of 0, and so is any average of them.
    assert abs(others.mean()) < 5.2 * math.sqrt(mechanism.variance(0, 2000))


@pytest.mark.parametrize("name", ["rr", "rappor.basic", "long.unary", "mean.table", "privset"])
def test_without_reports_every_end_is_a_number(name: str) -> None:
    mechanism = BUILD[name](**BUILT[name])
    names = [str(value) for value in range(2 if name == "rr" else VALUES)]
    answered = answer(
        mechanism,
        Totals(cells=[0] * mechanism.layout.size, reports=0),
        None if mechanism.FAMILY == "mean" else names,
    )
    assert np.isfinite([(row.low, row.high) for row in answered.values]).all()


def test_a_geometry_numbers_its_points_without_gaps() -> None:
    for space in (Incidence(2, 4), Incidence(3, 3), Incidence(5, 2), Incidence(7, 3)):
        vectors = [space.vector(point) for point in range(space.points)]
        assert len({tuple(vector) for vector in vectors}) == space.points
        for point, vector in enumerate(vectors):
            assert vector[next(i for i, x in enumerate(vector) if x)] == 1
            for factor in range(1, space.prime):
                assert space.point([factor * x % space.prime for x in vector]) == point
        assert set(space.sums([1] * space.points, space.points)) == {space.on_one}


def test_a_transform_needs_a_size_that_it_exists_for() -> None:
    for size in (0, -4, 3, 12):
        with pytest.raises(BadParameter, match="not a power of two"):
            WalshHadamard(size)
    for prime, dimensions in ((1, 3), (3, 1)):
        with pytest.raises(BadParameter, match="no geometry"):
            Incidence(prime, dimensions)


@pytest.mark.parametrize("name", ["cms", "hcms", "local_hash"])
def test_buckets_of_a_sketch_are_the_mechanisms_own_estimates(name: str) -> None:
    mechanism = build(name, epsilon=1.0, hashes=5, width=16)
    assert isinstance(mechanism, Sketch)
    coins = SeededBits(name)
    payloads = [mechanism.randomize(f"s{n % 9}", coins) for n in range(500)]
    totals = tally(mechanism.layout, payloads)
    cells, reports = buckets(mechanism, totals)
    np.testing.assert_allclose(cells.reshape(-1), mechanism.estimate(totals).values, rtol=1e-9)
    assert reports.sum() == 500
    strings = [f"s{n}" for n in range(20)]
    places = sketch_buckets(mechanism, strings)
    assert places.tolist() == [mechanism.positions(string) for string in strings]


def _sketched(
    mechanism: Sketch, seed: int
) -> tuple[Totals, list[str], np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """20,000 reports over 200 strings by Zipf's law, and 200 strings that nobody has."""
    chance = np.random.default_rng(seed)
    weights = 1 / np.arange(1, 201)
    drawn = Counter(chance.choice(200, 20_000, p=weights / weights.sum()).tolist())
    coins = SeededBits(f"{mechanism.NAME} {seed}")
    totals = tally(
        mechanism.layout,
        (mechanism.randomize(f"{seed}/{s}", coins) for s, n in drawn.items() for _ in range(n)),
    )
    truth = np.array([drawn[s] for s in range(200)] + [0] * 200)
    return totals, [f"{seed}/{s}" for s in range(400)], truth


@pytest.mark.parametrize(
    "name", [pytest.param("cms", marks=pytest.mark.thorough), "hcms", "local_hash"]
)
def test_sketched_strings_are_unbiased_with_collisions_in_the_standard_error(name: str) -> None:
    """Few functions and buckets, so that collisions matter: over ten families of hash functions
    (the strings' names differ) 4,000 scores have mean 0 and deviation 1. Scores of one family
    share its coins, so their mean's deviation is that of a tenth of them; 5.2 sigma, 2e-7."""
    mechanism = build(name, epsilon=3.0, hashes=16, width=32)
    assert isinstance(mechanism, Sketch)
    scores, nothing = [], []
    for seed in range(10):
        totals, strings, truth = _sketched(mechanism, seed)
        figures = Sketches().figures(mechanism, totals, strings)
        scores.append((figures.estimates - truth) / figures.stderrs)
        nothing.append(figures.estimates[200:] / figures.absent[200:])
    for sample in (np.concatenate(scores), np.concatenate(nothing)):
        few = len(sample) / 10
        assert abs(sample.mean()) < 5.2 / math.sqrt(few)
        assert abs(sample.std() - 1) < 5.2 / math.sqrt(2 * few)


def test_a_sketch_estimates_candidates_and_marks_detected_ones() -> None:
    mechanism = build("cms", epsilon=4.0, hashes=64, width=64)
    assert isinstance(mechanism, CountMeanSketch)
    totals, strings, truth = _sketched(mechanism, 3)
    result = answer(mechanism, totals, None, strings)
    assert result.kind == "values"
    assert result.values[0].detected
    assert sum(value.detected is True for value in result.values[200:]) <= 3
    assert result.values[0].low <= truth[0] <= result.values[0].high
    with pytest.raises(BatchTooSmall):
        answer(mechanism, Totals(cells=[0] * mechanism.layout.size, reports=0), None, ["a"])


@pytest.mark.parametrize("name", ["mean.one_bit", "mean.piecewise", "mean.table"])
def test_a_mean_is_shown_in_the_unit_of_its_numbers(name: str) -> None:
    mechanism = build(name, epsilon=1.0, low=-40, high=60)
    assert isinstance(mechanism, OneBitMean | PiecewiseMean | TableMean)
    coins, chance = SeededBits(name), np.random.default_rng(3)
    numbers = np.clip(chance.normal(22, 9, size=20_000), -40, 60)
    totals = tally(mechanism.layout, (mechanism.randomize(x, coins) for x in numbers.tolist()))
    result = answer(mechanism, totals, None)
    [mean] = result.values
    assert (result.kind, mean.value) == ("mean", "mean")
    assert abs(mean.estimate - numbers.mean()) < 5.2 * mean.stderr
    assert mean.low < mean.estimate < mean.high
    assert math.isclose(result.places[0], (mean.estimate + 40) / 100)
    assert (mean.share, mean.rank, mean.detected) == (None, None, None)
    assert mechanism.variance(0, 0) == 0
    assert mechanism.estimate(Totals(cells=[0] * mechanism.layout.size, reports=0)).values == (0.0,)


def test_answers_of_buckets_have_ranges() -> None:
    mechanism = build("buckets", epsilon=2.0, low=0, high=10, buckets=4, sampled=3)
    coins = SeededBits("ranges")
    totals = tally(mechanism.layout, (mechanism.randomize(n % 3, coins) for n in range(3000)))
    result = answer(mechanism, totals, None)
    assert result.kind == "ranges"
    assert [v.value for v in result.values] == ["[0, 2.5)", "[2.5, 5)", "[5, 7.5)", "[7.5, 10]"]
    assert abs(result.values[0].estimate - 3000) < 5.2 * result.values[0].stderr
    assert mechanism.randomize(10, coins)  # the last range holds its end
    with pytest.raises(BadParameter, match='leave "candidates" out'):
        answer(mechanism, totals, None, ["x"])


HILLS = np.exp(-0.5 * ((np.arange(64) / 64 - 0.3) / 0.12) ** 2) + 0.05
PEAK = np.where(np.arange(64) == 25, 30.0, np.arange(64) < 40)


def _waves(
    seed: int, shares: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> tuple[SquareWave, Totals, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """200,000 reports over 64 buckets, drawn from their exact law."""
    mechanism = build("wave", epsilon=1.0, low=0, high=1, buckets=64)
    assert isinstance(mechanism, SquareWave)
    chance = np.random.default_rng(seed)
    truth = chance.multinomial(200_000, shares / shares.sum())
    near, far = float(mechanism.window.near), float(mechanism.window.far)
    cells = np.zeros(mechanism.layout.size, dtype=np.int64)
    for bucket, reports in enumerate(truth.tolist()):
        law = np.full(len(cells), far)
        law[bucket : bucket + mechanism.window.width] = near
        cells += chance.multinomial(reports, law / law.sum())
    return mechanism, Totals(cells=cells.tolist(), reports=200_000), truth


@pytest.mark.parametrize("shares", [HILLS, PEAK], ids=["hills", "peak"])
def test_a_distribution_is_unbiased_with_exact_errors(
    shares: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> None:
    """40 collections x 64 buckets, whatever the shape. Buckets of one collection are correlated;
    with 8 independent ones in 64 the bounds are 5.2 sigma, false alarm 2e-7 each."""
    scores = []
    for seed in range(40):
        mechanism, totals, truth = _waves(seed, shares)
        estimates, stderrs = unbiased(mechanism, totals)
        scores.append((estimates - truth) / stderrs)
    flat = np.array(scores)
    assert abs(flat.mean()) < 5.2 / math.sqrt(40 * 8)
    assert abs(flat.std() - 1) < 5.2 / math.sqrt(2 * 40 * 8)
    assert abs((np.abs(flat) < 1.96).mean() - 0.95) < 5.2 * math.sqrt(0.05 * 0.95 / (40 * 8))


def test_smoothing_makes_the_better_picture_of_hills_and_flattens_a_peak() -> None:
    mechanism, totals, truth = _waves(1, HILLS)
    raw, _ = unbiased(mechanism, totals)
    picture = smooth(mechanism, totals)
    assert math.isclose(picture.sum(), totals.reports)
    assert (picture >= 0).all()
    assert np.abs(picture - truth).sum() < np.abs(raw - truth).sum() / 4
    mechanism, totals, truth = _waves(2, PEAK)
    assert smooth(mechanism, totals)[25] < 0.8 * truth[25]


def test_a_wave_answers_with_ranges() -> None:
    mechanism, totals, _ = _waves(99, HILLS)
    result = answer(mechanism, totals, None)
    assert (result.kind, len(result.values)) == ("ranges", 64)
    assert result.values[-1].value == "[0.984375, 1]"
    assert math.isclose(sum(value.consistent or 0 for value in result.values), 200_000)
    with pytest.raises(BatchTooSmall):
        answer(mechanism, Totals(cells=[0] * mechanism.layout.size, reports=0), None)
    two = build("wave", epsilon=1.0, low=0, high=1, buckets=2)
    assert (
        len(
            answer(
                two, Totals(cells=[30] * two.layout.size, reports=30 * two.layout.size), None
            ).values
        )
        == 2
    )
