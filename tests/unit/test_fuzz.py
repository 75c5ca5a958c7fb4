"""Every target and every gRPC method on some hostile inputs, and on the corpus."""

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from hubbub.mechanisms import REGISTRY
from tests.fuzz.methods import AT_ONCE, fuzz
from tests.fuzz.target import Target
from tests.fuzz.targets import targets as every_target
from tests.fuzz.unguided import corpus

pytestmark = pytest.mark.slow

INPUTS = 1000
REQUESTS = 800
DECODERS = ["submit", "sealed", "bundle", "streams"]
DECODERS += ["opening_keys", "public_keys", "catalog", "window", "account"]
DECODERS += ["trust", "handovers", "answer"]
DECODERS += ["rappor_params", "rappor_counts", "rappor_map"]
DECODERS += ["redis_url"]
DECODERS += [f"payload_{name}" for name in REGISTRY]
# What takes longer than a decoder, which answers or refuses any bytes: a device lives, a page is
# asked. And how many inputs of it.
LONGER = {
    # A damaged state exceeds no limit and turns nothing on.
    "state_file": 100,
    "state_rows": 100,
    "witness": 100,
    # No content of a journal exceeds a limit.
    "journal_life": 600,
    "journal_noted": 600,
    # A signed bundle is refused or usable in every respect.
    "bundle_signed": 600,
    "bundle_proof": 300,
    # No answer of a shuffler loses a report or raises.
    "answer_submit": 200,
    "answers_submit": 150,
    # A batch ends only when an aggregator accepted it.
    "answers_apply": 600,
    # Every answer of an aggregator is shown, or refused with a sentence.
    "answer_json": 1000,
    "answer_shown": 600,
    # Every HTTP request is answered without a fault.
    "http_raw": 600,
    "http_asked": 600,
}


@pytest.fixture(scope="module")
def targets() -> dict[str, Target]:
    return dict(every_target())


Run = Callable[[str], None]


@pytest.fixture(params=[0.1, pytest.param(1.0, marks=pytest.mark.thorough)])
def run_target(request: pytest.FixtureRequest, targets: dict[str, Target]) -> Run:
    """Gives a target its examples and corpus, and this share of its number of damaged inputs."""

    def run(name: str) -> None:
        target, number = targets[name], round(request.param * LONGER.get(name, INPUTS))
        examples = [*target.examples, *corpus(name)]
        chance = random.Random(f"7 {name}")
        for data in [*examples, *(target.mutate(chance, examples) for _ in range(number))]:
            target.run(data[: target.longest])

    return run


def test_no_target_is_left_out(targets: dict[str, Target]) -> None:
    # test_two_readers.py has the other one.
    assert {*DECODERS, *LONGER} == set(targets) - {"readers"}


READERS = [name for name in (*DECODERS, *LONGER) if name not in ("bundle_proof", "answers_submit")]


@pytest.mark.parametrize(
    "name", [*READERS, pytest.param("answers_submit", marks=pytest.mark.thorough)]
)
def test_a_reader_keeps_its_promise_with_any_input(name: str, run_target: Run) -> None:
    run_target(name)


def test_no_proof_makes_a_device_accept_an_unlogged_bundle(run_target: Run) -> None:
    run_target("bundle_proof")


def test_a_method_answers_or_refuses_any_request(tmp_path: Path) -> None:
    answers = asyncio.run(fuzz(tmp_path, REQUESTS, 7, lambda _line: None))
    assert REQUESTS - AT_ONCE <= answers.total() <= REQUESTS
    assert {what.split()[0] for what in answers} == {
        "Shuffler/Submit",
        "Operator/Status",
        "Ingest/Apply",
    }
    assert any(what.endswith("INVALID_ARGUMENT") for what in answers)
