"""HTTP to the shuffler, by the standard library alone.

PRIVACY: a request has a length and a type, and nothing that tells devices, versions or visits
apart: no User-Agent, no cookie, no ticket of TLS. A redirect is not followed: whoever answers may
not send reports elsewhere.
"""

import binascii
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from google.protobuf.message import DecodeError

from hubbub.client.transport.contract import GivenUp, SealedReport, Submitted, TryAgain
from hubbub.client.transport.messages import answer_of, request_of
from hubbub.wire.v1.services_pb2 import SubmitResponse

__all__ = ["HttpConnection"]

_PATH: Final = "/v1/reports"
_TYPE: Final = "application/protobuf"
# The names under which gRPC counts the same.
_REASONS: Final = {400: "invalid_argument", 429: "resource_exhausted", 503: "unavailable"}
# That the same bytes can never be taken is believed of a shuffler alone, which marks it so: a
# proxy, a gateway or a hotel's login page answers with any status. A report given up then is lost.
_MARK: Final = ("Hubbub-Refused", "for-good")
_NEVER: Final = frozenset({400, 413})
_LATER: Final = frozenset({429, 503})
_LARGEST_ANSWER_BYTES: Final = 1 << 20
_LONGEST_HINT: Final = 9


class HttpConnection:
    """Connections to one shuffler, as many as calls at once. roots: PEM, None for the system's.

    place: HOST or HOST:PORT, and a path that a proxy of the operator's may want before ours.
    """

    def __init__(self, place: str, roots: str | None, *, insecure: bool) -> None:
        self._trust = None if insecure else ssl.create_default_context(cadata=roots)
        where = urlsplit(f"//{place}")
        self._host = where.hostname or ""
        self._port = where.port or (80 if insecure else 443)
        self._path = where.path.rstrip("/") + _PATH
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._busy: set[http.client.HTTPConnection] = set()
        self._closed = False

    def submit(self, reports: Sequence[SealedReport], timeout_seconds: float) -> Submitted:
        """As the Transport protocol says."""
        deadline = time.monotonic() + timeout_seconds
        body = request_of(reports).SerializeToString()
        try:
            status, headers, answer = self._asked(body, deadline)
        except (OSError, http.client.HTTPException) as error:
            late = isinstance(error, TimeoutError) or time.monotonic() >= deadline
            raise TryAgain("deadline_exceeded" if late else "unavailable") from error
        if status != http.client.OK:
            raise _not_sent(status, headers, answer)
        # Whoever else answers 200 has not taken them: a login page, say.
        if headers.get_content_type() != _TYPE:
            raise TryAgain("no_shuffler")
        try:
            response = SubmitResponse.FromString(answer)
        except DecodeError as error:
            raise TryAgain("no_shuffler") from error
        return answer_of(response, len(reports))

    def close(self) -> None:
        """End every call and let go."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            busy = list(self._busy)
        for connection in idle:
            connection.close()
        for connection in busy:
            _end(connection)

    def _asked(self, body: bytes, deadline: float) -> tuple[int, http.client.HTTPMessage, bytes]:
        """An answer over a connection that is open, or else over a new one.

        One that was idle may have been ended by the other end meanwhile: then once more. The same
        reports twice are one to the shuffler.
        """
        connection = self._taken()
        if connection:
            with suppress(OSError, http.client.HTTPException):
                return self._exchange(connection, body, deadline)
        return self._exchange(self._opened(), body, deadline)

    def _exchange(
        self, connection: http.client.HTTPConnection, body: bytes, deadline: float
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        with self._lock:
            if self._closed:
                raise TryAgain("connection_closed")
            self._busy.add(connection)
        # A timeout of a socket is of each of its steps; drops of an answer would never end.
        timer = threading.Timer(left, _end, [connection])
        timer.daemon = True
        timer.start()
        kept = False
        try:
            connection.timeout = left
            if connection.sock:
                connection.sock.settimeout(left)
            connection.request("POST", self._path, body, {"Content-Type": _TYPE})
            response = connection.getresponse()
            answer = response.read(_LARGEST_ANSWER_BYTES + 1)
            kept = response.isclosed() and not response.will_close
            return response.status, response.headers, answer
        finally:
            timer.cancel()
            with self._lock:
                self._busy.discard(connection)
                kept = kept and not self._closed
                if kept:
                    self._idle.append(connection)
            if not kept:
                connection.close()

    def _taken(self) -> http.client.HTTPConnection | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _opened(self) -> http.client.HTTPConnection:
        """A connection that is made with its first request: through the environment's proxy."""
        proxy = None if self._trust is None else _proxy_to(self._host)
        host, port, headers = proxy or (self._host, self._port, {})
        connection = (
            _Tls(host, port, self._trust, self._host)
            if self._trust
            else http.client.HTTPConnection(host, port)
        )
        if proxy:
            # The proxy itself is spoken to in the clear; TLS is with the shuffler, through it.
            connection.set_tunnel(self._host, self._port, headers)
        return connection


class _Tls(http.client.HTTPConnection):
    """Over TLS with `name`. Its socket is known while it shakes hands, so that it can be ended."""

    def __init__(self, host: str, port: int, trust: ssl.SSLContext, name: str) -> None:
        super().__init__(host, port)
        self._trust, self._name = trust, name

    def connect(self) -> None:
        """Connect and shake hands."""
        super().connect()
        shaking = self._trust.wrap_socket(
            self.sock, server_hostname=self._name, do_handshake_on_connect=False
        )
        self.sock = shaking
        shaking.do_handshake()


def _proxy_to(host: str) -> tuple[str, int, dict[str, str]] | None:
    """The proxy that the environment or the system names for a host, and what it is told."""
    told = getproxies().get("https")
    if not told or proxy_bypass(host):
        return None
    found = urlsplit(told if "://" in told else f"http://{told}")
    if not found.hostname:
        return None
    headers = {}
    if found.username is not None:
        known = f"{unquote(found.username)}:{unquote(found.password or '')}".encode()
        headers["Proxy-Authorization"] = (
            "Basic " + binascii.b2a_base64(known, newline=False).decode()
        )
    return found.hostname, found.port or 80, headers


def _end(connection: http.client.HTTPConnection) -> None:
    """Wake whoever waits on it; a thread that uses it closes it."""
    sock = connection.sock
    if sock is not None:
        with suppress(OSError):
            socket.socket.shutdown(sock, socket.SHUT_RDWR)


def _not_sent(status: int, headers: http.client.HTTPMessage, answer: bytes) -> TryAgain | GivenUp:
    reason = _REASONS.get(status, f"http_{status}")
    if status in _NEVER and headers.get(_MARK[0]) == _MARK[1]:
        return GivenUp(reason)
    if status not in _LATER:
        return TryAgain(reason)
    told = _told(answer)
    return TryAgain(reason, _hint_seconds(headers, told), _notice(told))


def _told(answer: bytes) -> dict[str, Any]:
    """A problem's members, of a shuffler or of whoever else answers."""
    try:
        told = json.loads(answer)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def _notice(told: dict[str, Any]) -> bytes:
    text = told.get("notice")
    try:
        return binascii.a2b_base64(text) if isinstance(text, str) else b""
    except ValueError:
        return b""


def _hint_seconds(headers: http.client.HTTPMessage, told: dict[str, Any]) -> float | None:
    """When to come back: to the millisecond, as a shuffler says it, else as any server does."""
    hint = told.get("retry_after_ms")
    if isinstance(hint, int) and 0 <= hint < 10**_LONGEST_HINT:
        return hint / 1000
    text = headers.get("Retry-After", "")
    known = text.isascii() and text.isdecimal() and len(text) <= _LONGEST_HINT
    return float(text) if known else None
