"""A central promise: what a whole shuffled epoch may say about one person, and what it rests on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from hubbub.catalog.choice import AUTO
from hubbub.catalog.fields import fields_of
from hubbub.catalog.reading import Complain

__all__ = [
    "CENTRAL_FIELDS",
    "CROWD_MECHANISM",
    "Accountant",
    "CentralPromise",
    "central_conflicts",
    "crowd_table",
]

CROWD_MECHANISM: Final = "grr"
"""Whose whole epochs are accounted for exactly."""

CENTRAL_FIELDS: Final = (
    *("central_epsilon", "crowd", "delta", "honest", "max_local_epsilon", "rolling"),
)
"""The fields of a metric that make its promise; the first two make one."""

FOLLOWING: Final = ("epsilon", "min_batch", "reports")
"""What follows from a promise, and need not be written beside it."""
PROMISE: Final = CENTRAL_FIELDS[:2]
"""What makes a promise: both or none."""


@dataclass(frozen=True, slots=True)
class CentralPromise:
    """What one person can lose to who sees a whole epoch shuffled, of `crowd` reports at least.

    epsilon, delta: central. honest: the share of the reports that is counted on to lie as it
    should. max_local_epsilon: the most that a report may say to who sees it alone.
    """

    epsilon: float
    crowd: int
    delta: float
    honest: float
    max_local_epsilon: float


def central_conflicts(metric: Any) -> dict[str, str]:
    """What in a metric does not go with its central promise: per field, what is wrong with it."""
    section: type = type(metric)
    usual = {one.name: one.default for one in fields_of(section)}
    if metric.central_epsilon is None or metric.crowd is None:
        lonely = [name for name in CENTRAL_FIELDS if getattr(metric, name) != usual[name]]
        said = "is of a central promise; write central_epsilon and crowd"
        return {lonely[0]: said} if lonely else {}
    found = {}
    if metric.mechanism != CROWD_MECHANISM:
        found["mechanism"] = f'must be "{CROWD_MECHANISM}" or "{AUTO}" with a crowd'
    if metric.min_batch != metric.crowd:
        found["min_batch"] = "is the crowd; leave it out"
    if metric.limits.reports_per_epoch != 1:
        found["limits"] = "reports_per_epoch must be 1 with a crowd: it is of one report each"
    if metric.tiers:
        found["tiers"] = "each would need a crowd of its own; leave them out"
    if metric.epsilon > metric.max_local_epsilon:
        found["epsilon"] = (
            f"{metric.epsilon:g} is above max_local_epsilon {metric.max_local_epsilon:g}; lower "
            "it, "
            "or write a larger max_local_epsilon"
        )
    return found


class Accountant(Protocol):
    """Works out what keeps a central promise. It needs numpy, so it is not among the client's."""

    def local_epsilon(self, promise: CentralPromise, categories: int) -> float:
        """The largest local epsilon that keeps the promise, in nats."""
        ...

    def crowd_needed(self, promise: CentralPromise, categories: int, epsilon: float) -> int | None:
        """The smallest crowd that keeps the promise at this local epsilon; None if none does."""
        ...


def crowd_table(
    table: Mapping[str, Any],
    promise: CentralPromise,
    categories: int,
    accountant: Accountant | None,
    wrong: Complain,
) -> dict[str, Any]:
    """A metric's table with what follows from its central promise: mechanism, epsilon, min_batch.

    A local epsilon that was written stays, if it keeps the promise.
    """
    found = {**table, "mechanism": CROWD_MECHANISM, "min_batch": promise.crowd}
    found.pop("reports", None)
    if table.get("min_batch", promise.crowd) != promise.crowd:
        wrong("min_batch", f"is the crowd, {promise.crowd:,}, or nothing; leave it out")
    if accountant is None:
        wrong(
            "central_epsilon",
            "is worked out with numpy and scipy: build the bundle with hubbub[aggregator] "
            "installed",
        )
        return {**found, "epsilon": promise.epsilon}
    largest = accountant.local_epsilon(promise, categories)
    given = table.get("epsilon", largest)
    if isinstance(given, int | float) and given > largest:
        needed = accountant.crowd_needed(promise, categories, given)
        would = "" if needed is None else f", or gather a crowd of {needed:,}"
        wrong(
            "epsilon",
            f"{given:g} says more than central_epsilon {promise.epsilon:g} in a crowd of "
            f"{promise.crowd:,}; write {largest:.6g} at most, leave it out{would}",
        )
    return {**found, "epsilon": given}
