"""The streams as the issuer knows them: length of an epoch, and number of reports of one device.

They come from the stream table that `hubbub catalog build` makes for the shuffler.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hubbub.epochs import begins
from hubbub.errors import BadParameter

_AHEAD_SECONDS: Final = 600  # a device's clock may be so far ahead
_REMEDY: Final = "make it with: hubbub catalog build"


@dataclass(frozen=True, slots=True)
class IssuedStream:
    """One stream. `tokens` is the number of tokens that one device gets for an epoch."""

    epoch_seconds: int
    grace_seconds: int
    tokens: int

    def is_open(self, epoch: int, now: float) -> bool:
        """Whether tokens for an epoch are issued: from the epoch before it until it closes."""
        opens = begins(epoch - 1, self.epoch_seconds) - _AHEAD_SECONDS
        return opens <= now < self.closes(epoch)

    def closes(self, epoch: int) -> int:
        """When the shuffler stops taking reports of the epoch, in seconds since 1970."""
        return begins(epoch + 1, self.epoch_seconds) + self.grace_seconds


@dataclass(frozen=True, slots=True)
class IssuedStreams:
    """All streams by name. `devices` is how many devices of one account get tokens."""

    streams: Mapping[str, IssuedStream]
    devices: int


def read_issued_streams(path: Path) -> IssuedStreams:
    """Reads a stream table. Raises BadParameter if it is invalid or requires no tokens."""
    try:
        document = json.loads(path.read_bytes())
        streams = {name: _stream(table) for name, table in document["streams"].items()}
        needs_tokens = any(stream.tokens for stream in streams.values())
        devices = _whole_number(document["devices"]) if needs_tokens else 0
    except OSError as error:
        raise BadParameter(f"{path}: cannot be read: {error.strerror}; {_REMEDY}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadParameter(f"{path}: not a stream table; {_REMEDY}") from error
    if not devices:
        raise BadParameter(
            f"{path}: its streams take reports without tokens; write tokens = {{ issuer = ... }} "
            f"in the catalog, and {_REMEDY}"
        )
    return IssuedStreams(streams, devices)


def _stream(table: Mapping[str, Any]) -> IssuedStream:
    numbers = table["epoch_seconds"], table["grace_seconds"], table.get("tokens", 0)
    return IssuedStream(*map(_whole_number, numbers))


def _whole_number(number: Any) -> int:
    if type(number) is not int or number < 0:
        raise ValueError("invalid count")
    return number
