"""Single POST requests to one address, over HTTP, with the standard library alone.

PRIVACY: nothing in a request but its length and type differs between devices, versions or visits:
no User-Agent, no cookie, no TLS ticket. Redirects are not followed: a server must not send reports
elsewhere.
"""

import binascii
import http.client
import io
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from hubbub.client.transport.contract import TLS_FAILED, NotSent, TryAgain
from hubbub.errors.addresses import proxy_to, url_parts

_LARGEST_ANSWER_BYTES: Final = 1 << 20
_OWN_HEADERS: Final = frozenset(
    {"accept-encoding", "authorization", "content-length", "content-type", "host"}
)
_NO_HEADERS: Final[Mapping[str, str]] = {}


class HttpAnswer(NamedTuple):
    """An HTTP answer. Header names are in lower case; of a repeated header the first is kept."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def type(self) -> str:
        """The media type of the body, without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class _Timed(http.client.HTTPConnection):
    """A connection that ends at `deadline`, without a thread; socket timeouts limit one step."""

    deadline = 0.0

    def __init__(self, host: str, port: int) -> None:
        super().__init__(host, port)
        timed: Any = self
        timed.response_class = self._response
        timed._create_connection = self._dialled  # noqa: SLF001 it takes no function as an option
        self._named = threading.Event()

    def putheader(self, header: Any, *values: Any) -> None:
        """Writes our own headers only: tools that watch an app (Sentry, Datadog) add trace ids."""
        if str(header).lower() in _OWN_HEADERS:
            super().putheader(header, *values)

    def connect(self) -> None:
        """Connects, through a proxy if the system names one."""
        self.timeout = _seconds_left(self.deadline)
        super().connect()

    def _dialled(self, place: tuple[str, int], *_options: Any) -> socket.socket:
        """Connects to the first address that answers; each gets a share of the time."""
        addresses = _addresses(place, self.deadline, self._named)
        for others in reversed(range(len(addresses))):
            family, kind, protocol, _, address = addresses[-1 - others]
            self.sock = dialling = socket.socket(family, kind, protocol)
            try:
                dialling.settimeout(_seconds_left(self.deadline) / (1 + others))
                dialling.connect(address)
            except OSError:
                dialling.close()
                if not others:
                    raise
            else:
                return dialling
        raise OSError

    def end(self) -> None:
        """Wakes up all calls that wait on the connection; the thread that uses it closes it."""
        self._named.set()
        sock = self.sock
        if sock is not None:
            with suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)

    def send(self, data: Any) -> None:
        """Sends a whole request."""
        if self.sock is None:
            self.connect()
        unsent = memoryview(data)
        while unsent:
            self.sock.settimeout(_seconds_left(self.deadline))
            unsent = unsent[self.sock.send(unsent) :]

    def _response(self, sock: socket.socket, **options: Any) -> http.client.HTTPResponse:
        response = http.client.HTTPResponse(sock, **options)
        response.fp.close()
        response.fp = io.BufferedReader(_Steps(sock, self.deadline))
        return response


class _Steps(io.RawIOBase):
    """A reader of a socket with a deadline."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        super().__init__()
        self._sock, self._deadline = sock, deadline

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Reads what has arrived. Raises TimeoutError."""
        self._sock.settimeout(_seconds_left(self._deadline))
        return self._sock.recv_into(buffer)


def _addresses(place: tuple[str, int], deadline: float, named: threading.Event) -> list[Any]:
    """Returns a name's addresses; who sets `named` ends the wait for them. Raises OSError."""
    answers: list[list[Any] | OSError] = []
    host, port = place
    # An app's own function in place of the system's compares names with texts.
    is_original = getattr(socket.getaddrinfo, "__module__", "") == socket.__name__
    name = _encoded(host) if is_original else host

    def ask() -> None:
        try:
            answers.append(socket.getaddrinfo(name, port, type=socket.SOCK_STREAM))
        except Exception as error:  # noqa: BLE001 of an app's function: any; the thread must end the wait
            answers.append(OSError(*error.args[:2]))
        named.set()

    thread = threading.Thread(target=ask, name="hubbub-names", daemon=True)
    try:
        thread.start()  # since the system waits for name servers without limit
    except RuntimeError:
        ask()
    else:
        named.wait(_seconds_left(deadline))
    if not answers:
        raise TimeoutError
    answer = answers[0]
    if isinstance(answer, OSError):
        raise answer
    return answer


def _encoded(host: str) -> str | bytes:
    """The host as bytes if it is ASCII: for a text Python loads tables of Unicode (0.4 MB)."""
    return host.encode() if host.isascii() else host


def _seconds_left(deadline: float) -> float:
    """Seconds until the deadline. Raises TimeoutError once it is over."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds


class _Tls(_Timed):
    """A TLS connection to `name` whose socket is known during the handshake, so it can be ended."""

    def __init__(self, host: str, port: int, trust: ssl.SSLContext, name: str) -> None:
        super().__init__(host, port)
        self._trust, self._name = trust, name

    def connect(self) -> None:
        """Connects, and completes the handshake."""
        super().connect()
        shaking = self._trust.wrap_socket(
            self.sock, server_hostname=_encoded(self._name), do_handshake_on_connect=False
        )
        self.sock = shaking
        shaking.settimeout(_seconds_left(self.deadline))
        shaking.do_handshake()


class HttpExchange:
    """Connections to HOST or HOST:PORT and a path, one for each call; plain without `trust`."""

    def __init__(self, place: str, type_: str, trust: ssl.SSLContext | None) -> None:
        self._trust, self._type = trust, type_
        address = urlsplit(f"//{place}")
        self._host = address.hostname or ""
        self._port = address.port or (443 if trust else 80)
        self._path = address.path or "/"
        self._lock = threading.Lock()
        self._idle: list[_Timed] = []
        self._busy: set[_Timed] = set()
        self._closed = False

    def post(
        self, body: bytes, timeout_seconds: float, headers: Mapping[str, str] = _NO_HEADERS
    ) -> HttpAnswer:
        """Returns the answer to a body, sent with `headers`. Raises TryAgain without an answer."""
        deadline = time.monotonic() + timeout_seconds
        try:
            return self._sent_request(body, headers, deadline)
        except NotSent:
            raise
        except Exception as error:  # an app, or its tests, may have replaced sockets
            if isinstance(error, TimeoutError) or time.monotonic() >= deadline:
                raise TryAgain("deadline_exceeded") from error
            raise _unavailable(error) from error

    def close(self) -> None:
        """Ends every call, and closes the connections."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            busy = list(self._busy)
        for connection in idle:
            connection.close()
        for connection in busy:
            connection.end()

    def _sent_request(self, body: bytes, headers: Mapping[str, str], deadline: float) -> HttpAnswer:
        """Sends a request, once more over a new connection if the server has closed an idle one."""
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection:
            with suppress(OSError, http.client.HTTPException):
                return self._exchange(connection, body, headers, deadline)
        return self._exchange(self._opened(), body, headers, deadline)

    def _exchange(
        self, connection: _Timed, body: bytes, headers: Mapping[str, str], deadline: float
    ) -> HttpAnswer:
        connection.deadline = deadline
        with self._lock:
            if self._closed:
                raise TryAgain("connection_closed")
            self._busy.add(connection)
        reusable = False
        try:
            connection.request("POST", self._path, body, {"Content-Type": self._type, **headers})
            response = connection.getresponse()
            answer = response.read(_LARGEST_ANSWER_BYTES)
            # Part of an answer may look whole, and without the refusals in its lost part.
            is_whole = response.isclosed() if response.chunked else response.length == 0
            if not is_whole:
                raise http.client.IncompleteRead(answer)
            reusable = not response.will_close
            answered = reversed(response.headers.items())
            lower_headers = {name.lower(): value for name, value in answered}
            return HttpAnswer(response.status, lower_headers, answer)
        finally:
            with self._lock:
                self._busy.discard(connection)
                reusable = reusable and not self._closed
                if reusable:
                    self._idle.append(connection)
            if not reusable:
                connection.close()

    def _opened(self) -> _Timed:
        """Returns a connection, perhaps through a proxy, that opens at its first request."""
        proxy = None if self._trust is None else _proxy_to(self._host)
        host, port, headers = proxy or (self._host, self._port, {})
        connection = (
            _Tls(host, port, self._trust, self._host) if self._trust else _Timed(host, port)
        )
        if proxy:
            # The connection to the proxy is unencrypted; TLS to the shuffler runs through it.
            connection.set_tunnel(self._host, self._port, headers)
        return connection


def _unavailable(error: Exception) -> TryAgain:
    """Returns the error for a missing answer, with the text of OpenSSL or the system."""
    match error:
        case ssl.SSLCertVerificationError():
            cause = f"the certificate is refused: {error.verify_message}"
            return TryAgain(TLS_FAILED, cause=cause)
        case ssl.SSLError():
            return TryAgain(TLS_FAILED, cause=error.reason or "")
        case OSError():
            return TryAgain("unavailable", cause=error.strerror or "")
    return TryAgain("unavailable", cause=type(error).__name__)


def _proxy_to(host: str) -> tuple[str, int, dict[str, str]] | None:
    """Returns the proxy for a host, and its headers. Raises TryAgain for an invalid one."""
    proxy = proxy_to(host)
    if not proxy:
        return None
    parts = url_parts(proxy if "://" in proxy else f"http://{proxy}")
    if parts is None:
        raise TryAgain("proxy_address")
    headers = {}
    if parts.username is not None:
        credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        headers["Proxy-Authorization"] = (
            "Basic " + binascii.b2a_base64(credentials, newline=False).decode()
        )
    return parts.hostname or "", parts.port or 80, headers
