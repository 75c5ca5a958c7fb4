"""Load while processes are killed and started again: afterwards every cell is what was sent."""

import random
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import redis

from hubbub.catalog import Catalog
from hubbub.cli.child import Child
from hubbub.cli.demo import _close_epochs
from hubbub.cli.local_run import LocalRun, Ports
from hubbub.cli.query_commands import balance
from hubbub.cli.remote import law, whole
from hubbub.client import Client, GrpcTransport, MemoryState
from hubbub.errors import ServiceUnavailable
from tests.conftest import Made

KILLS = 14
DEVICES_AT_ONCE = 6


def test_totals_are_the_acknowledged_payloads_cell_by_cell(made: Made, tmp_path: Path) -> None:
    """Shuffler, aggregator and both Redis servers, killed and started again in a seeded order."""
    chance = random.Random(20_261_121)
    with LocalRun(tmp_path / "home", Catalog("", dict(made.bundle.metrics)), Ports.free()) as run:
        load = Load(run)
        children = [*run._children, *(server.child for server in run._redis)]
        for _ in range(KILLS):
            time.sleep(chance.uniform(0.2, 1.0))
            child = chance.choice(children)
            _kill(child, chance)
        sent = load.stop()
        reports = sum(sent.values())
        _close_epochs(run.shuffler_redis)
        terms = _drained(run, children)
        with redis.Redis.from_url(run.aggregator_redis) as client:
            packed = [client.get(key) for key in client.keys("aggregator:totals:*")]
        cells = sum(np.frombuffer(totals or b"", dtype="<i8") for totals in packed)
    layout = run.bundle.metric("theme").randomizer.layout
    expected = [0] * layout.size
    for payload, times in sent.items():
        for cell in layout.cells(payload):
            expected[cell] += times
    assert reports > 100
    assert np.array_equal(cells, expected)
    assert terms["counted"] == reports
    assert terms["acknowledged"] == reports + terms["duplicate"]
    assert terms["rejected"] == terms["withheld"] == 0


class Load:
    """Devices that report one after the other, each until it is acknowledged."""

    def __init__(self, run: LocalRun) -> None:
        self._run = run
        self._end = threading.Event()
        self._sent: Counter[bytes] = Counter()
        self._lost: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._report) for _ in range(DEVICES_AT_ONCE)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> Counter[bytes]:
        """The payloads that were acknowledged, once all devices are done."""
        self._end.set()
        for thread in self._threads:
            thread.join()
        assert not self._lost
        return self._sent

    def _report(self) -> None:
        bundle = self._run.bundle
        transport = GrpcTransport(bundle.shuffler, roots=bundle.roots)
        while not self._end.is_set():
            client = Client(bundle, MemoryState(), transport, hold_seconds=None)
            client.report("theme", random.choice(["light", "dark", "system"]))
            payload = client._reporter.drawn()[0][1].payload
            while not client.flush(30):
                pass
            with self._lock:
                self._sent[payload] += 1
                self._lost += Counter(client.dropped)
        transport.pause()


def _kill(child: Child, chance: random.Random) -> None:
    how = chance.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP])
    child.process.send_signal(how)
    if how is signal.SIGSTOP:
        time.sleep(chance.uniform(0.1, 1.0))
        child.process.send_signal(signal.SIGCONT)
        return
    child.process.wait(30)
    time.sleep(chance.uniform(0.0, 0.5))
    child.start()


def _drained(run: LocalRun, children: list[Child]) -> dict[str, int]:
    """The law once nothing moves. Starts again what gave up, as a supervisor would."""
    deadline = time.monotonic() + 90
    terms: dict[str, int] = {}
    while True:
        for child in children:
            if child.process.poll() is not None:
                child.start()
        try:
            windows = law(run.endpoints).values()
        except ServiceUnavailable:
            windows = {}.values()
        terms = whole(windows)
        if windows and not terms["pooled"] and not terms["in_flight"] and balance(terms):
            return terms
        assert time.monotonic() < deadline, terms
        time.sleep(0.2)
