"""Limits the open connections of an HTTP server by closing the longest waiting or largest.

uvicorn refuses newcomers past its limit: some thousand half-sent requests or unread answers kept
everybody else out.
"""

import logging
from collections import Counter
from collections.abc import Collection
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any, Final, Protocol

_log: Final = logging.getLogger("hubbub.runtime")

# An idle connection costs a file and some memory.
_MAX = 2000
# A browser opens six, and many people may share an address.
_MAX_PER_ADDRESS = 200
# Limit of all bodies that arrive or are processed: eight of the largest submissions, a hundred
# thousand reports, whatever the limits of addresses.
_MAX_BODIES_BYTES = 16 << 20
# Limit of all answers that wait to be read: an empty submission gets the state of models, half a
# megabyte at most.
_MAX_ANSWERS_BYTES = 16 << 20


class Connection(Protocol):
    """One connection. Limits recognise the peer by `address`."""

    address: str
    client: tuple[str, int] | None

    @property
    def transport(self) -> Any:
        """What `abort()` closes."""


class OpenConnections:
    """The open connections of a server, and their limits.

    Args:
        proxies: networks that are believed, and exempt from the limit of one address; so are
            `relays`.
        refusals: counts the connections that were closed, by reason.
        most: limit of all connections. max_per_address: limit of one address; 0 for none.
        bodies_bytes: limit of all bodies that arrive or are processed.
        answers_bytes: limit of all answers that wait to be read.
    """

    def __init__(
        self,
        proxies: Collection[str] = (),
        refusals: Counter[str] | None = None,
        *,
        most: int | None = None,
        max_per_address: int | None = None,
        bodies_bytes: int | None = None,
        answers_bytes: float | None = None,
        relays: Collection[str] = (),
    ) -> None:
        self.refusals = Counter() if refusals is None else refusals
        self._most = _MAX if most is None else most
        self.max_per_address = _MAX_PER_ADDRESS if max_per_address is None else max_per_address
        self._bodies_bytes = _MAX_BODIES_BYTES if bodies_bytes is None else bodies_bytes
        self._answers_bytes = _MAX_ANSWERS_BYTES if answers_bytes is None else answers_bytes
        self.proxies = [ip_network(proxy) for proxy in proxies]
        self._of_many = [*self.proxies, *map(ip_network, relays)]
        self._open: dict[str, set[Connection]] = {}
        self._number = 0
        # Connections whose request is incomplete or whose answer is unread, longest waiting first.
        self._waiting: dict[str, dict[Connection, None]] = {}
        self._all_waiting: dict[Connection, None] = {}
        self._received: Counter[Connection] = Counter()
        self._unread: Counter[Connection] = Counter()

    def add(self, connection: Connection) -> None:
        """Adds a connection; past a limit closes the longest waiting one, or this one."""
        address = connection.address
        connections = self._open.setdefault(address, set())
        crowded = self.max_per_address and len(connections) >= self.max_per_address
        if crowded and not among(connection.client, self._of_many):
            self._end(next(iter(self._waiting.get(address, {})), connection))
        elif self._number >= self._most:
            self._end(next(iter(self._all_waiting), connection))
        connections.add(connection)
        self._number += 1
        self.wait(connection)

    def wait(self, connection: Connection) -> None:
        """Marks a connection as waiting: for a request, its rest, or its answer to be read."""
        self._all_waiting.setdefault(connection)
        self._waiting.setdefault(connection.address, {}).setdefault(connection)

    def work(self, connection: Connection) -> None:
        """Marks a connection as worked on: it is not closed to make room for another."""
        self._all_waiting.pop(connection, None)
        connections = self._waiting.get(connection.address, {})
        connections.pop(connection, None)
        if not connections:
            self._waiting.pop(connection.address, None)

    def receive(self, connection: Connection, size: int) -> None:
        """Counts bytes of a body; past the limit of all bodies, closes the largest unfinished."""
        self._received[connection] += size
        while self._received.total() > self._bodies_bytes:
            unfinished = self._received.keys() & self._all_waiting.keys()
            self._end(max(unfinished, key=self._received.__getitem__, default=connection))

    def release(self, connection: Connection) -> None:
        """Forgets the size of a body whose request was answered."""
        self._received.pop(connection, None)

    def keep_unread(self, connection: Connection, size: int) -> None:
        """Counts the unread rest of an answer; past the limit of all, closes the largest.

        It is one of the address with most of them, so that few addresses displace only their own.
        """
        self._unread[connection] = size
        while self._unread.total() > self._answers_bytes:
            of_caller: Counter[object] = Counter()
            for other, unread in self._unread.items():
                of_caller[self._caller(other)] += unread
            sizes = {c: (of_caller[self._caller(c)], size) for c, size in self._unread.items()}
            self._end(max(sizes, key=sizes.__getitem__))

    def _caller(self, connection: Connection) -> object:
        """Whose a connection is: each of a proxy or relay is somebody else's."""
        if among(connection.client, self._of_many):
            return connection
        return connection.address

    def release_unread(self, connection: Connection) -> None:
        """Forgets the size of an answer that is being read again."""
        self._unread.pop(connection, None)

    def remove(self, connection: Connection) -> None:
        """Removes a connection that has ended or will at once."""
        self.work(connection)
        self.release(connection)
        self.release_unread(connection)
        connections = self._open.get(connection.address, set())
        if connection in connections:
            connections.remove(connection)
            self._number -= 1
            if not connections:
                del self._open[connection.address]

    def _end(self, connection: Connection) -> None:
        if not self.refusals["gave_way"]:
            _log.warning(
                "too many connections are open, of one address or of all, or their bodies or "
                "unread answers need too much memory: connections that have waited longest, or are "
                "largest, are closed (reason gave_way of hubbub_throttled_calls_total)"
            )
        self.refusals["gave_way"] += 1
        self.remove(connection)
        connection.transport.abort()


def among(client: tuple[str, int] | None, networks: Collection[IPv4Network | IPv6Network]) -> bool:
    """Whether a client's address is in one of these networks."""
    if not networks:
        return False
    try:
        host = ip_address(client[0] if client else "")
    except ValueError:
        return False
    return any(host in network for network in networks)
