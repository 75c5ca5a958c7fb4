"""Mutations: an input like the examples, but wrong."""

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

_ODD: tuple[bytes, ...] = (
    b"\0",
    b"\xff",
    b"\x80",
    b"\x7f",
    b"\xff" * 9,
    b"\0" * 64,
    b"{",
    b"[" * 2000,
    b'"',
    b"-1",
)
_ODD += (b"1e999", b"NaN", b"\xed\xa0\x80", b"\r\n", b",", b"18446744073709551616", b"null")
LONGEST = 8192
Mutate = Callable[[random.Random, Sequence[bytes]], bytes]


def mutated(chance: random.Random, examples: Sequence[bytes]) -> bytes:
    """One of the examples with some of its bytes changed, taken away, doubled or added."""
    data = bytearray(chance.choice(examples))
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(7):
            case 0 if data:
                data[at % len(data)] ^= 1 << chance.randrange(8)
            case 1 if data:
                data[at % len(data)] = chance.randrange(256)
            case 2:
                del data[at : at + chance.choice((1, 2, 8, 64))]
            case 3:
                data[at:at] = chance.choice(_ODD)
            case 4:
                data[at:at] = data[at : at + chance.choice((1, 4, 32, 256))]
            case 5:
                other = chance.choice(examples)
                data[at:] = other[chance.randrange(len(other) + 1) :]
            case _:
                data[at:at] = chance.randbytes(chance.choice((1, 2, 8, 32)))
    return bytes(data[:LONGEST])


def odd(chance: random.Random, example: bytes, kind: type[Message]) -> bytes:
    """An example whose fields hold other things: still a message of its kind."""
    message = kind.FromString(example)
    for field in message.DESCRIPTOR.fields:
        if chance.random() < 0.4:
            _insert_field(chance, message, field)
    return message.SerializeToString()[:LONGEST]


def _insert_field(chance: random.Random, message: Any, field: Any) -> None:
    if field.message_type and not field.is_repeated:
        for inner in field.message_type.fields:
            _insert_field(chance, getattr(message, field.name), inner)
        return
    if not field.is_repeated:
        setattr(message, field.name, _value(chance, field))
        return
    entries = getattr(message, field.name)
    if field.message_type:
        _put_messages(chance, entries, field.message_type.fields)
        return
    right = list(entries)
    del entries[:]
    entries.extend(
        chance.choice([_value(chance, field), *right[:2]]) for _ in range(chance.choice((0, 1, 9)))
    )


def _put_messages(chance: random.Random, entries: Any, fields: Any) -> None:
    if not entries and chance.random() < 0.5:
        entries.add()
    for entry in entries:
        for inner in fields:
            if chance.random() < 0.2:
                _insert_field(chance, entry, inner)
    if entries:
        entries.extend([entries[0]] * chance.choice((0, 1, 1200)))


def _value(chance: random.Random, field: FieldDescriptor) -> Any:
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        if field.type == FieldDescriptor.TYPE_BYTES:
            return chance.randbytes(chance.choice((0, 1, 15, 16, 48, 49, 50, 66, 4000)))
        text = chance.choice(("", "theme", "homepage", "editor", "crashed/0.5", "x" * 3000, "a:b"))
        return text + chance.choice(
            ("", "", "\0", "\n", "/", "/1", "\u2028", "{", "%s", "\x1b[2J", "\u202e")
        )
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return chance.random() < 0.5
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        return chance.choice((0, 1, 5, 7, 100, -1, (1 << 31) - 1))
    if field.cpp_type == FieldDescriptor.CPPTYPE_DOUBLE:
        return chance.choice((0.0, -1.0, 0.5, 1e-320, 1e300, math.inf, -math.inf, math.nan))
    most = (1 << 64) - 1 if field.cpp_type == FieldDescriptor.CPPTYPE_UINT64 else (1 << 32) - 1
    return chance.choice((0, 1, 2, 20_000, 1 << 31, most))
