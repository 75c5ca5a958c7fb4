"""Every decoder and every gRPC method on some thousands of hostile inputs, and on the corpus."""

import asyncio
import random
from pathlib import Path

import pytest

from hubbub.mechanisms import REGISTRY
from tests.fuzz.__main__ import corpus
from tests.fuzz.decoders import Target, decoders
from tests.fuzz.methods import AT_ONCE, fuzz
from tests.fuzz.mutate import mutated

INPUTS = 1000
SLOW = {"state": 50}  # each is a whole start of a client, with its fsyncs
REQUESTS = 2000


@pytest.fixture(scope="module")
def targets() -> dict[str, Target]:
    return dict(decoders())


NAMES = ["submit", "batch", "question", "sealed", "bundle", "bundle_body", "streams"]
NAMES += ["opening_keys", "public_keys", "catalog", "window", "journal"]
NAMES += ["witness", "account", "answer", "state"]
NAMES += ["rappor_params", "rappor_counts", "rappor_map", *(f"payload_{name}" for name in REGISTRY)]


def test_no_decoder_is_left_out(targets: dict[str, Target]) -> None:
    assert set(NAMES) == set(targets)


@pytest.mark.parametrize("name", NAMES)
def test_a_decoder_answers_or_refuses_whatever_the_bytes(
    name: str, targets: dict[str, Target]
) -> None:
    target = targets[name]
    examples = [*target.examples, *corpus(name)]
    chance = random.Random(f"7 {name}")
    for data in [*examples, *(mutated(chance, examples) for _ in range(SLOW.get(name, INPUTS)))]:
        target.run(data)


def test_a_method_answers_or_refuses_whatever_the_request(tmp_path: Path) -> None:
    answers = asyncio.run(fuzz(tmp_path, REQUESTS, 7, lambda _line: None))
    assert REQUESTS - AT_ONCE <= answers.total() <= REQUESTS
    assert {what.split()[0] for what in answers} == {
        "Shuffler/Submit",
        "Operator/Status",
        "Ingest/Apply",
        "Query/Metrics",
        "Query/Estimate",
        "Query/Describe",
        "Query/Top",
        "Query/Compare",
        "Query/Trend",
        "Query/Law",
        "Releases/Release",
        "Releases/Record",
    }
    assert any(what.endswith("INVALID_ARGUMENT") for what in answers)
