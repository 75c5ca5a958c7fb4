"""Signed documents through the readers of both SDKs: what each takes, and promises by it."""

import json
import random
from collections.abc import Iterator, Mapping
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hubbub.bundles import open_bundle, open_notice
from hubbub.bundles.encoding import to_text
from hubbub.errors import HubbubError
from tests.support.node import run

KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
OPERATOR = to_text(KEY.public_key().public_bytes_raw())
# JSON as text, for what json.dumps does not write.
ODD = (
    "null",
    "true",
    "false",
    "[]",
    "{}",
    '""',
    '"x"',
    "0",
    "1",
    "1.0",
    "2",
    "6.0",
    "2.5",
    "-1",
    "-0.0",
    "9",
    "1e1",
    "1e6",
    "1e300",
    "1e-300",
    "1e999",
    "9007199254740993",
    "9" * 41,
    '"NaN"',
    '"0x4"',
    '"1"',
    '" 1"',
    '"\\ufeff"',
    '"\\ud800"',
    '"constructor"',
    '"__proto__"',
    '"2099-12-31"',
    '"20991231"',
    '"2099-02-30"',
    '["a","a"]',
    '["a",""]',
    "[1,1]",
    "[2,1]",
)
NAMES = ("constructor", "__proto__", "\ufeffa", "toString", "a b", "é", "x" * 65)
_READ = """
import { readFileSync } from "node:fs";
import { openBundle } from "./dist/src/catalog/bundle.js";
import { openNotice } from "./dist/src/catalog/notice.js";
const read = async ([kind, signed]) => {
  const bytes = new TextEncoder().encode(signed);
  try {
    if (kind === "notice") {
      const { number, until, steps } = await openNotice(bytes, process.argv[2]);
      return { number, until, steps };
    }
    const { metrics, unknown } = await openBundle(bytes, process.argv[2]);
    const promises = [...metrics].map(([name, { limits, streams }]) => [name, [
      streams[0].epsilon, limits.reportsPerEpoch, limits.lifetimeEpsilon,
      limits.lifetimeCentralEpsilon]]);
    return { promises: Object.fromEntries(promises), unknown: [...unknown.keys()] };
  } catch { return null; }
};
const found = [];
for (const one of JSON.parse(readFileSync(process.argv[1]))) found.push(await read(one));
console.log(JSON.stringify(found));
"""


def signed(kind: str, body: str) -> str:
    """The two lines of a document with this body, and a signature that fits."""
    signature = KEY.sign(f"hubbub/1 {kind}\n".encode() + body.encode())
    head = {f"hubbub {kind}": 1, "operator": OPERATOR, "signature": to_text(signature)}
    return f"{json.dumps(head)}\n{body}\n"


def each_field(document: Any, odd: tuple[str, ...] = ODD) -> Iterator[str]:
    """A document once for each of its fields and each thing it may hold, as JSON."""
    for holder, place in slots(document):
        former = holder[place]
        for thing in odd:
            holder[place] = "\1"
            yield json.dumps(document).replace('"\\u0001"', thing)
        if isinstance(holder, dict):
            del holder[place]
            yield json.dumps(document)
            holder[place] = "\1"
            twice = f"{json.dumps(former)}, {json.dumps(place)}: 1"
            yield json.dumps(document).replace('"\\u0001"', twice)
            del holder[place]
            for name in NAMES:
                holder[name] = former
                yield json.dumps(document)
                del holder[name]
        holder[place] = former


def slots(document: Any) -> list[tuple[Any, Any]]:
    """Every place in a document that something stands in."""
    positions: list[tuple[Any, Any]] = []
    if isinstance(document, dict | list):
        places = list(document) if isinstance(document, dict) else range(len(document))
        for place in places:
            positions += [(document, place), *slots(document[place])]
    return positions


def python_reads(kind: str, text: str) -> Mapping[str, Any] | None:
    """What Python takes of a document; None for nothing."""
    raw = text.encode(errors="surrogatepass")
    try:
        if kind == "notice":
            notice = open_notice(raw, operator=KEY.public_key().public_bytes_raw())
            steps = {name: [list(step) for step in own] for name, own in notice.steps.items()}
            return {"number": notice.number, "until": notice.until, "steps": steps}
        bundle = open_bundle(raw, "mutant", operator=KEY.public_key().public_bytes_raw())
    except HubbubError:
        return None
    return {
        "promises": {
            name: [
                metric.epsilon,
                metric.limits.reports_per_epoch,
                metric.limits.lifetime_epsilon,
                metric.limits.lifetime_central_epsilon,
            ]
            for name, metric in bundle.metrics.items()
        }
    }


def disagreements(documents: list[tuple[str, str]], folder: Any) -> list[str]:
    """The documents that both SDKs read differently, with what each read.

    A metric that TypeScript takes for one of a later version counts as refused, which it may be
    where Python passes over a field that it does not know.
    """
    path = folder / "documents.json"
    path.write_text(json.dumps(documents))
    printed = run("node", "--input-type=module", "-e", _READ, str(path), OPERATOR)
    differences = []
    for (kind, text), theirs in zip(documents, json.loads(printed), strict=True):
        ours = python_reads(kind, text)
        if kind == "bundle":
            unknown = theirs.pop("unknown") if theirs else []
            if unknown and ours is None:
                continue
            if ours is not None:
                ours = {"promises": {n: p for n, p in ours["promises"].items() if n not in unknown}}
        if ours != theirs:
            differences.append(f"Python: {ours}\nTypeScript: {theirs}\n{text}")
    return differences


def some(documents: list[tuple[str, str]], count: int, seed: int) -> list[tuple[str, str]]:
    """Some of the documents, drawn by a seed."""
    return random.Random(seed).sample(documents, min(count, len(documents)))
