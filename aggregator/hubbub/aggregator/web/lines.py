"""HTTP connections: each must make progress, and past the limit the longest waiting one is closed.

uvicorn has no limit for how long a request may take to arrive, and past its limit of connections it
refuses whoever comes: some thousand half requests, or as many answers that nobody read, kept
everybody else out.
"""

import asyncio
from collections import Counter
from collections.abc import Collection
from ipaddress import ip_address, ip_network
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from hubbub.aggregator.web.guard import network_of

__all__ = ["Line", "Lines"]

# For a request's head, from the connection or the first byte; for its body, from the head's end.
_SECONDS: Final = {h11.IDLE: 10.0, h11.SEND_BODY: 60.0}
# For reading the answer: ten million values over a slow line.
_ANSWER_SECONDS: Final = 300.0
# What is open and idle costs a file and some memory.
_MAX: Final = 2000
# A browser opens six, and of some people all have the same address.
_MAX_OF_ADDRESS: Final = 200


class Lines:
    """The open connections of a server.

    proxies: addresses of which there may be as many as of all. turned_away: counts those that were
    ended, by reason.
    """

    def __init__(
        self, proxies: Collection[str] = (), turned_away: Counter[str] | None = None
    ) -> None:
        self.turned_away = Counter() if turned_away is None else turned_away
        self._proxies = [ip_network(proxy) for proxy in proxies]
        self._open: dict[str, set[Line]] = {}
        self._number = 0
        # Whose request is not whole, or whose answer is not read, in the order in which they began
        # to wait.
        self._waiting: dict[str, dict[Line, None]] = {}
        self._all_waiting: dict[Line, str] = {}

    def add(self, line: "Line", address: str) -> None:
        """A connection was made; another may have to end for it, or it itself."""
        of_address = self._open.setdefault(address, set())
        if len(of_address) >= _MAX_OF_ADDRESS and not self._is_proxy(line):
            self._end(next(iter(self._waiting.get(address, {})), line))
        elif self._number >= _MAX:
            self._end(next(iter(self._all_waiting), line))
        of_address.add(line)
        self._number += 1
        self.wait(line, address)

    def wait(self, line: "Line", address: str) -> None:
        """From now on a line waits for a request, the rest of one, or its answer to be read."""
        if line not in self._all_waiting:
            self._all_waiting[line] = address
            self._waiting.setdefault(address, {})[line] = None

    def work(self, line: "Line", address: str) -> None:
        """What happens next is ours to do: it is not ended for another one."""
        if self._all_waiting.pop(line, None) is not None:
            of_address = self._waiting[address]
            del of_address[line]
            if not of_address:
                del self._waiting[address]

    def remove(self, line: "Line", address: str) -> None:
        """It has ended, or will at once."""
        self.work(line, address)
        of_address = self._open.get(address, set())
        if line in of_address:
            of_address.remove(line)
            self._number -= 1
            if not of_address:
                del self._open[address]

    def _end(self, line: "Line") -> None:
        self.turned_away["gave_way"] += 1
        self.remove(line, line.address)
        line.transport.abort()

    def _is_proxy(self, line: "Line") -> bool:
        try:
            host = ip_address(line.client[0] if line.client else "")
        except ValueError:
            return False
        return any(host in proxy for proxy in self._proxies)


class Line(H11Protocol):
    """One connection."""

    def __init__(self, lines: Lines, **given: Any) -> None:
        super().__init__(**given)
        self._lines = lines
        self._timer: asyncio.TimerHandle | None = None
        self._timed: Any = None  # the state of the request that the timer is for
        self.address = ""  # of IPv6 the network: who has one address there has 2**64

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as its base has it
        """Count it, and wait for a request."""
        super().connection_made(transport)
        self.address = network_of(self.client)
        self._lines.add(self, self.address)
        self._time(h11.IDLE, _SECONDS[h11.IDLE])

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._time(None, 0)
        self._lines.remove(self, self.address)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some of a request."""
        super().data_received(data)
        self._look()

    def send_400_response(self, msg: str) -> None:
        """What came is no HTTP. It may be the rest of what is being answered, or was."""
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        try:
            super().send_400_response(msg)
        except h11.LocalProtocolError:  # there was an answer already
            self.transport.close()

    def on_response_complete(self) -> None:
        """An answer is written, if not read."""
        super().on_response_complete()
        if not self.flow.write_paused:
            self._time(None, 0)  # uvicorn's own timer ends what is idle
        self._look(begun=False)

    def timeout_keep_alive_handler(self) -> None:
        """It is idle: end it, though its last answer may be unread."""
        super().timeout_keep_alive_handler()
        self._time("end", _SECONDS[h11.IDLE])

    def pause_writing(self) -> None:
        """An answer is not read as fast as it is written."""
        super().pause_writing()
        self._time("answer", _ANSWER_SECONDS)
        self._look(begun=False)

    def resume_writing(self) -> None:
        """The answer is read again."""
        super().resume_writing()
        self._time(None, 0)
        self._look(begun=False)

    def _look(self, *, begun: bool = True) -> None:
        """See what it waits for. begun: some of a request is here."""
        state = self.conn.their_state
        if state not in _SECONDS and not self._is_unread():
            self._lines.work(self, self.address)
            if self._timed in _SECONDS:
                self._time(None, 0)
            return
        if not self.transport.is_closing():
            self._lines.wait(self, self.address)
        if self._timed != state and (begun or state is h11.SEND_BODY) and not self._is_unread():
            self._time(state, _SECONDS[state])

    def _end(self) -> None:
        self._lines.turned_away["too_slow"] += 1
        self.transport.abort()

    def _is_unread(self) -> bool:
        return self._timed in {"answer", "end"}

    def _time(self, what: Any, seconds: float) -> None:
        """End it after so long, unless it is told otherwise; with nothing, never."""
        if self._timer:
            self._timer.cancel()
        self._timed = what
        self._timer = self.loop.call_later(seconds, self._end) if what else None
