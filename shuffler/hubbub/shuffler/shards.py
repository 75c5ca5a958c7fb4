"""Shards: the pool of one epoch in several parts, each on its own slot of a Redis Cluster.

Only pools that leave whole are sharded. All shards of an epoch form one crowd: none leaves before
all have been set apart, so a report hides among those of every node.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Final, Literal, NamedTuple, TypeVar

from hubbub.conservation import Window
from hubbub.shuffler.stream_table import Stream
from hubbub.shuffler.token_checks import Paid

MAX_SHARDS: Final = 256
CHUNK: Final = 4000
"""Lua's unpack fails past some thousands of arguments, and Redis is held up by long commands."""

Thing = TypeVar("Thing")


class Shard(NamedTuple):
    """A further shard of a window; the first one is the window itself."""

    window: Window
    number: int

    @property
    def stream(self) -> str:
        """The window's stream."""
        return self.window.stream

    @property
    def epoch(self) -> int:
        """The window's epoch."""
        return self.window.epoch

    def key(self, prefix: str) -> str:
        """The Redis key of one part of this shard."""
        return self.window.key(prefix, f"/{self.number}")


Place = Window | Shard
"""Where reports wait together: a window, which is its own first shard, or a further one."""


def places(window: Window, shards: int) -> list[Place]:
    """All shards of a window, the first one first."""
    return [window, *(Shard(window, number) for number in range(1, shards))]


def keys_of(place: Place, *parts: str) -> list[str]:
    """The keys of one place's parts, all on one slot of a Cluster."""
    return [place.key(f"shuffler:{part}") for part in parts]


def set_key(place: Place, part: Literal["batch", "crowd", "dummies"], of_id: bytes = b"") -> str:
    """The key of a batch in flight, or of a crowd's reports or dummies; without id, its prefix."""
    return f"{place.key(f'shuffler:{part}')}:{of_id.hex()}"


def may_spread(stream: Stream) -> bool:
    """Whether the pools of a stream may be in shards.

    A stream that leaves in parts may not: half a pool hides half as well. Nor may one with dummies,
    which must be mixed among all reports.
    """
    return stream.mix != "pool" and not stream.is_padded


def chunks(items: Sequence[Thing], size: int = CHUNK) -> Iterator[Sequence[Thing]]:
    """Yields the things in parts, as one command takes them."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def by_shard(
    reports: Mapping[Window, Sequence[bytes | Paid]], shards: Mapping[Window, int]
) -> dict[Place, list[bytes | Paid]]:
    """Assigns each report to a shard by a hash of its bytes, so that a resent one meets itself.

    A report with a token goes by the token's nonce, which is spent in that shard. `shards` is the
    number of shards of each window (1 if absent), which must not change while it is open.
    """
    spread_out: dict[Place, list[bytes | Paid]] = defaultdict(list)
    for window, sealed in reports.items():
        shard_places = places(window, shards.get(window, 1))
        for report in sealed:
            content = report.nonce if isinstance(report, Paid) else report
            digest = blake2b(content, digest_size=8).digest()
            spread_out[shard_places[int.from_bytes(digest) % len(shard_places)]].append(report)
    return spread_out
