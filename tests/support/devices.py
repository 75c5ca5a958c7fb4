"""One app on one device, started again and again, for tests of what befalls its state."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hubbub.bundles import Bundle
from hubbub.client import Client, MemoryState, State, Transport
from hubbub.client.settings import Settings
from hubbub.client.startup import state_of
from hubbub.client.testing import FakeClock, FakeShuffler
from tests.support.bundles import DAY, Signed

DATABASE = "hubbub.sqlite3"


def idle_client(
    bundle: Bundle, state: State | None = None, transport: Transport | None = None, **options: Any
) -> Client:
    """A client without a thread, so that only flush() and close() send."""
    way = transport or FakeShuffler()
    return Client(bundle, state or MemoryState(), way, hold_seconds=None, **options)


def state_in(folder: Path, bundle: Bundle, clock: Callable[[], float] = time.time) -> State:
    """The state in a folder of the app's own choice."""
    return state_of(bundle, Settings(state_dir=folder), None, clock)


class Device:
    """Its folder and witness are of one home; `shuffler` sees what left."""

    def __init__(self, signed: Signed, home: Path) -> None:
        self.folder = home / "state"
        self.shuffler = FakeShuffler()
        self.clock = FakeClock(float(signed.bundle.keys[0].start + 10 * DAY))
        self._signed = signed
        self._started: list[Client] = []

    @property
    def now(self) -> float:
        return self.clock.now()

    @now.setter
    def now(self, now: float) -> None:
        self.clock.set(now)

    def start(self) -> Client:
        return self.start_with(state_in(self.folder, self._signed.bundle, self.clock.now))

    def start_with(self, state: State) -> Client:
        client = idle_client(self._signed.bundle, state, self.shuffler, clock=self.clock)
        self._started.append(client)
        return client

    def left(self) -> list[str]:
        """The streams of the reports that left, each report once."""
        return sorted(
            stream for stream, _ in {(r.stream, r.sealed) for r in self.shuffler.reports()}
        )

    @property
    def witness(self) -> Path:
        return self.folder.with_name("state.witness")

    def close(self) -> None:
        for client in self._started:
            client.close(0)
