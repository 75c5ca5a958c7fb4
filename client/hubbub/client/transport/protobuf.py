"""Encodes and decodes the kinds of protobuf fields that submissions and their answers contain.

protobuf's own library takes 3 MB of an app's memory, and apps need other versions of it.
"""

from collections.abc import Iterator
from typing import Final

_VARINT, _DELIMITED = 0, 2
_FIXED_BYTES: Final = {1: 8, 5: 4}
_MAX_TAG_BYTES, _MAX_VALUE_BYTES = 5, 10  # as protobuf's own parsers, also for sizes
_MORE: Final = 0x80  # in a byte that others of its number follow
UINT32: Final = (1 << 32) - 1
_UINT64: Final = (1 << 64) - 1


def field(number: int, value: int | str | bytes) -> bytes:
    """A field with a whole number in [0, 2^32), a text or bytes; left out if zero or empty."""
    if not value:
        return b""
    if isinstance(value, int):
        return _varint(number << 3 | _VARINT) + _varint(value)
    return element(number, value.encode() if isinstance(value, str) else value)


def element(number: int, content: bytes) -> bytes:
    """An element of a repeated field of messages or bytes, which may be empty."""
    return _varint(number << 3 | _DELIMITED) + _varint(len(content)) + content


def fields_of(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yields number and value of each field, in order; a number is in [0, 2^64).

    Fields of fixed width, which no message of ours has, are skipped. Raises ValueError: malformed.
    """
    position = 0
    while position < len(message):
        tag, position = _read_varint(message, position, _MAX_TAG_BYTES)
        number, kind = tag >> 3, tag & 7
        if not number or tag > UINT32:
            raise ValueError("a field has no valid number")
        if kind == _VARINT:
            value, position = _read_varint(message, position, _MAX_VALUE_BYTES)
            yield number, value
            continue
        if kind == _DELIMITED:
            size, position = _read_varint(message, position, _MAX_TAG_BYTES)
        elif kind in _FIXED_BYTES:
            size = _FIXED_BYTES[kind]
        else:
            raise ValueError("a field is of an unknown kind")
        start, position = position, position + size
        if position > len(message):
            raise ValueError("a message ends too soon")
        if kind == _DELIMITED:
            yield number, message[start:position]


def _varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    if not 0 <= number <= UINT32:
        raise ValueError("a number is outside [0, 2^32)")
    digits = bytearray()
    while number >= _MORE:
        digits.append(number % _MORE | _MORE)
        number //= _MORE
    return bytes((*digits, number))


def _read_varint(message: bytes, start: int, max_bytes: int) -> tuple[int, int]:
    """The number at `start`, of at most `max_bytes` bytes, and the offset after it."""
    number = 0
    for place, byte in enumerate(message[start : start + max_bytes]):
        number |= byte % _MORE << 7 * place
        if byte < _MORE:
            return number & _UINT64, start + place + 1
    raise ValueError("a number is cut off")
