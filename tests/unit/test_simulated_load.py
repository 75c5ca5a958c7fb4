"""A device of `hubbub load` that could not send at first: every report is told of once."""

import multiprocessing
import time
from collections.abc import Sequence

from hubbub.client import SealedReport, Submitted, TryAgain
from hubbub.simulation.load_devices import Load, Seen, _Devices
from tests.conftest import CatalogFiles


class Away:
    """A shuffler that is away for its first calls."""

    def __init__(self, calls: int) -> None:
        self._calls = calls
        self.received = 0

    def submit(self, reports: Sequence[SealedReport], timeout_seconds: float) -> Submitted:
        del timeout_seconds
        self._calls -= 1
        if self._calls >= 0:
            raise TryAgain("unavailable", 60)
        self.received += len(reports)
        return Submitted([None] * len(reports))

    def close(self) -> None:
        """Nothing is open."""


def _devices_of(catalog_files: CatalogFiles, away: Away) -> _Devices:
    load = Load(
        bundle=catalog_files.path,
        metrics=("crashed",),
        devices=1,
        wakes_a_second=1.0,
        seconds=1.0,
        dial=False,
        processes=1,
    )
    devices = _Devices(load, 0, time.time(), multiprocessing.get_context("spawn").Event())
    devices._shared = away
    return devices


def test_a_run_ends_if_the_shuffler_no_longer_answers(catalog_files: CatalogFiles) -> None:
    devices = _devices_of(catalog_files, Away(calls=99))
    devices._wake(0, time.time())
    first = devices._snapshot()
    assert (first.is_lost, devices._stop.is_set()) == (False, False)
    devices._last_answer -= 60
    devices._wake(0, time.time())
    assert (devices._snapshot().is_lost, devices._stop.is_set()) == (True, True)
    first.add(Seen(is_lost=True))
    assert first.is_lost


def test_a_report_that_leaves_at_a_later_wake_is_acknowledged_once(
    catalog_files: CatalogFiles,
) -> None:
    away = Away(calls=1)
    devices = _devices_of(catalog_files, away)
    devices._wake(0, time.time())
    first = devices._snapshot()
    assert (first.acknowledged, away.received) == (0, 0)
    devices._wake(0, time.time())
    second = devices._snapshot()
    assert (second.acknowledged, away.received) == (2, 2)
    assert devices._devices[0].waiting == 0
    assert not second.outcomes
