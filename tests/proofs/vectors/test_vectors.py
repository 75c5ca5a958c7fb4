"""Known answers: coins to payloads, payloads to cells, totals to estimates."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from hubbub.errors import BadPayload
from hubbub.mechanisms import REGISTRY, KeyedBits, Totals, build
from tests.proofs.vectors.make import MORE

HERE = Path(__file__).parent


@pytest.fixture(params=[*REGISTRY, *MORE])
def vector(request: pytest.FixtureRequest) -> dict[str, Any]:
    answers: dict[str, Any] = json.loads((HERE / f"{request.param}.json").read_text("utf-8"))
    return answers


def test_the_same_coins_give_the_same_payloads(vector: dict[str, Any]) -> None:
    mechanism = build(vector["mechanism"], **vector["parameters"])
    assert vector["version"] == mechanism.VERSION
    coins = KeyedBits(bytes.fromhex(vector["key"]))
    for answer in vector["payloads"]:
        payload = mechanism.randomize(answer["value"], coins)
        assert payload.hex() == answer["payload"]
        assert sorted(mechanism.layout.cells(payload)) == answer["cells"]


def test_the_same_totals_give_the_same_estimates(vector: dict[str, Any]) -> None:
    mechanism = build(vector["mechanism"], **vector["parameters"])
    totals = Totals(cells=vector["totals"]["cells"], reports=vector["totals"]["reports"])
    estimates = mechanism.estimate(totals)
    for ours, answers in (
        (estimates.values, vector["estimates"]),
        (estimates.variances, vector["variances"]),
        ([mechanism.privacy_loss()], [vector["privacy_loss"]]),
    ):
        assert len(ours) == len(answers)
        assert all(math.isclose(a, b, rel_tol=1e-12) for a, b in zip(ours, answers, strict=True))


def test_hostile_payloads_of_the_known_answers_are_refused(vector: dict[str, Any]) -> None:
    layout = build(vector["mechanism"], **vector["parameters"]).layout
    for hostile in vector["refused"]:
        with pytest.raises(BadPayload):
            layout.cells(bytes.fromhex(hostile))
