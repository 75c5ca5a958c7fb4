"""Known answers of the wire: bundles, epochs, sealed reports, submissions and their answers."""

import hmac
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from hubbub.bundles import open_bundle, open_notice
from hubbub.catalog import epoch_at, epoch_start
from hubbub.client.transport.contract import SealedReport
from hubbub.client.transport.messages import answer_in, request_of
from hubbub.client.trust import Trust
from hubbub.errors import BadPayload, BundleRefused, NoticeRefused
from hubbub.sealing.hpke import (
    SEAL_BYTES,
    PrivateKey,
    PublicKey,
    open_sealed,
    seal,
    seal_info,
    x_wing_private,
    x_wing_public,
    x_wing_public_bytes,
)
from tests.proofs.vectors.wire import make

HERE = Path(__file__).parent
SEALS = ("sealing", "sealing_x_wing")


def _answers_in(name: str) -> dict[str, Any]:
    answers: dict[str, Any] = json.loads((HERE / f"{name}.json").read_text("utf-8"))
    return answers


def test_the_bundle_equals_the_known_answer() -> None:
    vector = _answers_in("bundle")
    bundle = open_bundle(
        vector["signed"].encode(), "known", operator=bytes.fromhex(vector["operator"])
    )
    assert bundle.shuffler == vector["shuffler"]
    assert {name: list(m.values or ()) for name, m in bundle.metrics.items()} == vector["values"]
    assert [
        {"id": key.id, "start": key.start, "end": key.end, "public": key.public.hex()}
        for key in bundle.keys
    ] == vector["keys"]
    assert not bundle.development
    assert open_bundle(vector["development"].encode(), "known").development


@pytest.mark.parametrize("why", _answers_in("bundle")["refused"])
def test_another_bundle_is_refused(why: str) -> None:
    vector = _answers_in("bundle")
    with pytest.raises(BundleRefused):
        open_bundle(
            vector["refused"][why].encode(), "known", operator=bytes.fromhex(vector["operator"])
        )


def test_a_device_behaves_as_in_the_known_answers() -> None:
    assert make.ledger() == _answers_in("ledger")


@pytest.mark.slow
def test_devices_of_special_metrics_behave_as_in_the_known_answers() -> None:
    assert make.asking() == _answers_in("asking")


@pytest.mark.slow
def test_devices_have_the_same_arms() -> None:
    assert make.experiments() == _answers_in("experiments")


def test_devices_of_a_crowd_make_the_same_dummies() -> None:
    assert make.dummies() == _answers_in("dummies")


def test_tokens_equal_the_known_answers() -> None:
    assert make.tokens() == _answers_in("tokens")


def test_a_moment_is_in_the_same_epoch() -> None:
    for epoch in _answers_in("epochs")["epochs"]:
        assert epoch_at(epoch["seconds"], epoch["length"]) == epoch["epoch"]
        assert epoch_start(epoch["epoch"], epoch["length"]) == epoch["start"]


def _keys(name: str, vector: dict[str, Any]) -> tuple[PrivateKey, PublicKey]:
    private, public = bytes.fromhex(vector["private"]), bytes.fromhex(vector["public"])
    if name == "sealing":
        return (
            X25519PrivateKey.from_private_bytes(private),
            X25519PublicKey.from_public_bytes(public),
        )
    return x_wing_private(private), x_wing_public(public)


@pytest.mark.parametrize("name", SEALS)
def test_a_sealed_report_opens_only_for_its_stream_and_epoch(name: str) -> None:
    vector = _answers_in(name)
    key, _ = _keys(name, vector)
    sealed, stream, epoch = bytes.fromhex(vector["sealed"]), vector["stream"], vector["epoch"]
    assert seal_info(stream, epoch).hex() == vector["info"]
    assert open_sealed(sealed, key, seal_info(stream, epoch)).hex() == vector["payload"]
    for elsewhere in (seal_info(stream, epoch + 1), seal_info(stream + "s", epoch)):
        with pytest.raises(BadPayload):
            open_sealed(sealed, key, elsewhere)


@pytest.mark.parametrize("name", SEALS)
def test_a_new_seal_has_the_same_length_and_opens(name: str) -> None:
    vector = _answers_in(name)
    key, public = _keys(name, vector)
    payload, info = bytes.fromhex(vector["payload"]), bytes.fromhex(vector["info"])
    sealed = seal(payload, public, info)
    more = SEAL_BYTES["x25519" if name == "sealing" else "x-wing"]
    assert len(sealed) == len(payload) + more == len(bytes.fromhex(vector["sealed"]))
    assert open_sealed(sealed, key, info) == payload


@pytest.mark.parametrize(
    "vector", _answers_in("x_wing")["vectors"], ids=lambda vector: vector["seed"][:8]
)
def test_the_drafts_own_answers_open(vector: dict[str, str]) -> None:
    """Keys from seeds as the draft prints them, and what its shared secret sealed opens.

    HPKE's schedule (RFC 9180, sec. 5.1, 6.1) is written out here from the draft's own secret, so
    that neither half of ours can be wrong alike.
    """
    seed, shared = bytes.fromhex(vector["seed"]), bytes.fromhex(vector["shared"])
    assert x_wing_public_bytes(seed).hex() == vector["public"]
    payload, info = b"\x5a\x00", seal_info("theme", 20_000)
    suite = b"HPKE" + (0x647A).to_bytes(2) + (1).to_bytes(2) + (1).to_bytes(2)
    context = b"\0" + _extract(suite, b"", b"psk_id_hash", b"")
    context += _extract(suite, b"", b"info_hash", info)
    secret = _extract(suite, shared, b"secret", b"")
    key = _expand(suite, secret, b"key", context, 16)
    nonce = _expand(suite, secret, b"base_nonce", context, 12)
    sealed = bytes.fromhex(vector["enc"]) + AESGCM(key).encrypt(nonce, payload, b"")
    assert open_sealed(sealed, x_wing_private(seed), info) == payload


def _extract(suite: bytes, salt: bytes, label: bytes, secret: bytes) -> bytes:
    labelled = b"HPKE-v1" + suite + label + secret
    return hmac.digest(salt or bytes(32), labelled, "sha256")


def _expand(suite: bytes, secret: bytes, label: bytes, info: bytes, size: int) -> bytes:
    labelled = size.to_bytes(2) + b"HPKE-v1" + suite + label + info
    return hmac.digest(secret, labelled + b"\1", "sha256")[:size]


def test_a_submission_has_the_same_bytes() -> None:
    vector = _answers_in("submission")
    reports = [
        SealedReport(
            stream=r["stream"],
            epoch=r["epoch"],
            key_id=r["key_id"],
            sealed=bytes.fromhex(r["sealed"]),
        )
        for r in vector["reports"]
    ]
    assert request_of(reports).hex() == vector["request"]


def test_an_answer_means_the_same() -> None:
    vector = _answers_in("submission")
    for answer in vector["answers"]:
        outcome = answer_in(bytes.fromhex(answer["response"]), len(vector["reports"]))
        assert (outcome.results, outcome.notice.hex()) == (answer["results"], answer["notice"])


def test_a_notice_reads_back_and_invalid_ones_are_refused() -> None:
    vector = _answers_in("notice")
    assert make.notice() == vector
    operator = bytes.fromhex(vector["operator"])
    notice = open_notice(vector["notice"].encode(), operator=operator)
    assert (notice.number, notice.until) == (vector["number"], vector["until"])
    theme = open_bundle(_answers_in("bundle")["signed"].encode(), "known").metrics["theme"]
    assert [[e, notice.sampling(theme, e)] for e, _ in vector["sampling"]] == vector["sampling"]
    for refused in vector["refused"].values():
        with pytest.raises(NoticeRefused):
            open_notice(refused.encode(), operator=operator)


def test_a_submission_through_a_relay_has_the_same_bytes() -> None:
    assert make.oblivious() == _answers_in("oblivious")


def test_a_log_and_its_devices_behave_as_in_the_known_answers() -> None:
    vector = _answers_in("log")
    assert make.log() == vector
    for why, signed in vector["refused"].items():
        with pytest.raises(BundleRefused):
            Trust().admit("app", open_bundle(signed.encode(), why), None, ())
    shipped = [open_bundle(signed.encode(), "known") for signed in vector["shipped"]]
    for first in range(len(shipped)):
        trust = Trust()
        for bundle in (shipped[first], shipped[-1]):
            trust.admit("app", bundle, None, ())
    for case in vector["refused after"]:
        trust = Trust()
        trust.admit("app", shipped[case["after"]], None, ())
        with pytest.raises(BundleRefused):
            trust.admit("app", open_bundle(case["signed"].encode(), case["why"]), None, ())
