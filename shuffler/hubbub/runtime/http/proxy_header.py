"""The PROXY header: the client's address, before the first byte of a connection from a proxy.

It is read byte by byte, since no byte of the TLS or request after it may be taken.

Source: The PROXY protocol, versions 1 & 2, of HAProxy (sections 2.1 and 2.2).
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

_HEADER_SECONDS: Final = 10.0
_BEGINNING: Final = 12  # bytes that distinguish the versions; no header is shorter
_VERSION_1: Final = b"PROXY "
_LONGEST_1: Final = 107
_VERSION_2: Final = b"\r\n\r\n\x00\r\nQUIT\n"
# The standard allows 64 KiB; HAProxy, Envoy and the clouds' balancers add some hundred bytes.
_LONGEST_2: Final = 4096
_LOCAL: Final = 0x20
_PROXY: Final = 0x21
_UNSPECIFIED: Final = 0x00
_TCP4: Final = 0x11
_TCP6: Final = 0x21
_PORT: Final = 65_535

Caller = tuple[str, int]
Read = Callable[[int], Awaitable[bytes]]


class BadProxyHeader(Exception):
    """A connection does not begin with a valid PROXY header."""


async def read_caller(receive: Read) -> Caller | None:
    """Reads the client's address and port from a PROXY header, and no byte beyond it.

    `receive(n)` must return exactly n bytes. Returns None if the proxy asks for itself (a health
    check) or does not know the client. Raises BadProxyHeader if the header is missing or invalid.
    """
    beginning = await receive(_BEGINNING)
    if beginning == _VERSION_2:
        return await _version_2(receive)
    if beginning.startswith(_VERSION_1):
        return await _version_1(receive, beginning)
    raise BadProxyHeader


async def _version_1(receive: Read, line: bytes) -> Caller | None:
    while not line.endswith(b"\r\n"):
        if len(line) >= _LONGEST_1:
            raise BadProxyHeader
        line += await receive(1)
    match line[:-2].split(b" "):
        case [_, b"UNKNOWN", *_]:
            return None
        case [_, b"TCP4" | b"TCP6" as family, source, _, port, _]:
            try:
                address, number = ip_address(source.decode("ascii")), int(port)
            except ValueError as error:
                raise BadProxyHeader from error
            if f"TCP{address.version}".encode() == family and 0 <= number <= _PORT:
                return str(address), number
    raise BadProxyHeader


async def _version_2(receive: Read) -> Caller | None:
    command, family, *length = await receive(4)
    size = int.from_bytes(length, "big")
    if command not in {_LOCAL, _PROXY} or size > _LONGEST_2:
        raise BadProxyHeader
    body = await receive(size) if size else b""
    if command == _LOCAL or family == _UNSPECIFIED:
        return None
    if family == _TCP4 and size >= 12:  # noqa: PLR2004 two addresses and two ports
        return str(IPv4Address(body[:4])), int.from_bytes(body[8:10], "big")
    if family == _TCP6 and size >= 36:  # noqa: PLR2004 the same
        return str(IPv6Address(body[:16])), int.from_bytes(body[32:34], "big")
    raise BadProxyHeader


async def caller_named_by(connection: socket.socket) -> Caller | None:
    """The client that a proxy names. Raises BadProxyHeader, TimeoutError, ConnectionError."""
    loop = asyncio.get_running_loop()

    async def read(size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = await loop.sock_recv(connection, size - len(data))
            if not part:
                raise ConnectionError
            data += part
        return data

    async with asyncio.timeout(_HEADER_SECONDS):
        return await read_caller(read)
