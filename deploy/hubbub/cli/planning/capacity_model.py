"""The capacity model: what so many reports take, from what one report was measured to take.

Linear, as growth is (benchmarks/RESULTS.md: slope of log time by log reports). Of
every part it is asked what it needs of a processor and of memory at the busiest hour, and how many
machines that is; the part that needs most is the bottleneck.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil
from typing import Final, Literal

from hubbub.catalog import (
    EPOCH_SECONDS,
    SEAL_BYTES,
    X25519,
    X_WING,
    Kem,
    Metric,
    days_of_period,
)

# Tags are kept until an epoch has been closed for an hour: of so many epochs at once, and so long.
_EPOCHS_OF_TAGS: Final = 3
_SECONDS_OF_TAGS: Final = 3600
_WHOLE_EPOCHS: Final = 2
# Of its processors and memory a part may use so much; the rest is for bursts, and rewriting logs.
_USABLE: Final = 0.6
_DAY: Final = 86_400

Door = Literal["grpc", "http"]
"""How devices reach the shuffler."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What one report takes: microseconds of one processor, and bytes of Redis.

    grpc_us, http_us: of the shuffler for one visit, a fresh TLS connection that brings one report.
    shuffler_us: for each further report of the same visit. x_wing_us: to open one that is sealed
    by X-Wing.
    """

    grpc_us: float
    http_us: float
    open_us: float
    x_wing_us: float
    aggregator_us: float
    shuffler_us: float
    pool_us: float
    cut_us: float
    totals_us: float
    pool_bytes: float
    tag_bytes: float

    def on(self, open_us: float, x_wing_us: float) -> "Costs":
        """The same on a machine that opens reports in these times: all of it is as much slower."""
        factor = open_us / self.open_us
        times = {name: cost for name, cost in asdict(self).items() if name.endswith("_us")}
        slower = {name: factor * cost for name, cost in times.items()}
        return replace(self, **{**slower, "open_us": open_us, "x_wing_us": x_wing_us})

    def door_us(self, door: Door, per_visit: float) -> float:
        """What a report takes of the shuffler if a visit brings so many on average."""
        visit = self.http_us if door == "http" else self.grpc_us
        return (visit + (per_visit - 1) * self.shuffler_us) / per_visit


MEASURED: Final = Costs(
    grpc_us=1102.0,
    http_us=789.0,
    open_us=46.5,
    x_wing_us=69.0,
    aggregator_us=2.5,
    shuffler_us=8.3,
    pool_us=4.2,
    cut_us=13.0,
    totals_us=7.0,  # in windows of some 10^8, on a busy machine; of 10^6 half
    pool_bytes=120.0,
    tag_bytes=12.0,
)
"""On the machine of benchmarks/RESULTS.md, under full load, with payloads of 2 bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Reports of one kind. a_day: of all devices. epoch_seconds: how long its epochs are.

    whole: its epochs leave the shuffler as one crowd, so the pool holds them until they are over.
    """

    a_day: float
    epoch_seconds: int
    sealed_bytes: int
    cells: int
    whole: bool = False
    kem: Kem = X25519

    @property
    def crowd(self) -> float:
        """Reports of an epoch that leaves whole; 0 if none does."""
        return self.a_day / _DAY * self.epoch_seconds if self.whole else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LargestCrowd:
    """Of the epochs that leave whole, the one with the most reports.

    gigabytes: what each Redis of the pool holds of it. machine_fits: whether one machine's memory
    is enough for that. cut_seconds: until it is cut, once it is over. count_seconds:
    until all of it is counted then.
    """

    reports: float
    gigabytes: float
    machine_fits: bool
    cut_seconds: float
    count_seconds: float


@dataclass(frozen=True, slots=True)
class Machine:
    """What machines there are: processors, and memory in GB (10^9 bytes)."""

    cores: int
    gigabytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
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
    if metric.report_on:
        a_day /= len(days_of_period(metric.period, 0))
    cells = metric.randomizer.layout.size
    return Traffic(
        a_day=a_day,
        epoch_seconds=seconds,
        sealed_bytes=metric.sealed_bytes,
        cells=cells,
        whole=metric.mix == "epoch",
        kem=metric.kem,
    )


def needs(
    traffic: Sequence[Traffic],
    machine: Machine,
    costs: Costs,
    *,
    peak: float,
    outage_seconds: float,
    door: Door = "grpc",
    per_visit: float = 1.0,
) -> list[Need]:
    """What each part needs.

    per_visit: reports that a device's connection brings on average, at least 1.
    peak: reports of the busiest hour by those of an average one. outage_seconds: for how long
    aggregators may be away at that hour while the pool takes everything.
    """
    rate = peak * sum(kind.a_day for kind in traffic) / _DAY
    # Just before an epoch that leaves whole is over, and its grace, the next one is there, too.
    waiting = outage_seconds * rate + _WHOLE_EPOCHS * sum(kind.crowd for kind in traffic)
    pooled = waiting * (costs.pool_bytes + _excess(traffic))
    tags = sum(kind.a_day / _DAY * _kept_seconds(kind) for kind in traffic)
    cells = sum(kind.cells * _kept_seconds(kind) / kind.epoch_seconds for kind in traffic)
    totals = tags * costs.tag_bytes + 8 * cells
    cut = sum(kind.a_day for kind in traffic if kind.whole) / sum(kind.a_day for kind in traffic)
    return [
        _service("shuffler", rate, costs.door_us(door, per_visit), 0.3, machine),
        _redis("Redis of the pool", rate, costs.pool_us + cut * costs.cut_us, pooled, machine),
        _service("aggregator", rate, _count_us(traffic, costs), 1.0, machine),
        _redis("Redis of the totals", rate, costs.totals_us, totals, machine),
    ]


def largest_crowd(
    traffic: Sequence[Traffic], machine: Machine, costs: Costs, aggregators: int, nodes: int = 1
) -> LargestCrowd | None:
    """What the largest epoch that leaves whole asks of each Redis and of these aggregators.

    nodes: of Redis, that it is spread over.
    """
    largest = max(traffic, key=lambda kind: kind.crowd)
    if not largest.crowd:
        return None
    pool_gigabytes = (
        _WHOLE_EPOCHS * largest.crowd * (costs.pool_bytes + _excess([largest])) / 1e9 / nodes
    )
    opening = largest.crowd * _count_us([largest], costs) / 1e6
    return LargestCrowd(
        reports=largest.crowd,
        gigabytes=pool_gigabytes,
        machine_fits=pool_gigabytes / _USABLE <= machine.gigabytes,
        cut_seconds=largest.crowd * costs.cut_us / 1e6 / nodes,
        count_seconds=opening / (aggregators * machine.cores * _USABLE),
    )


def _kept_seconds(kind: Traffic) -> float:
    """For how long a tag is kept at most."""
    return _EPOCHS_OF_TAGS * kind.epoch_seconds + _SECONDS_OF_TAGS


def _count_us(traffic: Sequence[Traffic], costs: Costs) -> float:
    """What the aggregator does for one report, opening it, on average."""
    reports = sum(kind.a_day for kind in traffic)
    hybrid = sum(kind.a_day for kind in traffic if kind.kem == X_WING) / (reports or 1)
    opening = (1 - hybrid) * costs.open_us + hybrid * costs.x_wing_us
    return opening + costs.aggregator_us


def _excess(traffic: Sequence[Traffic]) -> float:
    """Bytes by which sealed reports are longer than those that were measured, on average."""
    reports = sum(kind.a_day for kind in traffic)
    if not reports:
        return 0.0
    mean = sum(kind.a_day * kind.sealed_bytes for kind in traffic) / reports
    return mean - (SEAL_BYTES[X25519] + 2)


def _service(part: str, rate: float, us: float, gigabytes: float, machine: Machine) -> Need:
    cores = rate * us / 1e6 / _USABLE
    load = cores / machine.cores
    machines = max(1, ceil(load))
    return Need(
        part=part,
        a_second=rate,
        cores=cores,
        gigabytes=machines * gigabytes,
        machines=machines,
        why="processor",
        load=load,
    )


def _redis(part: str, rate: float, us: float, total_bytes: float, machine: Machine) -> Need:
    """One process uses one processor; so many masters, each with a replica beside it."""
    cores, gigabytes = rate * us / 1e6 / _USABLE, total_bytes / 1e9 / _USABLE
    filled = gigabytes / machine.gigabytes
    load, why = (filled, "memory") if filled > cores else (cores, "processor")
    return Need(
        part=part,
        a_second=rate,
        cores=cores,
        gigabytes=gigabytes,
        machines=max(1, ceil(load)),
        why=why,
        load=load,
    )
