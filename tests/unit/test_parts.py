"""Metrics of parts: what is asked, reported, refused and answered."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hubbub.analysis.answering import answer
from hubbub.analysis.estimators.consistency import consistent_tables, tables
from hubbub.analysis.families import draw, family_for
from hubbub.authoring import read_catalog
from hubbub.authoring.typed_modules import python_module
from hubbub.catalog import Metric
from hubbub.client import Outcome
from hubbub.client.testing import memory_client
from hubbub.errors import BadParameter, CatalogInvalid, ValueOutOfDomain
from hubbub.mechanisms import build
from hubbub.mechanisms.pairs_of_parts import PairedParts
from hubbub.mechanisms.part_and_cell_names import cell_names, listed_parts, parts_of
from hubbub.programs.text_files import csv_rows
from hubbub.signing.testing import make_bundle
from hubbub.simulation.people_file import read_truth
from tests.support.catalogs import catalog_toml, metric_toml

PARTS = 'parts = { theme = ["light", "dark"], country = ["de", "fr", "it"], new = [true, false] }'


def _metric(folder: Path, parts: str = PARTS, mechanism: str = "pairs") -> Metric:
    path = folder / "metrics.toml"
    fields = {"epsilon": 2.0, "min_batch": 10, "lifetime_epsilon": 500.0}
    path.write_text(catalog_toml(metric_toml("profile", parts, mechanism=mechanism, **fields)))
    return read_catalog(path).metrics["profile"]


def test_auto_chooses_pairs_for_a_metric_of_parts(tmp_path: Path) -> None:
    metric = _metric(tmp_path)
    assert metric.arguments == {"epsilon": 2.0, "sizes": (2, 3, 2)}
    assert metric.values == listed_parts(
        {"theme": ["light", "dark"], "country": ["de", "fr", "it"], "new": ["true", "false"]}
    )
    assert _metric(tmp_path, f"{PARTS}\nreports = 1000", "auto").randomizer == metric.randomizer


def test_the_limits_of_auto_hold_also_for_a_single_mechanism(tmp_path: Path) -> None:
    size = _metric(tmp_path).randomizer.layout.size
    within = _metric(tmp_path, f"{PARTS}\nmax_cells = {size}\nmax_payload_bytes = 1", "auto")
    assert within.mechanism == "pairs"
    for wish, message in (
        (f"max_cells = {size - 1}", f'"max_cells": pairs needs {size}; raise it, or list fewer'),
        ("max_cells = true", '"max_cells": must be a whole number'),
        ("max_payload_bytes = 0", '"max_payload_bytes": must be a whole number'),
        ("reports = 0", '"reports": must be a whole number'),
        ("permanent_epsilon = 3.0", 'is not known with mechanism = "pairs", only for auto'),
    ):
        with pytest.raises(CatalogInvalid, match=message):
            _metric(tmp_path, f"{PARTS}\n{wish}", "auto")


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ('values = ["a", "b"]', "pairs is for parts; write parts ="),
        ('parts = { theme = ["light", "dark"] }', "must be a table of 2 to 8 parts"),
        ('parts = { a = ["x", "y"], b = ["x"] }', "b: has one value; list two or more"),
        ('parts = { a = ["x", "y"], b = ["x", "x"] }', "b: lists a value twice"),
        ('parts = { "a=b" = ["x", "y"], c = ["x", "y"] }', 'holds "="; rename it'),
        (
            f'{PARTS}\nrelease = {{ mechanism = "laplace", epsilon = 1.0 }}',
            "cannot be released; leave it out",
        ),
        (
            "parts = { a = { edges = [3, 1, 2] }, b = [true, false] }",
            "a: edges must ascend: write 1, 2, 3",
        ),
        (
            'parts = { a = { edges = [0, 1, 2], kind = "duration" }, b = [true, false] }',
            "a: unit: for a duration, one of us, ms",
        ),
        (f"{PARTS}\nways = 3", '"ways": 3 needs a crowd: at epsilon 2 a cell'),
        (f"{PARTS}\nways = 4", "ways 4 must be 2, 3 or the number of parts, 3"),
        (f"{PARTS}\nways = 9", '"ways": must be a whole number in [2, 8]'),
        (
            'parts = { a = ["x", "y"], b = ["x", "y"] }\nways = 3',
            "sizes must have 3 to 8 numbers, one per part",
        ),
        (
            "parts = { a = [LONG], b = [LONG] }".replace(
                "LONG", ", ".join(f'"{n}"' for n in range(300))
            ),
            "make a table of 90,000 cells, above 65,536; list fewer values",
        ),
    ],
)
def test_impossible_parts_are_refused_with_possible_ones(
    tmp_path: Path, parts: str, message: str
) -> None:
    with pytest.raises(CatalogInvalid) as caught:
        _metric(tmp_path, parts)
    assert message in str(caught.value)
    assert str(caught.value).count("ascending") <= 1, "a fault is told once"


AGES = 'parts = { age = { edges = [0, 18, 65], unit = "y"MORE }, new = [true, false] }'


def _ages(more: str) -> str:
    return AGES.replace("MORE", f", {more}" if more else "")


@pytest.mark.parametrize(
    ("more", "age", "part"),
    [
        ("", 17.9, "below 18 y"),
        ("", 300, "18 y or more"),
        ("", "below 18 y", "below 18 y"),
        ('outside = "refuse"', 18, "18 to 65 y"),
        ('kind = "count"', 17, "0 to 17 y"),
    ],
)
def test_a_part_may_be_a_range_of_numbers(
    tmp_path: Path, more: str, age: object, part: str
) -> None:
    metric = _metric(tmp_path, _ages(more))
    signed = make_bundle(tmp_path / "metrics.toml").bundle.metrics["profile"]
    assert (signed.ranges, signed.digest()) == (metric.ranges, metric.digest())
    assert isinstance(metric.randomizer, PairedParts)
    code = metric.code({"age": age, "new": True})
    ages = parts_of(metric.values or ())["age"]
    assert ages[metric.randomizer.places_of(code)[0]] == part
    with pytest.raises(BadParameter, match="values of age must be those"):
        replace(metric, ranges={"age": replace(metric.ranges["age"], edges=(0.0, 1.0, 65.0))})


@pytest.mark.parametrize(
    ("more", "age", "message"),
    [
        ('outside = "refuse"', 70, r"part age: value is not a number in \[0, 65\]"),
        ("", float("nan"), "part age: value is not a number"),
        ("", "seventy", "part age: value is not a number"),
        ('kind = "count"', 17.5, "part age: value is not a whole number"),
    ],
)
def test_an_invalid_number_of_a_part_is_refused(
    tmp_path: Path, more: str, age: object, message: str
) -> None:
    metric = _metric(tmp_path, _ages(more))
    with pytest.raises(ValueOutOfDomain, match=message):
        metric.code({"age": age, "new": True})


def test_people_with_numbers_are_rehearsed_from_a_file(tmp_path: Path) -> None:
    metric = _metric(tmp_path, _ages(""))
    people = tmp_path / "people.csv"
    people.write_text("new,age,count\ntrue,12,3\nfalse,18 y or more,4\ntrue,70.5,5\n")
    truth = read_truth(people, csv_rows(people), metric)
    assert dict(zip(truth.codes, truth.counts, strict=True)) == {0: 3, 3: 4, 2: 5}


def test_the_type_of_a_value_has_its_parts(tmp_path: Path) -> None:
    _metric(tmp_path, _ages('kind = "count"').replace("new =", 'os = ["a", "b"], new ='))
    module = "\n".join(python_module(read_catalog(tmp_path / "metrics.toml")))
    kinds = "{'age': int, 'os': Literal['a', 'b'], 'new': bool}"
    assert f"_profile = TypedDict('_profile', {kinds})" in module
    assert "profile: Final = TypedMetric[_profile]('profile')" in module
    exec(compile(module, "metrics", "exec"), {})  # noqa: S102 what was made


def test_parts_are_for_no_other_mechanism(tmp_path: Path) -> None:
    with pytest.raises(CatalogInvalid, match="grr does not report parts; write values"):
        _metric(tmp_path, mechanism="grr")


def test_too_many_tables_are_refused() -> None:
    with pytest.raises(BadParameter, match="leave parts out, or list fewer values"):
        build("pairs", epsilon=1.0, sizes=(250,) * 8)


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ("dark", "is not a mapping of parts; give each of theme, country, new"),
        ({"theme": "dark", "new": True}, "part country is missing"),
        ({"theme": "dark", "country": "secret", "new": True}, "part country is not one of its 3"),
        ({"theme": "dark", "country": ["de"], "new": True}, "part country is not one of its 3"),
        (
            {"theme": "dark", "country": "de", "new": True, "secret": 1},
            "the value has a part that the metric does not have",
        ),
    ],
)
def test_a_wrong_value_of_parts_is_refused_and_never_shown(
    tmp_path: Path, profile: object, message: str
) -> None:
    with pytest.raises(ValueOutOfDomain) as caught:
        _metric(tmp_path).code(profile)
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)
    client = memory_client(make_bundle(tmp_path / "metrics.toml").bundle)
    with pytest.raises(ValueOutOfDomain) as raised:
        client.report("profile", profile)
    assert str(raised.value) == str(caught.value), "no list of all parts' values"


def test_a_device_reports_its_parts_as_one_report(tmp_path: Path) -> None:
    metric = _metric(tmp_path)
    client = memory_client(make_bundle(tmp_path / "metrics.toml").bundle)
    profile = {"country": "de", "theme": "dark", "new": True}
    assert client.report("profile", profile) is Outcome.QUEUED
    assert client.report("profile", profile) is Outcome.ALREADY_REPORTED
    assert metric.report_loss <= 2.0


def test_every_cell_is_within_its_error_and_tables_agree() -> None:
    """60,000 people by the exact law; beyond 6.5 standard errors with a chance of 3e-9."""
    mechanism = build("pairs", epsilon=2.0, sizes=(2, 3, 4))
    assert isinstance(mechanism, PairedParts)
    values, counts = [*mechanism.probes()], [*range(0, 5000, 5000 // 24)][:24]
    reports = sum(counts)
    totals = draw(mechanism, values, counts, np.random.default_rng(5))
    parts = {"a": "xy", "b": "xyz", "c": "wxyz"}
    result = answer(mechanism, totals, listed_parts(parts))
    truth = np.array(counts) @ np.array([mechanism.row(value) for value in values])
    assert [value.value for value in result.values] == [*cell_names(listed_parts(parts))]
    for member, true in zip(result.values, truth.tolist(), strict=True):
        assert abs(member.estimate - true) < 6.5 * member.stderr
    picture = np.array([value.consistent for value in result.values])
    of_b = [
        table.sum(axis=axis)
        for table, axis in zip(tables((2, 3, 4), picture), (0, 1, 1), strict=True)
    ]
    assert (picture >= 0).all()
    assert np.allclose(of_b[0], tables((2, 3, 4), picture)[2].sum(axis=1), atol=1e-3 * reports)


def test_consistent_tables_stay_unchanged() -> None:
    mechanism = PairedParts(1.0, (2, 3, 4))
    even = np.repeat([100 / cells for cells in mechanism.cells], mechanism.cells)
    assert np.allclose(consistent_tables(mechanism.sizes, even, np.ones_like(even), 100.0), even)


@pytest.mark.slow
def test_the_expected_errors_are_those_of_the_drawn() -> None:
    """400 drawings: their mean square is within 10% of what is expected, five errors of its own."""
    mechanism, chance = PairedParts(3.0, (2, 3, 2)), np.random.default_rng(9)
    values, counts = [*mechanism.probes()], [300 * (n % 4) for n in range(12)]
    reports, family = sum(counts), family_for(mechanism)
    shares = np.array(counts) / reports
    truth = shares @ np.array([mechanism.row(value) for value in values])
    squares = []
    for _ in range(400):
        totals = draw(mechanism, values, counts, chance)
        reply = family.figures(mechanism, totals, ()).estimates / reports
        squares.append(float(((reply - truth) ** 2).mean()))
    predicted = float((family.expected(mechanism, values, shares, reports).stderrs ** 2).mean())
    assert np.mean(squares) == pytest.approx(predicted, rel=0.1)
