"""The open connections of an HTTP server: past the limit the longest waiting one is closed.

uvicorn, past its limit of connections, refuses whoever comes: some thousand half requests, or as
many answers that nobody read, kept everybody else out.
"""

from asyncio import Transport
from collections import Counter
from collections.abc import Collection
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Protocol

from hubbub.runtime.rpc.limiter import network

__all__ = ["Line", "Lines", "among", "network_of"]

# What is open and idle costs a file and some memory.
_MAX = 2000
# A browser opens six, and of some people all have the same address.
_MAX_OF_ADDRESS = 200


class Line(Protocol):
    """One connection. address: by which limits know who is at its other end."""

    address: str
    client: tuple[str, int] | None
    transport: Transport


class Lines:
    """The open connections of a server.

    proxies: addresses of which there may be as many as of all. turned_away: counts those that were
    ended, by reason. most: of all. of_address: of one address; 0 for no limit.
    """

    def __init__(
        self,
        proxies: Collection[str] = (),
        turned_away: Counter[str] | None = None,
        *,
        most: int | None = None,
        of_address: int | None = None,
    ) -> None:
        self.turned_away = Counter() if turned_away is None else turned_away
        self._most = _MAX if most is None else most
        self.of_address = _MAX_OF_ADDRESS if of_address is None else of_address
        self._proxies = [ip_network(proxy) for proxy in proxies]
        self._open: dict[str, set[Line]] = {}
        self._number = 0
        # Whose request is not whole, or whose answer is not read, in the order in which they began
        # to wait.
        self._waiting: dict[str, dict[Line, None]] = {}
        self._all_waiting: dict[Line, str] = {}

    def add(self, line: Line, address: str) -> None:
        """A connection was made; another may have to end for it, or it itself."""
        of_address = self._open.setdefault(address, set())
        crowded = self.of_address and len(of_address) >= self.of_address
        if crowded and not self.is_proxy(line.client):
            self._end(next(iter(self._waiting.get(address, {})), line))
        elif self._number >= self._most:
            self._end(next(iter(self._all_waiting), line))
        of_address.add(line)
        self._number += 1
        self.wait(line, address)

    def wait(self, line: Line, address: str) -> None:
        """From now on a line waits for a request, the rest of one, or its answer to be read."""
        if line not in self._all_waiting:
            self._all_waiting[line] = address
            self._waiting.setdefault(address, {})[line] = None

    def work(self, line: Line, address: str) -> None:
        """What happens next is ours to do: it is not ended for another one."""
        if self._all_waiting.pop(line, None) is not None:
            of_address = self._waiting[address]
            del of_address[line]
            if not of_address:
                del self._waiting[address]

    def remove(self, line: Line, address: str) -> None:
        """It has ended, or will at once."""
        self.work(line, address)
        of_address = self._open.get(address, set())
        if line in of_address:
            of_address.remove(line)
            self._number -= 1
            if not of_address:
                del self._open[address]

    def _end(self, line: Line) -> None:
        self.turned_away["gave_way"] += 1
        self.remove(line, line.address)
        line.transport.abort()

    def is_proxy(self, client: tuple[str, int] | None) -> bool:
        """Whether a connection from there is one of the proxies."""
        return among(client, self._proxies)


def among(client: tuple[str, int] | None, networks: Collection[IPv4Network | IPv6Network]) -> bool:
    """Whether a connection comes from one of these networks."""
    try:
        host = ip_address(client[0] if client else "")
    except ValueError:
        return False
    return any(host in network for network in networks)


def network_of(client: tuple[str, int] | None) -> str:
    """Who is asking, as limits tell callers apart: an address, or of IPv6 a network."""
    return network(client[0] if client else "unknown")
