"""Simulated devices: a client with its own secret per person, over the real protocol."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from hubbub.bundles import Bundle, read_bundle
from hubbub.client import Client, MemoryState, Outcome, Transport, transport_to
from hubbub.simulation.processes import Tell, run_processes

Person = dict[str, Any]
"""One person's value for every metric: a text, a number, or a text of each part."""

_PROCESSES: Final = 2
_THREADS: Final = 16  # per process: while one device waits for its answer, others work
_FLUSH_SECONDS: Final = 60.0
_TOLD_EVERY: Final = 100


class SimulatedDevice:
    """The SDK's client with a secret of its own, which sends only when told to.

    `waiting` is the number of reports that its last flush could not send; threads that share the
    device hold `busy`.
    """

    def __init__(self, bundle: Bundle, transport: Transport) -> None:
        self.client = Client(bundle, MemoryState(), transport, hold_seconds=None)
        self.waiting = 0
        self.busy = threading.Lock()

    def flush(self, queued: int, seconds: float) -> tuple[int, Counter[str]]:
        """Sends new and waiting reports; returns how many were acknowledged, and those dropped.

        `queued` is the number of reports since the last flush.
        """
        before, dropped = self.waiting + queued, Counter(self.client.dropped)
        if before:
            self.client.flush(seconds)
        self.waiting = self.client.waiting
        dropped = Counter(self.client.dropped) - dropped
        return before - self.waiting - dropped.total(), dropped


@dataclass(slots=True, kw_only=True)
class Sent:
    """What devices have done; `acknowledged` counts reports that the shuffler accepted."""

    devices: int = 0
    acknowledged: int = 0
    not_sent: Counter[str] = field(default_factory=Counter)
    randomize_seconds: float = 0.0
    send_seconds: float = 0.0

    def add(self, other: "Sent") -> None:
        """Adds what other devices have done."""
        self.devices += other.devices
        self.acknowledged += other.acknowledged
        self.not_sent += other.not_sent
        self.randomize_seconds += other.randomize_seconds
        self.send_seconds += other.send_seconds


def send_everyone(
    everyone: Sequence[Person], bundle_path: Path, advance: Callable[[int], None]
) -> Sent:
    """Sends everybody's reports, in a few processes; calls `advance` with numbers of devices done.

    Raises:
        HubbubError: a process of devices failed.
    """
    total = Sent()

    def hear(some: Sent) -> None:
        total.add(some)
        advance(some.devices)

    shares = [(everyone[n::_PROCESSES], bundle_path) for n in range(_PROCESSES)]
    run_processes(_send_some, shares, hear)
    return total


def _send_some(share: tuple[Sequence[Person], Path], tell: Tell) -> None:
    """The work of one process: its devices share a connection, like devices behind a proxy."""
    some, bundle_path = share
    bundle = read_bundle(bundle_path)
    transport = transport_to(bundle.shuffler, roots=bundle.roots)
    chunks = [some[first : first + _TOLD_EVERY] for first in range(0, len(some), _TOLD_EVERY)]
    with ThreadPoolExecutor(_THREADS) as threads:
        for sent in threads.map(lambda chunk: _send_chunk(chunk, bundle, transport), chunks):
            tell(sent)


def _send_chunk(chunk: Sequence[Person], bundle: Bundle, transport: Transport) -> Sent:
    sent = Sent()
    for person in chunk:
        device = SimulatedDevice(bundle, transport)
        start = time.thread_time()
        outcomes = Counter(device.client.report(metric, value) for metric, value in person.items())
        randomized = time.thread_time()
        acknowledged, dropped = device.flush(outcomes.pop(Outcome.QUEUED, 0), _FLUSH_SECONDS)
        sent.send_seconds += time.thread_time() - randomized
        sent.randomize_seconds += randomized - start
        sent.acknowledged += acknowledged
        sent.not_sent += Counter({outcome.value: n for outcome, n in outcomes.items()})
        sent.not_sent += dropped
        sent.not_sent["waiting"] += device.waiting
        sent.devices += 1
    return sent
