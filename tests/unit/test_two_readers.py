"""Python and TypeScript read one signed text alike: what each takes, and promises by it."""

import json
import random

import pytest

from hubbub.mechanisms.probability import exp_at_most
from hubbub.sealing.count_noise import CountNoise
from tests.fuzz.readers import WIRE, both, readers
from tests.support.document_readers import python_reads, signed
from tests.support.node import needs_node
from tests.support.typescript_fields import PATH, fields_file

SOME = 50
MANY = 4000


def _hold_together(count: int, seed: int) -> None:
    """Both take every kind of document, and take the same of `count` that are made of these."""
    target = readers()["readers"]
    chance = random.Random(seed)
    for data in target.examples:
        target.run(data)
    for _ in range(count):
        target.run(target.mutate(chance, target.examples)[: target.longest])


@needs_node
def test_both_sdks_take_and_promise_the_same_by_some_signed_texts() -> None:
    _hold_together(SOME, seed=1)


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


@needs_node
@pytest.mark.thorough
def test_both_sdks_take_and_promise_the_same_by_many_signed_texts() -> None:
    _hold_together(MANY, seed=2)


def test_the_ranges_that_typescript_checks_are_those_of_the_catalog() -> None:
    assert "".join(PATH.read_text().split()) == "".join(fields_file().split())
