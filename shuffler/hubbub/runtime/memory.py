"""Keeps a service's memory near its idle size: one heap, trimmed, and floods of gRPC ended."""

import asyncio
import ctypes
import os
import resource
import socket
import struct
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Final

_C_LIBRARY: Final = ctypes.CDLL(None)
_ARENA_MAX: Final = -8  # M_ARENA_MAX of mallopt(3)
_TRIM_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 0.01
# As long as a caller may leave gRPC's settings unacknowledged, and what may come in that time.
_GROWTH_SECONDS: Final = 3.0
_GROWTH_BYTES: Final = 16 << 20
# More than a handshake with a first call. An indexed header field is a byte, and 115 in memory.
_SENT_BYTES: Final = 4 << 10
_STATISTICS: Final = Path("/proc/self/statm")  # of Linux
_OPEN_FILES: Final = Path("/proc/self/fd")
_RECEIVED: Final = struct.Struct("128x Q")  # tcpi_bytes_received of Linux' struct tcp_info
_NO_ADDRESS: Final = bytes(16)  # of the family AF_UNSPEC


def use_one_heap() -> None:
    """Makes glibc allocate from one heap.

    Heaps per thread kept up to 108 MiB after floods of heads (CONTINUATION), one heap keeps 2.
    """
    if hasattr(_C_LIBRARY, "mallopt"):
        _C_LIBRARY.mallopt(_ARENA_MAX, 1)


async def return_freed_memory() -> None:
    """Returns memory that libraries have freed to the system, every second, .1 to .6 ms each."""
    while True:
        await asyncio.sleep(_TRIM_SECONDS)
        await asyncio.to_thread(_trim)


async def end_floods(port: int, refusals: Counter[str]) -> None:
    """Ends the connections to a port that sent much, when memory grows by 16 MiB within 3 s.

    gRPC limits no memory of all connections, and until a caller acknowledges its settings, a head
    takes up to 54 MiB. Callers whose connection ends dial again; `refusals` counts `gave_way`.
    """
    if not _STATISTICS.exists():
        await asyncio.Event().wait()
    is_over, loop = Event(), asyncio.get_running_loop()

    def watch() -> None:  # in a thread, since a busy loop looks too late
        sizes = deque[int](maxlen=round(_GROWTH_SECONDS / _LOOK_SECONDS))
        while not is_over.wait(_LOOK_SECONDS):
            sizes.append(int(_STATISTICS.read_bytes().split()[1]) * resource.getpagesize())
            if sizes[-1] - min(sizes) >= _GROWTH_BYTES:
                for connection in _senders(port):
                    # A shutdown would let gRPC read what the system has buffered.
                    _C_LIBRARY.connect(connection.fileno(), _NO_ADDRESS, len(_NO_ADDRESS))
                    loop.call_soon_threadsafe(refusals.update, ("gave_way",))
                _trim()

    try:
        await asyncio.to_thread(watch)
    finally:
        is_over.set()


def _trim() -> None:
    if hasattr(_C_LIBRARY, "malloc_trim"):  # of glibc alone
        _C_LIBRARY.malloc_trim(0)


def _senders(port: int) -> Iterator[socket.socket]:
    """A copy of each open connection to a port that has received more than _SENT_BYTES."""
    for path in _OPEN_FILES.iterdir():
        with suppress(OSError):  # it is no connection, or is closed meanwhile
            file = os.dup(int(path.name))
            try:
                copy = socket.socket(fileno=file)
            except OSError:
                os.close(file)
                continue
            with copy:
                if copy.getsockname()[1:2] == (port,) and copy.getpeername():
                    info = copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RECEIVED.size)
                    [received] = _RECEIVED.unpack(info)
                    if received > _SENT_BYTES:
                        yield copy
