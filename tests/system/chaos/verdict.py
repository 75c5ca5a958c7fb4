"""The verdict: what the devices know was acknowledged, beside what the aggregator has added up."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import redis

from hubbub.aggregator.store.redis import RedisStore
from hubbub.authoring.crowds.accountant import gathered
from hubbub.cli.commands.demo import close_epochs
from hubbub.client.epochs_to_cover import FILLER
from hubbub.client.state.contract import SENT
from hubbub.conservation import Window, balances, sum_terms
from hubbub.errors import ServiceUnavailable
from hubbub.mechanisms import Totals, tally
from hubbub.runtime.redis.client import connect_redis
from tests.support.client_parts import client_state
from tests.support.law_terms import report_counts, total_counts
from tests.support.stores import totals
from tests.support.waiting import HANG_SECONDS, eventually
from tests.system.chaos.house import DEVICES, DUMMIES, MADE, PADDED, ROLLING, WHOLE, House


@dataclass
class Verdict:
    """wrong: reports and cells that are not what they should be.

    in_crowds: counted of those that leave in crowds. dummies: beside them, by the shuffler.
    made: dummies among what was sent, by devices.
    """

    sent: int
    counted: int
    duplicate: int
    fates: Counter[str]
    wrong: list[str]
    terms: dict[str, int]
    in_crowds: int
    dummies: int
    made: int


def drain(house: House, tell: Callable[[str], None]) -> dict[tuple[str, str, int], Counter[bytes]]:
    """Let the devices send what waits, then end the epochs and let the pools drain.

    Answers the payloads by fate, stream and epoch, as the devices recorded them.
    """
    house.stop("device")
    records: dict[tuple[str, str, int], Counter[bytes]] = {}
    for number in range(DEVICES):
        tell(f"device {number} sends what waits")
        with house.open_device(number) as client:
            # One flush does not wait for an issuer that was killed and is not back.
            eventually(partial(client.flush, HANG_SECONDS), lambda: "a device cannot send")
            for payload_record in client_state(client).payload_records():
                entry = records.setdefault(
                    (str(payload_record.fate), payload_record.stream, payload_record.epoch),
                    Counter(),
                )
                entry[payload_record.payload] += 1
    house.settle(records)
    close_epochs(house.pool_url)
    windows: dict[tuple[str, int], dict[str, int]] = {}

    def drained() -> bool:
        windows.update(report_counts(house.endpoints))
        terms = total_counts(house.endpoints)
        tell(f"draining: {terms}")
        waiting = terms["pooled"] + terms["in_flight"]
        return bool(windows) and not waiting and all(map(balances, windows.values()))

    eventually(drained, lambda: windows, although=(ServiceUnavailable,))
    return records


def judge(house: House, records: dict[tuple[str, str, int], Counter[bytes]]) -> Verdict:
    """Compare, for every window, counts and cells."""
    windows = report_counts(house.endpoints)
    wrong = [
        f"{name}: the law does not balance: {terms}"
        for name, terms in windows.items()
        if not balances(terms)
    ]
    fates: Counter[str] = Counter()
    sent = fillers = 0
    for (fate, stream, epoch), payloads in sorted(records.items()):
        fates[fate] += payloads.total()
        if fate != SENT or stream.startswith(
            "hourly"
        ):  # of an hour some expire: the law accounts for them
            continue
        sent += payloads.total()
        terms = windows[stream, epoch]
        # What was left when the last crowd had gathered was too few to leave. Among it may be a
        # second copy of what was counted, sent by a device that had not heard of the first.
        rest = terms["withheld"] if stream.endswith(ROLLING) else 0
        counted = asyncio.run(_totals(house.totals_url, Window(stream, epoch)))
        if stream == MADE:
            fillers += payloads[FILLER]
            wrong += _faults_of_device_dummies(house, payloads, counted, terms)
            continue
        if not counted.reports <= payloads.total() <= counted.reports + rest:
            wrong.append(f"{stream}: {payloads.total()} acknowledged, {terms}")
        # Every crowd that was cut has its dummies, and each of them is counted once.
        crowds, more = divmod(terms["dummies"], DUMMIES)
        padded = stream.startswith(PADDED)
        if more or counted.dummies != terms["dummies"] or (crowds > 0) != padded:
            wrong.append(f"{stream}: {counted.dummies} dummies counted, {terms}")
        layout = house.bundle.metric(stream).randomizer.layout
        off = np.array(counted.cells) - np.array(tally(layout, payloads.elements()).cells)
        # A report and a dummy each add one to some cell; what was withheld is missing from one.
        lost, added = -off[off < 0].sum(), off[off > 0].sum()
        if padded and lost <= rest and sum(counted.cells) == counted.reports + counted.dummies:
            continue
        if not padded and (not added if rest else not off.any()):
            continue
        wrong.append(f"{stream}: {np.count_nonzero(off)} cells differ, by {off.sum()} in all")
    terms = sum_terms(windows.values())
    in_crowds = sum(
        of["counted"] for (stream, _), of in windows.items() if stream.endswith((ROLLING, WHOLE))
    )
    return Verdict(
        sent,
        terms["counted"],
        terms["duplicate"],
        fates,
        wrong,
        terms,
        in_crowds,
        dummies=terms["dummies"],
        made=fillers,
    )


def _faults_of_device_dummies(
    house: House, payloads: Counter[bytes], counted: Totals, terms: dict[str, int]
) -> list[str]:
    """What is wrong with the one window whose dummies devices made.

    Nobody can tell them from reports, so they are in every count; of each the device knows that it
    was sent, and not what it names.
    """
    metric = house.bundle.metric(MADE)
    fewest = gathered(metric.fewest, metric.made_each)
    expected = payloads.total() if payloads.total() >= fewest else 0
    if counted.reports != expected or counted.dummies or terms["dummies"]:
        return [f"{MADE}: {payloads.total()} acknowledged, {fewest} are a crowd, {terms}"]
    reports = payloads - Counter({FILLER: payloads[FILLER]})
    named = tally(metric.randomizer.layout, reports.elements()).cells
    off = np.array(counted.cells) - np.array(named)
    if expected and (off.min() < 0 or off.sum() != payloads[FILLER]):
        return [f"{MADE}: cells are off by {off.min()} to {off.max()}, {off.sum()} in all"]
    return []


async def _totals(url: str, window: Window) -> Totals:
    server = await connect_redis(url)
    window_totals = await totals(RedisStore(server), window)
    await server.close()
    return window_totals


def redis_bytes(house: House) -> list[int]:
    """What each Redis uses now."""
    used = []
    for server in house.redis:
        with redis.Redis.from_url(server.url) as client:
            used.append(int(client.info("memory")["used_memory"]))
    return used
