"""A TCP line that fails on demand: cut, slow, truncating what passes, or garbling it."""

import random
import socket
import threading
import time
from contextlib import suppress


class Line:
    """Carries bytes to `target` (HOST:PORT) from `address`, a free port of this machine.

    slow: seconds that every chunk waits. truncating, garbling: the chance that a chunk is passed by
    half, or twice over; the connection ends with it, as it does when bytes are lost on the way.
    connections: how often somebody called.
    """

    def __init__(self, target: str) -> None:
        host, port = target.rsplit(":", 1)
        self._target = host, int(port)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._open: set[socket.socket] = set()
        self._cut = False
        self._lock = threading.Lock()
        self.slow = 0.0
        self.truncating = 0.0
        self.garbling = 0.0
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """End everything on the line; nothing connects until it is mended."""
        with self._lock:
            self._cut = True
            for end in self._open:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            self._open.clear()

    def mend(self) -> None:
        self.slow = self.truncating = self.garbling = 0.0
        self._cut = False

    def lead_to(self, target: str, *, cut: bool = True) -> None:
        """New connections go elsewhere; those that there are end, if the line is cut meanwhile."""
        host, port = target.rsplit(":", 1)
        self._target = host, int(port)
        if cut:
            self.cut()
            self.mend()

    def close(self) -> None:
        self.cut()
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                here, _ = self._listener.accept()
                self.connections += 1
                threading.Thread(target=self._join, args=(here,), daemon=True).start()

    def _join(self, here: socket.socket) -> None:
        try:
            there = None if self._cut else socket.create_connection(self._target, 5)
        except OSError:
            there = None
        with self._lock:
            if there is None or self._cut:
                here.close()
                if there:
                    there.close()
                return
            there.settimeout(None)
            self._open |= {here, there}
        threading.Thread(target=self._carry, args=(there, here), daemon=True).start()
        self._carry(here, there)

    def _carry(self, source: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                if self.slow:
                    time.sleep(self.slow)
                if self.truncating and random.random() < self.truncating:
                    other.sendall(data[: len(data) // 2])
                    break
                if self.garbling and random.random() < self.garbling:
                    other.sendall(data + data)
                    break
                other.sendall(data)
        for end in (source, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        source.close()
        with self._lock:
            self._open.discard(source)
