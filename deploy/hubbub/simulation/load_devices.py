"""The devices of `hubbub load`: clients of the SDK that wake at the times of a schedule."""

import itertools
import math
import multiprocessing
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Final

from hubbub.bundles import read_bundle
from hubbub.client import Outcome, Transport, transport_to
from hubbub.simulation.devices import SimulatedDevice, Tell, run_processes

_THREADS: Final = 24  # a process: while one device waits for its answer, others work
_TOLD_SECONDS: Final = 0.2
_START_SECONDS: Final = 2.0  # time for processes to start before the first device
_FLUSH_SECONDS: Final = 10.0
# Durations are counted in steps of 2%: fine enough for percentiles, in constant memory.
_STEP: Final = math.log(1.02)
_random: Final = secrets.SystemRandom()


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The requested load: `wakes_a_second` is how often some device reports all of the metrics.

    `shuffler` is the address to send to; None for that in the bundle.
    """

    bundle: Path
    metrics: tuple[str, ...]
    devices: int
    wakes_a_second: float
    seconds: float
    dial: bool
    processes: int
    shuffler: str | None = None


class Times:
    """A histogram of durations, in steps of 2%."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()

    def add(self, seconds: float) -> None:
        """Adds a duration, in seconds."""
        self.counts[math.ceil(math.log(max(seconds, 1e-7)) / _STEP)] += 1

    def percentile(self, share: float) -> float:
        """The duration, in seconds, that a share of them does not exceed, at most 2% too long."""
        remaining = share * self.counts.total()
        for step in sorted(self.counts):
            remaining -= self.counts[step]
            if remaining <= 0:
                return math.exp(step * _STEP)
        return 0.0


@dataclass(slots=True, kw_only=True)
class Seen:
    """What the devices have measured.

    `seconds` is the time from the first wake to the end; `calls` are durations of `report()`;
    `answers` are times from when a device was due to wake until its reports were acknowledged.
    `behind` counts wakes that began over 0.1 s late, which shows that this machine is too slow.
    `acknowledged` counts reports that the shuffler accepted. `is_lost` is whether the run ended
    early because the shuffler took no report for some seconds.
    """

    seconds: float = 0.0
    wakes: int = 0
    behind: int = 0
    acknowledged: int = 0
    is_lost: bool = False
    outcomes: Counter[str] = field(default_factory=Counter)
    calls: Times = field(default_factory=Times)
    answers: Times = field(default_factory=Times)

    def add(self, other: "Seen") -> None:
        """Adds what other devices have measured."""
        self.wakes += other.wakes
        self.behind += other.behind
        self.acknowledged += other.acknowledged
        self.is_lost |= other.is_lost
        self.outcomes += other.outcomes
        self.calls.counts += other.calls.counts
        self.answers.counts += other.answers.counts


def drive(load: Load, hear: Callable[[Seen], None]) -> Seen:
    """Runs the load to its end or until Ctrl-C; calls `hear` with the measurements so far.

    Raises HubbubError if a process of devices failed.
    """
    stop = multiprocessing.get_context("spawn").Event()
    begin = time.time() + _START_SECONDS
    total = Seen()

    def add(seen_part: Seen) -> None:
        total.add(seen_part)
        hear(total)

    shares = [(load, number, begin, stop) for number in range(load.processes)]
    run_processes(_run, shares, add, interrupted=stop.set)
    total.seconds = time.time() - begin
    return total


def _run(share: "tuple[Load, int, float, Event]", tell: Tell) -> None:
    """The work of one process: its share of the devices and wakes."""
    _Devices(*share).run(tell)


class _Devices:
    def __init__(self, load: Load, number: int, begin: float, stop: Event) -> None:
        self._load = load
        self._bundle = read_bundle(load.bundle)
        self._metrics = [self._bundle.metric(name) for name in load.metrics]
        self._shared = self._transport()
        self._devices: dict[int, SimulatedDevice] = {}
        self._wakes: Iterator[int] = itertools.count(number, load.processes)
        self._begin, self._stop = begin, stop
        self._lock = threading.Lock()
        self._measurements = Seen()
        self._last_answer = time.monotonic()

    def run(self, tell: Callable[[Seen], None]) -> None:
        threads = [threading.Thread(target=self._work, daemon=True) for _ in range(_THREADS)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            time.sleep(_TOLD_SECONDS)
            tell(self._snapshot())
        until = time.monotonic() + _FLUSH_SECONDS  # for all of them together
        for device in self._devices.values():
            self._flush(device, 0, until)
            self._measurements.outcomes["waiting"] += device.waiting
        tell(self._snapshot())

    def _snapshot(self) -> Seen:
        with self._lock:
            measurements, self._measurements = self._measurements, Seen()
        return measurements

    def _work(self) -> None:
        while not self._stop.is_set():
            with self._lock:
                wake = next(self._wakes)
            if wake >= self._load.wakes_a_second * self._load.seconds:
                return
            due = self._begin + wake / self._load.wakes_a_second
            if self._stop.wait(max(0.0, due - time.time())):
                return
            self._wake(wake % self._load.devices, due)

    def _wake(self, device: int, due: float) -> None:
        """Lets one device report all metrics, and sends the reports."""
        late = time.time() - due
        with self._lock:
            if device not in self._devices:
                transport = self._transport() if self._load.dial else self._shared
                public = {
                    field: _random.choice([*values])
                    for metric in self._bundle.metrics.values()
                    for field, values in metric.breakdown.items()
                }
                self._devices[device] = SimulatedDevice(self._bundle, transport, public)
            device_state = self._devices[device]
        with device_state.busy:
            outcomes: Counter[str] = Counter()
            durations = []
            for metric in self._metrics:
                value = (
                    {part: _random.choice(values) for part, values in metric.parts.items()}
                    if metric.parts
                    else metric.value_kind.example(metric, _random)
                )
                start = time.perf_counter()
                outcomes[device_state.client.report(metric.name, value).value] += 1
                durations.append(time.perf_counter() - start)
            queued = outcomes.pop(Outcome.QUEUED.value, 0)
            self._flush(device_state, queued, time.monotonic() + _FLUSH_SECONDS)
            answered = time.time() - due
            all_sent = queued and not device_state.waiting
        with self._lock:
            measurements = self._measurements
            measurements.wakes += 1
            measurements.behind += late > 0.1  # noqa: PLR2004 as Seen says
            measurements.outcomes += outcomes
            for seconds in durations:
                measurements.calls.add(seconds)
            if all_sent:
                measurements.answers.add(answered)

    def _flush(self, device: SimulatedDevice, queued: int, until: float) -> None:
        """Sends the queued reports, and those that an earlier wake could not send."""
        acknowledged, dropped = device.flush(queued, max(0.0, until - time.monotonic()))
        now = time.monotonic()
        with self._lock:
            if acknowledged or dropped:
                self._last_answer = now
            elif queued and now - self._last_answer >= _FLUSH_SECONDS:
                # Else each later wake would wait as long, for hours in all.
                self._measurements.is_lost = True
                self._stop.set()
            self._measurements.acknowledged += acknowledged
            self._measurements.outcomes += Counter(dropped=dropped.total())

    def _transport(self) -> Transport:
        return transport_to(self._load.shuffler or self._bundle.shuffler, roots=self._bundle.roots)
