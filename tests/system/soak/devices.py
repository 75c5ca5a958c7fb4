"""Honest devices, in a process of their own: python devices.py BUNDLE HOME PORT SECONDS SEED.

Each reports now and then, sends, and waits until that is acknowledged, however often it is told to
come back. At the end a line of JSON: how many were acknowledged, by metric, and how long each took.
"""

import asyncio
import json
import random
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from hubbub.bundles import Bundle, read_bundle
from hubbub.client import Client, FolderState, Outcome, transport_to
from tests.support.waiting import HANG_SECONDS
from tests.system.soak.relay import Relay

DEVICES = 20
EVERY_SECONDS = 1.5  # on average; 1,000 payloads are remembered, which is enough for 25 minutes


class Device:
    """One device, in a thread."""

    def __init__(self, bundle: Bundle, folder: Path, shuffler: str, seed: str) -> None:
        self._bundle = bundle
        transport = transport_to(shuffler, roots=bundle.roots)
        self._client = Client(
            bundle, FolderState(folder), transport, hold_seconds=None, strict=True
        )
        self._chance = random.Random(seed)
        self.seconds: list[float] = []
        self.sent: Counter[str] = Counter()
        self.report_count = 0

    def live(self, until: float) -> None:
        """Report at times that were set before, so that who waits long does not report less.

        What is late because the one before was waited for is as late as it is: its seconds count
        from when it was due.
        """
        metrics = list(self._bundle.metrics.values())
        due = time.monotonic() + self._chance.uniform(0, EVERY_SECONDS)
        while due < until:
            time.sleep(max(0.0, due - time.monotonic()))
            metric = self._chance.choice(metrics)
            assert self._client.report(metric.name, self._chance.choice(metric.values or ())) is (
                Outcome.QUEUED
            )
            self.report_count += 1
            if self._client.flush(until + HANG_SECONDS - time.monotonic()):
                self.seconds.append(time.monotonic() - due)
            due += self._chance.uniform(0, 2 * EVERY_SECONDS)
        payloads = self._client.ledger().payloads
        self.sent.update(payload.metric for payload in payloads if payload.fate == "sent")
        self._client.close()


async def _relays(port: int, ready: threading.Event, addresses: list[str]) -> None:
    """Each device has an address of its own."""
    relays = [Relay(port, f"127.0.1.{number + 1}") for number in range(DEVICES)]
    addresses += [await relay.start() for relay in relays]
    ready.set()
    await asyncio.Event().wait()


def main() -> None:
    bundle_path, home, port, seconds, seed = sys.argv[1:]
    bundle = read_bundle(Path(bundle_path))
    ready, addresses = threading.Event(), list[str]()
    threading.Thread(
        target=lambda: asyncio.run(_relays(int(port), ready, addresses)), daemon=True
    ).start()
    ready.wait()
    devices = [
        Device(bundle, Path(home) / f"device-{number}", address, f"{seed} {number}")
        for number, address in enumerate(addresses)
    ]
    until = time.monotonic() + float(seconds)
    threads = [threading.Thread(target=device.live, args=(until,)) for device in devices]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    document = {
        "sent": sum((device.sent for device in devices), Counter()),
        "missing": sum(device.report_count - device.sent.total() for device in devices),
        "seconds": sorted(second for device in devices for second in device.seconds),
    }
    print(json.dumps(document))


if __name__ == "__main__":
    main()
