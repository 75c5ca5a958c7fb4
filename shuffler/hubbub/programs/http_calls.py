"""HTTP calls to untrusted servers: limited in time and size, and never redirected."""

import http.client
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress
from functools import cached_property, partial
from typing import Any, Final, NamedTuple, Protocol

from hubbub.errors.address_checks import is_local, url_parts
from hubbub.errors.tls_authorities import trusting

_PART_BYTES: Final = 64 << 10


class Answer(NamedTuple):
    """A server's answer, whatever its status."""

    status: int
    reason: str
    body: bytes

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300  # noqa: PLR2004 as HTTP defines it


class Calls(Protocol):
    """Makes HTTP calls, over the network or within this process."""

    def answer(self, request: urllib.request.Request, max_bytes: int) -> Answer:
        """Makes one call. Raises OSError if nobody answers or the answer exceeds `max_bytes`."""


class NoHttp(OSError):
    """The server's answer is not HTTP."""


class HttpCalls:
    """Makes calls that end within `seconds` as a whole; a socket's timeout limits each step only.

    A redirect is returned like any other answer: so a token or the body of a POST goes only where
    it was meant to go, and no server can lead us to a service of this machine's own network.

    `seconds` are from a call's connection to the last byte of its answer; without a `context` of
    TLS the system's authorities are trusted.
    """

    def __init__(self, seconds: float, context: ssl.SSLContext | None = None) -> None:
        self._seconds = seconds
        self._given_context = context

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        context = self._given_context or trusting(None)
        # The handshake happens with the first sent byte, when the socket is already known.
        context.wrap_socket = partial(  # type: ignore[method-assign]
            ssl.SSLContext.wrap_socket, context, do_handshake_on_connect=False
        )
        return context

    def answer(self, request: urllib.request.Request, max_bytes: int) -> Answer:
        """Makes one call.

        Raises:
            NoHttp: the answer is not HTTP.
            OSError: no server answers in time, or the answer is larger than `max_bytes`.
        """
        connections: list[http.client.HTTPConnection] = []
        late, done = threading.Event(), threading.Event()

        def end_late() -> None:
            while not done.wait(self._seconds):  # again, for a connection that was made late
                late.set()
                for connection in connections:
                    if connection.sock is not None:
                        with suppress(OSError):  # not that of TLS, whose own shutdown waits
                            socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)

        threading.Thread(target=end_late, daemon=True).start()
        try:
            answer = self._answer(request, max_bytes, connections)
        except OSError as error:
            if not late.is_set():
                raise
            raise self._late() from error
        finally:
            done.set()
        if late.is_set():  # a truncated answer may look complete
            raise self._late()
        return answer

    def _late(self) -> TimeoutError:
        return TimeoutError(f"no whole answer within {self._seconds:g} s")

    def _answer(
        self,
        request: urllib.request.Request,
        max_bytes: int,
        connections: list[http.client.HTTPConnection],
    ) -> Answer:
        until = time.monotonic() + self._seconds
        parts = url_parts(request.full_url)
        # Plain HTTP gets a context without authorities, which urllib would load at every call.
        is_plain = request.type != "https"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else self._tls
        handlers = [_AnyStatus(), _Connecting(connections, context)]
        if parts is not None and is_local(parts.hostname or ""):
            handlers.append(urllib.request.ProxyHandler({}))
        opener = urllib.request.build_opener(*handlers)
        try:
            with opener.open(request, timeout=self._seconds) as response:
                body = self._body(response, max_bytes, until)
                return Answer(response.status, response.reason, body)
        except urllib.error.URLError as error:
            reason = error.reason
            raise (reason if isinstance(reason, OSError) else OSError(str(reason))) from error
        except http.client.RemoteDisconnected:  # an error of the system, and one of HTTP
            raise
        except http.client.HTTPException as error:
            raise NoHttp(f"answer is not HTTP: {type(error).__name__}") from error

    def _body(self, response: http.client.HTTPResponse, max_bytes: int, until: float) -> bytes:
        # The connection may have given its socket to the answer, so no thread can end it here.
        body = bytearray()
        while part := response.read1(_PART_BYTES):
            body += part
            if len(body) > max_bytes:
                raise OSError(f"larger than {max_bytes:,} bytes")
            if time.monotonic() > until:
                raise self._late()
        if response.length:
            raise OSError("the answer is incomplete")
        return bytes(body)


class _AnyStatus(urllib.request.HTTPErrorProcessor):
    """Passes every answer through, refusals and redirects included."""

    def http_response(self, request: Any, response: Any) -> Any:
        del request
        return response

    https_response = http_response


class _Connecting(urllib.request.HTTPSHandler, urllib.request.HTTPHandler):
    """Opens http and https for urllib, and records the connections that it opens."""

    def __init__(
        self, connections: list[http.client.HTTPConnection], context: ssl.SSLContext
    ) -> None:
        super().__init__(context=context)
        self._connections = connections

    def do_open(self, http_class: Any, req: urllib.request.Request, **settings: Any) -> Any:
        """Makes one call like urllib, and records its connection."""

        def connection(host: str, **options: Any) -> http.client.HTTPConnection:
            self._connections.append(http_class(host, **options))
            return self._connections[-1]

        return super().do_open(connection, req, **settings)
