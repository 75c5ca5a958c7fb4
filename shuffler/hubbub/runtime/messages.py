"""What every door makes of strangers' bytes, and when it tells them to come back."""

import secrets
from collections.abc import Callable
from typing import Final, TypeVar

from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

# Unknown fields take a microsecond each to look at, and two bytes to send.
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
    """The message of these bytes, or why they are none of ours.

    max_fields: of a message and its parts in field 1 together; None for any number.
        One with more is not parsed: a million empty parts take .4 s and 100 MiB.
    """
    if max_fields is not None and _remaining_fields(raw, 0, len(raw), max_fields) < 0:
        return f"more than {max_fields} fields"
    try:
        request = parse(raw)
    except DecodeError:
        return "not the message expected"
    # PRIVACY: what we do not know could carry an identifier, so nobody gets to see it.
    size = request.ByteSize()
    request.DiscardUnknownFields()
    unknown = size - request.ByteSize()
    if unknown:
        # In parts of it they may be an answer's to tell, if they are few.
        request = parse(raw)
        if unknown > _MAX_UNKNOWN_BYTES or len(UnknownFieldSet(request)):
            return "fields that this version does not know"
    return request


def _remaining_fields(
    raw: bytes, at: int, end: int, remaining: int, *, is_part: bool = False
) -> int:
    """How many of `remaining` fields remain after these bytes and their parts; below 0: too many.

    Bytes that are no message are left to the parser, which stops there, too.
    """
    while at < end and remaining >= 0:
        remaining -= 1
        tag, at = (raw[at], at + 1) if raw[at] < _MORE else _varint(raw, at)
        if tag & 7 in _FIXED_BYTES:
            at += _FIXED_BYTES[tag & 7]
            continue
        if at >= end:
            break
        number, at = (raw[at], at + 1) if raw[at] < _MORE else _varint(raw, at)
        if tag & 7 == _OF_LENGTH:
            if number > _SHORT_BYTES and not is_part and tag >> 3 == 1:
                remaining = _remaining_fields(
                    raw, at, min(at + number, end), remaining, is_part=True
                )
            at += number
    return remaining


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    """The number that begins there, and where it ends."""
    number = 0
    for place, byte in enumerate(raw[at : at + _VARINT_BYTES]):
        number |= (byte & 127) << 7 * place
        if byte < _MORE:
            return number, at + place + 1
    return number, len(raw)


def hint_seconds(wait_seconds: float) -> float:
    """When to come back, who has to wait for so long: drawn, so that not all come at once."""
    return wait_seconds * _random.uniform(1, 2)
