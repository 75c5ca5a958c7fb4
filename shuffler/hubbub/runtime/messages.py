"""What every door makes of strangers' bytes, and when it tells them to come back."""

import secrets
from collections.abc import Callable
from typing import Final, TypeVar

from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

# Unknown fields take a microsecond each to look at, and two bytes to send.
_MAX_UNKNOWN_BYTES: Final = 16 << 10
_random: Final = secrets.SystemRandom()

Read = TypeVar("Read", bound=Message)


def read_message(parse: Callable[[bytes], Read], raw: bytes) -> Read | str:
    """The message of these bytes, or why they are none of ours."""
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


def hint_seconds(wait_seconds: float) -> float:
    """When to come back, who has to wait for so long: drawn, so that not all come at once."""
    return wait_seconds * _random.uniform(1, 2)
