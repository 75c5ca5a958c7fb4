"""What a process drew and has not entered yet: in a journal; in mere memory where there is none."""

import contextlib
import os
import secrets
import sys
import threading
from pathlib import Path

from hubbub.client.state.contract import PendingPayload
from hubbub.client.state.journal import Journal


class Notes:
    """One process's notes beside a state folder. Safe between threads; no I/O but to start and end.

    most: how many may wait where there is no journal to measure.
    """

    def __init__(self, folder: Path, most: int) -> None:
        self._folder = folder
        self._most = most
        self._journal: Journal | None = None
        self._last = 0
        self._start()

    @property
    def owner(self) -> str:
        """This process, as the state knows it; no other one's numbers are taken for its own."""
        return self._owner

    def has_room(self, size_bytes: int) -> bool:
        """Whether another payload of this size can be noted."""
        journal = self._journal
        if journal:
            return journal.has_room(size_bytes)
        return self._last - self._entered < self._most

    def add(self, drawn: PendingPayload) -> int:
        """Note a payload: its number."""
        with self._lock:
            self._last = self._journal.append(drawn) if self._journal else self._last + 1
            return self._last

    def entered(self, upto: int) -> None:
        """What was noted up to this number is the state's now."""
        with self._lock:
            self._entered = upto
            if self._journal:
                self._journal.rewind(upto)
                if self._journal.is_lost and upto == self._last:
                    self._open()

    def wipe(self) -> None:
        """Overwrite everything."""
        with self._lock:
            if self._journal:
                self._journal.wipe()

    def close(self) -> None:
        """Let go; what is left waits for the next process."""
        with self._lock:
            if self._journal:
                self._journal.close()
            self._journal = None

    def after_fork_in_child(self) -> None:
        """Start anew in a forked child: the journal is the parent's."""
        if self._journal:
            self._journal.after_fork_in_child()
        self._start()

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._last = self._entered = 0
        self._journal = None
        self._owner = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._open()

    def _open(self) -> None:
        """A journal, if there can be one, from the last number on."""
        if sys.platform != "win32":  # without its locks nobody could tell an orphan
            with contextlib.suppress(OSError):
                self._journal = Journal(self._folder, self._last)
                self._owner = self._journal.name
