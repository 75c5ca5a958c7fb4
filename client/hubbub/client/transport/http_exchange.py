"""Single POST requests to one address, over HTTP/1.1 (RFC 9112), without `http.client`.

That module loads the one of mails (2 MB), and tools that watch an app (Sentry, Datadog) change it.

PRIVACY: nothing in a request but its length and type differs between devices, versions or visits:
no User-Agent, no cookie, no TLS ticket. Redirects are not followed: a server must not send reports
elsewhere.
"""

import binascii
import errno
import io
import re
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from hubbub.client.transport.contract import TLS_FAILED, NotSent, TryAgain
from hubbub.errors import BadParameter
from hubbub.errors.address_checks import proxy_parts, proxy_to

if TYPE_CHECKING:
    import ssl

_LARGEST_ANSWER_BYTES: Final = 1 << 20
_LARGEST_HEAD_BYTES: Final = 1 << 16  # with interim answers, and lines between chunks
_HTTP_PORT: Final = 80
_STATUS: Final = re.compile(r"HTTP/(1\.\d) ([1-9]\d\d)( .*)?", re.ASCII)
_HEADER: Final = re.compile(r"([!#-'*+.^-z|~0-9A-Z-]+):[ \t]*(.*?)[ \t]*")
_CHUNK: Final = re.compile(r"([0-9a-fA-F]{1,8})\s*(;.*)?")
_WITHOUT_BODY: Final = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})
_FRAMING: Final = frozenset({"content-length", "transfer-encoding"})
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


class _Connection:
    """A connection that ends at `deadline`, without a thread; socket timeouts limit one step.

    Args:
        place: host and port of the server, or of its proxy.
        tunnel: the head of the request to a proxy for a tunnel to the server; empty without proxy.
        trust: for TLS to the server `name`; None for an unencrypted connection.
    """

    deadline = 0.0
    is_idle = False
    sock: Any = None

    def __init__(
        self, place: tuple[str, int], tunnel: bytes, trust: "ssl.SSLContext | None", name: str
    ) -> None:
        self._place, self._tunnel, self._trust, self._name = place, tunnel, trust, name
        self._named = threading.Event()
        self._is_open = self._is_ended = False
        self._head_bytes_left = _LARGEST_HEAD_BYTES

    def exchange(self, head: bytes, body: bytes) -> tuple[HttpAnswer, bool]:
        """Returns the answer to a request, and whether the connection can carry another one."""
        if self._is_open:
            self._check_idle()
        else:
            self._open()
        self._head_bytes_left = _LARGEST_HEAD_BYTES
        self._send(head)
        self._send(body)
        is_lasting, status, headers = self._read_head()
        size, coding = headers.get("content-length", ""), headers.get("transfer-encoding", "")
        if status in _WITHOUT_BODY:
            content = b""
        elif coding:
            if coding.lower() != "chunked" or size:
                raise _no_http()
            content = b"".join(self._read_chunks())
        else:
            content = self._read(int(size) if size.isdecimal() else _LARGEST_ANSWER_BYTES + 1)
        return HttpAnswer(status, headers, content), is_lasting

    def _check_idle(self) -> None:
        """Raises OSError if bytes came behind the last answer: the next must not begin with them.

        Also if the server has closed the connection.
        """
        self.is_idle = True
        try:
            self._reader.peek()
        except OSError:
            return  # nothing has arrived
        finally:
            self.is_idle = False
        raise ConnectionResetError

    def end(self) -> None:
        """Wakes up all calls that wait on the connection; the thread that uses it closes it."""
        self._is_ended = True
        self._named.set()
        sock = self.sock
        if sock is not None:
            with suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)

    def close(self) -> None:
        """Closes it."""
        if self.sock is not None:
            self.sock.close()

    def _open(self) -> None:
        """Connects, through a proxy if there is one, and completes the handshake of TLS."""
        self._dial()
        with suppress(OSError):
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tunnel:
            self._reader = io.BufferedReader(_Steps(self))
            self._send(self._tunnel)
            if self._read_head()[1] != HTTPStatus.OK:
                raise OSError
        if self._trust:
            # The socket is known during the handshake, so that it can be ended.
            self.sock = self._trust.wrap_socket(
                self.sock, server_hostname=_encoded(self._name), do_handshake_on_connect=False
            )
            self.sock.settimeout(_seconds_left(self.deadline))
            self.sock.do_handshake()
        self._reader = io.BufferedReader(_Steps(self))
        self._is_open = True

    def _dial(self) -> None:
        """Connects to the first address that answers; each gets a share of the time."""
        addresses = _addresses(self._place, self.deadline, self._named)
        for others in reversed(range(len(addresses))):
            family, kind, protocol, _, address = addresses[-1 - others]
            try:
                self.sock = socket.socket(family, kind, protocol)
                self.sock.settimeout(_seconds_left(self.deadline) / (1 + others))
                if self._is_ended:
                    raise ConnectionAbortedError
                self.sock.connect(address)
            except OSError:
                self.close()
                if not others or self._is_ended:
                    raise
            else:
                return
        raise OSError

    def _send(self, data: bytes) -> None:
        unsent = memoryview(data)
        while unsent:
            self.sock.settimeout(_seconds_left(self.deadline))
            unsent = unsent[self.sock.send(unsent) :]

    def _read_head(self) -> tuple[bool, int, dict[str, str]]:
        """Returns whether the connection lasts, the status and the headers of the next answer."""
        status, headers, is_lasting = 0, dict[str, str](), False
        while status < HTTPStatus.OK:  # an interim answer precedes another one
            start = _STATUS.fullmatch(self._read_line())
            if start is None:
                raise _no_http()
            status, headers, is_lasting = int(start[2]), {}, start[1] == "1.1"
            name = ""
            while line := self._read_line():
                if line.startswith((" ", "\t")) and name not in _FRAMING:
                    continue  # it continues a header that may be folded
                header = _HEADER.fullmatch(line)
                if header is None:
                    raise _no_http()
                name, value = header[1].lower(), header[2]
                if headers.setdefault(name, value) != value and name in _FRAMING:
                    raise _no_http()
                is_lasting &= name != "connection" or "close" not in value.lower()
        return is_lasting, status, headers

    def _read_chunks(self) -> Iterator[bytes]:
        bytes_left = _LARGEST_ANSWER_BYTES
        while chunk := _CHUNK.fullmatch(self._read_line()):
            size = int(chunk[1], 16)
            if not size:
                while self._read_line():  # headers behind the chunks
                    pass
                return
            bytes_left -= size
            yield self._read(size if bytes_left >= 0 else _LARGEST_ANSWER_BYTES + 1)
            if self._read_line():
                break
        raise _no_http()

    def _read_line(self) -> str:
        line: bytes = self._reader.readline(self._head_bytes_left + 1)
        self._head_bytes_left -= len(line)
        if not line:
            raise ConnectionResetError(errno.ECONNRESET, "the server closed the connection")
        if not line.endswith(b"\n") or self._head_bytes_left < 0:
            raise _no_http()
        return line.rstrip(b"\r\n").decode("latin-1")

    def _read(self, size: int) -> bytes:
        """Returns the next bytes; part of an answer may look whole, and lack refusals."""
        content: bytes = self._reader.read(size) if size <= _LARGEST_ANSWER_BYTES else b""
        if len(content) < size:
            raise OSError(errno.EPROTO, "the answer is incomplete")
        return content


class _Steps(io.RawIOBase):
    """A reader of a connection with its deadline."""

    def __init__(self, connection: _Connection) -> None:
        super().__init__()
        self._connection = connection

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Reads what has arrived. Raises TimeoutError."""
        connection = self._connection
        seconds = 0.0 if connection.is_idle else _seconds_left(connection.deadline)
        connection.sock.settimeout(seconds)
        return int(connection.sock.recv_into(buffer))


def _no_http() -> OSError:
    return OSError(errno.EPROTO, "the answer is not HTTP")


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


def _encoded(host: str) -> bytes:
    """The host as bytes: for an ASCII text Python loads tables of Unicode all the same (0.4 MB)."""
    return host.encode("ascii" if host.isascii() else "idna")


def _seconds_left(deadline: float) -> float:
    """Seconds until the deadline. Raises TimeoutError once it is over."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds


class HttpExchange:
    """Connections to HOST or HOST:PORT and a path, one for each call; plain without `trust`."""

    def __init__(self, place: str, type_: str, trust: "ssl.SSLContext | None") -> None:
        self._trust, self._type = trust, type_
        address = urlsplit(f"//{place}")
        self._host = address.hostname or ""
        self._port = address.port or (443 if trust else _HTTP_PORT)
        self._path = address.path or "/"
        self._lock = threading.Lock()
        self._idle: list[_Connection] = []
        self._busy: set[_Connection] = set()
        self._closed = False

    def post(
        self, body: bytes, timeout_seconds: float, headers: Mapping[str, str] = _NO_HEADERS
    ) -> HttpAnswer:
        """Returns the answer to a body, sent with `headers`. Raises TryAgain without an answer."""
        deadline = time.monotonic() + timeout_seconds
        try:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection:
                with suppress(OSError):  # the server may have closed an idle connection
                    return self._exchange(connection, body, headers, deadline)
            return self._exchange(self._new_connection(), body, headers, deadline)
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

    def _exchange(
        self, connection: _Connection, body: bytes, headers: Mapping[str, str], deadline: float
    ) -> HttpAnswer:
        connection.deadline = deadline
        with self._lock:
            if self._closed:
                raise TryAgain("connection_closed")
            self._busy.add(connection)
        reusable = False
        try:
            answer, reusable = connection.exchange(self._head(len(body), headers), body)
            return answer
        finally:
            with self._lock:
                self._busy.discard(connection)
                reusable = reusable and not self._closed
                if reusable:
                    self._idle.append(connection)
            if not reusable:
                connection.close()

    def _head(self, body_bytes: int, headers: Mapping[str, str]) -> bytes:
        """Returns a request's head. Raises ValueError if an address or a key breaks its lines."""
        place = self._authority()
        own_headers = {
            "Host": place.removesuffix(f":{_HTTP_PORT}"),
            "Accept-Encoding": "identity",
            "Content-Length": str(body_bytes),
            "Content-Type": self._type,
        }
        return _head_of("POST", self._path, {**own_headers, **headers})

    def _authority(self) -> str:
        host = _encoded(self._host).decode()
        return f"[{host}]:{self._port}" if ":" in host else f"{host}:{self._port}"

    def _new_connection(self) -> _Connection:
        """Returns a connection, perhaps through a proxy, that opens at its first request.

        Raises TryAgain for an invalid proxy.
        """
        proxy = None if self._trust is None else proxy_to(self._host)
        if not proxy:
            return _Connection((self._host, self._port), b"", self._trust, self._host)
        try:
            parts = proxy_parts(proxy)
        except BadParameter as error:
            raise TryAgain("proxy_address", cause=str(error)) from error
        place = self._authority()
        headers = {"Host": place}
        if parts.username is not None:
            credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
            encoded = binascii.b2a_base64(credentials, newline=False).decode()
            headers["Proxy-Authorization"] = f"Basic {encoded}"
        # The connection to the proxy is unencrypted; TLS to the shuffler runs through it.
        tunnel = _head_of("CONNECT", place, headers)
        proxy_place = parts.hostname or "", parts.port or _HTTP_PORT
        return _Connection(proxy_place, tunnel, self._trust, self._host)


def _head_of(method: str, target: str, headers: Mapping[str, str]) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", *map(": ".join, headers.items())]
    if " " in target or not all(map(str.isprintable, lines)):
        raise ValueError("a space or line break in an address or key")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _unavailable(error: Exception) -> TryAgain:
    """Returns the error for a missing answer, with the text of OpenSSL or the system."""
    import ssl  # noqa: PLC0415 a connection without TLS does not load it

    match error:
        case ssl.SSLCertVerificationError():
            cause = f"the certificate is refused: {error.verify_message}"
            return TryAgain(TLS_FAILED, cause=cause)
        case ssl.SSLError():
            return TryAgain(TLS_FAILED, cause=error.reason or "")
        case OSError():
            return TryAgain("unavailable", cause=error.strerror or "")
    return TryAgain("unavailable", cause=type(error).__name__)
