"""A connection of a device: a short request, an answer, and time for neither to be held up."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from hubbub.runtime.http.connections import OpenConnections, network_of

# For a request, head and body, from the connection or its first byte: as for a call of gRPC.
_REQUEST_SECONDS: Final = 10.0
# For reading the answer, which is short, or a bundle.
_ANSWER_SECONDS: Final = 60.0
# A request's head, of which a browser sends a tenth. httptools has no limit of its own.
_LARGEST_HEAD_BYTES: Final = 16 << 10
_NO_ANSWER: Final = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n\r\n"


class DeviceConnection(HttpToolsProtocol):
    """One connection among `connections`.

    asked_for: for whom its proxy opened it; None for who is at its other end. arrived: called
    before it is counted itself, once its handshake is done.
    """

    def __init__(
        self,
        connections: OpenConnections,
        asked_for: tuple[str, int] | None = None,
        arrived: Callable[[], None] = lambda: None,
        **given: Any,
    ) -> None:
        super().__init__(**given)
        self._arrived = arrived
        self._connections = connections
        self._asked_for = asked_for
        self._timer: asyncio.TimerHandle | None = None
        self._head_bytes: int | None = 0
        self.address = ""  # of IPv6 the network: who has one address there has 2**64

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as its base has it
        """Count it, and wait for a request."""
        super().connection_made(transport)
        self.client = self._asked_for or self.client
        self.address = network_of(self.client)
        self._arrived()
        self._connections.add(self, self.address)
        self._end_after(_REQUEST_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._end_after(None)
        self._connections.remove(self, self.address)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some of a request."""
        if self._head_bytes is not None:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes is not None and self._head_bytes > _LARGEST_HEAD_BYTES:
            self.transport.write(_NO_ANSWER)
            self.transport.close()

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        super().on_message_begin()
        self._connections.wait(self, self.address)
        self._end_after(_REQUEST_SECONDS)

    def on_headers_complete(self) -> None:
        """A request's head is whole."""
        self._head_bytes = None
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """A request is whole: what happens next is ours to do."""
        super().on_message_complete()
        self._head_bytes = 0
        self._end_after(None)
        self._connections.work(self, self.address)

    def on_response_complete(self) -> None:
        """An answer is written; now it waits for another request, which uvicorn limits."""
        super().on_response_complete()
        if not self.transport.is_closing():
            self._connections.wait(self, self.address)

    def send_400_response(self, msg: str) -> None:
        """What came is no HTTP. It may be the rest of what is being answered."""
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        super().send_400_response(msg)

    def pause_writing(self) -> None:
        """An answer is not read as fast as it is written."""
        super().pause_writing()
        self._connections.wait(self, self.address)
        self._end_after(_ANSWER_SECONDS)

    def resume_writing(self) -> None:
        """The answer is read again."""
        super().resume_writing()
        self._end_after(None)

    def _end(self) -> None:
        self._connections.refusals["too_slow"] += 1
        self.transport.abort()

    def _end_after(self, seconds: float | None) -> None:
        """End it after so long, unless it is told otherwise."""
        if self._timer:
            self._timer.cancel()
        self._timer = self.loop.call_later(seconds, self._end) if seconds else None
