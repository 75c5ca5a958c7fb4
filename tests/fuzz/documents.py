"""Mutations of JSON: a document like the examples, whose parts are other things."""

import copy
import json
import random
import re
from collections.abc import Iterator, Sequence
from typing import Any

from tests.fuzz.mutate import LONGEST, Mutate, mutated

_TEXTS = (
    "",
    "0",
    "1",
    "nan",
    "Infinity",
    "theme",
    "crashed/0.5",
    "../../x",
    "a/b",
    "x" * 300,
    "\0",
    "\n",
    "\x1b[2J",
    "\u202e",
    "\ufeff=1+1",
    "%s{0}",
    "\u0661",
    "é",
)
_NUMBERS = (
    0,
    1,
    -1,
    2,
    3,
    255,
    20_000,
    1 << 31,
    (1 << 63) - 1,
    1 << 63,
    1 << 64,
    10**30,
    -(10**18),
)
_FLOATS = (0.0, -0.0, 0.5, 1.0, 1e-320, 1e300, -1e300, float("inf"), float("-inf"), float("nan"))
_ODD: tuple[Any, ...] = (None, True, False, [], {}, [[]], {"": None}, *_NUMBERS, *_FLOATS, *_TEXTS)
# What only the text of a document can say stands in it under a name, and is put in at the end.
_RAW = {
    "\x01surrogate": '"\\ud800"',
    "\x01deep": "[" * 3000 + "]" * 3000,
    "\x01deeper": '{"a":' * 3000 + "1" + "}" * 3000,
    "\x01digits": "9" * 5000,
    "\x01overflow": "1e999",
    "\x01bare": "NaN",
}
_MAX = 10**300  # what a float still holds, and JSON writes
_NAME = re.compile(rb'"[^"\\]{1,40}":')


def varied(chance: random.Random, examples: Sequence[bytes], longest: int = LONGEST) -> bytes:
    """One of the examples with some of its parts replaced, moved, doubled, nested or taken away."""
    example = chance.choice(examples)
    try:
        document = json.loads(example)
    except (ValueError, RecursionError):
        return mutated(chance, examples)
    for _ in range(chance.choice((1, 1, 1, 2, 4, 12))):
        document = _change_document(chance, document)
    text = json.dumps(document, separators=(",", ":")).encode()
    for name, raw in _RAW.items():
        text = text.replace(json.dumps(name).encode(), raw.encode())
    if chance.random() < 0.1 and (names := list(_NAME.finditer(text))):
        match = chance.choice(names)  # the same name twice
        text = text[: match.start()] + match[0] + b"0," + text[match.start() :]
    if chance.random() < 0.05:
        text = mutated(chance, [text])
    return text[:longest]


def answers_in(data: bytes) -> list[bytes]:
    """The answers of a JSON list of hex; none where it is no such list."""
    try:
        return [bytes.fromhex(load) for load in json.loads(data)]
    except (ValueError, TypeError, RecursionError):
        return []


def other_answers(chance: random.Random, examples: Sequence[bytes], mutate: Mutate) -> bytes:
    """Some answers of an example, and a short one, each mutated, as a JSON list of hex."""
    short = bytes([chance.randrange(17), chance.randrange(256), 0])
    choices = [*answers_in(chance.choice(examples)), short]
    answers = [mutate(chance, choices).hex() for _ in range(chance.randrange(1, 5))]
    return json.dumps(answers).encode()


def _change_document(chance: random.Random, document: Any) -> Any:
    slots = list(_slots(document))
    if not slots:
        return chance.choice(_ODD)
    holder, place = chance.choice(slots)
    value = holder[place]
    match chance.randrange(10):
        case 0 | 1 | 2:
            holder[place] = copy.deepcopy(chance.choice(_ODD))
        case 3:
            holder[place] = chance.choice(list(_RAW))
        case 4:
            holder[place] = _nudged(chance, value)
        case 5:
            other, elsewhere = chance.choice(slots)
            holder[place] = copy.deepcopy(other[elsewhere])
        case 6:
            del holder[place]
        case 7:
            holder[place] = chance.choice(([value], [value] * 3, {"a": value}))
        case 8 if isinstance(holder, list):
            holder.append(copy.deepcopy(value))
        case 8:
            holder[chance.choice(_TEXTS)] = copy.deepcopy(value)
        case _:
            holder[place] = str(value)
    return document


def _nudged(chance: random.Random, value: Any) -> Any:
    if isinstance(value, bool) or not value or (isinstance(value, int) and abs(value) > _MAX):
        return chance.choice(_ODD)
    if isinstance(value, (int, float)):
        return chance.choice((value + 1, value - 1, -value, value * 2, value / 2, float(value)))
    if isinstance(value, str):
        at = chance.randrange(len(value) + 1)
        other = chance.choice((*_TEXTS, chr(chance.randrange(1, 0xD7FF)), value))
        return value[:at] + other + value[at + chance.randrange(3) :]
    if isinstance(value, list):
        return chance.sample(value, len(value))
    return dict(chance.sample(list(value.items()), len(value)))


def _slots(document: Any) -> Iterator[tuple[Any, Any]]:
    """Every place where something stands, with what it stands in."""
    places: Any = ()
    if isinstance(document, dict):
        places = list(document)
    elif isinstance(document, list):
        places = range(len(document))
    for place in places:
        yield document, place
        yield from _slots(document[place])
