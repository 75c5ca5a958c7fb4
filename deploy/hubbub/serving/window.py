"""Window: one stream in one epoch, which is pooled, mixed, added up and accounted together."""

from typing import NamedTuple, Self

__all__ = ["Window"]


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
        """The window of a name, as Redis gives it back."""
        stream, _, epoch = name.decode().rpartition(":")
        return cls(stream, int(epoch))

    def key(self, prefix: str, part: str = "") -> str:
        """A Redis key. The braces put all keys of a window's part on one slot of a Cluster."""
        return f"{prefix}:{{{self.name}{part}}}"
