"""Strings in a crowd: what is planned for them, what it promises, and what is refused."""

import json
from dataclasses import replace
from math import sqrt
from pathlib import Path

import numpy as np
import pytest

from hubbub.analysis.families import draw
from hubbub.analysis.families.sketch import Sketches
from hubbub.authoring.crowds.crowd_values import planned_strings, string_errors
from hubbub.bundles import read_bundle
from hubbub.catalog import Crowd, Metric
from hubbub.cli.main import main
from hubbub.errors import CatalogInvalid
from hubbub.keys.operator_key import read_operator_key
from hubbub.mechanisms import build
from hubbub.mechanisms.even_lies import even_lies
from hubbub.mechanisms.local_hash import LocalHashing
from hubbub.privacy.crowd_guarantees import central_of, smallest_crowd
from hubbub.privacy.exact_accountant import ExactAccountant
from hubbub.privacy.shuffled_histogram import central_epsilon
from hubbub.signing.sign_bundle import sign_bundle
from tests.support.bundles import DAY, make_signed
from tests.support.catalogs import catalog_toml, metric_toml, promised_catalog_of
from tests.support.commands import document_of, output_of, refusal_of
from tests.support.crowds import crowd_in, crowd_of

TEXT = catalog_toml(
    metric_toml(
        "homepage", domain="string", central_epsilon=1.0, crowd=30000, lifetime_epsilon=500.0
    )
)
AUTO = 'mechanism = "auto"\n'
HASHED = 'mechanism = "local_hash"\nhashes = 2\n'


def _read(more: str) -> Metric:
    return promised_catalog_of(TEXT + more).metrics["homepage"]


@pytest.mark.parametrize("crowd", [100, 2000, pytest.param(100_000, marks=pytest.mark.thorough)])
@pytest.mark.slow
def test_auto_takes_the_buckets_with_the_least_worst_error(crowd: int) -> None:
    promise, accountant = (
        Crowd(epsilon=1.0, reports=crowd, delta=1e-8, honest=0.9, max_local_epsilon=16.0),
        ExactAccountant(),
    )
    plan = planned_strings({"mechanism": "auto", "domain": "string"}, promise, accountant)

    def worst(width: int) -> float:
        epsilon = accountant.local_epsilon(promise, width, plan.groups)
        return max(string_errors(width, plan.groups, epsilon, crowd))

    assert plan.groups == plan.parameters["hashes"] == 4
    assert plan.parameters["width"] == plan.categories
    least = min(worst(1 << power) for power in range(4, 17))
    assert worst(int(plan.categories)) == least
    by_itself = build("unary.oue", epsilon=1.0, categories=2).variance(0, crowd)
    assert least < 1.2 * sqrt(by_itself)
    if crowd == 100_000:
        assert least < sqrt(by_itself) / 3, "three times nearer than each report alone"


def test_planned_errors_of_strings_are_those_of_answers() -> None:
    """Twenty crowds of a thousand strings by Zipf's law, each by hash functions of its own."""
    chance, people = np.random.default_rng(27), 100_000
    mechanism = build("local_hash", epsilon=7.0, hashes=4, width=2048)
    assert isinstance(mechanism, LocalHashing)
    shares = 1 / np.arange(1.0, 1001)
    counts = np.rint(people * shares / shares.sum()).astype(np.int64).tolist()
    rare, tenth = [], []
    for run in range(20):
        strings = [f"{run} {place}" for place in range(1001)]
        totals = draw(mechanism, strings[:1000], counts, chance)
        figures = Sketches().figures(mechanism, totals, strings)
        rare.append(figures.absent[1000] ** 2)
        tenth.append(figures.stderrs[0] ** 2)  # it is held by an eighth
    errors = string_errors(2048, 4, 7.0, people)
    assert sqrt(np.mean(rare)) == pytest.approx(errors[0], rel=0.05)
    assert sqrt(np.mean(tenth)) == pytest.approx(errors[1], rel=0.15)


@pytest.mark.slow
def test_strings_keep_the_promise_in_a_bundle_too(tmp_path: Path) -> None:
    metric = _read(AUTO)
    assert (metric.mechanism, metric.parameters["hashes"]) == ("local_hash", 4)
    assert (metric.mix, metric.min_batch) == ("epoch", 30_000)
    promise = central_of(metric, 30_000)
    assert 0.99 <= promise.epsilon <= 1.0
    assert central_of(metric, 60_000).epsilon < 0.8
    plain = TEXT.replace("central_epsilon = 1.0\ncrowd = 30000", "epsilon = 1.0\nmin_batch = 100")
    signed = make_signed(tmp_path, plain + HASHED + "width = 64\n", start=20_000 * DAY)
    metrics, history = {metric.name: metric}, {metric.name: metric.digest()}
    bundle = replace(signed.bundle, metrics=metrics, history=history)
    path = tmp_path / "crowd.hubbub"
    path.write_bytes(sign_bundle(bundle, read_operator_key(signed.keys)))
    assert read_bundle(path).metrics == metrics


@pytest.mark.slow
def test_more_hash_functions_lie_more_for_the_same_promise() -> None:
    two = _read(HASHED + "width = 64\n")
    eight = _read(HASHED.replace("2", "8") + "width = 64\n")
    assert eight.epsilon < two.epsilon - 1
    for metric in (two, eight):
        promise = central_of(metric, 30_000)
        assert 0.99 <= promise.epsilon <= 1.0


TREE = 'mechanism = "tree"\nbits = 20\ncells = 1024\n'


@pytest.mark.slow
def test_the_noise_of_its_geometry_keeps_the_promise_of_a_tree() -> None:
    metric = _read(TREE)
    assert (metric.mechanism, metric.min_batch) == ("tree", 30_000)
    promise = central_of(metric, 30_000)
    assert 0.97 <= promise.epsilon <= 1.0
    lies = even_lies(metric.randomizer, metric.report_loss)
    crowd = crowd_of(30_000, lies.categories, lies.epsilon, honest=0.9, groups=lies.groups)
    assert smallest_crowd(metric) == crowd
    assert central_epsilon(crowd, crowd_in(metric).delta) <= 1.0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        pytest.param(
            TREE + "epsilon = 7.9\n",
            r"write \d\.\d+ at most, or leave it out",
            marks=pytest.mark.slow,
        ),
        (TREE + "dummies = 9\n", r'field "dummies": are only for listed values'),
        (TREE.replace("1024", "3"), r'field "cells": must be'),
        (TREE.replace("bits = 20", "bits = 2"), r"bits 2 are below 10, the least"),
        (
            'mechanism = "cms"\nhashes = 4\nwidth = 64\n',
            r'strings with local_hash, tree; .* write mechanism = "auto"',
        ),
        ('mechanism = "grr"\n', r'strings with local_hash, tree; .* write mechanism = "auto"'),
        pytest.param(
            AUTO + "dummies = 100\n",
            r'field "dummies": are only for listed values',
            marks=pytest.mark.slow,
        ),
        pytest.param(
            AUTO + "hashes = 2\n",
            r'"hashes": is chosen by auto; .* or write "local_hash"',
            marks=pytest.mark.slow,
        ),
        (HASHED, r'field "width": is missing; write width = .* for local_hash'),
        (HASHED + "width = 2\n", r"width 2 is outside \[3, 65536\] in a crowd"),
        pytest.param(
            HASHED + "width = 64\nepsilon = 9.0\n",
            r"write 5\.\d+ at most, leave it out, or gather",
            marks=pytest.mark.slow,
        ),
        (HASHED + 'width = "many"\n', r'field "width"'),
    ],
)
def test_a_promise_that_cannot_hold_is_refused_with_a_remedy(more: str, message: str) -> None:
    with pytest.raises(CatalogInvalid, match=message) as error:
        _read(more)
    assert '"reports"' not in str(error.value), "which nobody wrote"


@pytest.mark.thorough
def test_a_plan_shows_the_same_trade(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["plan", "central", "--strings", "500", "--reports", "30000", "--epsilon", "1"]
    document = document_of(capsys, *command, "--format", "json")
    crowds = [row for row in document["rows"] if row["way"].startswith("crowd")]
    worst = [max(row["stderr_rare"], row["stderr_tenth"]) for row in crowds]
    assert worst == sorted(worst, reverse=True)
    assert all(row["epsilon_central"] <= 1 for row in crowds)
    [alone] = [row for row in document["rows"] if row["way"].startswith("alone")]
    assert alone["stderr_rare"] > 3 * crowds[-1]["stderr_rare"]
    assert document["tree"]["epsilon_local"] > 3
    assert document["tree"]["found_from"] < 0.05, "alone at epsilon 1 from an eighth"
    # What the catalog would take is what the plan says.
    metric = _read(AUTO)
    assert metric.epsilon == crowds[-1]["epsilon_local"]
    assert f"4 x {metric.parameters['width']:,} buckets" in crowds[-1]["way"]
    assert 'crowd = 30000, domain = "string", mechanism = "auto"' in output_of(capsys, *command)
    assert "--dummies go only with listed values" in refusal_of(capsys, *command, "--dummies", "9")


def test_a_plan_shows_if_a_tree_finds_no_string(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["plan", "central", "--strings", "50", "--reports", "100", "--epsilon", "1"]
    assert main([*command, "--max-local", "1.2"]) == 0
    assert "at a local epsilon of 1, none in so few reports" in capsys.readouterr().out


def test_the_promise_of_a_crowd_of_hashed_strings_is_computed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    metric = _read(AUTO)
    arguments = ["privacy", "crowd", "--reports", "30000", "--honest", "0.9", "--hashes", "4"]
    arguments += ["--values", str(metric.parameters["width"])]
    arguments += ["--local-epsilon", str(metric.epsilon)]
    assert main([*arguments, "--json"]) == 0
    promise = central_of(metric, 30_000)
    document = json.loads(capsys.readouterr().out)
    assert document["hashes"] == 4
    assert document["epsilon_central"] == pytest.approx(promise.epsilon, rel=1e-6)
    output = output_of(capsys, *arguments)
    assert "buckets of 4 hash functions" in output
    assert "and collisions" in output
