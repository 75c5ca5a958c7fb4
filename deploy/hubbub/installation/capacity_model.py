"""The capacity model: the machines that a number of reports needs, from measured costs of one.

It is linear, as measured growth is (benchmarks/RESULTS.md: slope of log time by log reports). For
each part it computes processor and memory at the busiest hour, and the number of machines; the
part with the largest load is the bottleneck.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final, Literal

from hubbub.catalog import EPOCH_SECONDS, Metric, days_of_period
from hubbub.sealing.hpke import SEAL_BYTES, X25519, X_WING, Kem

# Tags are stored until an epoch has been closed for an hour: number of such epochs, and that time.
_EPOCHS_OF_TAGS: Final = 3
_SECONDS_OF_TAGS: Final = 3600
_WHOLE_EPOCHS: Final = 2
# Usable share of processors and memory; the rest is for bursts, and rewriting logs.
_USABLE: Final = 0.6
_DAY: Final = 86_400

Door = Literal["grpc", "http"]
"""How devices reach the shuffler."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """The costs of one report: microseconds of one processor, and bytes of Redis.

    On the machine of benchmarks/RESULTS.md, under full load, with payloads of 2 bytes.
    `grpc_us` and `http_us` are the shuffler's for one visit, a fresh TLS connection with one
    report; `shuffler_us` is for each further report of a visit; `x_wing_us` opens a report sealed
    by X-Wing.
    """

    grpc_us: float = 1102.0
    http_us: float = 789.0
    open_us: float = 46.5
    x_wing_us: float = 69.0
    aggregator_us: float = 2.5
    shuffler_us: float = 8.3
    pool_us: float = 4.2
    cut_us: float = 13.0
    totals_us: float = 7.0  # in windows of about 10^8, on a busy machine; half in windows of 10^6
    pool_bytes: float = 120.0
    tag_bytes: float = 12.0

    def door_us(self, door: Door, per_visit: float) -> float:
        """Microseconds of the shuffler per report, if a visit brings `per_visit` reports."""
        visit = self.http_us if door == "http" else self.grpc_us
        return (visit + (per_visit - 1) * self.shuffler_us) / per_visit


COSTS: Final = Costs()


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Reports of one kind: `a_day` per day from all devices, in epochs of `epoch_seconds`.

    If `whole`, an epoch leaves the shuffler as one crowd, so the pool holds it until it is over.
    """

    a_day: float
    epoch_seconds: int
    sealed_bytes: int
    cells: int
    whole: bool = False
    kem: Kem = X25519

    @property
    def crowd(self) -> float:
        """Number of reports of an epoch that leaves whole; 0 if it does not."""
        return self.a_day / _DAY * self.epoch_seconds if self.whole else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LargestCrowd:
    """The largest epoch that leaves whole.

    `gigabytes` is its memory in each Redis of the pool, `machine_fits` whether one machine has as
    much; `cut_seconds` is the time to cut it once it is over, `count_seconds` that to count it.
    """

    reports: float
    gigabytes: float
    machine_fits: bool
    cut_seconds: float
    count_seconds: float


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine: processors, and memory in GB (10^9 bytes)."""

    cores: int
    gigabytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What one part needs at the busiest hour.

    `machines` are masters in the case of Redis; `why` is the deciding resource; `load` is the
    number of machines' worth of it, largest for the bottleneck.
    """

    part: str
    a_second: float
    cores: float
    gigabytes: float
    machines: int
    why: str
    load: float


def traffic_of(metric: Metric, devices: float) -> Traffic:
    """The most reports of a metric that these devices send under its limits."""
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
    *,
    peak: float,
    outage_seconds: float,
    door: Door = "grpc",
    per_visit: float = 1.0,
) -> list[Need]:
    """Computes the needs of each part.

    `peak` is the ratio of the busiest hour to the average; `outage_seconds` is how long aggregators
    may be away at that hour while the pool keeps everything; `per_visit` is the mean number of
    reports of a device's connection, at least 1.
    """
    rate = peak * sum(kind.a_day for kind in traffic) / _DAY
    # At the end of a crowd's grace, the reports of the next epoch are stored as well.
    waiting = outage_seconds * rate + _WHOLE_EPOCHS * sum(kind.crowd for kind in traffic)
    pooled = waiting * (COSTS.pool_bytes + _excess_bytes(traffic))
    tags = sum(kind.a_day / _DAY * _tag_seconds(kind) for kind in traffic)
    cells = sum(kind.cells * _tag_seconds(kind) / kind.epoch_seconds for kind in traffic)
    totals = tags * COSTS.tag_bytes + 8 * cells
    cut = sum(kind.a_day for kind in traffic if kind.whole) / sum(kind.a_day for kind in traffic)
    return [
        _service("shuffler", rate, COSTS.door_us(door, per_visit), 0.3, machine),
        _redis("Redis of the pool", rate, COSTS.pool_us + cut * COSTS.cut_us, pooled, machine),
        _service("aggregator", rate, _count_us(traffic), 1.0, machine),
        _redis("Redis of the totals", rate, COSTS.totals_us, totals, machine),
    ]


def largest_crowd(
    traffic: Sequence[Traffic], machine: Machine, aggregators: int, nodes: int = 1
) -> LargestCrowd | None:
    """What the largest epoch that leaves whole needs of aggregators and `nodes` of Redis."""
    largest = max(traffic, key=lambda kind: kind.crowd)
    if not largest.crowd:
        return None
    pooled_bytes = COSTS.pool_bytes + _excess_bytes([largest])
    pool_gigabytes = _WHOLE_EPOCHS * largest.crowd * pooled_bytes / 1e9 / nodes
    opening = largest.crowd * _count_us([largest]) / 1e6
    return LargestCrowd(
        reports=largest.crowd,
        gigabytes=pool_gigabytes,
        machine_fits=pool_gigabytes / _USABLE <= machine.gigabytes,
        cut_seconds=largest.crowd * COSTS.cut_us / 1e6 / nodes,
        count_seconds=opening / (aggregators * machine.cores * _USABLE),
    )


def _tag_seconds(kind: Traffic) -> float:
    """The longest time for which a tag is kept, in seconds."""
    return _EPOCHS_OF_TAGS * kind.epoch_seconds + _SECONDS_OF_TAGS


def _count_us(traffic: Sequence[Traffic]) -> float:
    """Mean microseconds of the aggregator to open and count a report."""
    reports = sum(kind.a_day for kind in traffic)
    hybrid = sum(kind.a_day for kind in traffic if kind.kem == X_WING) / (reports or 1)
    opening = (1 - hybrid) * COSTS.open_us + hybrid * COSTS.x_wing_us
    return opening + COSTS.aggregator_us


def _excess_bytes(traffic: Sequence[Traffic]) -> float:
    """Mean number of bytes by which sealed reports exceed the measured ones."""
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
    """The need of a Redis: a process uses one processor; each master has a replica."""
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
