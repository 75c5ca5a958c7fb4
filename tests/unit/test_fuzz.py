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
# What takes longer than a decoder: a device lives, a page is asked. And how many inputs of it.
LONGER = {
    "state_file": 100,
    "state_rows": 100,
    "witness": 100,
    "journal_life": 600,
    "journal_noted": 600,
    "bundle_signed": 600,
    "bundle_proof": 300,
    "answer_submit": 200,
    "answers_submit": 150,
    "answers_apply": 600,
    "answer_json": 1000,
    "answer_shown": 600,
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


@pytest.mark.parametrize("name", DECODERS)
def test_a_decoder_answers_or_refuses_any_bytes(name: str, run_target: Run) -> None:
    run_target(name)


@pytest.mark.parametrize("name", ["state_file", "state_rows", "witness"])
def test_a_damaged_state_exceeds_no_limit_and_turns_nothing_on(name: str, run_target: Run) -> None:
    run_target(name)


@pytest.mark.parametrize("name", ["journal_life", "journal_noted"])
def test_no_journal_content_exceeds_a_limit(name: str, run_target: Run) -> None:
    run_target(name)


def test_a_signed_bundle_is_refused_or_usable_in_every_respect(run_target: Run) -> None:
    run_target("bundle_signed")


def test_no_proof_makes_a_device_accept_an_unlogged_bundle(run_target: Run) -> None:
    run_target("bundle_proof")


@pytest.mark.parametrize(
    "name", ["answer_submit", pytest.param("answers_submit", marks=pytest.mark.thorough)]
)
def test_no_answer_of_a_shuffler_loses_a_report_or_raises(name: str, run_target: Run) -> None:
    run_target(name)


def test_a_batch_ends_only_when_an_aggregator_accepted_it(run_target: Run) -> None:
    run_target("answers_apply")


@pytest.mark.parametrize("name", ["answer_json", "answer_shown"])
def test_every_answer_of_an_aggregator_is_shown_or_refused_with_a_sentence(
    name: str, run_target: Run
) -> None:
    run_target(name)


@pytest.mark.parametrize("name", ["http_raw", "http_asked"])
def test_every_http_request_is_answered_without_a_fault(name: str, run_target: Run) -> None:
    run_target(name)


def test_a_method_answers_or_refuses_any_request(tmp_path: Path) -> None:
    answers = asyncio.run(fuzz(tmp_path, REQUESTS, 7, lambda _line: None))
    assert REQUESTS - AT_ONCE <= answers.total() <= REQUESTS
    assert {what.split()[0] for what in answers} == {
        "Shuffler/Submit",
        "Operator/Status",
        "Ingest/Apply",
    }
    assert any(what.endswith("INVALID_ARGUMENT") for what in answers)
