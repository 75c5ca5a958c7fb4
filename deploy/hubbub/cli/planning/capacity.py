"""`hubbub plan --capacity`: how many machines for so many devices."""

import argparse
import json
import time
from dataclasses import asdict
from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from hubbub.catalog import EPOCH_SECONDS, SEAL_BYTES, open_sealed, seal
from hubbub.cli.planning.attack import chosen_metrics
from hubbub.cli.planning.capacity_model import (
    MEASURED,
    Costs,
    Machine,
    Need,
    Traffic,
    needs,
    traffic_of,
)
from hubbub.cli.terminal.output import say, table
from hubbub.errors import BadParameter

__all__ = ["add_capacity", "capacity"]

_MEASURE_SECONDS: Final = 2.0
_LIMITS: Final = {
    "devices": (1, 1e11),
    "per_day": (1e-6, 1e4),
    "peak": (1, 24),
    "outage_hours": (0, 168),
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
    size.add_argument("--epoch", choices=tuple(EPOCH_SECONDS), default="day", help="of --per-day")
    size.add_argument(
        "--peak", type=float, default=3.0, help="busiest hour by an average one (%(default)s)"
    )
    size.add_argument(
        "--outage-hours",
        type=float,
        default=1.0,
        help="that aggregators may be away while the pool takes all (%(default)s)",
    )
    size.add_argument("--machine-cores", type=int, default=4, help="of each (%(default)s)")
    size.add_argument("--machine-gb", type=float, default=16.0, help="of each (%(default)s)")
    size.add_argument(
        "--measure", action="store_true", help="on this machine how fast reports open, first"
    )


def capacity(arguments: argparse.Namespace) -> int:
    """Show what so many devices take."""
    for name, (low, high) in _LIMITS.items():
        number = getattr(arguments, name)
        if number is not None and not low <= number <= high:
            option = "--" + name.replace("_", "-")
            raise BadParameter(f"{option} {number:g} is outside [{low:g}, {high:g}]")
    if arguments.per_day is None:
        traffic = [traffic_of(metric, arguments.devices) for metric in chosen_metrics(arguments)]
    else:
        epoch = EPOCH_SECONDS[arguments.epoch]
        traffic = [Traffic(arguments.devices * arguments.per_day, epoch, SEAL_BYTES + 2, 128)]
    costs = MEASURED.on(_measured_us()) if arguments.measure else MEASURED
    found = needs(
        traffic,
        Machine(arguments.machine_cores, arguments.machine_gb),
        costs,
        peak=arguments.peak,
        outage_seconds=3600 * arguments.outage_hours,
    )
    bottleneck = max(found, key=lambda need: need.load)
    a_day = sum(kind.a_day for kind in traffic)
    if arguments.format == "json":
        document = {
            "devices": arguments.devices,
            "reports_a_day": a_day,
            "peak_reports_a_second": found[0].a_second,
            "costs": asdict(costs),
            "needs": [asdict(need) for need in found],
            "bottleneck": bottleneck.part,
            "why": bottleneck.why,
        }
        say(json.dumps(document, indent=1))
    else:
        _show(arguments, a_day, costs, found, bottleneck)
    return 0


def _show(
    arguments: argparse.Namespace, a_day: float, costs: Costs, found: list[Need], bottleneck: Need
) -> None:
    table(
        f"{arguments.devices:,.0f} devices, {a_day:,.0f} reports a day, {found[0].a_second:,.0f} a "
        "second at the busiest hour",
        ("part", "cores", "memory, GB", "machines", "decided by"),
        [
            (need.part, f"{need.cores:.1f}", f"{need.gigabytes:.1f}", f"{need.machines}", need.why)
            for need in found
        ],
    )
    say(
        f"machines of {arguments.machine_cores} cores and {arguments.machine_gb:g} GB, used to "
        "60%; Redis masters, each with a replica beside it; of services one more, for restarts"
    )
    say(f"bottleneck: {bottleneck.part}, by its {bottleneck.why}")
    whose = "measured now" if arguments.measure else "of benchmarks/RESULTS.md"
    rest = costs.aggregator_us + costs.shuffler_us + costs.pool_us + costs.totals_us
    say(
        f"a report takes {costs.open_us:.0f} us of a processor to open ({whose}) and {rest:.0f} us "
        f"besides, and {costs.tag_bytes:.0f} bytes of the totals' Redis for four epochs"
    )


def _measured_us() -> float:
    """What opening a report takes on one processor of this machine."""
    private = X25519PrivateKey.generate()
    sealed, info = seal(b"ab", private.public_key(), b"measure"), b"measure"
    done, began = 0, time.perf_counter()
    while (took := time.perf_counter() - began) < _MEASURE_SECONDS:
        for _ in range(100):
            open_sealed(sealed, private, info)
        done += 100
    return 1e6 * took / done
