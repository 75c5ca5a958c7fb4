"""Judges any program by the known answers: `python -m tests.proofs.vectors.judge PROGRAM ...`.

The program reads a request a line from standard input and writes an answer a line, both JSON; what
each asks is in docs/another-sdk.md. Kinds that it does not know it answers with null.
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from hubbub.catalog import open_sealed, seal_info
from hubbub.errors import BadPayload
from hubbub.mechanisms import REGISTRY
from tests.proofs.vectors.make import MORE

HERE = Path(__file__).parent
_NEAR = 1e-9


def requests() -> Iterator[tuple[dict[str, Any], Any]]:
    """Everything that is asked, with what must be answered; of a seal, the file that opens it."""
    for name in (*REGISTRY, *MORE):
        known = _known(name)
        told = [(one["value"], one["payload"]) for one in known["payloads"]]
        asked = {name: known[name] for name in ("mechanism", "version", "parameters", "key")}
        values = [value for value, _ in told]
        yield {"ask": "payloads", **asked, "values": values}, [payload for _, payload in told]
    for life in _known("wire/asking").values():
        if isinstance(life, str):
            continue  # where they are from
        asked = {name: life[name] for name in ("signed", "secret", "coins", "start")}
        asked |= {"told": life.get("public", {})}
        asked |= {"steps": [[one["step"], one["with"]] for one in life["steps"]]}
        came = [one.get("outcome", one.get("kept")) for one in life["steps"]]
        yield {"ask": "life", **asked}, {"steps": came, "spent": life["spent"]}
    crowds = _known("wire/dummies")
    for one in crowds["crowds"]:
        asked = {"values": one["values"], "each": one["each"], "devices": len(one["devices"])}
        yield {"ask": "dummies", "key": crowds["key"], **asked}, one["devices"]
    for one in _known("wire/epochs")["epochs"]:
        asked = {"seconds": one["seconds"], "length": one["length"]}
        yield {"ask": "epoch", **asked}, [one["epoch"], one["start"]]
    wire = _known("wire/submission")
    yield {"ask": "request", "reports": wire["reports"]}, wire["request"]
    for one in wire["answers"]:
        asked = {"response": one["response"], "reports": len(wire["reports"])}
        yield {"ask": "results", **asked}, one["results"]
    bundle, log = _known("wire/bundle"), _known("wire/log")
    for signed, taken in [
        *((b, True) for b in (bundle["signed"], *log["shipped"])),
        *((b, False) for b in (*bundle["refused"].values(), *log["refused"].values())),
    ]:
        yield {"ask": "bundle", "signed": signed, "operator": bundle["operator"]}, taken
    seal = _known("wire/sealing")
    yield {"ask": "seal", **{n: seal[n] for n in ("public", "stream", "epoch", "payload")}}, seal


def judge(program: Sequence[str]) -> tuple[Counter[str], list[str]]:
    """How many answers were right, wrong and not given; and what was asked of the wrong ones."""
    asked = list(requests())
    lines = "".join(json.dumps(request) + "\n" for request, _ in asked)
    done = subprocess.run(program, input=lines, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    found: Counter[str] = Counter()
    wrong = []
    for (request, right), answer in zip(asked, answers, strict=True):
        verdict = "not given" if answer is None else "right" if _fits(answer, right) else "wrong"
        found[verdict] += 1
        if verdict == "wrong":
            wrong.append(json.dumps({**request, "values": None})[:200])
    return found, wrong


def _fits(answer: Any, right: Any) -> bool:
    if isinstance(right, dict) and "spent" in right:
        return _lived(answer, right)
    if not (isinstance(right, dict) and "private" in right):
        return bool(answer == right)
    key = X25519PrivateKey.from_private_bytes(bytes.fromhex(right["private"]))
    try:
        info = seal_info(right["stream"], right["epoch"])
        opened = open_sealed(bytes.fromhex(answer), key, info).hex()
        return opened == str(right["payload"])
    except (BadPayload, TypeError, ValueError):
        return False


def _lived(answer: Any, right: dict[str, Any]) -> bool:
    """What is kept after a step has no order, and sums are of doubles."""
    try:
        steps = [sorted(one) if isinstance(one, list) else one for one in answer["steps"]]
        spent = answer["spent"]
        near = all(abs(spent[name] - sum_) < _NEAR for name, sum_ in right["spent"].items())
    except (KeyError, TypeError):
        return False
    told = [sorted(one) if isinstance(one, list) else one for one in right["steps"]]
    return near and steps == told


def _known(name: str) -> dict[str, Any]:
    answers: dict[str, Any] = json.loads((HERE / f"{name}.json").read_text("utf-8"))
    return answers


if __name__ == "__main__":
    verdicts, mistakes = judge(sys.argv[1:])
    sys.stdout.write(f"{dict(verdicts)}\n" + "".join(f"wrong: {one}\n" for one in mistakes))
    sys.exit(bool(mistakes))
