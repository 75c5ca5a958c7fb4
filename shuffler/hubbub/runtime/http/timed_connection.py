"""An HTTP connection, with time limits for a request and its answer."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from hubbub.errors.tls_authorities import common_names
from hubbub.runtime.http.connection_limit import OpenConnections
from hubbub.runtime.rpc.rate_limiter import network_of

# Limit of a request's head, ten times a browser's, and of all else besides the body, as the framing
# of chunks. httptools itself has no limit.
_LARGEST_HEAD_BYTES: Final = 16 << 10
# Bytes of a body per allowed byte of framing: chunks of one byte cost 30 times that.
_BODY_OF_FRAME: Final = 8
# What of an answer may be in the transport. Over TLS no more is known to be unread: the rest stays
# with the application (server.py), which waits.
_LARGEST_UNREAD_BYTES: Final = 16 << 10
_NO_ANSWER: Final = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n\r\n"


# The version of a request, its fields Host, and its fields Transfer-Encoding.
_HEADS: Final = {("1.0", 0, 0), ("1.0", 1, 0), ("1.1", 1, 0), ("1.1", 1, 1)}
# A name or address with a port, of any characters that may be in it (RFC 3986, 3.2).
_HOST: Final = re.compile(rb"[\w.:%~!$&'()*+,;=\[\]-]*")


class _Misplaced(Exception):
    """Bytes at a wrong place: fields after the body, or a request before the last answer.

    Or a head that HTTP/1.1 forbids, which others on the way may read differently.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLimits:
    """Limits in seconds.

    Args:
        request: for a request, from the connection or its first byte, as for a gRPC call.
        body: for its body, from the head's end, which is then all that `request` limits; None for
            short bodies, which are part of `request`.
        answer: for reading the answer.
        idle: without a request: longer than uvicorn's own limit, which any byte ends.
    """

    request: float = 10.0
    body: float | None = None
    answer: float = 60.0
    idle: float = 70.0


OF_DEVICES: Final = TimeLimits()
"""For a short request and its answer."""


class TimedConnection(HttpToolsProtocol):
    """One HTTP connection, counted among `connections`.

    `forwarded_for` is the client for whom a proxy opened it; None for the peer itself. `arrived` is
    called once its handshake is done, before it is counted.
    """

    def __init__(
        self,
        connections: OpenConnections,
        limits: TimeLimits,
        forwarded_for: tuple[str, int] | None,
        arrived: Callable[[], None],
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._arrived = arrived
        self._connections = connections
        self._limits = limits
        self._forwarded_for = forwarded_for
        self._timer: asyncio.TimerHandle | None = None
        self._in_request = self._in_head = False
        self._frame_bytes = 0  # received bytes of a request besides its body, above their share
        self._body_bytes = 0  # in the part that is being parsed
        self._is_read_slowly = False  # whether the timer runs for the answer under way
        self._is_last = False  # whether the connection ends with the answer under way
        self.address = ""  # for IPv6 the network: each host has 2**64 addresses

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as its base has it
        """Counts the connection, and waits for a request."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(_LARGEST_UNREAD_BYTES)
        certificate = transport.get_extra_info("peercert") or {}
        uris = [value for kind, value in certificate.get("subjectAltName", ()) if kind == "URI"]
        self.app_state["names"] = common_names(certificate) + uris
        self.client = self._forwarded_for or self.client
        self.address = network_of(self.client)
        self._arrived()
        self._connections.add(self)
        self._end_after(self._limits.request)

    def connection_lost(self, exc: Exception | None) -> None:
        """Removes the connection."""
        self._end_after(None)
        self._connections.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parses data in parts, since the parser keeps a part before anything is checked."""
        for start in range(0, len(data), _LARGEST_HEAD_BYTES):
            if self._is_last or self.transport.is_closing():
                return
            part = data[start : start + _LARGEST_HEAD_BYTES]
            self._frame_bytes += len(part)
            self._body_bytes = 0
            super().data_received(part)
            # Once for a part: a part may hold thousands of chunks.
            if self._body_bytes:
                self._connections.receive(self, self._body_bytes)
            if self._frame_bytes > _LARGEST_HEAD_BYTES and self._give_up_answer():
                self.transport.write(_NO_ANSWER)
                self.transport.close()

    def on_message_begin(self) -> None:
        """Starts the time limit at a request's first byte."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._end_with_answer()
            raise _Misplaced
        super().on_message_begin()
        self._in_request = self._in_head = True
        self._connections.wait(self)
        self._end_after(self._limits.request)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Takes a field of the head. Trailers would join it after the application has read it."""
        if not self._in_head:
            raise _Misplaced
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Ends the head of a request. Refuses it as RFC 9112 asks (2.3, 3.2, 6.1)."""
        names, fields = list(map(itemgetter(0), self.headers)), dict(self.headers)
        counts = names.count(b"host"), names.count(b"transfer-encoding")
        is_allowed = (self.parser.get_http_version(), *counts) in _HEADS
        is_known = fields.get(b"transfer-encoding", b"chunked").lower() == b"chunked"
        if not (is_allowed and is_known and _HOST.fullmatch(fields.get(b"host", b""))):
            raise _Misplaced
        self._in_head = False
        self._frame_bytes = 0
        if self._limits.body:
            self._end_after(self._limits.body)
        super().on_headers_complete()
        if self.parser.should_upgrade():
            self._end_with_answer()

    def on_body(self, body: bytes) -> None:
        """Counts a chunk of the body, and the bytes of its framing."""
        self._frame_bytes -= len(body) + len(body) // _BODY_OF_FRAME
        if not self.cycle.response_complete:
            self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Stops the time limit once a request is whole."""
        super().on_message_complete()
        self._in_request = False
        self._frame_bytes = 0
        self._watch()

    def on_response_complete(self) -> None:
        """Waits for another request once an answer is written; uvicorn limits that too."""
        super().on_response_complete()
        self._connections.release(self)
        self._is_read_slowly = False
        if not self.transport.is_closing():
            self._watch()

    def send_400_response(self, msg: str) -> None:
        """Refuses bytes that are not HTTP; they may be the rest of a request being answered."""
        # A misplaced request does not suppress the answer to the previous one.
        if not self._is_last and self._give_up_answer():
            super().send_400_response(msg)

    def pause_writing(self) -> None:
        """Counts the rest of an answer that is not read as fast as it is written, and limits it."""
        super().pause_writing()
        unsent = 0 if self.cycle is None else self.cycle.expected_content_length
        self._connections.keep_unread(self, unsent + self.transport.get_write_buffer_size())
        if not self._is_read_slowly:
            self._watch()
            self._is_read_slowly = True

    def resume_writing(self) -> None:
        """Stops counting an answer that is read again; a part of it resets no time limit."""
        super().resume_writing()
        self._connections.release_unread(self)
        if self.cycle is None or self.cycle.response_complete:
            self._is_read_slowly = False
            self._watch()

    def _watch(self) -> None:
        """Limits the time to wait for an answer to be read, or for another request."""
        if self._in_request:
            return  # its own limit runs since its first byte
        limits = self._limits
        seconds = limits.answer if self.flow.write_paused else limits.idle
        if self.flow.write_paused or self.cycle is None or self.cycle.response_complete:
            self._connections.wait(self)
            self._end_after(seconds)
        else:
            self._connections.work(self)
            self._end_after(None)

    def _give_up_answer(self) -> bool:
        """Ends the answer under way; False if its head was sent, and nothing else may follow."""
        if self.transport.is_closing():
            return False
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            if self.cycle.response_started:
                self.transport.abort()
                return False
        return True

    def _end_with_answer(self) -> None:
        """Ignores further data, and closes once the answer under way is written."""
        self._is_last = True
        self.cycle.keep_alive = False

    def _end(self) -> None:
        self._connections.refusals["too_slow"] += 1
        self.transport.abort()

    def _end_after(self, seconds: float | None) -> None:
        """Closes the connection after `seconds` unless called again; None stops the timer."""
        if self._timer:
            self._timer.cancel()
        self._timer = self.loop.call_later(seconds, self._end) if seconds else None
