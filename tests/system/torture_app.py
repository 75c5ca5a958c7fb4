"""An app that is treated badly: python torture_app.py BUNDLE STATE_DIR SHUFFLER LOG KILLS SEED.

A supervisor forks WORKERS workers of THREADS threads each, kills them at random and starts others;
then it waits for a line on its input, upon which, with no KILLS, one process says no; and it ends
at the next. A worker forks children of its own and lets its disk be full for moments. Every report
carries a serial number in its bits, because its coins are no coins; LOG (a pipe) gets each serial
once report() has said that it is queued.
"""

import os
import random
import resource
import signal
import struct
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from hubbub.bundles import read_bundle
from hubbub.client import Client, FolderState, Outcome, transport_to
from hubbub.client import client as sdk
from hubbub.client.state import payload_queries
from hubbub.mechanisms import Probability

WORKERS = 4
THREADS = 8
# Each may be reported a thousand times. A busy machine makes some thousand reports in all, and
# fewer than ten of one metric would be withheld.
METRICS = 16
PAUSE_SECONDS = 0.3
SERIAL_BITS = 62
QUEUED, DISABLED, AFTER = range(3)
RECORD = struct.Struct("<BQ")

payload_queries.HISTORY = 10**9  # type: ignore[attr-defined]  # the test looks at every payload

serials = random.SystemRandom()
current = threading.local()


class SerialCoins:
    """Answers every mask with the thread's serial number, above the value's own bit."""

    def chance(self, _probability: Probability, /) -> bool:
        return False

    def below(self, _limit: int, /) -> int:
        return 0

    def mask(self, _probability: Probability, width: int, /) -> int:
        return int(current.serial) << 1 & (1 << width) - 1


def open_client(bundle_path: str, folder: str, shuffler: str) -> Client:
    bundle = read_bundle(Path(bundle_path))
    return Client(
        bundle,
        FolderState(Path(folder)),
        transport_to(shuffler, roots=bundle.roots),
        hold_seconds=0.05,
        strict=False,
        coins=SerialCoins(),
    )


def write_record(log: int, what: int, number: int) -> None:
    os.write(log, RECORD.pack(what, number))  # a pipe: whole, and kept when the writer is killed


def report(client: Client, log: int) -> None:
    current.serial = serials.getrandbits(SERIAL_BITS)
    outcome = client.report(f"serial{serials.randrange(METRICS)}", "zero")
    if outcome is Outcome.QUEUED:
        write_record(log, QUEUED, current.serial)
    elif outcome is Outcome.DISABLED:
        write_record(log, DISABLED, os.getpid())
    client.report("limited", "zero")


def thread(client: Client, log: int) -> None:
    while True:
        report(client, log)
        time.sleep(serials.uniform(0, PAUSE_SECONDS))


def worker(client: Client, log: int) -> None:
    """Eight threads, this one among them; it also forks, and fills the disk."""
    for _ in range(THREADS - 1):
        threading.Thread(target=thread, args=(client, log), daemon=True).start()
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    while True:
        report(client, log)
        chance = serials.random()
        if chance < 0.2 and not os.fork():
            child(client, log)
        elif chance < 0.3:
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
            time.sleep(0.2)
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        with suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        time.sleep(serials.uniform(0, PAUSE_SECONDS))


def child(client: Client, log: int) -> None:
    for _ in range(serials.randrange(6)):
        report(client, log)
    end = serials.randrange(3)
    if end == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    elif end == 1:
        client.close(1)
    os._exit(0)


def main() -> None:
    bundle, folder, shuffler, log, kills, seed = sys.argv[1:]
    chance = random.Random(int(seed))
    pipe = int(log)

    def start() -> int:
        pid = os.fork()
        if not pid:
            worker(open_client(bundle, folder, shuffler), pipe)
        return pid

    workers = [start() for _ in range(WORKERS)]
    for _ in range(int(kills)):
        time.sleep(chance.uniform(0.02, 0.4))
        place = chance.randrange(WORKERS)
        os.kill(workers[place], signal.SIGKILL)
        os.waitpid(workers[place], 0)
        workers[place] = start()
    sys.stdin.readline()
    if not int(kills):
        last = open_client(bundle, folder, shuffler)
        # It waits for its turn, and until the others have ended what is on its way: here for as
        # long as that takes.
        sdk._NO_TRIES = 180  # type: ignore[misc]
        sdk._STOP_SECONDS = 900.0  # type: ignore[misc]
        last.disable()
        write_record(pipe, AFTER, 0)
    sys.stdin.readline()
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
