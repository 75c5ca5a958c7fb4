"""Binary HTTP (RFC 9292): writes messages of known length, reads known and indeterminate length.

The reader skips informational responses and trailers; hubbub sends neither.
"""

import re
from typing import Final

from hubbub.errors import BadPayload
from hubbub.fields.frozen import frozen

Fields = tuple[tuple[bytes, bytes], ...]

_REQUEST: Final = (0, 2)  # of known and of indeterminate length; RFC 9292, section 3.3
_RESPONSE: Final = (1, 3)
_FINAL: Final = 200  # statuses below are informational
_LAST_STATUS: Final = 599
_NAME: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9a-z-]+")  # RFC 9110, section 5.6.2, in small letters
# A megabyte of sections of one byte each would keep a reader busy for seconds.
_MAX_PARTS: Final = 1024
# Upper limits of varints of 1, 2, 4 and 8 bytes; RFC 9000, section 16.
_VARINTS: Final = (1 << 6, 1 << 14, 1 << 30, 1 << 62)


@frozen(kw_only=True)
class Request:
    """An HTTP request. Names in `headers` are lower case."""

    method: bytes
    scheme: bytes
    authority: bytes
    path: bytes
    headers: Fields = ()
    content: bytes = b""


@frozen()
class Response:
    """A final HTTP response. Names in `headers` are lower case."""

    status: int
    headers: Fields = ()
    content: bytes = b""


def write_request(request: Request, *, padded_to: int = 1) -> bytes:
    """Encodes a request, padded with zeros to a whole multiple of `padded_to` bytes."""
    control = (request.method, request.scheme, request.authority, request.path)
    message = _varint(_REQUEST[0]) + b"".join(map(_lengthy, control))
    message += _fields(request.headers) + _lengthy(request.content) + _lengthy(b"")
    return message + bytes(-len(message) % padded_to)


def write_response(response: Response, *, padded_to: int = 1) -> bytes:
    """Encodes a response, padded with zeros to a whole multiple of `padded_to` bytes."""
    message = _varint(_RESPONSE[0]) + _varint(response.status) + _fields(response.headers)
    message += _lengthy(response.content) + _lengthy(b"")
    return message + bytes(-len(message) % padded_to)


def read_request(message: bytes) -> Request:
    """Decodes a request. Raises BadPayload if `message` is not one."""
    fields = _Rest(message)
    known_length = fields.form(_REQUEST)
    method, scheme, authority, path = (fields.text() for _ in range(4))
    headers = fields.fields(known_length=known_length)
    return Request(
        method=method,
        scheme=scheme,
        authority=authority,
        path=path,
        headers=headers,
        content=fields.end(known_length=known_length),
    )


def read_response(message: bytes) -> Response:
    """Decodes a final response. Raises BadPayload if `message` is not one."""
    fields = _Rest(message)
    known_length = fields.form(_RESPONSE)
    while (status := fields.varint()) < _FINAL:
        fields.fields(known_length=known_length)
    if status > _LAST_STATUS:
        raise BadPayload("a status is not one of HTTP's")
    headers = fields.fields(known_length=known_length)
    return Response(status, headers, fields.end(known_length=known_length))


class _Rest:
    """A reader over the bytes of a message that have not been read yet."""

    def __init__(self, message: bytes) -> None:
        self._message, self._at = message, 0

    def form(self, forms: tuple[int, int]) -> bool:
        """Reads the framing indicator; returns whether lengths are known. Raises BadPayload."""
        indicator = self.varint()
        if indicator not in forms:
            raise BadPayload("not a message of binary HTTP of this kind")
        return indicator == forms[0]

    def varint(self) -> int:
        """Reads a variable-length integer in [0, 2**62)."""
        if self._at >= len(self._message):
            raise BadPayload("a message of binary HTTP ends too soon")
        size = 1 << (self._message[self._at] >> 6)
        return int.from_bytes(self.take(size)) & ((1 << (8 * size - 2)) - 1)

    def text(self) -> bytes:
        """Reads a length, and as many bytes as it says."""
        return self.take(self.varint())

    def take(self, size: int) -> bytes:
        """Reads `size` bytes. Raises BadPayload if fewer are left."""
        self._at += size
        if self._at > len(self._message):
            raise BadPayload("a message of binary HTTP ends too soon")
        return self._message[self._at - size : self._at]

    def fields(self, *, known_length: bool) -> Fields:
        """Reads a section of fields; a section that is missing at the message's end is empty."""
        if self._at == len(self._message):
            return ()
        section = _Rest(self.text()) if known_length else self
        field_lines = []
        while section._at < len(section._message):  # noqa: SLF001 one of its own
            name = section.text()
            if not name:
                if known_length:
                    raise BadPayload("a field has no name")
                break
            if not _NAME.fullmatch(name):
                raise BadPayload("a field has an invalid name")
            field_lines.append((name, section.text()))
            if len(field_lines) > _MAX_PARTS:
                raise BadPayload(f"more than {_MAX_PARTS} fields")
        return tuple(field_lines)

    def end(self, *, known_length: bool) -> bytes:
        """Reads the content and the trailers. Raises BadPayload unless only zeros follow."""
        chunks: list[bytes] = []
        while self._at < len(self._message) and (chunk := self.text()):
            chunks.append(chunk)
            if known_length:
                break
            if len(chunks) > _MAX_PARTS:
                raise BadPayload(f"more than {_MAX_PARTS} chunks")
        self.fields(known_length=known_length)
        if self._message[self._at :].strip(b"\0"):
            raise BadPayload("bytes follow the end of a binary HTTP message")
        return b"".join(chunks)


def _fields(headers: Fields) -> bytes:
    return _lengthy(b"".join(_lengthy(name) + _lengthy(value) for name, value in headers))


def _lengthy(text: bytes) -> bytes:
    return _varint(len(text)) + text


def _varint(number: int) -> bytes:
    power = next(power for power, most in enumerate(_VARINTS) if number < most)
    return (number | power << (8 * (1 << power) - 2)).to_bytes(1 << power)
