"""Judges any program by the known answers: `python -m tests.proofs.vectors.judge PROGRAM ...`.

The program reads a request a line from standard input and writes an answer a line, both JSON; what
each asks is in docs/another-sdk.md. Kinds that it does not know it answers with null.
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from hubbub.errors import BadParameter, BadPayload
from hubbub.mechanisms import REGISTRY
from hubbub.sealing.hpke import PrivateKey, open_sealed, seal_info, x_wing_private
from hubbub.tokens.poprf import blind
from hubbub.wire.v1.services_pb2 import TokenResponse
from tests.proofs.vectors.make import MORE

HERE = Path(__file__).parent
_NEAR = 1e-9
_REFUSED = "refused"

JudgeRequest = tuple[dict[str, Any], Any]
"""What is asked, and the answer; or what tells of any answer whether it is right."""


def requests() -> Iterator[JudgeRequest]:
    """Everything that is asked, with what must be answered."""
    for part in (_payloads, _lives, _submissions, _bundles, _seals, _notices, _tokens, _relayed):
        yield from part()


def _payloads() -> Iterator[JudgeRequest]:
    for name in (*REGISTRY, *MORE):
        vector = _answers_in(name)
        pairs = [(payload["value"], payload["payload"]) for payload in vector["payloads"]]
        fields = {name: vector[name] for name in ("mechanism", "version", "parameters", "key")}
        values = [value for value, _ in pairs]
        yield {"ask": "payloads", **fields, "values": values}, [payload for _, payload in pairs]
    crowds = _answers_in("wire/dummies")
    for crowd in crowds["crowds"]:
        fields = {
            "values": crowd["values"],
            "each": crowd["each"],
            "devices": len(crowd["devices"]),
        }
        yield {"ask": "dummies", "key": crowds["key"], **fields}, crowd["devices"]


def _lives() -> Iterator[JudgeRequest]:
    for life in (_answers_in("wire/ledger"), *_answers_in("wire/asking").values()):
        if isinstance(life, str):
            continue  # where they are from
        fields = {name: life[name] for name in ("signed", "secret", "coins", "start")}
        fields |= {"publicValues": life.get("public", {})}
        fields |= {"steps": [[step["step"], step["with"]] for step in life["steps"]]}
        came = [step.get("outcome", step.get("kept")) for step in life["steps"]]
        yield {"ask": "life", **fields}, partial(_lived, came, life)


def _submissions() -> Iterator[JudgeRequest]:
    for epoch in _answers_in("wire/epochs")["epochs"]:
        fields = {"seconds": epoch["seconds"], "length": epoch["length"]}
        yield {"ask": "epoch", **fields}, [epoch["epoch"], epoch["start"]]
    wire = _answers_in("wire/submission")
    yield {"ask": "request", "reports": wire["reports"]}, wire["request"]
    for epoch in wire["answers"]:
        fields = {"response": epoch["response"], "reports": len(wire["reports"])}
        yield {"ask": "results", **fields}, epoch["results"]


def _bundles() -> Iterator[JudgeRequest]:
    bundle, log = _answers_in("wire/bundle"), _answers_in("wire/log")
    operator, shipped = {"operator": bundle["operator"]}, log["shipped"]
    for signed, is_valid in [
        *((b, True) for b in (bundle["signed"], *shipped)),
        *((b, False) for b in (*bundle["refused"].values(), *log["refused"].values())),
    ]:
        yield {"ask": "bundle", "signed": signed, **operator}, is_valid
    yield {"ask": "later", "bundles": shipped, **operator}, True
    for refusal in log["refused after"]:
        bundles = [shipped[refusal["after"]], refusal["signed"]]
        yield {"ask": "later", "bundles": bundles, **operator}, False


def _seals() -> Iterator[JudgeRequest]:
    for kem, name in (("x25519", "sealing"), ("x-wing", "sealing_x_wing")):
        seal = _answers_in(f"wire/{name}")
        private = bytes.fromhex(seal["private"])
        key: PrivateKey = x_wing_private(private)
        if kem == "x25519":
            key = X25519PrivateKey.from_private_bytes(private)
        fields = {n: seal[n] for n in ("public", "stream", "epoch", "payload")}
        yield {"ask": "seal", "kem": kem, **fields}, partial(_opens, seal, key)


def _notices() -> Iterator[JudgeRequest]:
    vector = _answers_in("wire/notice")
    fields = {"ask": "notice", "bundle": _answers_in("wire/bundle")["signed"], "metric": "theme"}
    fields |= {"operator": vector["operator"], "epochs": [epoch for epoch, _ in vector["sampling"]]}
    for signed, samplings in (("notice", "sampling"), ("lowered", "lowered sampling")):
        yield {**fields, "signed": vector[signed]}, [chance for _, chance in vector[samplings]]
    for signed in vector["refused"].values():
        yield {**fields, "signed": signed}, _REFUSED


def _tokens() -> Iterator[JudgeRequest]:
    vector = _answers_in("wire/tokens")
    fields = {name: vector[name] for name in ("nonce", "output", "sealed")}
    yield (
        {"ask": "token", "stream": "theme", "epoch": 20_000, **fields},
        [vector["info"], vector["token"]],
    )
    yield {"ask": "token_request", "wanted": vector["wanted"]}, vector["request"]
    issued = TokenResponse.FromString(bytes.fromhex(vector["answer"])).issued
    results = [
        None
        if report.not_given
        else {"evaluated": [e.hex() for e in report.evaluated], "proof": report.proof.hex()}
        for report in issued
    ]
    for answer, request, right in (
        (vector["answer"], len(results), results),
        (vector["answer"], len(results) - 1, _REFUSED),
        ("ff", 1, _REFUSED),
    ):
        yield {"ask": "token_answer", "answer": answer, "wanted": request}, right
    for moment, step in vector["steps of 65536"].items():
        length, epoch = moment.split("|")
        fields = {"secret": vector["secret"], "length": length, "epoch": int(epoch)}
        yield {"ask": "token_moment", **fields}, step
    rfc = dict(vector["rfc"])
    outputs, proof = rfc.pop("outputs"), bytes.fromhex(rfc["proof"])
    fields = {name: rfc[name] for name in ("public", "info", "inputs")}
    yield {"ask": "blind", **fields}, partial(_blinds, rfc["inputs"])
    for more, right in (
        ({}, outputs),
        ({"proof": (proof[:-1] + bytes([proof[-1] ^ 1])).hex()}, _REFUSED),
        ({"evaluated": rfc["evaluated"][::-1]}, _REFUSED),
        ({"evaluated": rfc["evaluated"][1:]}, _REFUSED),
        ({"public": rfc["evaluated"][0]}, _REFUSED),
        ({"info": "00"}, _REFUSED),
    ):
        yield {"ask": "outputs", **rfc, **more}, right


def _relayed() -> Iterator[JudgeRequest]:
    vector = _answers_in("wire/oblivious")
    fields = {name: vector[name] for name in ("authority", "content", "step")}
    yield {"ask": "binary_request", **fields}, vector["request"]
    for response in vector["responses"]:
        right = {name: response[name] for name in ("status", "headers", "content")}
        yield {"ask": "binary_response", "response": response["response"]}, right


def judge(program: Sequence[str]) -> tuple[Counter[str], list[str]]:
    """How many answers were right, wrong and not given; and what was asked of the wrong ones."""
    items = list(requests())
    lines = "".join(json.dumps(request) + "\n" for request, _ in items)
    done = subprocess.run(program, input=lines, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    counts: Counter[str] = Counter()
    wrong = []
    for (request, right), answer in zip(items, answers, strict=True):
        verdict = "not given" if answer is None else "right" if _fits(answer, right) else "wrong"
        counts[verdict] += 1
        if verdict == "wrong":
            wrong.append(json.dumps({**request, "values": None})[:200])
    return counts, wrong


def _fits(answer: Any, right: Any) -> bool:
    return bool(right(answer)) if callable(right) else bool(answer == right)


def _opens(seal: dict[str, Any], key: PrivateKey, answer: Any) -> bool:
    try:
        info = seal_info(seal["stream"], seal["epoch"])
        opened = open_sealed(bytes.fromhex(answer), key, info).hex()
        return opened == str(seal["payload"])
    except (BadPayload, TypeError, ValueError):
        return False


def _blinds(inputs: Sequence[str], answer: Any) -> bool:
    """Each input by a scalar of its own, with what an issuer would see of it."""
    try:
        scalars = [bytes.fromhex(by) for by, _ in answer]
        elements = [
            blind(bytes.fromhex(value), by).element.hex()
            for value, by in zip(inputs, scalars, strict=True)
        ]
    except (BadParameter, TypeError, ValueError):
        return False
    return elements == [element for _, element in answer] and len({*scalars}) == len(scalars)


def _lived(came: Sequence[Any], life: dict[str, Any], answer: Any) -> bool:
    """What is kept after a step has no order, and sums are of doubles."""
    try:
        steps = [sorted(step) if isinstance(step, list) else step for step in answer["steps"]]
        near = all(
            abs(answer[kind][name] - sum_) < _NEAR
            for kind in ("spent", "central")
            for name, sum_ in life.get(kind, {}).items()
        )
    except (KeyError, TypeError):
        return False
    return near and steps == [sorted(step) if isinstance(step, list) else step for step in came]


def _answers_in(name: str) -> dict[str, Any]:
    answers: dict[str, Any] = json.loads((HERE / f"{name}.json").read_text("utf-8"))
    return answers


if __name__ == "__main__":
    verdicts, mistakes = judge(sys.argv[1:])
    sys.stdout.write(f"{dict(verdicts)}\n" + "".join(f"wrong: {mistake}\n" for mistake in mistakes))
    sys.exit(bool(mistakes))
