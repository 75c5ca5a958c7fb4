"""Ends connections of gRPC, which cannot: its sockets are found among this process's files."""

import asyncio
import math
import os
import resource
import socket
import struct
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Any, Final

from hubbub.runtime.memory import C_LIBRARY, trim_heap
from hubbub.runtime.rpc.call_checks import Calls
from hubbub.runtime.rpc.grpc_callers import address_of

_FILES: Final = Path("/proc/self/fd")  # of Linux, as the next
_STATISTICS: Final = Path("/proc/self/statm")
# Memory grows by 2 MiB in .01 s if one processor decodes heads.
_LOOK_SECONDS: Final = 0.01
_SOON_SECONDS: Final = 0.001
_USUAL_BYTES_PER_SECOND: Final = 4 << 20
# Beyond it, and beyond the messages: 120 callers with the largest submissions took 20 MiB.
_GROWTH_BYTES: Final = 24 << 20
# More than a handshake with a first call. An indexed header field is a byte, and 115 in memory.
_SENT_BYTES: Final = 4 << 10
_RECEIVED: Final = struct.Struct("128x Q")  # tcpi_bytes_received of Linux' struct tcp_info
_NO_ADDRESS: Final = bytes(16)  # of the family AF_UNSPEC


def end_connections(peers: Collection[str]) -> bool:
    """Ends connections, named as by `context.peer()`, whatever their callers do not read.

    False where the system has no list of this process's files.
    """
    if not _FILES.exists():
        return False
    ends = {(_plain_address(address_of(peer)), peer.rpartition(":")[2]) for peer in peers}
    for connection, (host, port, *_) in _connections():
        if (_plain_address(host), str(port)) in ends:
            with suppress(OSError):  # its caller has ended it meanwhile
                connection.shutdown(socket.SHUT_RDWR)
    return True


async def end_floods(port: int, calls: Calls) -> None:
    """Ends the connections to a port that sent much, while memory grows by more than messages take.

    gRPC limits no memory of all connections, and until a caller acknowledges its settings, a head
    takes up to 54 MiB. Callers whose connection ends dial again; refusals count `gave_way`.
    """
    if not _STATISTICS.exists():
        await asyncio.Event().wait()
    is_over, loop = Event(), asyncio.get_running_loop()

    def watch() -> None:  # in a thread, since a busy loop looks too late
        usual_bytes, message_bytes, moment, wait_seconds = math.inf, 0.0, time.monotonic(), 0.0
        # Opened once: connections may be as many as the files that a process may open.
        with _STATISTICS.open("rb", buffering=0) as statistics:
            while not is_over.wait(wait_seconds):
                statistics.seek(0)
                size = int(statistics.readall().split()[1]) * resource.getpagesize()
                change = (time.monotonic() - moment) * _USUAL_BYTES_PER_SECOND
                moment = time.monotonic()
                usual_bytes = min(size, usual_bytes + change)
                message_bytes = max(calls.message_bytes, message_bytes - change)
                growth = size - usual_bytes
                wait_seconds = _LOOK_SECONDS if growth < _GROWTH_BYTES / 3 else _SOON_SECONDS
                if growth - message_bytes >= _GROWTH_BYTES:
                    for connection in _senders(port):
                        # A shutdown would let gRPC read what the system has buffered.
                        C_LIBRARY.connect(connection.fileno(), _NO_ADDRESS, len(_NO_ADDRESS))
                        loop.call_soon_threadsafe(calls.refusals.update, ("gave_way",))
                    trim_heap()
                    wait_seconds = _LOOK_SECONDS  # gRPC needs it to free memory

    try:
        await asyncio.to_thread(watch)
    finally:
        is_over.set()


def _senders(port: int) -> Iterator[socket.socket]:
    """A copy of each open connection to a port that has received more than _SENT_BYTES."""
    for connection, _ in _connections():
        if connection.getsockname()[1] == port:
            info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RECEIVED.size)
            [received] = _RECEIVED.unpack(info.ljust(_RECEIVED.size, b"\0"))  # or of an old Linux
            if received > _SENT_BYTES:
                yield connection


def _connections() -> Iterator[tuple[socket.socket, Any]]:
    """A copy of each open connection of this process by TCP, and its peer; 20 microseconds each."""
    with suppress(OSError):  # no more files may be opened
        for path in _FILES.iterdir():
            with suppress(OSError):  # closed meanwhile, no socket, or not connected
                file = os.dup(int(path.name))
                try:
                    connection = socket.socket(fileno=file)
                except OSError:
                    os.close(file)
                    continue
                with connection:
                    is_internet = connection.family in {socket.AF_INET, socket.AF_INET6}
                    if is_internet and connection.type == socket.SOCK_STREAM:
                        yield connection, connection.getpeername()


def _plain_address(host: str) -> str:
    """An address without its zone; the IPv4 address of one that is mapped to IPv6."""
    return host.partition("%")[0].removeprefix("::ffff:")
