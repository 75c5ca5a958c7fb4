"""Window: one stream in one epoch, which is pooled, mixed, added up and accounted together."""

from typing import Final, NamedTuple, Self

_EPOCHS: Final = 1 << 32  # a report tells its own in 32 bits


class Window(NamedTuple):
    """One stream in one epoch."""

    stream: str
    epoch: int

    @property
    def name(self) -> str:
        """As Redis keys have it: STREAM:EPOCH."""
        return f"{self.stream}:{self.epoch}"

    @classmethod
    def parse(cls, name: bytes) -> Self:
        """The window of a name, as Redis gives it back. Raises ValueError for what is none."""
        stream, _, epoch = name.decode().rpartition(":")
        window = cls(stream, int(epoch))
        canonical = window.epoch in range(_EPOCHS) and str(window.epoch) == epoch
        if not (canonical and stream.isprintable()):
            raise ValueError("no window")
        return window

    def key(self, prefix: str, part: str = "") -> str:
        """A Redis key. The braces put all keys of a window's part on one slot of a Cluster."""
        return f"{prefix}:{{{self.name}{part}}}"
