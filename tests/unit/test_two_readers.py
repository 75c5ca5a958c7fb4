"""Python and TypeScript read one signed text alike: what each takes, and promises by it."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from hubbub.mechanisms.probability import exp_at_most
from hubbub.sealing.dummy_laws import CountNoise
from tests.fuzz.readers import WIRE, both, readers
from tests.support.bundles import DAY, make_signed
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.document_readers import ODD, python_reads, signed
from tests.support.node import needs_node
from tests.support.typescript_fields import PATH, fields_file

SOME = 50
MANY = 4000
AUTO = {"mechanism": "auto", "reports": 1000}
EDGES = {"edges": [0, 1, 2, 5, 10]}
ENDS = {"low": 0, "high": 5}
KINDS: dict[str, dict[str, Any]] = {
    "boolean": {**AUTO, "kind": "boolean"},
    "listed": {**AUTO, "values": ["a", "1", "other"]},
    "open": {**AUTO, "values": ["a", "1"], "other": True},
    "set": {"mechanism": "privset", "most": 2, "kind": "set", "values": ["a", "1", "true"]},
    "open_set": {**AUTO, "kind": "set", "values": ["a", "1"], "other": True, "most": 2},
    "count": {**AUTO, **ENDS, "kind": "count"},
    "counts": {**AUTO, **EDGES, "kind": "count", "outside": "refuse"},
    "number": {**AUTO, **ENDS, "kind": "number"},
    "numbers": {**AUTO, **EDGES, "kind": "number", "outside": "refuse"},
    "plain": {**ENDS, "mechanism": "wave", "domain": "number", "buckets": 8},
    "duration": {**AUTO, **EDGES, "kind": "duration", "unit": "ms"},
    "size": {**AUTO, "kind": "size", "unit": "MiB", "low": 0, "high": 1000},
    "sizes": {**AUTO, **EDGES, "kind": "size", "unit": "kB"},
    "vector": {"mechanism": "auto", "kind": "vector", "coordinates": ["x", "y"]},
    "text": {"mechanism": "hcms", "domain": "string", "hashes": 4, "width": 64},
    "parts": {
        "mechanism": "auto",
        "parts": {"on": [True, False], "file": {**EDGES, "kind": "size", "unit": "kB"}},
    },
}
TEXTS = (
    *(
        "",
        "a",
        "A",
        " a",
        "a ",
        "true",
        "True",
        "other",
        "1.0",
        "01",
        "0x1",
        "1e0",
        "1_0",
        "\u0661",
    ),
    *("NaN", "nan", "Infinity", "None", "null", "1kB", "1 kB", "1  kB", "1\tkB", "1 kB ", " 1 kB"),
    *("1.5 MiB", "1.1 mib", "2G", "2Gi", "1500 mb", "0.3 kB", "0 B", "7B", "7b", "1 K", "1 \u212a"),
    *(
        "1 TB",
        "1e3 kB",
        "-1 kB",
        "+1 kB",
        "1,5 kB",
        "1.kB",
        ".5 kB",
        "1. 5 kB",
        "kB",
        "1 kBB",
        "1 i",
    ),
    *(f"{'9' * 18} B", f"{'9' * 19} B", "0.123456789 kB", "0.1234567891 kB", "1 kB\n", "1 kib"),
)
NUMBERS = (0, -0.0, 0.5, 1, 1.0, 1.5, 2, 4.9, 5, 5.1, 10, 10.5, -1, 0.1, 5e-324, 2**53 + 1, 1e300)
VALUES: tuple[object, ...] = (
    *TEXTS,
    *NUMBERS,
    *({"integer": digits} for digits in ("0", "3", "-1", "11", str(2**64), "9" * 400)),
    *([], [None], ["a"], ["a", "a"], ["a", "1"], ["a", "b"], [True], ["true", True], [1], [["a"]]),
    *([0, 0], [3, 4], [1], [1, 2, 3], [True, False], [1e308, 1.7e308], [5e-324, 0], [1, "2"]),
    *([{"integer": "3"}, 4], [{"integer": "9" * 400}, 1], {"on": True}, {"on": 1, "file": 1}),
    *({"on": on, "file": file} for on in (True, "true", "True", None) for file in TEXTS[-12:]),
    *({"on": True, "file": file} for file in (*NUMBERS, True, None, [1], {"integer": "3"})),
    *({"on": True, "file": 1, "more": 1}, {"file": 1}, [True, 1]),
)


def _hold_together(count: int, seed: int) -> None:
    """Both take every kind of document, and take the same of `count` that are made of these."""
    target = readers()["readers"]
    chance = random.Random(seed)
    for data in target.examples:
        target.run(data)
    for _ in range(count):
        target.run(target.mutate(chance, target.examples)[: target.longest])


@pytest.mark.slow
@needs_node
def test_both_sdks_take_and_promise_the_same_by_some_signed_texts() -> None:
    _hold_together(SOME, seed=1)


@pytest.mark.slow
@needs_node
def test_both_sdks_read_the_addresses_that_version_0_2_signed() -> None:
    body = json.loads(json.loads((WIRE / "bundle.json").read_text())["signed"].split("\n")[1])
    for address in ("h:0443", "a+b:1", "https://a~b:0443", "h:0", "a:b:1", "h:65536", "h:000001"):
        text = signed("bundle", json.dumps({**body, "shuffler": address}))
        is_read = address in {"h:0443", "a+b:1", "https://a~b:0443", "h:0"}
        assert (python_reads("bundle", text) is not None) == is_read, address
        assert not both().disagreement("bundle", text), address


@needs_node
def test_both_sdks_refuse_a_crowd_that_waits_for_more_than_the_shuffler_takes() -> None:
    body = json.loads(json.loads((WIRE / "bundle.json").read_text())["signed"].split("\n")[1])
    listed = {**body["metrics"]["theme"], "mechanism": "grr", "central_epsilon": 0.5}
    for epsilon, delta in ((0.05, 1e-8), (0.7, 1e-15), (8, 0.1)):
        largest = 1_000_000 - CountNoise.least(exp_at_most(epsilon), delta).most
        for crowd in (largest, largest + 1):
            crowds = {"crowd": crowd, "min_batch": crowd, "delta": delta, "count_epsilon": epsilon}
            metrics = {"theme": {**listed, **crowds}}
            text = signed("bundle", json.dumps({**body, "history": {}, "metrics": metrics}))
            assert (python_reads("bundle", text) is None) == (crowd > largest)
            assert not both().disagreement("bundle", text), (epsilon, delta, crowd)


@pytest.mark.slow
@needs_node
def test_both_sdks_take_the_same_values_of_every_kind(tmp_path: Path) -> None:
    fields = {"epsilon": 2.0, "min_batch": 20}
    catalog = catalog_toml(*(metric_toml(name, **fields, **kind) for name, kind in KINDS.items()))
    body = make_signed(tmp_path, catalog, start=20_000 * DAY).bundle.signed.decode().split("\n")[1]
    values = [*map(json.dumps, VALUES), *ODD]
    for name in KINDS:
        rows = ", ".join(f'["{name}", {value}]' for value in values)
        text = f"[{json.dumps(signed('bundle', body))}, [{rows}]]"
        assert any(code is not None for code in python_reads("values", text))
        assert not both().disagreement("values", text), name


@needs_node
@pytest.mark.thorough
def test_both_sdks_take_and_promise_the_same_by_many_signed_texts() -> None:
    _hold_together(MANY, seed=2)


def test_the_ranges_that_typescript_checks_are_those_of_the_catalog() -> None:
    assert "".join(PATH.read_text().split()) == "".join(fields_file().split())
