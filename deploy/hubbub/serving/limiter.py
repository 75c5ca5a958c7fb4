"""The limiter: how much one caller may send. It remembers callers in memory, briefly, never else.

A token bucket per caller: `rate` a second flow in, up to `burst`. A request is let in while the
bucket is not empty and then takes what it costs, into debt if it must; so the request need not be
read before it is refused.
"""

import time
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from typing import Final
from urllib.parse import unquote

__all__ = ["Limiter", "network"]

# An owner of IPv6 has at least a network of so many bits to choose addresses from.
_IPV6_NETWORK: Final = 64
_SWEEP_SECONDS: Final = 30.0
_MOST_CALLERS: Final = 100_000
_OTHERS: Final = "others"


class Limiter:
    """Token buckets of callers. rate: so much a second, 0 for no limit. burst: so much at once."""

    def __init__(
        self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._spent: dict[str, tuple[float, float]] = {}  # caller -> (tokens gone, at this time)
        self._swept = clock()

    def wait_seconds(self, caller: str) -> float:
        """How long a caller must wait before its next request; 0 if it need not."""
        if not self._rate:
            return 0.0
        return max(0.0, (self._gone(caller) - self._burst) / self._rate)

    def charge(self, caller: str, cost: int) -> None:
        """A caller's request of this cost was let in."""
        if not self._rate:
            return
        now = self._clock()
        if now - self._swept > _SWEEP_SECONDS:
            self._swept = now
            self._spent = {c: s for c, s in self._spent.items() if self._gone(c)}
        if caller not in self._spent and len(self._spent) >= _MOST_CALLERS:
            caller = _OTHERS  # more than anyone has: the new ones share what is left
        self._spent[caller] = (self._gone(caller) + cost, now)

    def _gone(self, caller: str) -> float:
        gone, then = self._spent.get(caller) or self._spent.get(_OTHERS) or (0.0, 0.0)
        return max(0.0, gone - (self._clock() - then) * self._rate)

    def __len__(self) -> int:
        return len(self._spent)


def network(peer: str) -> str:
    """What gRPC calls a peer ("ipv4:1.2.3.4:567", "ipv6:%5B::1%5D:567") without its port.

    Of IPv6 the network alone: who has one address there has 2**64.
    """
    text = unquote(peer).partition(":")[2].rpartition(":")[0].strip("[]")
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return peer.partition(":")[0]  # a Unix socket, say: all of them are one
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped:
            return str(address.ipv4_mapped)
        return f"{int(address) >> 128 - _IPV6_NETWORK:x}"
    return str(address)
