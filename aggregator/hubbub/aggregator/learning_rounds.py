"""Learning: takes a model's step when a round is over, and keeps each finished round once.

A Redis hash per model, `aggregator:model:NAME`, maps the number of a round to its JSON. A written
round is never overwritten, whoever computes it, so that each is one step.
"""

import asyncio
import json
import logging
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from math import isfinite
from typing import Any, Final, Self

import numpy as np

from hubbub.aggregator.store.contract import Integers, TotalsReader
from hubbub.analysis.models.descent import Round, centre_of, moments_from_cells, rate_of, stepped
from hubbub.bundles import Bundle
from hubbub.catalog import Metric, epoch_start
from hubbub.catalog.models.learning import Learning
from hubbub.catalog.models.model_metric import codes_of_round, judging
from hubbub.conservation import Window
from hubbub.errors import HubbubError, TotalsUnreadable
from hubbub.runtime.clocks import Clocks
from hubbub.runtime.redis.command_sender import Hashes

_KEY: Final = "aggregator:model:"
# Largest dimension for which products are stored, 176 kB a round. Above it the contraction is
# unknown, and intervals are wider.
_LARGEST: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRound:
    """One round, and the state after it.

    Args:
        number: 0 for the round that estimates the columns' centre.
        epoch: of the round.
        reports: at its end; too few do not change the state.
        noise: of its mean direction, whose length is at most 1; 0 if the state did not change.
        rate: length of its step.
        centre: mean of the columns, in [0, 1].
        weights: of centred columns, then of the intercept; for softmax, of each contrast.
        outer: mean outer product of directions: lower triangle as float32 in base64; "" if unknown
            or too long.
        at: time of the computation, in seconds since 1970.
        judged: in an evaluation round, the count of each bin and label.
    """

    number: int
    epoch: int
    reports: int
    noise: float
    rate: float
    centre: list[float]
    weights: list[float]
    outer: str
    at: int
    judged: tuple[int, ...] = ()

    @classmethod
    def load(cls, text: bytes) -> Self:
        """Reads a written round. Raises ValueError, TypeError or KeyError if it is invalid."""
        table: dict[str, Any] = json.loads(text)
        result = cls(**{**table, "judged": tuple(table.get("judged", ()))})
        numbers = [*result.centre, *result.weights, result.noise, result.rate]
        if not all(isfinite(number) for number in numbers):
            raise ValueError("no numbers")
        result.state()
        return result

    def state(self) -> Round:
        """The state for the next step. Raises ValueError if `outer` has a wrong size."""
        size, outer = len(self.weights), None
        if self.outer:
            outer = np.zeros((size, size))
            triangle = np.frombuffer(b64decode(self.outer, validate=True), dtype="<f4")
            outer[np.tril_indices(size)] = triangle
            outer += np.tril(outer, -1).T
            if not np.isfinite(outer).all():
                raise ValueError("no numbers")
        return Round(
            number=self.number,
            weights=np.array(self.weights),
            rate=self.rate,
            noise=self.noise,
            people=self.reports,
            outer=outer,
        )


class Rounds:
    """Finished rounds by model. Every method raises StoreUnavailable without Redis."""

    def __init__(self, server: Hashes) -> None:
        self._server = server

    async def finished(self, model: str) -> list[FinishedRound]:
        """All written rounds, from 0 on without a gap. Raises TotalsUnreadable."""
        rounds = {}
        for number, text in (await self._server.ask("HGETALL", _KEY + model)).items():
            try:
                rounds[int(number)] = FinishedRound.load(text)
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                raise TotalsUnreadable(
                    f'model "{model}": a round in Redis is unreadable; restore a backup, '
                    "or give the model a new name"
                ) from error
        sequence: list[FinishedRound] = []
        while len(sequence) in rounds:
            sequence.append(rounds[len(sequence)])
        return sequence

    async def write(self, model: str, finished: FinishedRound) -> bool:
        """Atomically writes a round unless it exists; returns whether this was the first write."""
        text = json.dumps(asdict(finished), separators=(",", ":"))
        [first] = await self._server.durable([("HSETNX", _KEY + model, str(finished.number), text)])
        return bool(first)


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
                    _log.warning("model %s cannot be updated now: %s", name, error)
                self._failing[name] = str(error)
        return count

    async def _learn(self, metric: Metric, learning: Learning) -> int:
        count = 0
        before = await self.rounds.finished(metric.name)
        while (epoch := self._next_epoch(metric, learning, before)) is not None:
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
                    learning.last_round,
                    finished.reports,
                )
            # Another process may have written it; the next step continues from there.
            before = await self.rounds.finished(metric.name)
        return count

    def _next_epoch(
        self, metric: Metric, learning: Learning, before: list[FinishedRound]
    ) -> int | None:
        """The epoch of the next round, once it is over; None before, and after the last round."""
        number, now = len(before), self.clocks.earliest()
        if number > learning.last_round or due_at(metric, learning, before, now) > now:
            return None
        return learning.epoch_of(number, metric.epoch, _start_epoch(metric, learning, before, now))


def due_at(metric: Metric, learning: Learning, before: list[FinishedRound], now: float) -> int:
    """When the step of the next round may be taken, in seconds since 1970."""
    first_epoch = _start_epoch(metric, learning, before, now)
    travel = _DEVELOPMENT_TRAVEL_SECONDS if metric.development else _TRAVEL_SECONDS
    following = learning.epoch_of(len(before) + 1, metric.epoch, first_epoch)
    return epoch_start(following, metric.epoch) + travel


def _start_epoch(
    metric: Metric, learning: Learning, before: list[FinishedRound], now: float
) -> int:
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
    outer = ""
    if state.outer is not None and len(state.outer) <= _LARGEST:
        triangle = state.outer[np.tril_indices(len(state.outer))]
        outer = b64encode(triangle.astype("<f4").tobytes()).decode()
    return FinishedRound(
        number=number,
        epoch=epoch,
        reports=reports,
        noise=state.noise,
        rate=state.rate,
        centre=centre.tolist(),
        weights=state.weights.tolist(),
        outer=outer,
        at=counted_at,
        judged=judge_counts,
    )
