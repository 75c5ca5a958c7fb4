"""Keeps stored answers up to date: within seconds for newly counted metrics, hourly for all.

Each process handles the metrics that it counted itself, and skips answers that another has written.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from hubbub.aggregator.query import EpochRange, EstimateQuery, QueryEngine
from hubbub.aggregator.query.answer_store import AnswerStore
from hubbub.aggregator.query.candidates import looks_for_strings
from hubbub.errors import HubbubError

_log: Final = logging.getLogger("hubbub.aggregator")

_LOOK_SECONDS: Final = 2.0
_ALL_SECONDS: Final = 3600.0
# Slow answers are renewed less often, to use at most a tenth of one processor.
_SHARE: Final = 10
# The usual ranges, by the length of an epoch.
_RANGES: Final = {
    "minute": ("24h", "7d"),
    "hour": ("24h", "7d"),
    "day": ("7d", "30d"),
    "week": ("4w", "12w"),
    "28d": ("12w", "52w"),
    "month": ("90d", "365d"),
}


@dataclass(eq=False, kw_only=True)
class EstimateKeeper:
    """Updates the answers of the metrics in `changed`, to which the intake adds.

    Args:
        epochs: number of a metric's newest epochs that get separate answers.
        clock: seconds since 1970.
    """

    query: QueryEngine
    answers: AnswerStore
    changed: set[str]
    epochs: int
    clock: Callable[[], float] = time.time
    _not_before: dict[str, float] = field(default_factory=dict, init=False)
    _failing: dict[str, str] = field(default_factory=dict, init=False)

    async def run(self) -> None:
        """Runs `look` repeatedly, until cancelled."""
        next_refresh = 0.0
        while True:
            if time.monotonic() >= next_refresh:
                self.changed.update(self.query.collected.bundle.metrics)
                next_refresh = time.monotonic() + _ALL_SECONDS
            await self.look()
            await asyncio.sleep(_LOOK_SECONDS)

    async def look(self) -> int:
        """Writes the changed answers; returns their number. Those that cannot be written wait."""
        number = 0
        for name in sorted(self.changed):
            began = time.monotonic()
            if began < self._not_before.get(name, 0.0):
                continue
            self.changed.discard(name)
            try:
                number += await self._keep(name)
                self._failing.pop(name, None)
            except HubbubError as error:
                self.changed.add(name)
                if self._failing.get(name) != str(error):
                    _log.warning("the estimates of %s cannot be stored now: %s", name, error)
                self._failing[name] = str(error)
            took = time.monotonic() - began
            self._not_before[name] = began + max(_LOOK_SECONDS, _SHARE * took)
        return number

    async def _keep(self, name: str) -> int:
        """Updates every range of one metric that has the minimum batch."""
        every = await self.query.collected.find(name, EpochRange(epochs="all"))
        metric, reports = every.metric, every.by_epoch()
        if metric.model or (looks_for_strings(metric) and not metric.candidates):
            return 0  # a model's rounds are kept; nobody says which strings to look for
        choices: dict[str, EpochRange] = {}
        epochs = reversed(every.epochs[-self.epochs :] if self.epochs else ())
        ranges = {
            "newest": EpochRange(),
            **{last: EpochRange(last=last) for last in _RANGES.get(metric.epoch, ())},
            **{every.date(epoch): EpochRange(epochs=str(epoch)) for epoch in epochs},
        }
        for range_, epoch_choice in ranges.items():
            selection = await self.query.collected.find(name, epoch_choice)
            if sum(reports[epoch] for epoch in selection.epochs) >= metric.fewest:
                choices[range_] = epoch_choice
        # First: `hubbub forget` deletes the answers of the listed ranges.
        await self.answers.ranges(name, list(choices))
        number = 0
        try:
            for range_, epoch_choice in choices.items():
                updated_at = datetime.fromtimestamp(self.clock(), UTC).isoformat(timespec="seconds")
                question = EstimateQuery(range=epoch_choice)
                number += await self.query.refresh(self.answers, name, question, range_, updated_at)
        finally:
            now = (await self.query.collected.find(name, EpochRange(epochs="all"))).by_epoch()
            if any(now.get(epoch, 0) < count for epoch, count in reports.items()):
                # Totals were deleted meanwhile, maybe before an answer from them was stored.
                await self.answers.drop(name, list(choices))
                self.changed.add(name)
        return number
