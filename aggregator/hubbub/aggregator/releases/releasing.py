"""Releases: published numbers with additional noise, paid from a purpose's yearly budget."""

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from math import inf
from typing import Any, cast

from hubbub.aggregator.access.tokens import EVERYONE, Caller
from hubbub.aggregator.query.totals import EpochSelection, TotalsByEpoch
from hubbub.aggregator.releases.release_log import (
    LONGEST_NAME,
    LONGEST_VALUE,
    Entries,
    Entry,
    ReleaseLog,
)
from hubbub.aggregator.text_rules import check_words
from hubbub.catalog import EPOCH_SECONDS, Budget, Crowd, Metric, reports_of_one
from hubbub.epochs import epoch_dates
from hubbub.errors import BadParameter, BudgetExhausted, ServiceUnavailable
from hubbub.errors.message_words import PROTECTS_NOBODY
from hubbub.privacy.central_releases import (
    AS_IT_IS,
    QUERIES,
    Released,
    ReleaseKind,
    release,
    release_without_noise,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseQuery:
    """A request for a release.

    Args:
        query: count, histogram, mean or mode.
        epochs: numbers of closed epochs.
        dates: further epochs, in the grammar of `epochs` in queries.
        purpose: which part of the budget pays.
        by: who makes the release.

    Raises:
        BadParameter: a text that cannot be recorded.
    """

    metric: str
    query: str
    value: str
    epochs: tuple[int, ...]
    purpose: str
    by: str
    dates: str = ""

    def __post_init__(self) -> None:
        """Validates the texts, from whichever interface."""
        for name in ("metric", "query", "purpose", "by"):
            check_words(name, getattr(self, name), LONGEST_NAME)
        check_words("value", self.value, LONGEST_VALUE)
        if not self.by.strip():
            raise BadParameter("say who makes the release, for the record")


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLeft:
    """What a purpose may spend in the current year, and what it has left.

    epsilon_left, delta_left: None for callers who do not see all metrics, of which each may spend.
    """

    purpose: str
    epsilon: float
    epsilon_left: float | None
    delta: float
    delta_left: float | None


@dataclass(frozen=True, slots=True)
class ReleaseResult:
    """A release; `again` means that it existed, and that nothing was spent now."""

    entry: Entry
    again: bool
    budget_left: BudgetLeft


@dataclass(frozen=True, slots=True)
class Releases:
    """Makes releases. Every method raises StoreUnavailable without Redis."""

    collected: TotalsByEpoch
    log: ReleaseLog
    clock: Callable[[], float] = time.time
    viewer: Caller = EVERYONE

    def for_viewer(self, viewer: Caller, collected: TotalsByEpoch) -> "Releases":
        """The same for one caller and their visible totals; all callers share the budgets."""
        return replace(self, collected=collected, viewer=viewer)

    async def release(self, ask: ReleaseQuery) -> ReleaseResult:
        """Answers from the record, or draws noise, records and answers.

        Raises:
            UnknownMetric: the bundle does not have it.
            BadParameter: it is not released, or cannot answer the query; an epoch is not closed; it
                is a development installation.
            BatchTooSmall: fewer reports than the metric's minimum batch.
            BudgetExhausted: the purpose does not have enough left.
            ServiceUnavailable: the clocks differ on which year it is.
        """
        metric = self.collected.bundle.metric(ask.metric)
        if ask.query not in QUERIES:
            raise BadParameter(f'query "{ask.query}" is unknown; there are {", ".join(QUERIES)}')
        if metric.development:
            raise BadParameter(
                f"{PROTECTS_NOBODY} Its answers are not released; release in production"
            )
        if metric.central is not None:
            return await self._as_it_is(metric, metric.central, ask)
        budget, policy = self._known_purpose(ask), metric.release
        if policy is None:
            raise BadParameter(
                f'metric "{metric.name}" cannot be released: add release to it in the catalog'
            )
        if policy.delta > budget.allowance(ask.purpose)[1]:
            raise BadParameter(
                f"a release of delta {policy.delta:g} is above the yearly delta of the purpose; "
                "give the budget a delta_per_year"
            )
        selection = await self.collected.find_closed(metric, ask.epochs, ask.dates)
        _refuse_former_lists(metric, selection)
        selected, epochs = await self.collected.read(selection), selection.epochs
        answer = await asyncio.to_thread(
            release,
            selected.tiers(),
            metric.values,
            ask.query,
            ask.value,
            policy=policy,
            reports_each=reports_of_one(metric, epochs),
        )
        paid = {"mechanism": policy.mechanism, "epsilon": policy.epsilon, "delta": policy.delta}
        entry = self._entry(metric, ask, epochs, answer, paid)
        # A draw is published only after it is recorded; a recorded one is published again.
        try:
            log_entry, is_repeated = await self.log.spend(entry, budget.allowance(ask.purpose))
        except BudgetExhausted:
            if self.viewer.sees_all:
                raise
            # The amount that is left would show what releases of hidden metrics cost.
            raise BudgetExhausted(
                f'purpose "{ask.purpose}" has too little budget left for this release in '
                f"{entry.year}; wait for the next year, use another purpose, or have the budget "
                "changed in the catalog"
            ) from None
        return ReleaseResult(
            log_entry, is_repeated, self._budget_left(await self.log.entries(), budget, ask.purpose)
        )

    async def _as_it_is(self, metric: Metric, promise: Crowd, ask: ReleaseQuery) -> ReleaseResult:
        """Release of a crowd's estimates: post-processing of its promise, recorded without cost."""
        if ask.purpose and self.collected.bundle.budget is None:
            raise BadParameter(
                f'purpose "{ask.purpose}": the catalog has no [budget], and a metric with '
                "a crowd needs none; leave the purpose out"
            )
        budget = self._known_purpose(ask) if ask.purpose else None
        selection = await self.collected.find_closed(metric, ask.epochs, ask.dates)
        [part] = (await self.collected.read(selection)).tiers()
        answer = await asyncio.to_thread(
            release_without_noise, *part, metric.values, cast("ReleaseKind", ask.query), ask.value
        )
        promised = {"promised": promise.epsilon, "promised_delta": promise.delta}
        free = {"mechanism": AS_IT_IS, "epsilon": 0.0, "delta": 0.0, **promised}
        entry = self._entry(metric, ask, selection.epochs, answer, free)
        log_entry, is_repeated = await self.log.spend(entry, (inf, inf))
        remainder = BudgetLeft(
            purpose=ask.purpose, epsilon=0.0, epsilon_left=0.0, delta=0.0, delta_left=0.0
        )
        if budget:
            remainder = self._budget_left(await self.log.entries(), budget, ask.purpose)
        return ReleaseResult(log_entry, is_repeated, remainder)

    def _entry(
        self,
        metric: Metric,
        ask: ReleaseQuery,
        epochs: Sequence[int],
        answer: Sequence[Released],
        paid: Mapping[str, Any],
    ) -> Entry:
        return Entry(
            id=_digest(metric, ask, epochs),
            at=int(self.clock()),
            year=self._year(),
            purpose=ask.purpose,
            by=ask.by,
            metric=metric.name,
            query=ask.query,
            value=ask.value,
            epochs=tuple(epochs),
            answer=tuple(answer),
            **paid,
        )

    async def record(self) -> tuple[Entries, list[BudgetLeft]]:
        """The releases that the caller sees, and the remaining budget of every purpose."""
        entries = await self.log.entries()
        budget = self.collected.bundle.budget
        purposes = budget.purposes if budget else ()
        remainders = [self._budget_left(entries, budget, p) for p in purposes if budget]
        if not self.viewer.sees_all:
            # The metric of an unreadable entry is unknown.
            entries = Entries([entry for entry in entries if self.viewer.sees(entry.metric)])
        return entries, remainders

    def dated(self, entry: Entry) -> dict[str, Any]:
        """A release's fields beside its answer, with dates if its metric is known."""
        metric = self.collected.bundle.streams.get(entry.metric)
        dates = epoch_dates(sorted(entry.epochs), EPOCH_SECONDS[metric.epoch]) if metric else ""
        table = asdict(entry)
        del table["answer"], table["year"]
        return {**table, "dates": dates}

    def _known_purpose(self, ask: ReleaseQuery) -> Budget:
        budget = self.collected.bundle.budget
        if budget is None:
            raise BadParameter("a release needs a budget: add [budget] to the catalog")
        if not ask.purpose:
            raise BadParameter(
                "purpose is missing: name one of the [budget]: " + ", ".join(budget.purposes)
            )
        if ask.purpose not in budget.purposes:
            raise BadParameter(
                f'purpose "{ask.purpose}" is not in the budget; there are '
                + ", ".join(budget.purposes)
            )
        return budget

    def _budget_left(self, entries: Entries, budget: Budget, purpose: str) -> BudgetLeft:
        epsilon, delta = budget.allowance(purpose)
        used = entries.spent(purpose, self._year()) if self.viewer.sees_all else None
        return BudgetLeft(
            purpose=purpose,
            epsilon=epsilon,
            epsilon_left=max(epsilon - used[0], 0.0) if used else None,
            delta=delta,
            delta_left=max(delta - used[1], 0.0) if used else None,
        )

    def _year(self) -> int:
        """The year whose budget pays."""
        clocks = self.collected.clocks
        years = {
            datetime.fromtimestamp(at, UTC).year for at in (clocks.earliest(), clocks.latest())
        }
        if len(years) > 1:  # the next year's budget is not spent early
            raise ServiceUnavailable(
                "the clocks differ on the year, and so on which budget to charge; correct "
                "them, or try again later (docs/operate/clocks.md)"
            )
        return years.pop()


def _refuse_former_lists(metric: Metric, selection: EpochSelection) -> None:
    """Raises BadParameter if some reports were made with a former list of values."""
    former = [w.epoch for w in selection.counted if w.stream not in metric.own_streams]
    if former:
        raise BadParameter(
            f'metric "{metric.name}": {selection.date(max(former))} has reports from '
            "before values were appended, but a release needs one list; name epochs in "
            "which all devices had the same list"
        )


def _digest(metric: Metric, ask: ReleaseQuery, epochs: Sequence[int]) -> str:
    """Digest of a query: the same for the same query, totals and cost, whoever makes it."""
    release = metric.release
    cost = [release.mechanism, release.epsilon, release.delta] if release else []
    question = [metric.name, metric.digest(), ask.query, ask.value, list(epochs), cost]
    return hashlib.sha256(json.dumps(question).encode()).hexdigest()[:32]
