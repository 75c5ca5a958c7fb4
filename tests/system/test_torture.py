"""An app of four processes, eight threads each, and their children: killed, cut off, out of disk.

Every report that was queued reaches the aggregator exactly once, is still in the outbox, or was
counted as dropped. The limits hold over all processes. After disable() nothing leaves.
"""

import contextlib
import os
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import redis

from hubbub.authoring import Catalog
from hubbub.client import Client, FolderState, SystemClock, transport_to
from hubbub.client.state.contract import SENT
from hubbub.installation.local_run import LocalRun, Ports
from tests.support.catalogs import catalog_of, catalog_toml, metric_toml
from tests.support.client_parts import client_state
from tests.support.law_terms import drained_counts, report_counts, total_counts
from tests.support.waiting import HANG_SECONDS, eventually
from tests.system import torture_app as app
from tests.system.chaos.faulty_connection import Line

pytestmark = pytest.mark.thorough

KILLS = 60
SEED = 20_261_121
LIMITED = catalog_toml(
    metric_toml(
        "limited",
        epoch="hour",
        mechanism="unary.oue",
        epsilon=1.0,
        values=["zero", "one"],
        min_batch=10,
        reports_per_epoch=3,
        lifetime_epsilon=1e9,
    )
)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[LocalRun]:
    values = ["zero", *map(str, range(app.SERIAL_BITS))]
    metrics = [
        metric_toml(
            f"serial{number}",
            mechanism="unary.oue",
            epsilon=1.0,
            values=values,
            min_batch=10,
            reports_per_epoch=1000,
            lifetime_epsilon=1e9,
        )
        for number in range(app.METRICS)
    ]
    catalog = Catalog(shuffler="", metrics=catalog_of(LIMITED + "".join(metrics)).metrics)
    with LocalRun(tmp_path / "home", catalog, Ports.free()) as running:
        yield running


def _acknowledged(run: LocalRun) -> int:
    return total_counts(run.endpoints)["acknowledged"]


@dataclass
class ProcessOutput:
    """What the app's processes said, up to the moment each of them was killed."""

    queued: Counter[int] = field(default_factory=Counter)
    counts: Counter[int] = field(default_factory=Counter)
    disabled: Counter[int] = field(default_factory=Counter)  # by the process that said so
    acknowledged_at_no: list[int] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def listen(self, pipe: int, run: LocalRun) -> None:
        with os.fdopen(pipe, "rb") as records:
            while record := records.read(app.RECORD.size):
                what, number = app.RECORD.unpack(record)
                self.counts[what] += 1
                if what == app.QUEUED:
                    self.queued[number] += 1
                elif what == app.DISABLED:
                    self.disabled[number] += 1
                elif what == app.AFTER:
                    self.acknowledged_at_no.append(_acknowledged(run))
        self.ended.set()


def _torture(run: LocalRun, line: Line, folder: Path, kills: int) -> ProcessOutput:
    """Let the app be killed so often, and cut its network meanwhile; or let it say no."""
    event_log = ProcessOutput()
    ear, mouth = os.pipe()
    arguments = [str(run.bundle_path), str(folder), line.address, str(mouth), str(kills), str(SEED)]
    supervisor = subprocess.Popen(
        [sys.executable, app.__file__, *arguments],
        pass_fds=[mouth],
        stdin=subprocess.PIPE,
        bufsize=0,
    )
    os.close(mouth)
    threading.Thread(target=event_log.listen, args=(ear, run), daemon=True).start()
    tortured = threading.Event()
    cutting = threading.Thread(target=_cut_repeatedly, args=(line, tortured))
    if kills:
        cutting.start()
    with supervisor, contextlib.ExitStack() as ending:
        assert supervisor.stdin
        ending.callback(supervisor.kill)
        if kills:
            ending.callback(cutting.join)
            ending.callback(tortured.set)
        enough = 1000 if kills else 50
        eventually(lambda: len(event_log.queued) > enough or supervisor.poll() is not None)
        supervisor.stdin.write(b"\n")
        if not kills:
            # Each of them has heard the no, and gone on long enough to send what should not leave.
            eventually(lambda: sum(n > 100 for n in event_log.disabled.values()) >= app.WORKERS)
        supervisor.stdin.write(b"\n")
        supervisor.wait()
    assert supervisor.returncode == 0
    assert event_log.ended.wait(HANG_SECONDS), "no process of the app hangs"
    return event_log


def _cut_repeatedly(line: Line, end: threading.Event) -> None:
    """A network that goes away again and again."""
    chance = random.Random(SEED)
    while not end.wait(chance.uniform(0.2, 2)):
        line.cut()
        end.wait(chance.uniform(0.1, 1))
        line.mend()


def test_every_queued_report_arrives_once_or_waits_or_counts_as_dropped(
    run: LocalRun, tmp_path: Path
) -> None:
    line, folder = Line(run.bundle.shuffler), tmp_path / "device"
    event_log = _torture(run, line, folder, KILLS)
    with _started_again(run, line, folder) as client:
        assert client.flush(HANG_SECONDS), "what the killed had noted is sent by the next start"
        records, device = (
            client_state(client).payload_records(),
            client_state(client).device_state(),
        )
    assert not list(folder.glob("*.journal"))

    serials = [int.from_bytes(k.payload, "little") >> 1 for k in records if k.stream != "limited"]
    fates = dict(zip(serials, (k.fate for k in records if k.stream != "limited"), strict=True))
    assert len(fates) == len(serials), "nothing is in the outbox twice"
    assert set(event_log.queued.values()) == {1}
    assert len(event_log.queued) > 1000
    assert event_log.queued.keys() <= fates.keys(), "nothing that was queued is lost"
    told_of = Counter(record.fate for record in records if record.fate != SENT)
    # Two processes may draw the last report that is allowed; one is given up at the door.
    assert device.counts - told_of == Counter(already_reported=device.counts["already_reported"])
    assert device.counts.keys() <= {"already_reported", "outbox_full"}
    arrived = [serial for serial, fate in fates.items() if fate == SENT]
    assert len(arrived) == len(fates) - device.counts["outbox_full"]

    limited = Counter(
        record.epoch for record in records if record.stream == "limited" and record.fate == SENT
    )
    assert 1 <= max(limited.values()) <= 3
    assert max(device.accounts["limited"].epochs.values()) <= 3
    _check_totals(run, arrived, sum(limited.values()))
    _check_no(run, line, folder)
    line.close()


def _started_again(run: LocalRun, line: Line, folder: Path) -> Client:
    transport = transport_to(line.address, roots=run.bundle.roots)
    # What a killed process was sending is free after a while: time must go on.
    return Client(
        run.bundle, FolderState(folder), transport, hold_seconds=None, clock=SystemClock()
    )


def _check_no(run: LocalRun, line: Line, folder: Path) -> None:
    """The app runs again, and one of its processes says no."""
    event_log = _torture(run, line, folder, 0)
    assert len(event_log.queued) > 50
    assert event_log.acknowledged_at_no == [_acknowledged(run)], "not one left after the no"
    assert event_log.counts[app.DISABLED] > 0, "and the other processes heard of it"
    before = _acknowledged(run)
    with _started_again(run, line, folder) as client:
        client.enable()
        assert client.flush(HANG_SECONDS)
    assert _acknowledged(run) == before, "nor after the next yes"


def _check_totals(run: LocalRun, arrived: Sequence[int], limited: int) -> None:
    """The aggregator's cells are those of the serials that the device calls sent."""
    terms = drained_counts(run)
    with redis.Redis.from_url(run.aggregator_redis) as client:
        packed = [client.hget(key, "cells:0") for key in client.keys("aggregator:totals:*serial*")]
    cells = sum(np.frombuffer(totals or b"", dtype="<i8") for totals in packed)
    bits = np.arange(app.SERIAL_BITS, dtype=np.uint64)
    ones = np.array(arrived, dtype=np.uint64)[:, None] >> bits & np.uint64(1)
    assert np.array_equal(np.asarray(cells)[1:], ones.sum(axis=0)), "cell by cell"
    windows = report_counts(run.endpoints)
    counted = sum(t["counted"] for (stream, _), t in windows.items() if stream != "limited")
    assert counted == len(arrived)
    limited_windows = [t for (stream, _), t in windows.items() if stream == "limited"]
    assert sum(t["counted"] + t["withheld"] for t in limited_windows) == limited
    assert terms["rejected"] == 0
