"""Sets of values: how they are asked for, reported, told of a larger one, and answered."""

from pathlib import Path

import numpy as np
import pytest

from hubbub.analysis.answering import answer
from hubbub.analysis.families import draw
from hubbub.authoring import read_catalog
from hubbub.authoring.typed_modules import python_module
from hubbub.catalog import Metric
from hubbub.catalog.payload_meanings import meanings_of
from hubbub.client.testing import memory_client
from hubbub.errors import BadParameter, CatalogInvalid, ValueOutOfDomain
from hubbub.mechanisms import KeyedBits, build
from hubbub.mechanisms.privset import PrivSet
from hubbub.signing.testing import make_bundle
from hubbub.simulation.truth import above_most
from tests.support.catalogs import catalog_of, catalog_toml, metric_toml
from tests.support.commands import output_of

TABLE = catalog_toml(
    metric_toml("plugins", mechanism="auto", epsilon=2.0), shuffler="shuffler.example.org:443"
)
SETS = 'kind = "set"\nvalues = ["git", "spell", "vim", "lint"]\nmost = 2\n'


def _metric(rest: str = SETS) -> Metric:
    return catalog_of(TABLE + rest).metrics["plugins"]


def test_a_metric_of_sets_takes_collections_of_its_values() -> None:
    metric = _metric()
    assert metric.mechanism == "privset"
    assert [*metric.value_kind.meanings(["git", "vim"], None)] == ["none", "only git", "only vim"]
    for collection, code in (
        ([], 0),
        (["git", "vim"], 0b101),
        (("lint",), 0b1000),
        ({"git", "spell", "vim"}, 0b111),
        (["git", "git"], 1),
    ):
        assert metric.code(collection) == code
    for wrong in ("git", ["emacs"], [1], None, {"git": 1}):
        with pytest.raises(ValueOutOfDomain) as error:
            metric.code(wrong)
        assert "emacs" not in str(error.value)


@pytest.mark.parametrize("rest", [SETS, SETS.replace("vim", "other") + "other = true\n"])
def test_a_wrong_member_is_refused_with_the_values(rest: str, tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text(TABLE + rest)
    client = memory_client(make_bundle(path).bundle)
    message = 'a member of the set is not one of its . values: "git", '
    with pytest.raises(ValueOutOfDomain, match=message):
        client.report("plugins", [7])
    other = _metric(SETS + "other = true\n")
    assert other.values is not None
    assert other.values[-1] == "other"
    assert other.code(["emacs", "git", "nano"]) == 0b10001


def test_people_above_most_hold_more_than_a_device_reports() -> None:
    metric = _metric()
    codes = [
        metric.code(values) for values in ([], ["git"], ["git", "vim"], ["git", "vim", "lint"])
    ]
    assert above_most(metric, codes, [1, 20, 300, 4000]) == 4000


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        (SETS.replace("most = 2\n", ""), "most = 5 (a whole number in [1, 64]), for privset"),
        (SETS.replace("most = 2", "most = 5"), "most 5 is outside [1, 4]"),
        (SETS.replace('kind = "set"\n', ""), 'is not known with mechanism = "auto"'),
        (SETS + "edges = [0, 1, 2]\n", "is not of a set"),
        (
            SETS + "crowd = 1000\ncentral_epsilon = 1.0\n",
            "cannot use privset here, only listed values with grr; parts",
        ),
    ],
)
def test_an_invalid_metric_of_sets_is_refused(rest: str, message: str) -> None:
    with pytest.raises(CatalogInvalid) as error:
        _metric(rest)
    assert message in str(error.value)


def test_a_mechanism_for_single_values_refuses_sets(tmp_path: Path) -> None:
    grr = 'kind = "set"\nvalues = ["git", "vim"]\n'
    path = tmp_path / "metrics.toml"
    path.write_text((TABLE + grr).replace('"auto"', '"grr"'))
    with pytest.raises(CatalogInvalid, match="grr is for a single value"):
        read_catalog(path)
    path.write_text((TABLE + SETS.replace('kind = "set"\n', "")).replace('"auto"', '"privset"'))
    with pytest.raises(CatalogInvalid, match='privset is for sets; write kind = "set"'):
        read_catalog(path)


def test_shares_of_sets_need_not_sum_to_one() -> None:
    """Everybody holds both; within 6 standard errors of that (4e-9)."""
    mechanism = build("privset", epsilon=3.0, categories=5, most=2)
    result = answer(
        mechanism, draw(mechanism, [0b11], [20_000], np.random.default_rng(5)), [*"abcde"]
    )
    for value, true in zip(result.values, (20_000, 20_000, 0, 0, 0), strict=True):
        assert abs(value.estimate - true) < 6 * value.stderr
        assert value.consistent is not None
        assert 0 <= value.consistent <= 20_000
    assert sum(value.consistent or 0 for value in result.values) > 30_000


@pytest.mark.slow
def test_drawn_totals_follow_the_shipping_coins() -> None:
    """Means of 300 drawings, and of 3,000 reports by the device's code, within 6 errors."""
    mechanism = PrivSet(1.0, 12, 3)
    values, counts, chance = [0, 0b1011, 0b111110], [400, 300, 300], np.random.default_rng(9)
    drawn = np.array([draw(mechanism, values, counts, chance).cells for _ in range(300)])
    assert (drawn.sum(axis=1) == 1000 * mechanism.layout.ones).all()
    coins = KeyedBits(bytes(32))
    sent = np.zeros(mechanism.layout.size)
    for value, count in zip(values, counts, strict=True):
        for _ in range(3 * count):
            for cell in mechanism.layout.cells(mechanism.randomize(value, coins)):
                sent[cell] += 1
    error = np.sqrt(1000 * (1 / 300 + 1 / 3)) / 2
    assert np.abs(drawn.mean(axis=0) - sent / 3).max() < 6 * error


def test_the_ledger_shows_what_a_payload_could_have_meant() -> None:
    metric = _metric()
    meanings = meanings_of(metric, metric.randomizer.randomize(0b101, KeyedBits(bytes(32))))
    assert {name for name, _ in meanings} == {
        "none",
        *(f"only {value}" for value in metric.values or ()),
    }
    assert sum(chance for _, chance in meanings) == pytest.approx(1)


def test_typed_metrics_of_sets_take_collections() -> None:
    module = "\n".join(python_module(catalog_of(TABLE + SETS)))
    assert "TypedMetric[Collection[Literal['git', 'spell', 'vim', 'lint']]]" in module


@pytest.mark.slow
def test_a_rehearsal_takes_sets_and_a_plan_says_to_rehearse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "metrics.toml").write_text(TABLE + SETS)
    people = tmp_path / "people.csv"
    people.write_text("value,count\ngit|vim,3000\ngit|spell|vim,600\n,1400\n")
    options = ["--catalog", str(tmp_path / "metrics.toml")]
    words = ["simulate", "plugins", *options, "--values", str(people), "--runs", "5", "--seed", "3"]
    output = output_of(capsys, *words)
    assert "5,000 reports by privset" in output
    assert "3,600" in output
    many = [1 << number | 1 << other for number in range(400) for other in range(number)]
    with pytest.raises(BadParameter, match="are too many to draw"):
        draw(PrivSet(0.1, 400, 3), many, [1] * len(many), np.random.default_rng(1))
