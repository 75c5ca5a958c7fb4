"""Vectors: how their mean is asked for, what a device reports, what is answered of each number."""

import csv
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.vectors import optimum
from hubbub.analysis.answering import Followed, answer, answer_tiers, joined_shares
from hubbub.analysis.comparisons.change import changes
from hubbub.analysis.fake_report_attacks import maximal_gain
from hubbub.analysis.families import draw, family_for
from hubbub.analysis.families.vector import books_excess, scale_of
from hubbub.authoring.typed_modules import python_module, typescript_module
from hubbub.catalog import Metric
from hubbub.catalog.payload_meanings import meanings_of
from hubbub.client import Client, MemoryState, Outcome
from hubbub.client.testing import FakeShuffler, memory_client
from hubbub.errors import BadParameter, BatchTooSmall, CatalogInvalid, ValueOutOfDomain
from hubbub.mechanisms import KeyedBits, Totals
from hubbub.mechanisms.direction_pool import book
from hubbub.mechanisms.even_lies import even_lies
from hubbub.mechanisms.vector_codes import VectorCodes, pool_for
from hubbub.privacy.crowd_guarantees import central_of
from hubbub.privacy.shuffled_epoch import ShuffledEpoch
from hubbub.privacy.shuffled_histogram import central_epsilon
from hubbub.signing.metric_changes import continued_metric
from hubbub.signing.testing import make_bundle
from tests.support.catalogs import catalog_toml, metric_toml, promised_catalog_of
from tests.support.commands import Capture, document_of, output_of, refusal_of

TABLE = catalog_toml(
    metric_toml("scores", mechanism="auto", kind="vector", epsilon=4.0),
    shuffler="shuffler.example.org:443",
)
VECTOR = 'coordinates = ["speed", "ease", "looks"]\nmax_length = 2.0\nunit = "points"\n'
SMALL = VECTOR + "words = 128\nbooks = 128\n"
BETTER = (
    "the squared error of one book for each: with words = 167 and books = 25115, as chosen if both "
    "are left out, it is"
)


def _metric(rest: str = VECTOR, table: str = TABLE) -> Metric:
    return promised_catalog_of(table + rest).metrics["scores"]


def test_auto_chooses_the_number_of_words_by_epsilon() -> None:
    metric = _metric()
    assert (metric.mechanism, metric.values) == ("vector.codes", ("speed", "ease", "looks"))
    assert metric.parameters == {"words": 256, "books": 4096, "max_length": 2.0}
    named = _metric("coordinates = 4\n", TABLE.replace("auto", "vector.codes"))
    assert named.values == ("1", "2", "3", "4")
    assert named.randomizer == VectorCodes(epsilon=4.0, dimensions=4)
    tier = _metric(VECTOR + "tiers = [1.0]\n").at_tier(1.0)
    assert isinstance(tier.randomizer, VectorCodes)
    assert tier.randomizer.dimensions == 3


@pytest.mark.parametrize(
    ("fields", "reports", "warning"),
    [
        ("books = 1024", 10_000_000, f"1,024 shared books have 14.1 times {BETTER} 1.1 times"),
        ("books = 4096", 10_000_000, f"4,096 shared books have 2.07 times {BETTER} 1.1 times"),
        ("words = 256", 10_000_000, "16,384 shared books have 1.11 times"),
        ("", 10_000_000, ""),
        ("books = 1024", 10_000, ""),
    ],
)
def test_a_check_warns_of_too_few_books_for_the_expected_reports(
    tmp_path: Path, capsys: Capture, *, fields: str, reports: int, warning: str
) -> None:
    """Decision 0218 has 15 and 2.2 optima, which are 1.03 times as good."""
    table = TABLE.replace("epsilon = 4.0", "epsilon = 8.0")
    text = f"{table}coordinates = 16\n{fields}\nreports = {reports}\n"
    (tmp_path / "metrics.toml").write_text(text)
    printed = output_of(capsys, "catalog", "check", str(tmp_path / "metrics.toml"))
    assert (warning or "no problem found") in printed.replace("1 warning", "no problem found")
    assert ("shared books have" in printed) == bool(warning)


@pytest.mark.parametrize("epsilon", [1.0, 4.0, 8.0])
@pytest.mark.parametrize(
    ("dimensions", "reports", "most"),
    [(16, 3e4, 1.04), (16, 1e6, 1.06), (16, 1e7, 1.14), (64, 1e7, 1.27), (256, 8e6, 1.41)],
)
def test_a_pool_fits_the_expected_reports(
    *, epsilon: float, dimensions: int, reports: float, most: float
) -> None:
    """Beside the optimum; of 256 equal vectors, books of 128 words left 2.4 times it."""
    pool: Any = pool_for(epsilon, reports, dimensions)
    codes = VectorCodes(epsilon=epsilon, dimensions=dimensions, **pool)
    errors = np.array([1.0, books_excess(codes, round(reports))]) * codes.squared_error
    assert (errors < np.array([most, 1.08]) * optimum(epsilon, dimensions)).all()


def test_auto_takes_the_pool_that_fits_the_expected_reports_and_the_other_fields() -> None:
    crowded = TABLE.replace("epsilon = 4.0", "epsilon = 8.0") + "coordinates = 16\n"
    for fields, words, books in (
        ("reports = 10000000\n", 167, 25115),
        ("reports = 10000000\nmax_cells = 2097152\n", 167, 12557),
        ("reports = 10000000\nwords = 1024\n", 1024, 4096),
        ("reports = 10000000\nbooks = 512\n", 1024, 512),
        ("reports = 10000\n", 1024, 1024),
    ):
        parameters = _metric(fields, crowded).parameters
        assert (parameters["words"], parameters["books"]) == (words, books), fields


@pytest.mark.parametrize(
    ("epsilon", "reports", "problem"),
    [
        ("1000.0", "10000", 'field "epsilon": must be a number of nats in'),
        ("4.0", "1" + "0" * 400, 'field "reports": must be a'),
    ],
)
def test_auto_leaves_numbers_out_of_range_to_their_check(
    epsilon: str, reports: str, problem: str
) -> None:
    table = TABLE.replace("epsilon = 4.0", f"epsilon = {epsilon}")
    with pytest.raises(CatalogInvalid, match=re.escape(problem)):
        _metric(f"{VECTOR}reports = {reports}\n", table)


def test_a_plan_refuses_an_epsilon_that_no_vector_has(capsys: Capture) -> None:
    words = ["--vector", "3", "1", "--epsilon", "1000", "--reports", "1000"]
    assert "epsilon" in refusal_of(capsys, "plan", *words)


CROWD = "central_epsilon = 1.0\ncrowd = 2000\n"
UNSAID = TABLE.replace("epsilon = 4.0\nmin_batch = 100\n", "")


@pytest.mark.slow
def test_a_signed_vector_metric_keeps_its_pool(tmp_path: Path, capsys: Capture) -> None:
    path, last = tmp_path / "metrics.toml", tmp_path / "app.hubbub"
    path.write_text(TABLE + VECTOR)
    last.write_bytes(make_bundle(path).signed)
    path.write_text(f"{TABLE}{VECTOR}reports = 10000000\n")
    printed = output_of(
        capsys, "catalog", "check", str(path), "--previous", str(tmp_path / "app.hubbub")
    )
    assert (
        "scores: keeps vector.codes, words = 256, books = 4096, as signed before; under a new name "
        "auto chooses vector.codes, words = 256, books = 16384"
    ) in printed
    before, after = _metric(), _metric(VECTOR + "reports = 10000000\n")
    assert continued_metric(after, before) == before
    for other in (_metric(VECTOR.replace("2.0", "3.0")), _metric(SMALL)):
        assert continued_metric(other, before) == other


@pytest.mark.slow
def test_in_a_crowd_epsilon_and_the_pool_follow_from_the_promise() -> None:
    metric = _metric(VECTOR + CROWD, UNSAID)
    assert metric.min_batch == 2000
    assert metric.parameters == {**pool_for(metric.epsilon), "max_length": 2.0}
    assert 0.99 < central_of(metric, 2000).epsilon <= 1
    # A thousandth more of it is more than was promised.
    loss, words = metric.epsilon + 0.002, pool_for(metric.epsilon)["words"]
    lies = even_lies(VectorCodes(epsilon=loss, dimensions=3, words=words, books=1), loss)
    crowd = ShuffledEpoch(reports=2000, categories=lies.categories, epsilon_local=loss, honest=0.9)
    assert central_epsilon(crowd, 1e-8) > 1
    with pytest.raises(CatalogInvalid, match=r"7 reveals more than .* write \S+ at most"):
        _metric(VECTOR + CROWD + "epsilon = 7\n", UNSAID)
    explicit = _metric(VECTOR + CROWD + "epsilon = 2.0005\nwords = 16\n", UNSAID)
    assert (explicit.epsilon, explicit.parameters["words"]) == (2.0005, 16)
    many = _metric(VECTOR + CROWD + 'central_period = "7d"\n', UNSAID)
    assert many.epsilon < metric.epsilon


def test_in_a_tiny_crowd_a_report_reveals_no_more_than_promised() -> None:
    few = _metric(VECTOR + CROWD.replace("2000", "10"), UNSAID)
    assert few.epsilon == pytest.approx(1, abs=0.01)
    with pytest.raises(
        CatalogInvalid, match=r"the noise of vector\.codes is not spread evenly, so nothing is"
    ):
        _metric(VECTOR + CROWD + "epsilon = 0.1\n", UNSAID)


@pytest.mark.slow
def test_a_plan_of_a_crowd_has_the_error_of_each_number(capsys: Capture) -> None:
    words = ["plan", "central", "--vector", "3", "2", "--reports", "2000", "--epsilon", "1"]
    rows = document_of(capsys, *words, "--format", "json")["rows"]
    crowd = [row for row in rows if row["way"] == "crowd"][-1]
    [alone] = [row for row in rows if row["way"] == "alone"]
    assert crowd["epsilon_central"] <= 1
    assert crowd["stderr"] < alone["stderr"] / 2
    local = crowd["epsilon_local"]
    [apart] = [row for row in rows if row["way"].startswith("3 means, each in a crowd, ")]
    assert apart["epsilon_central"] <= 1
    assert apart["epsilon_local"] == 3 * 16
    assert apart["stderr"] < crowd["stderr"] / 2
    codes = VectorCodes(epsilon=local, dimensions=3, **pool_for(local))  # type: ignore[arg-type]
    vectors = [(1 / math.sqrt(3),) * 3]
    expected = family_for(codes).expected(codes, vectors, np.ones(1), 2000)
    assert crowd["stderr"] == pytest.approx(float(expected.absent.max()))
    assert "2,000 reports of the mean of 3 numbers" in output_of(capsys, *words)


def test_a_bundle_reads_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text(TABLE + VECTOR)
    assert make_bundle(path).bundle.metrics["scores"] == _metric()


@pytest.mark.parametrize(
    ("vector", "expected"),
    [
        ([0.5, -1.0, 0], [0.5, -1.0, 0.0]),
        ((3, 0, 4), [1.2, 0.0, 1.6]),
        (np.array([3.0, 0.0, -4.0]), [1.2, 0.0, -1.6]),
        ([np.float32(0.5), np.int64(1), 0.0], [0.5, 1.0, 0.0]),
        ([0, 0, 0], [0.0, 0.0, 0.0]),
        ([1e308, 1e308, 0], [math.sqrt(2), math.sqrt(2), 0.0]),
        ([10**300, 0, 0], [2.0, 0.0, 0.0]),
        ([5e-324, 0, 0], [5e-324, 0.0, 0.0]),
    ],
)
def test_a_vector_that_is_too_long_keeps_its_direction(vector: Any, expected: Any) -> None:
    metric = _metric(SMALL)
    code = metric.code(vector)
    assert code == pytest.approx(expected)
    metric.randomizer.randomize(code, KeyedBits(bytes(32)))


@pytest.mark.parametrize(
    "wrong",
    [
        [0.5, 1.0],
        [0.1] * 4,
        [],
        [0.1, math.nan, 0.2],
        [0.1, math.inf, 0.2],
        [0.1, "7777", 0.2],
        [True, 0.1, 0.2],
        [None, 0, 0],
        "7777",
        b"abc",
        7777,
        None,
        {"speed": 1},
        {1.0, 2.0, 3.0},
        [10**400, 0, 0],
        np.ones((3, 1)),
        np.array(3.0),
    ],
    ids=repr,
)
def test_an_invalid_vector_is_refused_never_shown_and_not_sent(tmp_path: Path, wrong: Any) -> None:
    metric = _metric(SMALL)
    with pytest.raises(ValueOutOfDomain, match='metric "scores": ') as error:
        metric.code(wrong)
    assert "7777" not in str(error.value)
    shuffler = FakeShuffler()
    path = tmp_path / "metrics.toml"
    path.write_text(TABLE + SMALL)
    bundle = make_bundle(path).bundle
    with Client(bundle, MemoryState(), shuffler, hold_seconds=None, strict=False) as client:
        assert client.report("scores", wrong) is Outcome.NOT_A_VALUE
        assert client.report("scores", [0.1, 0.2, 0.3]) is Outcome.QUEUED
        client.flush()
    assert len(shuffler.reports()) == 1


def test_the_coordinate_that_is_no_number_is_named(tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text(TABLE + SMALL)
    client = memory_client(make_bundle(path).bundle)
    for wrong in (math.nan, "7777", None, True):
        with pytest.raises(ValueOutOfDomain, match=r'coordinate "ease" is not a finite number$'):
            client.report("scores", [0.1, wrong, wrong])


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("", 'field "coordinates": is missing; write coordinates = ["speed", "ease", "looks"] (a'),
        ("coordinates = 1\n", 'field "coordinates": must be'),
        ("coordinates = true\n", 'field "coordinates": must be'),
        ('coordinates = ["a"]\n', 'field "coordinates": must be'),
        ('coordinates = ["a", "a"]\n', 'field "coordinates": lists a value twice'),
        ("coordinates = [true, false]\n", 'field "coordinates": must be'),
        (VECTOR.replace("2.0", "0"), 'field "max_length": must be'),
        (VECTOR.replace("2.0", "5e-324"), 'field "max_length": must be'),
        (VECTOR + 'values = ["a", "b"]\n', 'field "values": is not for a vector'),
        (VECTOR + 'default = "none"\n', "is not for a vector, which has only coordinates; leave"),
        (VECTOR + "edges = [0, 1]\n", 'field "edges": is not for a vector'),
        (VECTOR + "release = { epsilon = 1.0 }\n", 'field "release": is not for a vector'),
        (VECTOR + "crowd = 1000\n", 'field "central_epsilon": is missing'),
        (
            VECTOR + CROWD + "words = 2\n",
            "with two words the promise of a crowd is not proven",
        ),
        (VECTOR + 'alert = { when = "mean above 1" }\n', "a vector only supports"),
        (VECTOR + "dimensions = 3\n", 'field "dimensions": is not known'),
        (VECTOR + "max_cells = 1000\n", 'field "max_cells": vector.codes needs 1,048,576'),
    ],
)
def test_an_invalid_metric_of_vectors_is_refused(rest: str, message: str) -> None:
    with pytest.raises(CatalogInvalid) as error:
        _metric(rest)
    assert message in str(error.value)


def test_kind_and_mechanism_must_agree() -> None:
    for table, rest, message in (
        (TABLE.replace("auto", "grr"), VECTOR, "grr is for a single value, not for a vector"),
        (TABLE.replace('kind = "vector"', ""), VECTOR, 'add kind = "vector"'),
        (
            TABLE.replace('kind = "vector"', "").replace("auto", "vector.codes"),
            'values = ["a", "b"]',
            'vector.codes is for vectors; write kind = "vector"',
        ),
    ):
        with pytest.raises(CatalogInvalid) as error:
            _metric(rest.replace("max_length = 2.0\n", ""), table)
        assert message in str(error.value)


PEOPLE = [(1.0, 0.0, -1.0), (0.0, 0.5, 0.0)]
MEAN = (0.75, 0.125, -0.75)


def _draw(codes: VectorCodes, reports: int = 4000) -> Totals:
    counts = [3 * reports // 4, reports // 4]
    return draw(codes, PEOPLE, counts, np.random.default_rng(5))


CODES = VectorCodes(epsilon=4.0, dimensions=3, words=64, books=128, max_length=2.0)


def test_coordinates_are_answered_in_the_metrics_own_unit() -> None:
    """Within 6 standard errors of the truth, 6e-9."""
    result = answer(CODES, _draw(CODES), ["speed", "ease", "looks"])
    assert (result.kind, result.span) == ("vector", (-2.0, 2.0))
    for row, name, true in zip(result.values, ("speed", "ease", "looks"), MEAN, strict=True):
        assert row.value == name
        assert abs(row.estimate - true) < 6 * row.stderr
        assert -2 <= row.low <= row.estimate <= row.high <= 2
        assert (row.share, row.rank, row.detected, row.consistent) == (None,) * 4


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0])
def test_people_in_all_directions_keep_no_error_of_their_books(epsilon: float) -> None:
    """Totals are the exact law of 400 opposite directions, so that no coin has a part in the error.

    400 directions keep about 1/400 of the square of what people who are all alike have, and at most
    1/200. Before each book's centre was subtracted they kept 1/32, 1/36 and 1/27.
    """
    codes = VectorCodes(epsilon=epsilon, dimensions=8, words=64, books=256)
    units = np.random.default_rng(2).standard_normal((200, 8))
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    words = np.array([book(codes.seed, number, 64, 8) for number in range(256)])
    ranks = (words @ np.concatenate([units, -units]).T).argsort(axis=1).argsort(axis=1)
    chances = np.where(ranks >= 64 - codes.near, float(codes.channel.p), float(codes.channel.q))
    cells = np.rint(chances.mean(axis=2) * 1e9).astype(int).ravel().tolist()
    result = answer(codes, Totals(cells=cells, reports=sum(cells)), [*"abcdefgh"])
    left = np.mean([row.estimate**2 for row in result.values])
    from_centre = words - np.einsum("bwk,bwd->bd", chances, words)[:, None] / 400
    alike = np.einsum("bw,bwd->bd", chances[:, :, 0], from_centre) * scale_of(codes) - units[0]
    assert left < (alike**2).mean() / 256 / 200


def test_tiers_comparisons_and_trends_are_of_each_coordinate() -> None:
    smaller = VectorCodes(epsilon=2.0, dimensions=3, words=64, books=128, max_length=2.0)
    tiers = [(CODES, _draw(CODES)), (smaller, _draw(smaller))]
    both = answer_tiers(tiers, ["speed", "ease", "looks"])
    for row, true in zip(both.values, MEAN, strict=True):
        assert abs(row.estimate - true) < 6 * row.stderr
    points = joined_shares([Followed(tiers[:1], [2, 0])])
    assert [abs(points[at].estimate - MEAN[place]) < 0.5 for at, place in ((0, 2), (1, 0))]
    others = draw(CODES, PEOPLE, [0, 4000], np.random.default_rng(6))
    result = changes(answer(CODES, tiers[0][1], ["a", "b", "c"]), answer(CODES, others, [*"abc"]))
    assert [comparison.changed for comparison in result] == [True, True, True]
    for comparison, true in zip(result, MEAN, strict=True):
        assert comparison.difference == pytest.approx(
            (0, 0.5, 0)["abc".index(comparison.value)] - true, abs=0.4
        )


def test_there_is_no_mean_of_nobody_and_one_of_one_report_is_unsure() -> None:
    with pytest.raises(BatchTooSmall):
        answer(CODES, Totals(cells=[0] * CODES.layout.size, reports=0), [*"abc"])
    alone = answer(CODES, draw(CODES, PEOPLE, [1, 0], np.random.default_rng(1)), [*"abc"])
    assert all(math.isfinite(row.stderr) and row.stderr > 0.5 for row in alone.values)


def _faked(codes: VectorCodes, honest: Totals) -> Totals:
    """With 400 fake reports that promote the first coordinate most."""
    cells = list(honest.cells)
    for cell, amount in maximal_gain(codes, [0]).cells.items():
        cells[cell] += 400 * amount
    return Totals(cells=cells, reports=honest.reports + 400)


@pytest.mark.parametrize("seed", [*"0123456789ab"])
def test_an_attack_gains_no_more_than_stated_with_any_pool(seed: str) -> None:
    """Of 128 books the known error is subtracted, and changes with the mean; of 32 it is not."""
    for books in (128, 32):
        codes = replace(CODES, seed=seed, books=books)
        honest = _draw(codes, 8000)
        totals = honest, _faked(codes, honest)
        before, after = (answer(codes, totals_now, [*"abc"]).places[0] for totals_now in totals)
        attack = maximal_gain(codes, [0])
        most = attack.gain(400 / 8400, before)
        assert after - before < 1.01 * most
        assert after - before == pytest.approx(most - attack.margin, rel=0.01, abs=attack.margin)


def test_honest_totals_pass_and_faked_totals_fail_the_honesty_check() -> None:
    honest = _draw(CODES, 8000)
    assert family_for(CODES).plausibility([(CODES, honest)]).p_value > 1e-6
    assert family_for(CODES).plausibility([(CODES, _faked(CODES, honest))]).p_value < 1e-6
    with pytest.raises(BadParameter, match="not one of the 3 coordinates"):
        maximal_gain(CODES, [3])


def test_the_ledger_shows_what_a_payload_could_have_meant() -> None:
    metric = _metric(SMALL)
    payload = metric.randomizer.randomize((2.0, 0.0, 0.0), KeyedBits(bytes(32)))
    fields = dict(meanings_of(metric, payload))
    assert len(fields) == 6
    assert fields["speed alone, up"] > fields["speed alone, down"]
    assert sum(fields.values()) == pytest.approx(1)


def test_typed_metrics_of_vectors_take_sequences_of_numbers() -> None:
    catalog = promised_catalog_of(TABLE + VECTOR)
    module = "\n".join(python_module(catalog))
    assert "from collections.abc import Sequence" in module
    assert "TypedMetric[Sequence[float]]" in module
    module_text = "\n".join(typescript_module(catalog))
    assert '"scores": readonly number[] | Float32Array | Float64Array;' in module_text


@pytest.mark.slow
def test_a_rehearsal_has_a_column_a_coordinate(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "metrics.toml").write_text(TABLE + SMALL)
    people = tmp_path / "people.csv"
    chance = np.random.default_rng(3)
    with people.open("w") as file:
        writer = csv.writer(file)
        writer.writerow(["ease", "speed", "looks"])
        writer.writerows(chance.normal(0.5, 0.3, (800, 3)).tolist())
    words = ["simulate", "scores", "--catalog", str(tmp_path / "metrics.toml")]
    words += ["--values", str(people), "--runs", "20", "--seed", "3"]
    assert "speed" in output_of(capsys, *words)
    document = document_of(capsys, *words, "--json")
    assert [row["value"] for row in document["runs"][0]["values"]] == ["speed", "ease", "looks"]
    # 60 intervals of 95%, in 20 runs: below .8 once in a million.
    assert document["summary"]["coverage"] > 0.8
    for text, message in (
        ("speed,ease\n1,2\n", "names a column for each coordinate"),
        ("speed,ease,looks\n1,2,nan\n", "line 2: its value is not one"),
        ("speed,ease,looks\n1,2,x\n", "line 2: its value is not one"),
        ("day,speed,ease,looks\n2026-01-01,1,2,3\n", 'a column "day" needs epoch = "day" and'),
    ):
        people.write_text(text)
        assert message in refusal_of(capsys, *words)
