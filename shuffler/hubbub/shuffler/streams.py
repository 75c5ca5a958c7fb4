"""The stream table: of a stream, the shuffler knows its length, minimum batch and times."""

import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Final

from hubbub.accounting import Window
from hubbub.errors import BadParameter
from hubbub.wire.v1.report_pb2 import SealedReport
from hubbub.wire.v1.services_pb2 import Reason

__all__ = ["Stream", "StreamTable", "read_stream_table"]

# What a stream may be told. The least batch is the catalog's, too: of fewer reports none hides.
_RANGES: Final = {
    "sealed_bytes": (1, 1 << 20),
    "min_batch": (10, 1_000_000),
    "epoch_seconds": (60, 366 * 86_400),
    "grace_seconds": (1, 366 * 86_400),
}
_MIXES: Final = ("pool", "epoch", "rolling")
_LONGEST_NAME: Final = 256
# A device's clock may be this far ahead of ours.
_AHEAD_SECONDS: Final = 600


@dataclass(frozen=True, slots=True)
class Stream:
    """One stream: its reports' one length, and when and how many of them may leave.

    mix: "pool", random parts as they come, with a reserve; "epoch", the whole epoch as one crowd,
    when it is over; "rolling", everything as one crowd whenever the minimum has gathered.
    """

    sealed_bytes: int
    min_batch: int
    epoch_seconds: int
    grace_seconds: int
    mix: str = "pool"

    def __post_init__(self) -> None:
        for name, (low, high) in _RANGES.items():
            number = getattr(self, name)
            if type(number) is not int or not low <= number <= high:
                raise ValueError(f"{name} {number!a} is no whole number in [{low}, {high}]")
        if self.mix not in _MIXES:
            raise ValueError(f"mix {self.mix!a} is none of {', '.join(_MIXES)}")


@dataclass(frozen=True, slots=True)
class _KeyPeriod:
    id: int
    start: int
    end: int

    def __post_init__(self) -> None:
        if not all(type(n) is int for n in astuple(self)):
            raise ValueError("a key's period is told by whole numbers")
        if not (0 <= self.id < 2**32 and self.start < self.end):
            raise ValueError("a key's id is in [0, 2**32), and its period ends after it starts")


@dataclass(frozen=True, slots=True)
class StreamTable:
    """Every stream by name, and which key id every epoch has."""

    streams: Mapping[str, Stream]
    keys: tuple[_KeyPeriod, ...]

    def refusal(
        self, report: SealedReport, earliest: float, latest: float | None = None
    ) -> "Reason.ValueType | None":
        """Why a report surely cannot be taken, if it cannot, between these moments or at one."""
        stream = self.streams.get(report.stream)
        if stream is None:
            return Reason.REASON_UNKNOWN_STREAM
        if len(report.sealed) != stream.sealed_bytes:
            return Reason.REASON_WRONG_LENGTH
        if report.key_id != self.key_id(Window(report.stream, report.epoch)):
            return Reason.REASON_WRONG_KEY  # PRIVACY: a key id of one's own would mark its sender
        if report.epoch * stream.epoch_seconds > (latest or earliest) + _AHEAD_SECONDS:
            return Reason.REASON_NOT_YET
        if self.is_over(Window(report.stream, report.epoch), earliest):
            return Reason.REASON_EXPIRED
        return None

    def is_over(self, window: Window, now: float) -> bool:
        """Whether a window's epoch and grace are over, or its stream is no longer known."""
        stream = self.streams.get(window.stream)
        if stream is None:
            return True
        return now >= (window.epoch + 1) * stream.epoch_seconds + stream.grace_seconds

    def key_id(self, window: Window) -> int | None:
        """The one key id that reports of this window carry."""
        start = window.epoch * self.streams[window.stream].epoch_seconds
        return next((key.id for key in self.keys if key.start <= start < key.end), None)


def read_stream_table(path: Path) -> StreamTable:
    """The table in a JSON file made by `hubbub catalog build`.

    Raises:
        BadParameter: unreadable, or not such a table.
    """
    try:
        document = json.loads(path.read_bytes())
        return StreamTable(
            {name: _stream(path, name, fields) for name, fields in document["streams"].items()},
            tuple(_KeyPeriod(**fields) for fields in document["keys"]),
        )
    except OSError as error:
        raise BadParameter(
            f"{path}: cannot be read: {error.strerror}; make it with: hubbub catalog build"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadParameter(
            f"{path}: not a stream table; make it with: hubbub catalog build"
        ) from error


def _stream(path: Path, name: str, fields: Mapping[str, Any]) -> Stream:
    if not 0 < len(name) <= _LONGEST_NAME:
        raise ValueError("a stream has a name")
    try:
        return Stream(**fields)
    except ValueError as error:
        raise BadParameter(
            f"{path}: stream {name!a}: {error}; make it with: hubbub catalog build"
        ) from error
