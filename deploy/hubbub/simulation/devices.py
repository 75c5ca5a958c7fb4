"""Simulated devices: each person a client of its own, with its own secret, over the real wire."""

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
    """The SDK's own client with a secret of its own, which sends only when it is told to.

    waiting: reports that its last flush could not send.
    """

    def __init__(self, bundle: Bundle, transport: Transport) -> None:
        self.client = Client(bundle, MemoryState(), transport, hold_seconds=None)
        self.waiting = 0

    def flush(self, queued: int, seconds: float) -> tuple[int, Counter[str]]:
        """Send new reports, and those that wait: how many the shuffler took, and what was dropped.

        queued: reports since the last flush.
        """
        before, dropped = self.waiting + queued, Counter(self.client.dropped)
        if before:
            self.client.flush(seconds)
        self.waiting = self.client.waiting
        dropped = Counter(self.client.dropped) - dropped
        return before - self.waiting - dropped.total(), dropped


@dataclass(slots=True, kw_only=True)
class Sent:
    """What the devices did. acknowledged: reports that the shuffler took over."""

    devices: int = 0
    acknowledged: int = 0
    not_sent: Counter[str] = field(default_factory=Counter)
    randomize_seconds: float = 0.0
    send_seconds: float = 0.0

    def add(self, other: "Sent") -> None:
        """Add what other devices did."""
        self.devices += other.devices
        self.acknowledged += other.acknowledged
        self.not_sent += other.not_sent
        self.randomize_seconds += other.randomize_seconds
        self.send_seconds += other.send_seconds


def send_everyone(
    everyone: Sequence[Person], bundle_path: Path, advance: Callable[[int], None]
) -> Sent:
    """Let every person's device report, in a few processes; `advance` hears of devices done.

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
    """One process: its devices share a connection, as devices behind one proxy do."""
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
