"""Limits how much one caller may send. Callers are remembered in memory only, and briefly.

Each caller has a token bucket: `rate` tokens per second flow in, up to `burst`. A request is let in
while the bucket is not empty, and then takes its cost, if need be into debt; so a request need not
be read to be refused.

When too many callers are remembered, new ones share the bucket of their network, and with too many
networks that of a wider one. So an attacker with very many addresses fills buckets near his own.
"""

import re
import time
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from socket import AF_INET, inet_ntop, inet_pton
from typing import Final

# A home with IPv6 has up to 256 networks of 64 bits, and chooses among their addresses.
_IPV6_NETWORK: Final = 56
_SWEEP_SECONDS: Final = 30.0
# If a table is full, entries that have expired are removed earlier than usual.
_SWEEP_FULL_SECONDS: Final = 1.0
_MAX_CALLERS: Final = 100_000
_OTHERS: Final = "others"

_IPV4: Final = re.compile(r"(((\d+\.)\d+\.)\d+\.)\d+", re.ASCII)  # prefixes of 24, 16 and 8 bits
_IPV6: Final = re.compile(r"((([0-9a-f]{4})[0-9a-f]{4})[0-9a-f]{4})[0-9a-f]{2}")  # 48, 32, 16

_Buckets = dict[str, tuple[float, float]]  # caller -> (tokens gone, at this time)


class Limiter:
    """Token buckets of callers: `rate` per second, 0 for no limit, and `burst` at once."""

    def __init__(
        self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        # Of callers; then of those who share one, by ever wider networks.
        self._levels: tuple[_Buckets, ...] = ({}, {}, {}, {})
        self._swept = clock()

    def allow(self, rate: float, burst: int) -> None:
        """Changes the limits; debts remain."""
        self._rate, self._burst = rate, burst

    def wait_seconds(self, caller: str) -> float:
        """How long a caller must wait before its next request; 0 if it need not."""
        if not self._rate:
            return 0.0
        return max(0.0, (self._tokens_used(*self._bucket(caller)) - self._burst) / self._rate)

    def charge(self, caller: str, cost: int) -> None:
        """Charges a caller for a request that was let in."""
        if not self._rate:
            return
        now = self._clock()
        full = len(self._levels[0]) >= _MAX_CALLERS
        if now - self._swept > (_SWEEP_FULL_SECONDS if full else _SWEEP_SECONDS):
            self._swept = now
            for buckets in self._levels:
                for bucket in [key for key in buckets if not self._tokens_used(buckets, key)]:
                    del buckets[bucket]
        buckets, bucket = self._bucket(caller)
        buckets[bucket] = (self._tokens_used(buckets, bucket) + cost, now)

    def _bucket(self, caller: str) -> tuple[_Buckets, str]:
        """The caller's own bucket if there is or can be one, else the narrowest shared one."""
        finest = self._levels[0]
        if caller in finest or len(finest) < _MAX_CALLERS:
            return finest, caller
        match = _IPV4.fullmatch(caller) or _IPV6.fullmatch(caller)
        networks = match.groups() if match else (_OTHERS,) * 3  # of a caller without an address
        for buckets, network_key in zip(self._levels[1:], networks, strict=True):
            if network_key in buckets or len(buckets) < _MAX_CALLERS:
                return buckets, network_key
        return self._levels[-1], _OTHERS

    def _tokens_used(self, buckets: _Buckets, network_key: str) -> float:
        gone, since = buckets.get(network_key, (0.0, 0.0))
        return max(0.0, gone - (self._clock() - since) * self._rate)

    def __len__(self) -> int:
        return sum(map(len, self._levels))


def network_of(client: tuple[str, int] | None) -> str:
    """The key by which limits recognise a caller: its IPv4 address, or its IPv6 network of 56 bits.

    `client` is its address and port; None if unknown. Text that is no address is the key itself.
    """
    address = client[0] if client else "unknown"
    try:  # of IPv4 a tenth of the time; it is asked three times for each report
        return inet_ntop(AF_INET, inet_pton(AF_INET, address))
    except (OSError, ValueError):
        pass
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, IPv6Address):
        if ip.ipv4_mapped:
            return str(ip.ipv4_mapped)
        return f"{int(ip) >> 128 - _IPV6_NETWORK:014x}"
    return str(ip)
