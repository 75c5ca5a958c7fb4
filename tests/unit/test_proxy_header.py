"""The PROXY header: read whole and not a byte further, or refused."""

import asyncio
import random

import pytest

from hubbub.runtime.http.proxy_header import BadProxyHeader, Caller, read_caller

SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
IPV4 = bytes([192, 0, 2, 1, 10, 0, 0, 1]) + (4321).to_bytes(2, "big") + (443).to_bytes(2, "big")
IPV6 = bytes.fromhex("20010db8000000000000000000000007") + bytes(16) + b"\x10\xe1\x01\xbb"


class _EndedError(Exception):
    """The connection ended in the middle of a header."""


def _v2(command: int, family: int, content: bytes) -> bytes:
    return SIGNATURE + bytes([command, family]) + len(content).to_bytes(2, "big") + content


def _read(raw: bytes) -> tuple[Caller | None, bytes]:
    """Whom the header names, and what is left after it."""
    at = 0

    async def read(size: int) -> bytes:
        nonlocal at
        part = raw[at : at + size]
        if len(part) < size:
            raise _EndedError
        at += size
        return part

    return asyncio.run(read_caller(read)), raw[at:]


@pytest.mark.parametrize(
    ("header", "caller"),
    [
        (b"PROXY TCP4 192.0.2.1 10.0.0.1 4321 443\r\n", ("192.0.2.1", 4321)),
        (b"PROXY TCP6 2001:db8::7 ::1 4321 443\r\n", ("2001:db8::7", 4321)),
        (b"PROXY UNKNOWN\r\n", None),
        (b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", None),
        (_v2(0x21, 0x11, IPV4), ("192.0.2.1", 4321)),
        (_v2(0x21, 0x11, IPV4 + b"\x04\x00\x03more"), ("192.0.2.1", 4321)),
        (_v2(0x21, 0x21, IPV6), ("2001:db8::7", 4321)),
        (_v2(0x20, 0x00, b""), None),
        (_v2(0x20, 0x11, IPV4), None),
        (_v2(0x21, 0x00, b"unix"), None),
    ],
)
def test_a_header_names_a_caller_and_nothing_after_it_is_taken(
    header: bytes, caller: Caller | None
) -> None:
    for after in (b"", b"\x16\x03\x01", b"\r\n\r\n"):
        assert _read(header + after) == (caller, after)
    for size in range(len(header)):
        with pytest.raises(_EndedError):
            _read(header[:size])


@pytest.mark.parametrize(
    "header",
    [
        b"GET /health HTTP/1.1\r\n",
        b"\x16\x03\x01" + bytes(20),
        b"PROXY TCP4 192.0.2.1 10.0.0.1 4321\r\n",
        b"PROXY TCP4 2001:db8::7 ::1 4321 443\r\n",
        b"PROXY TCP6 192.0.2.1 10.0.0.1 4321 443\r\n",
        b"PROXY TCP4 192.0.2.1 10.0.0.1 65536 443\r\n",
        b"PROXY TCP4 192.0.2.\xb2 10.0.0.1 1 443\r\n",
        b"PROXY UDP4 192.0.2.1 10.0.0.1 1 443\r\n",
        b"PROXY " + b"x" * 200,
        _v2(0x11, 0x11, IPV4),
        _v2(0x22, 0x11, IPV4),
        _v2(0x21, 0x12, IPV4),
        _v2(0x21, 0x11, IPV4[:-1]),
        _v2(0x21, 0x21, IPV4),
        _v2(0x21, 0x11, IPV4 + bytes(4096)),
    ],
)
def test_an_invalid_proxy_header_is_refused(header: bytes) -> None:
    with pytest.raises(BadProxyHeader):
        _read(header)


@pytest.mark.slow
def test_every_proxy_header_gives_a_caller_or_is_refused() -> None:
    drawn = random.Random(20261124)
    whole = [_v2(0x21, 0x11, IPV4), b"PROXY TCP4 192.0.2.1 10.0.0.1 4321 443\r\n"]
    refused = 0
    for _ in range(2000):
        raw = bytearray(drawn.choice(whole))
        for _ in range(drawn.randint(1, 4)):
            raw[drawn.randrange(len(raw))] = drawn.randrange(256)
        try:
            _read(bytes(raw))
        except (BadProxyHeader, _EndedError):
            refused += 1
    assert 0 < refused < 2000
