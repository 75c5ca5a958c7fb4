"""Reports sealed beforehand by all cores: sealing them costs nothing while others are timed."""

import math
import os
import secrets
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.measure import rate
from benchmarks.own import times
from hubbub.bundles import key_at, read_bundle
from hubbub.catalog import epoch_at, epoch_start
from hubbub.client import SealedReport as ClientReport
from hubbub.keys.opening_key_files import read_opening_keys
from hubbub.mechanisms import SystemBits
from hubbub.sealing.hpke import PrivateKey, PublicKey, open_sealed, seal, seal_info
from hubbub.wire.v1.report_pb2 import SealedReport
from hubbub.wire.v1.services_pb2 import Batch, SubmitRequest

METRIC: Final = "education"
_PORTION: Final = 20_000

Opening = tuple[Callable[[bytes, PrivateKey, bytes], bytes], bytes, PrivateKey, bytes]
"""What opens a report, and what it is given: the report, the key, what it is bound to."""


@dataclass(frozen=True)
class Stock:
    """Sealed reports of one length, end to end."""

    epoch: int
    key_id: int
    report_bytes: int
    raw: bytes

    def __len__(self) -> int:
        return len(self.raw) // self.report_bytes

    def reports(self, first: int, number: int) -> list[bytes]:
        """Some of them."""
        size = self.report_bytes
        return [self.raw[i * size : (i + 1) * size] for i in range(first, first + number)]

    def submission(self, first: int, number: int) -> bytes:
        """A device's call, as bytes."""
        return SubmitRequest(
            reports=[
                SealedReport(stream=METRIC, epoch=self.epoch, key_id=self.key_id, sealed=sealed)
                for sealed in self.reports(first, number)
            ]
        ).SerializeToString()

    def batch(self, first: int, number: int) -> bytes:
        """A shuffler's call, as bytes."""
        return Batch(
            batch_id=secrets.token_bytes(16),
            stream=METRIC,
            epoch=self.epoch,
            key_id=self.key_id,
            sealed=self.reports(first, number),
        ).SerializeToString()


def sealed_stock(bundle_path: Path, number: int, pool: Executor | None = None) -> Stock:
    """So many reports of today, at least; by a pool of processes that stays, if there is one."""
    portions = math.ceil(number / _PORTION)
    parts: list[bytes] = []
    with ProcessPoolExecutor(os.cpu_count()) if pool is None else nullcontext(pool) as sealing:
        for part in sealing.map(_seal, [str(bundle_path)] * portions):
            parts.append(part)
            if sys.stderr.isatty():
                done = len(parts) / portions
                print(f"\r\033[Ksealing {number:,} reports: {done:.0%}", end="", file=sys.stderr)
    epoch, key_id, _ = _today(str(bundle_path))
    return Stock(epoch, key_id, len(parts[0]) // _PORTION, b"".join(parts))


def library_rate(home: Path) -> float:
    """How many reports one core opens a second with the library alone; keys as a local run's."""
    opener = opening(home)
    return rate(lambda: times(4000, *opener))


def opening(home: Path) -> Opening:
    """What opens one report with the library alone, and what it is given."""
    stock = sealed_stock(home / "app.hubbub", 1)
    opening_keys = read_opening_keys(home / "keys" / "opening.keys.json")
    private = next(key for key in opening_keys if key.id == stock.key_id).load()
    [sealed] = stock.reports(0, 1)
    return open_sealed, sealed, private, seal_info(METRIC, stock.epoch)


def _today(path: str) -> tuple[int, int, PublicKey]:
    bundle, epoch = read_bundle(Path(path)), epoch_at(time.time(), "day")
    key = key_at(bundle.keys, epoch_start(epoch, "day"))
    if key is None:
        raise AssertionError("keys of today")
    return epoch, key.id, key.half("x25519")


def _seal(path: str) -> bytes:
    return b"".join(
        sealed_report.sealed for sealed_report in sealed_reports(path, METRIC, [3] * _PORTION)
    )


def sealed_reports(bundle_path: str, metric: str, codes: Sequence[Any]) -> list[ClientReport]:
    """Reports of today, each randomized with coins of the system and sealed.

    codes: the values, as the metric's mechanism takes them.
    """
    epoch, key_id, key = _today(bundle_path)
    mechanism = read_bundle(Path(bundle_path)).metric(metric).randomizer
    info, coins = seal_info(metric, epoch), SystemBits()
    return [
        ClientReport(
            stream=metric,
            epoch=epoch,
            key_id=key_id,
            sealed=seal(mechanism.randomize(code, coins), key, info),
        )
        for code in codes
    ]
