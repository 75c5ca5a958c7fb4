"""The learner: takes a model's step when a round is over."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from hubbub.aggregator.learning.rounds import FinishedRound, Rounds, as_text
from hubbub.aggregator.store.contract import Integers, TotalsReader
from hubbub.analysis.models.descent import centre_of, rate_of, stepped
from hubbub.analysis.models.round_decoding import moments_from_cells
from hubbub.analysis.models.weight_variances import Round
from hubbub.bundles import Bundle
from hubbub.catalog import Metric, epoch_start
from hubbub.catalog.models.held_out_reports import judging
from hubbub.catalog.models.learning import Learning
from hubbub.catalog.models.model_metric import codes_of_round
from hubbub.conservation import Window
from hubbub.errors import HubbubError
from hubbub.runtime.trusted_time import Clocks

_log: Final = logging.getLogger("hubbub.aggregator")

_LOOK_SECONDS: Final = 10.0
_DEVELOPMENT_LOOK_SECONDS: Final = 1.0
# The last batches of an epoch leave after its grace, and need some time to arrive.
_TRAVEL_SECONDS: Final = 120
_DEVELOPMENT_TRAVEL_SECONDS: Final = 3


@dataclass(eq=False)
class ModelLearner:
    """Takes the steps of a bundle's models. Several may run it: a step is written once."""

    bundle: Callable[[], Bundle]
    store: TotalsReader
    rounds: Rounds
    clocks: Clocks
    _failing: dict[str, str] = field(default_factory=dict, init=False)

    async def run(self) -> None:
        """Runs `look` repeatedly, until cancelled."""
        while True:
            await self.look()
            development = self.bundle().development
            await asyncio.sleep(_DEVELOPMENT_LOOK_SECONDS if development else _LOOK_SECONDS)

    async def look(self) -> int:
        """Takes the steps of all finished rounds, and returns their number. Failed steps wait."""
        count = 0
        for name, metric in list(self.bundle().metrics.items()):
            if metric.model is None:
                continue
            try:
                count += await self._learn(metric, metric.model)
                self._failing.pop(name, None)
            except HubbubError as error:
                if self._failing.get(name) != str(error):
                    _log.warning("model %s learns nothing now: %s", name, error)
                self._failing[name] = str(error)
        return count

    async def _learn(self, metric: Metric, learning: Learning) -> int:
        count = 0
        before = await self.rounds.finished(metric.name)
        while (epoch := self._over(metric, learning, before)) is not None:
            [totals] = await self.store.read([Window(metric.stream, epoch)])
            cells = totals.cells
            if metric.development and not before and not cells.any():
                break  # nobody has begun
            now = int(self.clocks.now())
            finished = await asyncio.to_thread(
                step, metric, learning, before, cells, epoch=epoch, counted_at=now
            )
            if await self.rounds.write(metric.name, finished):
                count += 1
                _log.info(
                    "model %s: round %d of %d, %d reports",
                    metric.name,
                    finished.number,
                    learning.last,
                    finished.reports,
                )
            # Another process may have written it; the next step continues from there.
            before = await self.rounds.finished(metric.name)
        return count

    def _over(self, metric: Metric, learning: Learning, before: list[FinishedRound]) -> int | None:
        """The epoch of the next round, once it is over; None before, and after the last round."""
        number, now = len(before), self.clocks.earliest()
        if number > learning.last or due_at(metric, learning, before, now) > now:
            return None
        return learning.epoch_of(number, metric.epoch, _first(metric, learning, before, now))


def due_at(metric: Metric, learning: Learning, before: list[FinishedRound], now: float) -> int:
    """When the step of the next round may be taken, in seconds since 1970."""
    first = _first(metric, learning, before, now)
    travel = _DEVELOPMENT_TRAVEL_SECONDS if metric.development else _TRAVEL_SECONDS
    following = learning.epoch_of(len(before) + 1, metric.epoch, first)
    return epoch_start(following, metric.epoch) + travel


def _first(metric: Metric, learning: Learning, before: list[FinishedRound], now: float) -> int:
    """The epoch of round 0."""
    return before[0].epoch if before else learning.first_epoch(metric.epoch, now)


def step(
    metric: Metric,
    learning: Learning,
    before: list[FinishedRound],
    cells: Integers,
    *,
    epoch: int,
    counted_at: int,
) -> FinishedRound:
    """The next round, from the totals of its epoch.

    If `cells` is empty, or has fewer reports than the minimum batch, the state does not change.
    """
    number, reports = len(before), int(cells.sum())
    centre, weights = np.zeros(len(learning.columns)), np.zeros(learning.dimensions)
    if before:
        centre, weights = np.array(before[-1].centre), np.array(before[-1].weights)
    state = Round(number=number, weights=weights)
    judge_counts: tuple[int, ...] = ()
    if number > learning.rounds:
        judge_counts = tuple(cells[: judging(metric).categories].tolist())
    elif reports >= max(metric.fewest, 2):
        codes = codes_of_round(metric, number)
        gradient = moments_from_cells(codes, cells.astype(np.float64))
        if number == 0:
            centre = centre_of(gradient, len(learning.columns))
            state = replace(state, noise=gradient.noise)
        else:
            expected = float(np.sqrt(codes.squared_error / reports))
            rate = rate_of(learning.kind, centre, expected)
            before_it = Round(number=number - 1, weights=state.weights)
            state = stepped(learning.kind, learning.penalty, before_it, gradient, rate)
    return FinishedRound(
        number=number,
        epoch=epoch,
        reports=reports,
        noise=state.noise,
        rate=state.rate,
        centre=centre.tolist(),
        weights=state.weights.tolist(),
        outer="" if state.outer is None else as_text(state.outer),
        at=counted_at,
        judged=judge_counts,
    )
