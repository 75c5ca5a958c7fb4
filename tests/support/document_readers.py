"""Signed documents through the readers of both SDKs: what each takes, and promises by it."""

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hubbub.bundles import open_bundle, open_notice
from hubbub.bundles.encoding import to_text
from hubbub.catalog import Metric
from hubbub.catalog.values.list_versions import digests_of
from hubbub.errors import HubbubError, ValueOutOfDomain
from tests.support.node import PACKAGE, install, run

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
    "-0",
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
    "1E-7",
    "1e16",
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
    '"2099-02-03T08:00:00Z"',
    '["a","a"]',
    '["a",""]',
    '["a","\\ud83d\\ude00","\\uff5e\\u007f"]',
    "[1,1]",
    "[2,1]",
    "[1,2.50,1e2]",
)
NAMES = ("constructor", "__proto__", "\ufeffa", "toString", "a b", "é", "x" * 65)
_RAW = "\1"


def signed(kind: str, body: str) -> str:
    """The two lines of a document with this body, and a signature that fits."""
    signature = KEY.sign(f"hubbub/1 {kind}\n".encode() + body.encode())
    head = {f"hubbub {kind}": 1, "operator": OPERATOR, "signature": to_text(signature)}
    return f"{json.dumps(head)}\n{body}\n"


def change_field(chance: random.Random, body: str, other: str) -> str:
    """A document with one field changed. Raises ValueError if it is no JSON, or empty.

    The field holds another thing, or the same number in another spelling; it is missing, is there
    twice, or has another name; or beside it stands a field of a table like its own, from `other`.
    """
    document = json.loads(body)
    places = slots(document)
    if not places:
        raise ValueError("nothing stands in it")
    holder, place = chance.choice(places)
    former = holder[place]
    number = former if isinstance(former, int | float) and not isinstance(former, bool) else None
    match chance.randrange(10) if isinstance(holder, dict) else 9:
        case 0:
            del holder[place]
            return json.dumps(document)
        case 1:
            replaced = f"{json.dumps(former)}, {json.dumps(place)}: 1"
        case 2:
            holder[chance.choice(NAMES)] = former
            return json.dumps(document)
        case 3 | 6:
            fields = [
                (table, field)
                for table, field in slots(json.loads(other))
                if isinstance(table, dict) and table.keys() & holder.keys()
            ]
            for table, field in chance.sample(fields, min(len(fields), 1)):
                holder[field] = table[field]
            return json.dumps(document)
        case 4 | 5 if number is not None:
            replaced = chance.choice([*_spellings(number), repr(number + 1), repr(number / 2)])
        case _:
            replaced = chance.choice(ODD)
    holder[place] = _RAW
    return json.dumps(document).replace(json.dumps(_RAW), replaced)


def _spellings(number: float) -> Iterator[str]:
    """The same number as a fraction, with an exponent, and as Python writes it."""
    yield f"{float(number)!r}0"
    yield f"{number}e0"
    yield f"{number:g}"
    yield repr(float(number))


def slots(document: Any) -> list[tuple[Any, Any]]:
    """Every place in a document that something stands in."""
    positions: list[tuple[Any, Any]] = []
    if isinstance(document, dict | list):
        places = list(document) if isinstance(document, dict) else range(len(document))
        for place in places:
            positions += [(document, place), *slots(document[place])]
    return positions


def _integer(table: dict[str, Any]) -> Any:
    return int(table["integer"]) if "integer" in table else table


def _code(metric: Metric, value: Any) -> Any:
    try:
        code = metric.code(value)
    except ValueOutOfDomain:
        return None
    return list(code) if isinstance(code, tuple) else code


def python_reads(kind: str, text: str) -> Any:
    """What Python takes of a document, or the codes of values; None for nothing."""
    if kind == "values":
        signed_bundle, values = json.loads(text, object_hook=_integer)
        values_bundle = open_bundle(signed_bundle.encode(), "values")
        return [_code(values_bundle.metrics[name], value) for name, value in values]
    raw = text.encode(errors="surrogatepass")
    try:
        if kind == "notice":
            notice = open_notice(raw, operator=KEY.public_key().public_bytes_raw())
            steps = {
                name: [list(step) for step in metric_steps]
                for name, metric_steps in notice.steps.items()
            }
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
                digests_of(metric),
            ]
            for name, metric in bundle.metrics.items()
        }
    }


class BothReaders:
    """Python's readers, and those of TypeScript in a process of Node's."""

    def __init__(self, node: Popen[str]) -> None:
        self._node = node

    def disagreement(self, kind: str, text: str) -> str:
        """What both SDKs read differently in a document; "" if nothing.

        A metric that TypeScript takes for one of a later version counts as refused, which it may be
        where Python passes over a field that it does not know.
        """
        assert self._node.stdin
        assert self._node.stdout
        print(json.dumps([OPERATOR, kind, text]), file=self._node.stdin, flush=True)
        theirs = json.loads(self._node.stdout.readline())
        ours = python_reads(kind, text)
        if kind == "bundle":
            unknown = theirs.pop("unknown") if theirs else []
            if unknown and ours is None:
                return ""
            if ours is not None:
                ours = {"promises": {n: p for n, p in ours["promises"].items() if n not in unknown}}
        return "" if ours == theirs else f"Python: {ours}\nTypeScript: {theirs}\n{text}"


@contextmanager
def both_readers(folder: Path) -> Iterator[BothReaders]:
    """Both, while this is open. folder: for what is built."""
    install()
    built = folder / "reading.mjs"
    options = ("--bundle", "--platform=node", "--format=esm", "--log-level=warning")
    run("node_modules/.bin/esbuild", "tests/document_reader.ts", f"--outfile={built}", *options)
    with Popen(["node", str(built)], stdin=PIPE, stdout=PIPE, text=True, cwd=PACKAGE) as node:
        yield BothReaders(node)
        assert node.stdin
        node.stdin.close()
