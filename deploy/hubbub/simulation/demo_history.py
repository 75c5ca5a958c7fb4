"""The days before today, drawn: what other people would have reported, by the same randomizers.

Nobody reported then. Totals are drawn from the exact law of the randomizers (analysis/families) and
put where the aggregator keeps its own, and the shuffler's counters with them, so that all faces see
a fortnight and the conservation law balances. Every day has other people, drawn from today's; two
things about them are made up, to be found: see `STORY`.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np

from hubbub.aggregator.store.contract import WindowTotals
from hubbub.aggregator.store.redis import RedisStore
from hubbub.analysis.families import draw
from hubbub.analysis.families.draw_totals import Counts
from hubbub.bundles import Bundle
from hubbub.catalog import EPOCH_SECONDS, Metric, epoch_start
from hubbub.conservation import Window
from hubbub.epochs import epoch_date
from hubbub.runtime.redis.client import connect_redis
from hubbub.shuffler.pool import Pool
from hubbub.simulation.devices import Person
from hubbub.simulation.rehearsal import as_window

DAYS: Final = 13
"""How many are drawn."""
STORY: Final = (
    "Hidden in them, for you to find: fewer people on weekends; a share of Bachelors that grew day "
    "by day; many more people with yahoo.com as their home page until a week ago."
)
_DAY_SECONDS: Final = EPOCH_SECONDS["day"]
_WEEKEND: Final = 0.9
_SATURDAY: Final = 5
_FIRST_DAY: Final = 3  # 1970 began on a Thursday
# People with a Bachelor's degree are drawn less often on the first day, more often each day.
_FEWER: Final = 0.2
_DEGREE: Final = "Bachelors"
CHANGED_DAYS_AGO: Final = 7
"""Since when this part of the people has another home page."""
_MOVED: Final = 0.08
_HOMEPAGE: Final = "yahoo.com"


@dataclass(frozen=True, slots=True)
class Day:
    """One metric's window and totals on one day."""

    window: Window
    totals: WindowTotals


@dataclass(frozen=True, slots=True)
class _EncodedValues:
    """One metric's values among today's people, encoded; `places` is each person's index."""

    metric: Metric
    names: Sequence[str]
    codes: Sequence[Any]
    places: Counts

    @classmethod
    def among(cls, everyone: Sequence[Person], metric: Metric) -> Self:
        """Encodes what today's people hold."""
        values = [person[metric.name] for person in everyone]
        names, firsts, places = np.unique(
            np.array([*map(value_text, values)]), return_index=True, return_inverse=True
        )
        return cls(metric, names.tolist(), [metric.code(values[index]) for index in firsts], places)

    def day(self, people: Counts, movers: int, epoch: int, rng: np.random.Generator) -> Day | None:
        """Draws their totals, the first `movers` at `_HOMEPAGE`; None if too few for the crowd."""
        metric, places = self.metric, self.places[people]
        if metric.name == "homepage" and _HOMEPAGE in self.names:
            places[:movers] = self.names.index(_HOMEPAGE)
        counts = np.bincount(places, minlength=len(self.names)).tolist()
        totals = as_window(metric, draw(metric.randomizer, self.codes, counts, rng), rng)
        if totals is None:  # too few for a crowd
            return None
        # A crowd leaves as a whole; other streams in the smallest batches.
        batch = totals.counted if metric.central else min(metric.min_batch, totals.counted)
        last_second = int(epoch_start(epoch + 1, metric.epoch)) - 1
        return Day(Window(metric.name, epoch), replace(totals, batch_reports=batch, at=last_second))


def days_before(
    bundle: Bundle, everyone: Sequence[Person], today: int, seed: int | None = None
) -> list[Day]:
    """Draws every metric's totals on each of the days before `today`, the earliest first.

    The people of those days are drawn from `everyone`, today's people. `seed` makes the random
    numbers repeatable; None takes the system's.
    """
    rng = np.random.default_rng(seed)
    metrics = [_EncodedValues.among(everyone, metric) for metric in bundle.metrics.values()]
    degrees = np.array([person["education"] == _DEGREE for person in everyone])
    days = []
    for ago in range(DAYS, 0, -1):
        weekend = (today - ago + _FIRST_DAY) % 7 >= _SATURDAY
        number = round((_WEEKEND if weekend else 1.0) * len(everyone))
        weights = np.where(degrees, 1 - _FEWER * ago / DAYS, 1.0)
        people = rng.choice(len(everyone), size=number, p=weights / weights.sum())
        movers = int(rng.binomial(number, _MOVED)) if ago >= CHANGED_DAYS_AGO else 0
        day_counts = (metric.day(people, movers, today - ago, rng) for metric in metrics)
        days += [day for day in day_counts if day]
    return days


def drawn_notice(today: int) -> str:
    """A notice that says which days are drawn."""
    first_day, last_day = (epoch_date(today - ago, _DAY_SECONDS) for ago in (DAYS, 1))
    return (
        f"{first_day} to {last_day} are simulated: nobody reported then. The totals of those "
        f"{DAYS} days come from the exact law of the same randomizers, so that there is a past to "
        "look at. Today is real."
    )


def write_history(days: Sequence[Day], aggregator_redis: str, shuffler_redis: str) -> None:
    """Writes the totals to the aggregator's Redis, and their counts to the shuffler's."""

    async def write() -> None:
        counters = {day.window: (day.totals.counted, day.totals.dummies) for day in days}
        # The shuffler's counters first: the aggregator must not count unsent reports.
        async with await connect_redis(shuffler_redis) as server:
            await Pool(server).restore(counters)
        async with await connect_redis(aggregator_redis) as server:
            store = RedisStore(server)
            for day in days:
                await store.restore(day.window, day.totals)

    asyncio.run(write())


def value_text(value: Any) -> str:
    """A person's value as answers name it; for parts "age=65+, over_50k=no"."""
    if isinstance(value, str):
        return value
    return ", ".join(f"{part}={part_value}" for part, part_value in value.items())
