"""Parses messages from untrusted senders, and draws the delay after which they may retry."""

import math
import secrets
from collections.abc import Callable
from typing import Final, TypeVar

from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

# Checking an unknown field takes a microsecond; sending one takes two bytes.
_MAX_UNKNOWN_BYTES: Final = 16 << 10
_random: Final = secrets.SystemRandom()

# Wire types of protobuf.
_OF_LENGTH: Final = 2
_FIXED_BYTES: Final = {1: 8, 5: 4}
_VARINT_BYTES: Final = 10
_MORE: Final = 128
# A shorter part holds too few fields to cost anything.
_SHORT_BYTES: Final = 256

Read = TypeVar("Read", bound=Message)


def read_message(
    parse: Callable[[bytes], Read], raw: bytes, max_fields: int | None = None
) -> Read | str:
    """Parses a message; returns it, or a text that says why it is refused.

    `max_fields` limits the fields of a message and its parts in field 1 together; None is no limit.
    A message with more is not parsed: a million empty parts take .4 s and 100 MiB.
    """
    if max_fields is not None and _remaining_fields(raw, 0, len(raw), max_fields) < 0:
        return f"more than {max_fields} fields"
    try:
        request = parse(raw)
    except DecodeError:
        return "not the message expected"
    # PRIVACY: unknown fields could carry an identifier, so they are removed.
    size = request.ByteSize()
    request.DiscardUnknownFields()
    unknown = size - request.ByteSize()
    if unknown:
        # The answer may refuse a few unknown fields in parts of the message.
        request = parse(raw)
        if unknown > _MAX_UNKNOWN_BYTES or len(UnknownFieldSet(request)):
            return "fields that this version does not know"
    return request


def _remaining_fields(
    raw: bytes, position: int, end: int, remaining: int, *, is_part: bool = False
) -> int:
    """How much of a budget of fields is left after these bytes and their parts; negative: too many.

    Malformed bytes are left to the parser, which also stops there.
    """
    while position < end and remaining >= 0:
        remaining -= 1
        tag, position = (
            (raw[position], position + 1) if raw[position] < _MORE else _varint(raw, position)
        )
        if tag & 7 in _FIXED_BYTES:
            position += _FIXED_BYTES[tag & 7]
            continue
        if position >= end:
            break
        number, position = (
            (raw[position], position + 1) if raw[position] < _MORE else _varint(raw, position)
        )
        if tag & 7 == _OF_LENGTH:
            if number > _SHORT_BYTES and not is_part and tag >> 3 == 1:
                remaining = _remaining_fields(
                    raw, position, min(position + number, end), remaining, is_part=True
                )
            position += number
    return remaining


def _varint(raw: bytes, position: int) -> tuple[int, int]:
    """Reads the number that begins at `position`; returns it and the offset after it."""
    number = 0
    for place, byte in enumerate(raw[position : position + _VARINT_BYTES]):
        number |= (byte & 127) << 7 * place
        if byte < _MORE:
            return number, position + place + 1
    return number, len(raw)


def hint_seconds(wait_seconds: float) -> float:
    """A random delay in [`wait_seconds`, 2 `wait_seconds`], so that callers do not all return.

    Rounded up to whole milliseconds, in which it is sent.
    """
    return math.ceil(1000 * wait_seconds * _random.uniform(1, 2)) / 1000
