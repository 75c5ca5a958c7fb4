"""Known answers of the wire: bundles, epochs, sealed reports, submissions and their answers."""

import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from hubbub.catalog import (
    SEAL_BYTES,
    epoch_at,
    epoch_start,
    open_bundle,
    open_sealed,
    seal,
    seal_info,
)
from hubbub.client.transport.contract import SealedReport
from hubbub.client.transport.messages import request_of, results_of
from hubbub.errors import BadPayload, BundleRefused
from hubbub.wire.v1.services_pb2 import SubmitResponse

HERE = Path(__file__).parent


def _known(name: str) -> dict[str, Any]:
    answers: dict[str, Any] = json.loads((HERE / f"{name}.json").read_text("utf-8"))
    return answers


def test_the_bundle_says_what_it_said() -> None:
    known = _known("bundle")
    bundle = open_bundle(
        known["signed"].encode(), "known", operator=bytes.fromhex(known["operator"])
    )
    assert bundle.shuffler == known["shuffler"]
    assert {name: list(m.values or ()) for name, m in bundle.metrics.items()} == known["values"]
    assert [
        {"id": key.id, "start": key.start, "end": key.end, "public": key.public.hex()}
        for key in bundle.keys
    ] == known["keys"]


@pytest.mark.parametrize("why", _known("bundle")["refused"])
def test_another_bundle_is_refused(why: str) -> None:
    known = _known("bundle")
    with pytest.raises(BundleRefused):
        open_bundle(
            known["refused"][why].encode(), "known", operator=bytes.fromhex(known["operator"])
        )


def test_a_moment_is_in_the_same_epoch() -> None:
    for known in _known("epochs")["epochs"]:
        assert epoch_at(known["seconds"], known["length"]) == known["epoch"]
        assert epoch_start(known["epoch"], known["length"]) == known["start"]


def test_the_sealed_report_opens_where_it_is_bound_alone() -> None:
    known = _known("sealing")
    key = X25519PrivateKey.from_private_bytes(bytes.fromhex(known["private"]))
    sealed, stream, epoch = bytes.fromhex(known["sealed"]), known["stream"], known["epoch"]
    assert seal_info(stream, epoch).hex() == known["info"]
    assert open_sealed(sealed, key, seal_info(stream, epoch)).hex() == known["payload"]
    for elsewhere in (seal_info(stream, epoch + 1), seal_info(stream + "s", epoch)):
        with pytest.raises(BadPayload):
            open_sealed(sealed, key, elsewhere)


def test_a_new_seal_has_the_same_length_and_opens() -> None:
    known = _known("sealing")
    payload, info = bytes.fromhex(known["payload"]), bytes.fromhex(known["info"])
    public = X25519PublicKey.from_public_bytes(bytes.fromhex(known["public"]))
    sealed = seal(payload, public, info)
    assert len(sealed) == len(payload) + SEAL_BYTES == len(bytes.fromhex(known["sealed"]))
    key = X25519PrivateKey.from_private_bytes(bytes.fromhex(known["private"]))
    assert open_sealed(sealed, key, info) == payload


def test_a_submission_has_the_same_bytes() -> None:
    known = _known("submission")
    reports = [
        SealedReport(r["stream"], r["epoch"], r["key_id"], bytes.fromhex(r["sealed"]))
        for r in known["reports"]
    ]
    request = request_of(reports)
    assert request.SerializeToString(deterministic=True).hex() == known["request"]


def test_an_answer_means_the_same() -> None:
    known = _known("submission")
    for answer in known["answers"]:
        response = SubmitResponse.FromString(bytes.fromhex(answer["response"]))
        assert results_of(response, len(known["reports"])) == answer["results"]
