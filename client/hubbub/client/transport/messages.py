"""Messages to the shuffler and the issuer of tokens, and their answers; services.proto has them.

They are encoded and decoded here, in the kinds of protobuf fields that they contain: protobuf's own
library takes 3 MB of an app's memory, and apps need other versions of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from hubbub.client.lazy_log import warn
from hubbub.client.transport.contract import SealedReport, Submitted, TryAgain

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


REASONS: Final = (
    "refused_unspecified",
    "refused_unknown_stream",
    "refused_wrong_length",
    "refused_wrong_key",
    "refused_expired",
    "refused_not_yet",
    "refused_unknown_field",
    "refused_no_token",
    "refused_token_spent",
)
"""Why a report is refused, for counters, by the numbers of Reason."""

# Unknown reasons of newer shufflers are counted by number, up to a plausible one.
_MAX_REASON: Final = 1000


def request_of(reports: Sequence[SealedReport]) -> bytes:
    """Returns the SubmitRequest of reports."""
    messages = [
        element(
            1,
            field(1, report.stream)
            + field(2, report.epoch)
            + field(3, report.key_id)
            + field(4, report.sealed),
        )
        for report in reports
    ]
    if any(report.token for report in reports):
        messages += [element(2, report.token) for report in reports]
    return b"".join(messages)


def answer_in(response: bytes, reports: int) -> Submitted:
    """Returns what a SubmitResponse to `reports` reports contains. Raises TryAgain if malformed."""
    results: list[str | None] = [None] * reports
    notice, models, seconds, has_strays = b"", b"", 0, False
    try:
        for member in fields_of(response):
            match member:
                case 1, bytes(refusal):
                    index, reason = _refusal(refusal)
                    if index < reports:
                        results[index] = reason
                    has_strays |= index >= reports
                case 2, bytes(signed):
                    notice = signed
                case 3, bytes(signed):
                    models = signed
                case 4, int(number):
                    seconds = number - (number >> 63 << 64)  # is signed
    except ValueError as error:
        raise TryAgain("no_shuffler") from error
    if has_strays:
        _warn_of_strays()
    return Submitted(results, notice, models, seconds)


def _refusal(message: bytes) -> tuple[int, str]:
    """The report's index, and the reason."""
    members = {number: value for number, value in fields_of(message) if isinstance(value, int)}
    reason = members.get(2, 0) & UINT32
    if reason < len(REASONS):
        name = REASONS[reason]
    else:
        name = f"refused_unknown_{reason}" if reason < _MAX_REASON else "refused_unknown"
    return members.get(1, 0) & UINT32, name


@cache
def _warn_of_strays() -> None:
    """Warns, once per process, that reports were refused that had not been sent."""
    warn("the shuffler refused reports that it was not sent")


def token_request_of(blinded: Mapping[tuple[str, int], Sequence[bytes]]) -> bytes:
    """Returns the TokenRequest of blinded elements by stream and epoch."""
    return b"".join(
        element(
            1,
            field(1, stream)
            + field(2, epoch)
            + b"".join(element(3, blinded_element) for blinded_element in elements),
        )
        for (stream, epoch), elements in blinded.items()
    )


def issued_in(answer: bytes, count: int) -> list[tuple[Sequence[bytes], bytes] | None]:
    """Returns elements and proof per request; None where all devices get none. Raises TryAgain."""
    try:
        issued = [
            _issued_tokens(value)
            for number, value in fields_of(answer)
            if number == 1 and isinstance(value, bytes)
        ]
    except ValueError as error:
        raise TryAgain("no_issuer") from error
    if len(issued) != count:
        raise TryAgain("no_issuer")
    return issued


def _issued_tokens(message: bytes) -> tuple[Sequence[bytes], bytes] | None:
    evaluated: list[bytes] = []
    proof, is_given = b"", True
    for member in fields_of(message):
        match member:
            case 1, bytes(evaluated_element):
                evaluated.append(evaluated_element)
            case 2, bytes(content):
                proof = content
            case 3, int(flag):
                is_given = not flag
    return (evaluated, proof) if is_given else None
