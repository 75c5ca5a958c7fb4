"""Memory that strangers can take of the shuffler over gRPC: 200 connections from 16 addresses.

By hand, some of the attacks: python -m benchmarks.hoarding heads resets
"""

import asyncio
import ssl
import struct
import sys
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from benchmarks.idle import measured
from benchmarks.measure import Row
from hubbub.shuffler.admission import LARGEST_SUBMIT_BYTES

_ADDRESSES: Final = 16
_CONNECTIONS: Final = 200
_SECONDS: Final = 30.0
_CALLS: Final = 100  # of a connection, as many as the server announces
_HEAD_BYTES: Final = 7_000  # below gRPC's limit of 8 KiB
# Kinds of frames (RFC 9113, 6), and of a length the largest that its prefix holds (RFC 7541, 5.1).
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _WINDOW, _CONTINUATION = 0, 1, 3, 4, 6, 8, 9
_PREFIX: Final = 127
_MIB: Final = 1 << 20
_FIELDS: Final[Mapping[str, str]] = {
    ":method": "POST",
    ":scheme": "https",
    ":path": "/hubbub.wire.v1.Shuffler/Submit",
    ":authority": "localhost",
    "te": "trailers",
    "content-type": "application/grpc",
}


class _Connection:
    """A connection of HTTP/2 by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.windows = Counter({0: 65_535})
        self.open: set[int] = set()
        self._next = 1

    def frame(self, kind: int, flags: int, stream: int, payload: bytes = b"") -> None:
        size = struct.pack(">I", len(payload))[1:]
        self.writer.write(size + struct.pack(">BBI", kind, flags, stream) + payload)

    def call(self, filler_bytes: int = 0) -> int:
        """The head of a call, each field as a literal (RFC 7541, 6.2.2): its stream."""
        stream, self._next = self._next, self._next + 2
        fields = {**_FIELDS, "filler": "a" * filler_bytes}
        block = b"".join(b"\0" + _text(name) + _text(value) for name, value in fields.items())
        self.frame(_HEADERS, 4, stream, block)
        self.open.add(stream)
        self.windows[stream] = 16 << 10
        return stream

    async def drained(self) -> None:
        """What was written is on its way. Raises ConnectionError once the server has hung up."""
        if self.writer.is_closing():
            raise ConnectionResetError
        await self.writer.drain()
        await asyncio.sleep(0.01)

    async def read(self) -> None:
        """Read frames until the server hangs up."""
        while True:
            head = await self.reader.readexactly(9)
            payload = await self.reader.readexactly(int.from_bytes(head[:3]))
            kind, flags, stream = head[3], head[4], int.from_bytes(head[5:])
            if kind == _WINDOW:
                self.windows[stream] += int.from_bytes(payload)
            elif kind in {_HEADERS, _RESET}:
                self.open.discard(stream)
            elif kind in {_SETTINGS, _PING} and not flags:
                self.frame(kind, 1, 0, payload if kind == _PING else b"")


def _text(text: str) -> bytes:
    """A string literal (RFC 7541, 5.2), its length with a prefix of seven bits."""
    size = len(text)
    if size < _PREFIX:
        return bytes([size]) + text.encode()
    octets = [_PREFIX]
    rest = size - _PREFIX
    while rest >> 7:
        octets.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*octets, rest]) + text.encode()


async def _heads(connection: _Connection) -> None:
    """Calls of large heads without a message; each that ends is followed by another."""
    while True:
        while len(connection.open) < _CALLS:
            connection.call(_HEAD_BYTES)
        await connection.drained()


async def _messages(connection: _Connection) -> None:
    """Calls whose messages lack their last byte."""
    message = struct.pack(">BI", 0, LARGEST_SUBMIT_BYTES - 5) + bytes(LARGEST_SUBMIT_BYTES - 6)
    sent = Counter[int]()
    while True:
        while len(connection.open) < _CALLS:
            connection.call()
        for stream in sorted(connection.open):
            windows = connection.windows
            size = min(len(message) - sent[stream], windows[0], windows[stream], 16 << 10)
            if size > 0:
                connection.frame(_DATA, 0, stream, message[sent[stream] : sent[stream] + size])
                sent[stream] += size
                windows.subtract({0: size, stream: size})
        await connection.drained()


async def _resets(connection: _Connection) -> None:
    """Calls that are reset at once."""
    while True:
        for _ in range(_CALLS // 2):
            connection.frame(_RESET, 0, connection.call(_HEAD_BYTES), struct.pack(">I", 8))
        await connection.drained()


async def _endless(connection: _Connection) -> None:
    """A head without end, of fields that are a byte each, until the server hangs up."""
    connection.frame(_HEADERS, 1, 1, b"\x40" + _text("name") + _text("value"))
    while True:
        connection.frame(_CONTINUATION, 0, 1, b"\xbe" * (16 << 10))
        await connection.drained()


_Attack = Callable[[_Connection], Awaitable[None]]
_ATTACKS: Final[Mapping[str, _Attack]] = {
    "heads": _heads,
    "messages": _messages,
    "resets": _resets,
    "endless heads": _endless,
}


def hoarding(names: Sequence[str] = tuple(_ATTACKS)) -> Iterator[Row]:
    """The largest size of the shuffler under each attack, beside its idle size."""
    for name in names:
        with measured() as run:
            sizes = [run.resident_bytes()["shuffler"]]
            is_over = threading.Event()

            def look() -> None:
                while not is_over.wait(0.05):  # noqa: B023 joined below
                    sizes.append(run.resident_bytes()["shuffler"])  # noqa: B023 joined below

            looking = threading.Thread(target=look)
            looking.start()
            asyncio.run(_run_attack(run.bundle.shuffler, _ATTACKS[name]))
            is_over.set()
            looking.join()
        grown = (max(sizes) - sizes[0]) / _MIB
        yield Row(
            f"memory under {name} over gRPC, {_CONNECTIONS} connections of {_ADDRESSES} addresses",
            f"{grown:.0f} MiB more",
            f"idle {sizes[0] / _MIB:.0f} MiB",
            grown / 64,
            "<= 1, which is 64 MiB",
        )


async def _run_attack(address: str, attack: _Attack) -> None:
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trust.check_hostname = False
    trust.verify_mode = ssl.CERT_NONE
    trust.set_alpn_protocols(["h2"])
    strangers = (_stranger(address, number, trust, attack) for number in range(_CONNECTIONS))
    with suppress(TimeoutError):
        async with asyncio.timeout(_SECONDS):
            await asyncio.gather(*strangers)


async def _stranger(address: str, number: int, trust: ssl.SSLContext, attack: _Attack) -> None:
    """A connection that attacks, dialled again whenever it is ended."""
    host, _, port = address.rpartition(":")
    source = (f"127.0.2.{1 + number % _ADDRESSES}", 0)
    while True:
        with suppress(OSError, asyncio.IncompleteReadError):
            streams = await asyncio.open_connection(host, int(port), local_addr=source, ssl=trust)
            connection = _Connection(*streams)
            connection.writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            connection.frame(_SETTINGS, 0, 0)
            reading = asyncio.ensure_future(connection.read())
            try:
                await attack(connection)
            finally:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
                connection.writer.close()
        await asyncio.sleep(0.1)


if __name__ == "__main__":
    for row in hoarding(sys.argv[1:] or tuple(_ATTACKS)):
        print(row.stage, row.ours, row.limit, sep=": ")
