"""HTTP connections: each must make progress.

uvicorn has no limit for how long a request may take to arrive.
"""

import asyncio
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from hubbub.runtime.http.connections import OpenConnections, network_of

# For a request's head, from the connection or the first byte; for its body, from the head's end.
_SECONDS: Final = {h11.IDLE: 10.0, h11.SEND_BODY: 60.0}
# For reading the answer: ten million values over a slow line.
_ANSWER_SECONDS: Final = 300.0


class HttpConnection(H11Protocol):
    """One connection."""

    def __init__(self, connections: OpenConnections, **options: Any) -> None:
        super().__init__(**options)
        self._connections = connections
        self._timer: asyncio.TimerHandle | None = None
        self._timed: Any = None  # the state of the request that the timer is for
        self.address = ""  # of IPv6 the network: who has one address there has 2**64

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as its base has it
        """Count it, and wait for a request."""
        super().connection_made(transport)
        self.address = network_of(self.client)
        self._connections.add(self, self.address)
        self._time(h11.IDLE, _SECONDS[h11.IDLE])

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._time(None, 0)
        self._connections.remove(self, self.address)
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
            self._connections.work(self, self.address)
            if self._timed in _SECONDS:
                self._time(None, 0)
            return
        if not self.transport.is_closing():
            self._connections.wait(self, self.address)
        if self._timed != state and (begun or state is h11.SEND_BODY) and not self._is_unread():
            self._time(state, _SECONDS[state])

    def _end(self) -> None:
        self._connections.refusals["too_slow"] += 1
        self.transport.abort()

    def _is_unread(self) -> bool:
        return self._timed in {"answer", "end"}

    def _time(self, what: Any, seconds: float) -> None:
        """End it after so long, unless it is told otherwise; with nothing, never."""
        if self._timer:
            self._timer.cancel()
        self._timed = what
        self._timer = self.loop.call_later(seconds, self._end) if what else None
