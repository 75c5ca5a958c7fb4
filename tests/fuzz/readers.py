"""Signed texts that both SDKs read: they take the same ones, and promise the same by each.

An input is the kind of the text and, after it in a line of its own, what is signed of it; of a
proof that a bundle is in a log, the bundle's third line.
"""

import atexit
import json
import random
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hubbub.bundles.encoding import to_text
from hubbub.catalog import Metric
from hubbub.catalog.values.list_versions import digests_of
from hubbub.fields.field import loaded
from hubbub.signing.log.log_files import append, prove_bundle
from tests.fuzz.documents import varied
from tests.fuzz.target import Target, scratch
from tests.support.document_readers import BothReaders, both_readers, change_field, signed, slots

WIRE = Path(__file__).parents[1] / "proofs" / "vectors" / "wire"
VARIED = 0.1  # the part of inputs in which anything may have changed
_LOG_NAME = "log.example.org/app"
_LOG_KEY = Ed25519PrivateKey.from_private_bytes(bytes([2]) * 32)


def readers() -> Mapping[str, Target]:
    """The target by its name."""
    content, proof = _proven()
    kinds = {"bundle": _bundles(), "notice": _notices(), "proof": [proof]}
    examples = [f"{kind}\n{body}".encode() for kind, bodies in kinds.items() for body in bodies]

    def run(data: bytes) -> None:
        kind, _, body = data.decode(errors="replace").partition("\n")
        if kind in kinds:
            text = f"{content}{body}\n" if kind == "proof" else signed(kind, body)
            disagreement = both().disagreement("notice" if kind == "notice" else "bundle", text)
            assert not disagreement, disagreement

    return {"readers": Target(examples, run, _mutated, longest=65_536)}


@cache
def both() -> BothReaders:
    """Both SDKs' readers, until this process ends."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(both_readers(scratch()))


def _mutated(chance: random.Random, examples: Sequence[bytes]) -> bytes:
    kind, _, body = chance.choice(examples).partition(b"\n")
    if chance.random() < VARIED:
        return kind + b"\n" + varied(chance, [body])
    try:
        other = chance.choice(examples).partition(b"\n")[2].decode()
        return kind + b"\n" + change_field(chance, body.decode(), other).encode()
    except ValueError:
        return kind + b"\n" + body


def _bundles() -> list[str]:
    """A metric of every shape that the known answers of the wire have, and more; with a history.

    And each without: then a definition is whatever it is.
    """
    documents = [json.loads(path.read_text()) for path in sorted(WIRE.glob("*.json"))]
    texts = (holder[place] for document in documents for holder, place in slots(document))
    shapes: dict[Any, dict[str, Any]] = {}
    for text in texts:
        if not (isinstance(text, str) and text.startswith('{"hubbub bundle"') and "\n{" in text):
            continue
        body = json.loads(text.split("\n")[1])
        body["keys"] = body["keys"][:2]
        for name, metric in body["metrics"].items():
            shapes.setdefault(
                (metric["mechanism"], *sorted(metric)), {**body, "metrics": {name: metric}}
            )
    bodies = [*shapes.values()]
    whole = json.loads(json.loads((WIRE / "bundle.json").read_text())["signed"].split("\n")[1])
    caps = {"epsilon_per_day": 8.0, "central_epsilon_per_year": 30.0}
    rest = {**whole, "keys": whole["keys"][:2], "caps": caps, "serial": 5}
    bodies += [
        {**rest, "metrics": {"theme": metric}} for metric in _variants(whole["metrics"]["theme"])
    ]
    histories = [{}, {"gone": "0" * 64}]
    return [
        json.dumps({**body, "history": {**history, **_digests(body)} if history else {}})
        for body in bodies
        for history in histories
    ]


def _digests(body: dict[str, Any]) -> dict[str, str]:
    metrics = [
        Metric(name=name, **loaded(Metric, entry)) for name, entry in body["metrics"].items()
    ]
    return {stream: digest for metric in metrics for stream, digest in digests_of(metric).items()}


def _variants(theme: dict[str, Any]) -> list[dict[str, Any]]:
    """What else a bundle may say of a metric of listed values."""
    listed = {**theme, "mechanism": "grr"}
    crowd = {**listed, "central_epsilon": 0.5, "crowd": 100, "min_batch": 100}
    range_ends = {"low": 0.0, "high": 10.0}
    wave = {"mechanism": "wave", "parameters": {**range_ends, "buckets": 3}, "values": None}
    return [
        {**crowd, **wave, "epsilon": 4.0, "kind": "number"},
        {**theme, "tiers": [0.25, 0.5], "sampling": 0.5},
        {**crowd, "delta": 1e-7, "honest": 0.8, "lifetime_central_epsilon": 50.0},
        {**crowd, "dummies": 10, "max_local_epsilon": 4.0},
        {**crowd, "dummies_scale": 2.02, "dummies_shift": 36},
        {**crowd, "count_epsilon": 0.5, "dummies": 10},
        {**theme, "period": "30d", "report_on": "one day"},
        {**theme, "breakdown": [["os", [["linux", ["linux"]], ["mac", ["mac*"]]]]]},
        {**listed, "values": ["a", "b", "\U0001f600", "\uff5e"], "grown": [2, 3]},
    ]


def _notices() -> list[str]:
    steps = {"theme": [[5, 0.5], [9, 0]]}
    return [json.dumps({"version": 1, "number": 3, "until": 1 << 33, "sampling": steps})]


def _proven() -> tuple[str, str]:
    """Two lines of a bundle that names a log, and its third line."""
    key = to_text(_LOG_KEY.public_key().public_bytes_raw())
    body = {**json.loads(_bundles()[0]), "log": {"name": _LOG_NAME, "key": key}}
    content = signed("bundle", json.dumps(body))
    log = append(scratch(), _LOG_NAME, _LOG_KEY, [("bundle", content.encode())])
    return content, prove_bundle(log).dump().decode()
