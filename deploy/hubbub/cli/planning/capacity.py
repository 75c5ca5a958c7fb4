"""`hubbub plan --capacity`: how many machines for so many devices."""

import argparse
import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from hubbub.catalog import (
    EPOCH_SECONDS,
    SEAL_BYTES,
    WRITTEN_EPOCHS,
    X25519,
    OpeningKey,
    PrivateKey,
    open_sealed,
    seal,
)
from hubbub.cli.planning.attack import chosen_metrics, is_missing
from hubbub.cli.planning.capacity_model import (
    MEASURED,
    Costs,
    LargestCrowd,
    Machine,
    Need,
    Traffic,
    largest_crowd,
    needs,
    traffic_of,
)
from hubbub.cli.terminal.bounds import refuse_outside
from hubbub.cli.terminal.output import say, table
from hubbub.errors import BadParameter

_MEASURE_SECONDS: Final = 2.0
_LIMITS: Final = {
    "devices": (1, 1e11),
    "per_day": (1e-6, 1e4),
    "per_visit": (1, 1e4),
    "peak": (1, 24),
    "outage_hours": (0, 168),
    "cluster_nodes": (1, 1000),
    "machine_cores": (1, 1024),
    "machine_gb": (0.5, 100_000),
}


def add_capacity(parser: argparse.ArgumentParser) -> None:
    """Add the options of --capacity."""
    size = parser.add_argument_group("capacity")
    size.add_argument("--capacity", action="store_true", help="how many machines, and of what")
    size.add_argument("--devices", type=float, default=1e8, help="that report (%(default).0e)")
    size.add_argument(
        "--per-day",
        type=float,
        help="reports of a device a day, in epochs of --epoch; without: as often as the limits of "
        "the catalog's metrics let it",
    )
    size.add_argument("--epoch", choices=WRITTEN_EPOCHS, default="day", help="of --per-day")
    size.add_argument(
        "--per-visit",
        type=float,
        default=1.0,
        help="reports that a device's connection brings (%(default)s); each visit is a fresh TLS "
        "connection",
    )
    size.add_argument(
        "--door", choices=("grpc", "http"), default="grpc", help="of devices (%(default)s)"
    )
    size.add_argument(
        "--peak", type=float, default=3.0, help="busiest hour by an average one (%(default)s)"
    )
    size.add_argument(
        "--outage-hours",
        type=float,
        default=1.0,
        help="that aggregators may be away while the pool takes all (%(default)s)",
    )
    size.add_argument(
        "--cluster-nodes",
        type=int,
        default=1,
        help="masters that an epoch which leaves whole is spread over (%(default)s)",
    )
    size.add_argument("--machine-cores", type=int, default=4, help="of each (%(default)s)")
    size.add_argument("--machine-gb", type=float, default=16.0, help="of each (%(default)s)")
    size.add_argument(
        "--measure", action="store_true", help="on this machine how fast reports open, first"
    )


def capacity(arguments: argparse.Namespace) -> int:
    """Show what so many devices take."""
    refuse_outside(arguments, _LIMITS)
    supposed = arguments.per_day is None and not arguments.metric and is_missing(arguments)
    if supposed:
        arguments.per_day = 1.0
    if arguments.per_day is None:
        traffic = [traffic_of(metric, arguments.devices) for metric in chosen_metrics(arguments)]
    else:
        epoch = EPOCH_SECONDS[arguments.epoch]
        sealed = SEAL_BYTES[X25519] + 2
        traffic = [Traffic(arguments.devices * arguments.per_day, epoch, sealed, 128)]
    costs = MEASURED.on(*_measured_us()) if arguments.measure else MEASURED
    machine = Machine(arguments.machine_cores, arguments.machine_gb)
    found = needs(
        traffic,
        machine,
        costs,
        peak=arguments.peak,
        outage_seconds=3600 * arguments.outage_hours,
        door=arguments.door,
        per_visit=arguments.per_visit,
    )
    bottleneck = max(found, key=lambda need: need.load)
    a_day = sum(kind.a_day for kind in traffic)
    aggregators = next(need.machines for need in found if need.part == "aggregator")
    crowd = largest_crowd(traffic, machine, costs, aggregators, arguments.cluster_nodes)
    if crowd is None and "cluster_nodes" in getattr(arguments, "given", ()):
        raise BadParameter(
            "--cluster-nodes spreads an epoch that leaves whole, and no metric asked about has a "
            "crowd: leave it out, or name a catalog that has one, without --per-day"
        )
    if arguments.format == "json":
        document = {
            "devices": arguments.devices,
            "reports_a_day": a_day,
            "peak_reports_a_second": found[0].a_second,
            "costs": asdict(costs),
            "needs": [asdict(need) for need in found],
            "machines": _all_machines(found),
            "bottleneck": bottleneck.part,
            "why": bottleneck.why,
            "largest_crowd": None if crowd is None else asdict(crowd),
        }
        say(json.dumps(document, indent=1))
    else:
        _show(arguments, a_day, costs, found, bottleneck)
        if crowd is not None:
            _show_crowd(crowd, arguments.machine_gb, arguments.cluster_nodes)
        if supposed:
            say(
                f"supposed, as there is no {arguments.catalog} here: one report of a device a day; "
                "name a catalog, or give --per-day"
            )
    return 0


def _show(
    arguments: argparse.Namespace, a_day: float, costs: Costs, found: list[Need], bottleneck: Need
) -> None:
    table(
        f"{arguments.devices:,.0f} devices, {a_day:,.0f} reports a day, {found[0].a_second:,.0f} a "
        "second at the busiest hour",
        ("part", "cores", "memory, GB", "machines", "decided by"),
        [
            (need.part, _least(need.cores), _least(need.gigabytes), f"{need.machines:,}", need.why)
            for need in found
        ],
    )
    say(
        f"in all {_all_machines(found):,} machines of {arguments.machine_cores} cores and "
        f"{arguments.machine_gb:g} GB, used to 60%: of each service one more than the table says, "
        "so that one can restart, and of Redis a replica beside each master"
    )
    if sum(need.load for need in found) <= 1:
        say(
            "this load alone fits on one such machine; the others let one fail or restart, and "
            "keep the roles apart"
        )
    say(f"bottleneck: {bottleneck.part}, by its {bottleneck.why}")
    say(
        "devices come by "
        + ("HTTP" if arguments.door == "http" else "gRPC")
        + f", with {arguments.per_visit:g} report{'' if arguments.per_visit == 1 else 's'} a visit "
        f"on a fresh TLS connection: {costs.door_us(arguments.door, arguments.per_visit):,.0f} us "
        "of the shuffler a report"
    )
    whose = "measured now" if arguments.measure else "of benchmarks/RESULTS.md"
    rest = costs.aggregator_us + costs.pool_us + costs.totals_us
    say(
        f"behind it {costs.open_us:.0f} us of a processor to open one, {costs.x_wing_us:.0f} if it "
        f"is sealed by X-Wing ({whose}), {rest:.0f} us besides, and {costs.tag_bytes:.0f} bytes of "
        "the totals' Redis for three epochs and an hour"
    )


def _all_machines(found: Sequence[Need]) -> int:
    """Masters with their replicas, and of each service one more."""
    return sum(
        2 * need.machines if need.part.startswith("Redis") else need.machines + 1 for need in found
    )


def _least(number: float) -> str:
    """One decimal; what is less than a tenth is not shown as none."""
    return f"{number:,.1f}" if number >= 0.1 else "< 0.1"  # noqa: PLR2004


def _show_crowd(crowd: LargestCrowd, machine_gb: float, nodes: int) -> None:
    where = "the pool" if nodes == 1 else f"each of {nodes} nodes of the pool"
    say(
        f"the largest epoch that leaves whole has {crowd.reports:,.0f} reports: {where} holds "
        f"{crowd.gigabytes:,.1f} GB of it and the next; it is cut in "
        f"{_minutes(crowd.cut_seconds)} and counted in {_minutes(crowd.count_seconds)} more"
    )
    if not crowd.machine_fits:
        say(
            f"one Redis must hold it, and {machine_gb:g} GB, used to 60%, are too few: spread it "
            "(--cluster-nodes, and --shards of the shuffler), write a shorter epoch, lower "
            "sampling, or give that machine more memory"
        )


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:,.0f} min"  # noqa: PLR2004


def _measured_us() -> tuple[float, float]:
    """What opening a report takes on one processor of this machine, by X25519 and by X-Wing."""
    key = OpeningKey(1, secrets.token_bytes(32)).with_x_wing()
    x25519, x_wing = (_opening_us(half) for half in key.halves().values())
    return x25519, x_wing


def _opening_us(private: PrivateKey) -> float:
    sealed, info = seal(b"ab", private.public_key(), b"measure"), b"measure"
    done, began = 0, time.perf_counter()
    while (took := time.perf_counter() - began) < _MEASURE_SECONDS:
        for _ in range(100):
            open_sealed(sealed, private, info)
        done += 100
    return 1e6 * took / done
