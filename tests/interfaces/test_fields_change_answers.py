"""Fields of a metric change an answer, or another test is named: none is read and left unused.

The fields are those that the catalog's reference has. One without a case fails a test.
"""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from hubbub.authoring.auto_mechanism import own_fields
from hubbub.catalog.mechanism_choice import AUTO
from hubbub.catalog.metric import Metric
from hubbub.cli.main import main
from hubbub.fields.field import fields_of
from hubbub.mechanisms import REGISTRY

CARD = "privacy card {catalog} --format json"
ATTACK = "plan attack {catalog} --metric asked --format json"
CAPACITY = "plan capacity {catalog} --format json"
RUN = "simulate asked --catalog {catalog} --values {values} --runs 1 --seed 1 --json"
Table = Mapping[str, object]
LISTED: Table = {"mechanism": "unary.oue", "values": ["light", "dark", "system"]}
NUMBER: Table = {"mechanism": "wave", "domain": "number", "low": 0, "high": 8, "buckets": 8}
STRING: Table = {"mechanism": "cms", "domain": "string", "hashes": 16, "width": 64}
CROWD: Table = {
    "mechanism": "grr",
    "values": ["light", "dark", "system"],
    "central_epsilon": 1.0,
    "crowd": 1000,
    "honest": 1.0,
}
CHOSEN: Table = {"mechanism": "auto", "kind": "vector", "coordinates": 3, "epsilon": 8.0}
SHARED: Table = {
    "description": "What is asked",
    "owner": "you@example.org",
    "expires": "2099-06-30",
    "epoch": "day",
    "epsilon": 2.0,
    "min_batch": 1000,
    "limits": {"reports_per_epoch": 1, "lifetime_epsilon": 50.0},
}
# A question, a metric, and what of it is another.
Case = tuple[str, Table, Table]
CASES: dict[str, Case] = {
    "mechanism": (RUN, LISTED, {"mechanism": "subset"}),
    "epsilon": (RUN, LISTED, {"epsilon": 1.0}),
    "values": (RUN, LISTED, {"values": ["light", "dark", "system", "other"]}),
    "parts": (
        ATTACK,
        {"mechanism": "pairs", "parts": {"a": ["x", "y"], "b": ["x", "y"]}},
        {"parts": {"a": ["x", "y"], "b": ["x", "y", "z"]}},
    ),
    "coordinates": (
        ATTACK,
        {"mechanism": "vector.codes", "kind": "vector", "coordinates": 3, "books": 16},
        {"coordinates": 4},
    ),
    "epoch": (CARD, LISTED, {"epoch": "week"}),
    "min_batch": (CARD, LISTED, {"min_batch": 5000}),
    "limits": (
        CARD,
        LISTED,
        {"limits": {"reports_per_epoch": 2, "lifetime_epsilon": 50.0}},
    ),
    "tiers": (RUN, LISTED, {"tiers": [0.5]}),
    "sampling": (CARD, LISTED, {"sampling": 0.1}),
    "default": (CARD, LISTED, {"default": "none"}),
    "central_epsilon": (CARD, CROWD, {"central_epsilon": 2.0}),
    "crowd": (CARD, CROWD, {"crowd": 2000}),
    "delta": (CARD, CROWD, {"delta": 1e-6}),
    "honest": (CARD, CROWD, {"honest": 0.5}),
    "dummies": (CARD, CROWD, {"dummies": 2000}),
    "dummies_each": (CARD, CROWD, {"dummies_each": 0.5}),
    "count_epsilon": (CARD, CROWD, {"count_epsilon": 1.0}),
    "kem": (CAPACITY, LISTED, {"kem": "x-wing"}),
    "breakdown": (CARD, LISTED, {"breakdown": {"os": ["linux", "macos"]}}),
    "hashes": (CAPACITY, STRING, {"hashes": 8}),
    "width": (ATTACK, STRING, {"width": 128}),
    "low": (RUN.replace("values}", "numbers}"), NUMBER, {"low": -1}),
    "high": (RUN.replace("values}", "numbers}"), NUMBER, {"high": 9}),
    "buckets": (RUN.replace("values}", "numbers}"), NUMBER, {"buckets": 4}),
    "percentiles": (RUN.replace("values}", "numbers}"), NUMBER, {"percentiles": [99]}),
    "edges": (
        RUN.replace("values}", "numbers}"),
        {"mechanism": "grr", "kind": "number", "edges": [0, 2, 4, 8]},
        {"edges": [0, 1, 4, 8]},
    ),
    "other": (RUN, LISTED, {"other": True}),
    "report_on": (CARD, LISTED, {"period": "30d", "report_on": "one day"}),
    "period": (CARD, {**LISTED, "period": "30d", "report_on": "one day"}, {"period": "60d"}),
    "central_period": (CARD, CROWD, {"central_period": "30d"}),
    "max_local_epsilon": (CARD, CROWD, {"max_local_epsilon": 1.0}),
    "sampled": (ATTACK, {**NUMBER, "mechanism": "buckets", "sampled": 4}, {"sampled": 2}),
    "permanent_epsilon": (
        CARD,
        {"mechanism": "long.unary", "values": ["a", "b", "c"], "permanent_epsilon": 4.0},
        {"permanent_epsilon": 8.0},
    ),
    "steps": (
        RUN.replace("values}", "numbers}"),
        {"mechanism": "mean.piecewise", "domain": "number", "low": 0, "high": 8, "steps": 64},
        {"steps": 128},
    ),
    "most": (
        ATTACK,
        {"mechanism": "privset", "kind": "set", "values": ["a", "b", "c", "d"], "most": 2},
        {"most": 3},
    ),
    "reports": (CAPACITY, CHOSEN, {"reports": 10_000_000}),
    "max_cells": (CAPACITY, {**CHOSEN, "reports": 10_000_000}, {"max_cells": 1 << 21}),
    "max_payload_bytes": (
        "catalog check {catalog}",
        {"mechanism": "auto", "values": [f"{n}" for n in range(40)], "reports": 1000},
        {"max_payload_bytes": 1},
    ),
    "unit": (RUN.replace("values}", "numbers}"), NUMBER, {"unit": "ms"}),
}
"""By name, of a metric or of a mechanism."""

ELSEWHERE = {
    **dict.fromkeys(("description", "owner", "expires"), "what people read; no number"),
    **dict.fromkeys(
        ("keep", "alert", "supersedes"), "of many epochs: test_retention.py and others"
    ),
    **dict.fromkeys(("cohorts", "f", "p", "q"), "of RAPPOR, as a file: `rappor decode --params`"),
    **dict.fromkeys(
        ("beginnings", "bits", "cells", "discover"), "of found strings: test_discovery.py"
    ),
    **dict.fromkeys(
        ("dummies_scale", "dummies_shift", "dummies_sum_scale"), "test_noise_dummies.py"
    ),
    **dict.fromkeys(("books", "words", "max_length"), "of vectors: test_vectors.py"),
    **dict.fromkeys(("kind", "outside", "domain"), "what an app may report: test_value_kinds.py"),
    **dict.fromkeys(("rate", "weeks"), "of what a device computes: test_figure_faces.py"),
    "values_file": "as values",
    "candidates": "test_candidates.py",
    "experiment": "test_experiment.py",
    "functions": "of long.hash: test_hashed_for_life.py",
    "release": "test_releases.py",
    "rolling": "when crowds leave: test_crowd.py",
    "ways": "test_three_parts.py",
}


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_toml(item)}" for name, item in value.items()) + " }"
    return json.dumps(value)


def _catalog(table: Table) -> str:
    rows = [
        f"{name} = {value if name == 'expires' else _toml(value)}" for name, value in table.items()
    ]
    return 'shuffler = "127.0.0.1:1"\n[metrics.asked]\n' + "\n".join(rows) + "\n"


def test_every_field_has_a_case_or_a_reason() -> None:
    written = [field for field in fields_of(Metric) if field.entry.written]
    fields = {name for field in written for name in (field.name, *field.entry.others)}
    fields |= {field.name for name in (*REGISTRY, AUTO) for field in own_fields(name)}
    assert sorted(fields - set(CASES) - set(ELSEWHERE)) == []
    assert sorted({*CASES, *ELSEWHERE} - fields) == []


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_field_changes_an_answer(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    question, fields, changed = CASES[name]
    files = {name: str(tmp_path / name) for name in ("catalog", "values", "numbers")}
    Path(files["values"]).write_text("light,3000\ndark,1500\nsystem,500\n")
    Path(files["numbers"]).write_text("0.5,1000\n3.5,2000\n6.5,1000\n")
    left_out = ("min_batch", "epsilon") if "crowd" in fields else ()
    shared = {field: value for field, value in SHARED.items() if field not in left_out}
    answers = []
    for table in ({**shared, **fields}, {**shared, **fields, **changed}):
        Path(files["catalog"]).write_text(_catalog(table))
        assert main(shlex.split(question.format_map(files))) == 0, table
        answers.append(capsys.readouterr().out)
    assert answers[0] != answers[1]
