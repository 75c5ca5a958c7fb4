"""Retention: totals are deleted when the catalog's `keep` is over, or an operator says so.

Whole epochs, closed ones alone. What they counted stays in the law, as counted:deleted; what was
released or exported of them stays, and is not ours to take back.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from hubbub.aggregator.store.contract import TotalsStore
from hubbub.catalog import Bundle, Metric, closing_time, epoch_start
from hubbub.catalog.discovery import streams_held
from hubbub.conservation import Window
from hubbub.errors import StoreUnavailable
from hubbub.runtime import Clocks, facts

_log: Final = logging.getLogger("hubbub.aggregator")

_LOOK_SECONDS: Final = 3600.0
_DAY: Final = 86_400


def days_of(keep: str) -> int:
    """How many days "400d" or "57w" is; 0 for what is kept for ever."""
    return int(keep[:-1]) * (7 if keep.endswith("w") else 1) if keep else 0


class DropsEstimates(Protocol):
    """Where finished estimates are kept."""

    async def drop(self, metric: str) -> None:
        """Keep none of a metric."""
        ...


async def ended_before(
    metric: Metric, before: float, store: TotalsStore, *, now: float
) -> list[Window]:
    """The windows of a metric that hold totals and are of epochs over by then, and closed now."""
    held = await store.counted(streams_held(metric))
    return sorted(
        window
        for window in held
        if epoch_start(window.epoch + 1, metric.epoch) <= before
        and closing_time(window.epoch, metric.epoch) <= now
    )


async def delete_totals(
    metric: Metric, windows: Sequence[Window], store: TotalsStore, kept: DropsEstimates
) -> int:
    """Delete these totals, and the estimates that were kept of the metric: of how many reports."""
    remembered = await store.remembered()
    number = 0
    for window in windows:
        if window in remembered:
            await store.forget(window)  # its tags: no totals, nothing to count twice
        number += await store.delete(window)
    for name in {metric.name, *streams_held(metric)}:
        await kept.drop(name)
    return number


class Retention:
    """Looks every hour which totals need not be kept any longer.

    bundle: the one in use. changed: is told the metrics whose answers are to be kept anew.
    """

    def __init__(
        self,
        bundle: Callable[[], Bundle],
        store: TotalsStore,
        kept: DropsEstimates,
        clocks: Clocks,
        changed: set[str],
    ) -> None:
        self._changed = changed
        self._bundle = bundle
        self._store = store
        self._kept = kept
        self._clocks = clocks

    async def run(self) -> None:
        """Look, for ever."""
        while True:
            try:
                await self.look()
            except StoreUnavailable as error:
                _log.debug("retention waits: %s", error)
            await asyncio.sleep(_LOOK_SECONDS)

    async def look(self) -> None:
        """Delete what is over, if the clocks are sure of the time."""
        if not self._clocks.settled:
            return
        now = self._clocks.earliest()
        for metric in self._bundle().metrics.values():
            if not metric.keep:
                continue
            before = now - days_of(metric.keep) * _DAY
            windows = await ended_before(metric, before, self._store, now=now)
            if windows:
                number = await delete_totals(metric, windows, self._store, self._kept)
                self._changed.add(metric.name)
                _log.info(
                    "totals deleted",
                    extra=facts(
                        metric=metric.name, keep=metric.keep, epochs=len(windows), reports=number
                    ),
                )
