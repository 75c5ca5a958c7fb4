"""The capacity model: what so many reports take, from what one report was measured to take.

Linear, as growth is (benchmarks/RESULTS.md: slope of log time by log reports). Of
every part it is asked what it needs of a processor and of memory at the busiest hour, and how many
machines that is; the part that needs most is the bottleneck.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Final

from hubbub.catalog import EPOCH_SECONDS, SEAL_BYTES, Metric

__all__ = ["MEASURED", "Costs", "Machine", "Need", "Traffic", "needs", "traffic_of"]

# Tags are kept until an epoch has been closed for its own length: of so many epochs at once.
_EPOCHS_OF_TAGS: Final = 4
# Of its processors and memory a part may use so much; the rest is for bursts, and rewriting logs.
_USABLE: Final = 0.6
_DAY: Final = 86_400


@dataclass(frozen=True, slots=True)
class Costs:
    """What one report takes: microseconds of one processor, and bytes of Redis."""

    open_us: float
    aggregator_us: float
    shuffler_us: float
    pool_us: float
    totals_us: float
    pool_bytes: float
    tag_bytes: float

    def on(self, open_us: float) -> "Costs":
        """The same on a machine that opens a report in this time: all of it is as much slower."""
        factor = open_us / self.open_us
        return replace(
            self,
            open_us=open_us,
            aggregator_us=factor * self.aggregator_us,
            shuffler_us=factor * self.shuffler_us,
            pool_us=factor * self.pool_us,
            totals_us=factor * self.totals_us,
        )


MEASURED: Final = Costs(
    open_us=46.5,
    aggregator_us=2.5,
    shuffler_us=8.3,
    pool_us=4.2,
    totals_us=2.4,
    pool_bytes=120.0,
    tag_bytes=91.0,
)
"""On the machine of benchmarks/RESULTS.md, under full load, with payloads of 2 bytes."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Reports of one kind. a_day: of all devices. epoch_seconds: how long its epochs are."""

    a_day: float
    epoch_seconds: int
    sealed_bytes: int
    cells: int


@dataclass(frozen=True, slots=True)
class Machine:
    """What machines there are: processors, and memory in GB (10^9 bytes)."""

    cores: int
    gigabytes: float


@dataclass(frozen=True, slots=True)
class Need:
    """What one part takes at the busiest hour.

    machines: how many; of Redis, how many masters. why: the resource that decides. load: how much
    of one machine's it takes; the part with the largest is the bottleneck.
    """

    part: str
    a_second: float
    cores: float
    gigabytes: float
    machines: int
    why: str
    load: float


def traffic_of(metric: Metric, devices: float) -> Traffic:
    """What so many devices report of a metric at most: as often as its limits let each."""
    seconds = EPOCH_SECONDS[metric.epoch]
    a_day = devices * metric.sampling * metric.limits.reports_per_epoch * _DAY / seconds
    layout = metric.randomizer.layout
    return Traffic(a_day, seconds, layout.payload_bytes + SEAL_BYTES, layout.size)


def needs(
    traffic: Sequence[Traffic],
    machine: Machine,
    costs: Costs,
    *,
    peak: float,
    outage_seconds: float,
) -> list[Need]:
    """What each part needs.

    peak: reports of the busiest hour by those of an average one. outage_seconds: for how long
    aggregators may be away at that hour while the pool takes everything.
    """
    rate = peak * sum(kind.a_day for kind in traffic) / _DAY
    waiting = outage_seconds * rate
    pooled = waiting * (costs.pool_bytes + _excess(traffic))
    tags = _EPOCHS_OF_TAGS * sum(kind.a_day * kind.epoch_seconds / _DAY for kind in traffic)
    totals = tags * costs.tag_bytes + 8 * _EPOCHS_OF_TAGS * sum(kind.cells for kind in traffic)
    return [
        _service("shuffler", rate, costs.shuffler_us, 0.3, machine),
        _redis("Redis of the pool", rate, costs.pool_us, pooled, machine),
        _service("aggregator", rate, costs.open_us + costs.aggregator_us, 1.0, machine),
        _redis("Redis of the totals", rate, costs.totals_us, totals, machine),
    ]


def _excess(traffic: Sequence[Traffic]) -> float:
    """Bytes by which sealed reports are longer than those that were measured, on average."""
    reports = sum(kind.a_day for kind in traffic)
    if not reports:
        return 0.0
    mean = sum(kind.a_day * kind.sealed_bytes for kind in traffic) / reports
    return mean - (SEAL_BYTES + 2)


def _service(part: str, rate: float, us: float, gigabytes: float, machine: Machine) -> Need:
    cores = rate * us / 1e6 / _USABLE
    load = cores / machine.cores
    machines = max(1, ceil(load))
    return Need(part, rate, cores, machines * gigabytes, machines, "processor", load)


def _redis(part: str, rate: float, us: float, held: float, machine: Machine) -> Need:
    """One process uses one processor; so many masters, each with a replica beside it."""
    cores, gigabytes = rate * us / 1e6 / _USABLE, held / 1e9 / _USABLE
    filled = gigabytes / machine.gigabytes
    load, why = (filled, "memory") if filled > cores else (cores, "processor")
    return Need(part, rate, cores, gigabytes, max(1, ceil(load)), why, load)
