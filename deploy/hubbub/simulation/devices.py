"""Simulated devices in several processes: a client with its own secret each, over the protocol."""

import multiprocessing
import queue
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hubbub.aggregator.ingest.opener_process import end_with_parent
from hubbub.bundles import Bundle, read_bundle
from hubbub.client import Client, MemoryState, Outcome, Transport, transport_to
from hubbub.errors import HubbubError

if TYPE_CHECKING:
    from multiprocessing.queues import Queue

Person = dict[str, Any]
"""One person's value for every metric: a text, a number, or a text of each part."""
Tell = Callable[[Any], None]
"""What a process tells its parent by: anything that can be sent, but None and text."""
_LISTEN_SECONDS: Final = 1.0

_PROCESSES: Final = 2
_THREADS: Final = 16  # per process: while one device waits for its answer, others work
_FLUSH_SECONDS: Final = 60.0
_TOLD_EVERY: Final = 100


class SimulatedDevice:
    """The SDK's client with a secret of its own, which sends only when told to.

    `waiting` is the number of reports that its last flush could not send; threads that share the
    device hold `busy`.
    """

    def __init__(
        self, bundle: Bundle, transport: Transport, public: Mapping[str, str] | None = None
    ) -> None:
        self.client = Client(bundle, MemoryState(), transport, hold_seconds=None, public=public)
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

    Raises HubbubError if a process of devices failed.
    """
    total = Sent()

    def hear(sent_part: Sent) -> None:
        total.add(sent_part)
        advance(sent_part.devices)

    shares = [(everyone[n::_PROCESSES], bundle_path) for n in range(_PROCESSES)]
    run_processes(_send_some, shares, hear)
    return total


def _send_some(share: tuple[Sequence[Person], Path], tell: Tell) -> None:
    """The work of one process: its devices share a connection, like devices behind a proxy."""
    people, bundle_path = share
    bundle = read_bundle(bundle_path)
    transport = transport_to(bundle.shuffler, roots=bundle.roots)
    chunks = [people[start : start + _TOLD_EVERY] for start in range(0, len(people), _TOLD_EVERY)]
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


def run_processes(
    work: Callable[[Any, Tell], None],
    shares: Sequence[Any],
    hear: Tell,
    interrupted: Callable[[], None] | None = None,
) -> None:
    """Runs `work(share, tell)` in a process per share; calls `hear` with what they tell.

    At Ctrl-C `interrupted` is called, and the processes run to their end; without it,
    KeyboardInterrupt is raised. Raises HubbubError if a process failed, or was killed.
    """
    context = multiprocessing.get_context("spawn")
    results: Queue[Any] = context.Queue()
    arguments = [(work, share, results) for share in shares]
    processes = [context.Process(target=_run, args=args, daemon=True) for args in arguments]
    for process in processes:
        process.start()
    running = len(processes)
    while running:
        try:
            result = results.get(timeout=_LISTEN_SECONDS)
        except queue.Empty:
            # Messages that a process sent before it ended have arrived by now.
            if any(process.exitcode for process in processes):
                raise HubbubError("a process of simulated devices was killed") from None
            continue
        except KeyboardInterrupt:
            if interrupted is None:
                raise
            interrupted()
            continue
        if isinstance(result, str):
            raise HubbubError(f"a process of simulated devices failed: {result}")
        if result is None:
            running -= 1
        else:
            hear(result)
    for process in processes:
        process.join()


def _run(work: Callable[[Any, Tell], None], share: Any, queue: "Queue[Any]") -> None:
    end_with_parent()
    # The terminal's Ctrl-C reaches every process, but the parent decides when to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        work(share, queue.put)
        queue.put(None)
    except Exception as error:  # noqa: BLE001 the parent must get every error
        queue.put(f"{type(error).__name__}: {error}")
