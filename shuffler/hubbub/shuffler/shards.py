"""Shards: the pool of one epoch in parts, each on a slot of a Redis Cluster of its own.

Only what leaves whole is kept so. All shards of an epoch are one crowd: none leaves before all have
been set apart, so a report hides among those of every node.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

from hubbub.conservation import Window
from hubbub.shuffler.redeeming import Paid
from hubbub.shuffler.streams import Stream

MAX_SHARDS: Final = 256


class Shard(NamedTuple):
    """One of a window's shards but the first, which is kept where the window itself is."""

    window: Window
    number: int

    @property
    def stream(self) -> str:
        """The window's."""
        return self.window.stream

    @property
    def epoch(self) -> int:
        """The window's."""
        return self.window.epoch

    def key(self, prefix: str) -> str:
        """A Redis key of this shard."""
        return self.window.key(prefix, f"/{self.number}")


Place = Window | Shard
"""Where reports wait together: a window, which is its own first shard, or a further one."""


def places(window: Window, shards: int) -> list[Place]:
    """All shards of a window, the first before the others."""
    return [window, *(Shard(window, number) for number in range(1, shards))]


def may_spread(stream: Stream) -> bool:
    """Whether the pool of its windows may be in shards.

    A stream that leaves in parts has one: half a pool would hide half as well. So has one with
    dummies, which must be mixed among all reports.
    """
    return stream.mix != "pool" and not stream.is_padded


def spread(
    reports: Mapping[Window, Sequence[bytes | Paid]], shards: Mapping[Window, int]
) -> dict[Place, list[bytes | Paid]]:
    """Each report in its shard, by its own bytes: one that is sent again goes to the same.

    By its token's where it has one: that is spent there, once. shards: how many a window has, which
    must not change as long as it is open; one, if it is not among them.
    """
    spread_out: dict[Place, list[bytes | Paid]] = defaultdict(list)
    for window, sealed in reports.items():
        among = places(window, shards.get(window, 1))
        for report in sealed:
            content = report.nonce if isinstance(report, Paid) else report
            digest = blake2b(content, digest_size=8).digest()
            spread_out[among[int.from_bytes(digest) % len(among)]].append(report)
    return spread_out
