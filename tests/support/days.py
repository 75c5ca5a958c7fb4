"""Devices that run for some days, and their reports, opened and counted each on its day."""

import hashlib
import secrets
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from hubbub.aggregator.ingest.intake import Intake
from hubbub.aggregator.ingest.opener import Opener
from hubbub.aggregator.store.contract import TotalsStore
from hubbub.client import Client, MemoryState, SystemClock
from hubbub.client.testing import FakeShuffler, coins
from hubbub.conservation import Window
from hubbub.keys.opening_key_files import read_opening_keys
from hubbub.runtime.clocks import Clocks
from hubbub.runtime.monitoring.stages_and_traces import Stages
from tests.support.bundles import DAY, Signed

Sent = dict[Window, list[bytes]]
"""Sealed reports by stream and day."""


def send_over_days(
    days: range, signed: Signed, devices: int, run: Callable[[Client, int, Iterator[int]], None]
) -> Sent:
    """What devices send. `run` gets a client, the number of its device, and each day as it comes.

    Secrets and coins are the same in every call.
    """
    shuffler, today = FakeShuffler(), [days[0]]
    clock = SystemClock(lambda: today[0] * DAY + 60.0)

    def coming() -> Iterator[int]:
        for today[0] in days:
            yield today[0]

    for device in range(devices):
        state = MemoryState(hashlib.sha256(b"%d" % device).digest())
        today[0] = days[0]
        sender = partial(Client, signed.bundle, state, shuffler, hold_seconds=None, clock=clock)
        with sender(coins=coins(str(device))) as client:
            run(client, device, coming())
    sent: Sent = {}
    for report in shuffler.reports():
        sent.setdefault(Window(report.stream, report.epoch), []).append(report.sealed)
    return sent


async def count(signed: Signed, sent: Mapping[Window, list[bytes]], store: TotalsStore) -> None:
    """Opens and counts them, each on its day."""
    opener = Opener(read_opening_keys(signed.keys / "opening.keys.json"), 1)
    try:
        for window, reports in sorted(sent.items()):
            clocks = Clocks(partial(float, window.epoch * DAY + 90))
            intake = Intake(signed.bundle, opener, store, Stages(), clocks=clocks)
            key = signed.bundle.keys[0].id
            await intake.apply(window, secrets.token_bytes(16), key, reports)
    finally:
        opener.close()
