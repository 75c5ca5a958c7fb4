"""Releases: numbers for outside, with noise of their own, paid from a purpose's yearly budget."""

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

from hubbub.aggregator.query.collected import Collected
from hubbub.aggregator.record import Entry, Record, spent
from hubbub.catalog import Budget, Metric
from hubbub.errors import BadParameter
from hubbub.privacy.releases import QUERIES, release
from hubbub.privacy.releases import Query as Asked

__all__ = ["Answered", "Ask", "Left", "Releases"]

_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Ask:
    """What is asked: of which metric, which query, of which closed epochs; for what, by whom."""

    metric: str
    query: str
    value: str
    epochs: tuple[int, ...]
    purpose: str
    by: str


@dataclass(frozen=True, slots=True)
class Left:
    """What a purpose may spend in the current year, and what it has left."""

    purpose: str
    epsilon: float
    epsilon_left: float
    delta: float
    delta_left: float


@dataclass(frozen=True, slots=True)
class Answered:
    """A release. again: it was made before, and nothing was spent now."""

    entry: Entry
    again: bool
    left: Left


class Releases:
    """Makes releases. Every method raises StoreUnavailable without Redis."""

    def __init__(
        self,
        collected: Collected,
        record: Record,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._bundle = collected.bundle
        self._collected = collected
        self._record = record
        self._clock = clock

    async def release(self, ask: Ask) -> Answered:
        """Answer from the record, or draw, enter and answer.

        Raises:
            UnknownMetric: the bundle does not have it.
            BadParameter: it is not released, or has no answer to this; an epoch not closed.
            BatchTooSmall: fewer reports than the metric's minimum batch.
            BudgetExhausted: the purpose has not as much left.
        """
        metric = self._bundle.metric(ask.metric)
        budget = self._budget(metric, ask)
        policy = metric.release
        if policy is None:
            raise BadParameter(
                f'metric "{metric.name}" is not released: the catalog gives it no release'
            )
        holding = await self._collected.closed(metric, ask.epochs)
        held, epochs = await self._collected.read(holding), holding.epochs
        parts = self._collected.tiers(metric, held, epochs)
        answer = await asyncio.to_thread(
            release,
            parts,
            metric.values,
            cast("Asked", ask.query),
            ask.value,
            policy=policy,
            reports_each=metric.limits.reports_per_epoch * len(epochs),
        )
        now = self._clock()
        entry = Entry(
            id=_digest(metric, ask, epochs),
            at=int(now),
            year=_year(now),
            purpose=ask.purpose,
            by=ask.by,
            metric=metric.name,
            query=ask.query,
            value=ask.value,
            epochs=tuple(epochs),
            mechanism=policy.mechanism,
            epsilon=policy.epsilon,
            delta=policy.delta,
            answer=tuple(answer),
        )
        # What was drawn is told only once it is entered; what was entered before is told again.
        kept, again = await self._record.spend(entry, budget.allowance(ask.purpose))
        return Answered(kept, again, self._left(await self._record.entries(), budget, ask.purpose))

    async def record(self) -> tuple[Sequence[Entry], list[Left]]:
        """All releases, oldest first, and what every purpose has left this year."""
        entries = await self._record.entries()
        budget = self._bundle.budget
        purposes = budget.purposes if budget else ()
        return entries, [self._left(entries, budget, p) for p in purposes if budget]

    def _budget(self, metric: Metric, ask: Ask) -> Budget:
        """The budget, if the question is one that can be put."""
        budget = self._bundle.budget
        if budget is None:
            raise BadParameter("nothing is released: the catalog has no [budget]")
        if ask.purpose not in budget.purposes:
            raise BadParameter(
                f'purpose "{ask.purpose}" is not in the budget; there are '
                + ", ".join(budget.purposes)
            )
        if ask.query not in QUERIES:
            raise BadParameter(f'query "{ask.query}" is not known; there are {", ".join(QUERIES)}')
        if not (ask.by.strip() and len(ask.by) <= _LONGEST_NAME):
            raise BadParameter("say who asks, for the record, in 200 characters at most")
        if metric.release and metric.release.delta > budget.allowance(ask.purpose)[1]:
            raise BadParameter(
                f"a release of delta {metric.release.delta:g} is above what the purpose has in a "
                "year; give the budget a delta_per_year"
            )
        return budget

    def _left(self, entries: Sequence[Entry], budget: Budget, purpose: str) -> Left:
        epsilon, delta = budget.allowance(purpose)
        used = spent(entries, purpose, _year(self._clock()))
        return Left(purpose, epsilon, max(epsilon - used[0], 0.0), delta, max(delta - used[1], 0.0))


def _digest(metric: Metric, ask: Ask, epochs: Sequence[int]) -> str:
    """The same for the same question of the same totals at the same cost, whoever asks."""
    release = metric.release
    cost = [release.mechanism, release.epsilon, release.delta] if release else []
    asked = [metric.name, metric.digest(), ask.query, ask.value, list(epochs), cost]
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:32]


def _year(seconds: float) -> int:
    return datetime.fromtimestamp(seconds, UTC).year
