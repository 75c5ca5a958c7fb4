"""A device that reports all the time: python device.py BUNDLE STATE_DIR SHUFFLER A_SECOND.

Its record of what was acknowledged is its own outbox, which it keeps whole.
"""

import random
import sys
import time
from pathlib import Path

from hubbub.bundles import read_bundle
from hubbub.client import Client, FolderState, transport_to
from hubbub.client.delivery import waits
from hubbub.client.state import payload_queries

MAX_WAITING = 3000

payload_queries.HISTORY = 10**9  # type: ignore[attr-defined]  # the verdict looks at every payload
# After some failures in a row a device waits up to hours, which a run does not have.
waits._APART_SECONDS = 5.0  # type: ignore[misc]


def open_client(bundle_path: Path, folder: Path, shuffler: str) -> Client:
    bundle = read_bundle(bundle_path)
    for metric in bundle.metrics.values():
        # One report each is what a central promise allows; four devices need more to be a crowd.
        object.__setattr__(metric.limits, "reports_per_epoch", 1000)
    transport = transport_to(shuffler, roots=bundle.roots)
    return Client(bundle, FolderState(folder), transport, hold_seconds=0.1, strict=False)


def main() -> None:
    bundle_path, folder, shuffler, reports_a_second = sys.argv[1:]
    client = open_client(Path(bundle_path), Path(folder), shuffler)
    metrics = list(read_bundle(Path(bundle_path)).metrics.values())
    while True:
        if client._state.waiting() < MAX_WAITING:
            metric = random.choice(metrics)
            values = metric.values or [f"string {number}" for number in range(50)]
            client.report(metric.name, random.choice(values))
        time.sleep(random.uniform(0, 2 / int(reports_a_second)))


if __name__ == "__main__":
    main()
