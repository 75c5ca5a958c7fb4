"""The open connections of an HTTP server: past a limit the longest waiting or largest is closed.

uvicorn, past its limit of connections, refuses whoever comes: some thousand half requests, or as
many answers that nobody read, kept everybody else out.
"""

import logging
from collections import Counter
from collections.abc import Collection
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final, Protocol

from hubbub.runtime.rpc.limiter import network

_log: Final = logging.getLogger("hubbub.runtime")

# What is open and idle costs a file and some memory.
_MAX = 2000
# A browser opens six, and of some people all have the same address.
_MAX_OF_ADDRESS = 200
# Of all bodies that arrive or are worked on: eight of the largest submissions, a hundred thousand
# reports. Whatever the limits of addresses, nobody needs more memory than that.
_MAX_RECEIVED_BYTES = 16 << 20


class Ends(Protocol):
    """What a connection is ended by."""

    def abort(self) -> None:
        """End it at once."""
        ...


class Connection(Protocol):
    """One connection. address: by which limits know who is at its other end."""

    address: str
    client: tuple[str, int] | None

    @property
    def transport(self) -> Ends:
        """By which it is ended."""
        ...


class OpenConnections:
    """The open connections of a server.

    proxies, relays: addresses of which there may be as many as of all. refusals: counts those that
    were ended, by reason. most: of all. of_address: of one address; 0 for no limit.
    """

    def __init__(
        self,
        proxies: Collection[str] = (),
        refusals: Counter[str] | None = None,
        *,
        most: int | None = None,
        of_address: int | None = None,
        relays: Collection[str] = (),
    ) -> None:
        self.refusals = Counter() if refusals is None else refusals
        self._most = _MAX if most is None else most
        self.of_address = _MAX_OF_ADDRESS if of_address is None else of_address
        self._proxies = [ip_network(proxy) for proxy in proxies]
        self._of_many = [*self._proxies, *map(ip_network, relays)]
        self._open: dict[str, set[Connection]] = {}
        self._number = 0
        # Whose request is not whole, or whose answer is not read, in the order in which they began
        # to wait.
        self._waiting: dict[str, dict[Connection, None]] = {}
        self._all_waiting: dict[Connection, str] = {}
        self._received: Counter[Connection] = Counter()

    def add(self, connection: Connection, address: str) -> None:
        """A connection was made; another may have to end for it, or it itself."""
        of_address = self._open.setdefault(address, set())
        crowded = self.of_address and len(of_address) >= self.of_address
        if crowded and not among(connection.client, self._of_many):
            self._end(next(iter(self._waiting.get(address, {})), connection))
        elif self._number >= self._most:
            self._end(next(iter(self._all_waiting), connection))
        of_address.add(connection)
        self._number += 1
        self.wait(connection, address)

    def wait(self, connection: Connection, address: str) -> None:
        """From now on it waits for a request, the rest of one, or its answer to be read."""
        if connection not in self._all_waiting:
            self._all_waiting[connection] = address
            self._waiting.setdefault(address, {})[connection] = None

    def work(self, connection: Connection, address: str) -> None:
        """What happens next is ours to do: it is not ended for another one."""
        if self._all_waiting.pop(connection, None) is not None:
            of_address = self._waiting[address]
            del of_address[connection]
            if not of_address:
                del self._waiting[address]

    def receive(self, connection: Connection, size: int) -> None:
        """Some of a body came. Past the limit of all bodies the largest unfinished one is ended."""
        self._received[connection] += size
        while self._received.total() > _MAX_RECEIVED_BYTES:
            unfinished = self._received.keys() & self._all_waiting.keys()
            self._end(max(unfinished, key=self._received.__getitem__, default=connection))

    def release(self, connection: Connection) -> None:
        """A body is no longer held: its request was answered."""
        self._received.pop(connection, None)

    def remove(self, connection: Connection, address: str) -> None:
        """It has ended, or will at once."""
        self.work(connection, address)
        self.release(connection)
        of_address = self._open.get(address, set())
        if connection in of_address:
            of_address.remove(connection)
            self._number -= 1
            if not of_address:
                del self._open[address]

    def _end(self, connection: Connection) -> None:
        if not self.refusals["gave_way"]:
            _log.warning(
                "more connections are open than the limit of one address, or of all, or their "
                "bodies are larger than the memory for them: those that have waited longest, or "
                "sent most, give way (reason gave_way of hubbub_throttled_calls_total)"
            )
        self.refusals["gave_way"] += 1
        self.remove(connection, connection.address)
        connection.transport.abort()

    def is_proxy(self, client: tuple[str, int] | None) -> bool:
        """Whether a connection from there is one of the proxies."""
        return among(client, self._proxies)


def among(client: tuple[str, int] | None, networks: Collection[IPv4Network | IPv6Network]) -> bool:
    """Whether a connection comes from one of these networks."""
    if not networks:
        return False
    try:
        host = ip_address(client[0] if client else "")
    except ValueError:
        return False
    return any(host in network for network in networks)


def network_of(client: tuple[str, int] | None) -> str:
    """Who is asking, as limits tell callers apart: an address, or of IPv6 a network."""
    return network(client[0] if client else "unknown")
