"""`hubbub plan capacity`: how many machines a number of devices needs."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final, Literal

from hubbub.catalog import EPOCH_SECONDS, WRITTEN_EPOCHS
from hubbub.cli.commands.planned_question import MetricsOptions
from hubbub.cli.terminal.output import listing, say, say_json
from hubbub.errors import BadParameter
from hubbub.fields.rules import Interval
from hubbub.installation.capacity_model import (
    COSTS,
    Door,
    LargestCrowd,
    Machine,
    Need,
    Traffic,
    largest_crowd,
    needs,
    traffic_of,
)
from hubbub.programs.command_line import command
from hubbub.programs.option_parsing import option, options
from hubbub.sealing.hpke import SEAL_BYTES, X25519

_DEVICES: Final = 1e8


@options
class CapacityOptions:
    chosen: MetricsOptions
    devices: float = option(
        f"number of devices that report ({_DEVICES:,.0f})",
        default=_DEVICES,
        within=Interval(1, 1e11),
    )
    per_day: float | None = option(
        "reports per device and day, in epochs of --epoch; without it as many as the metrics "
        "of the catalog allow",
        within=Interval(1e-6, 1e4),
    )
    epoch: str = option(
        "length of an epoch, with --per-day (%(default)s)",
        default="day",
        choices=WRITTEN_EPOCHS,
        needs="per_day",
    )
    per_visit: float = option(
        "reports per connection of a device (%(default)s); each visit is a fresh TLS connection",
        default=1.0,
        within=Interval(1, 1e4),
    )
    door: Door = option("transport of the devices (%(default)s)", default="grpc")
    peak: float = option(
        "ratio of the busiest hour to an average hour (%(default)s)",
        default=3.0,
        within=Interval(1, 24),
    )
    outage_hours: float = option(
        "longest outage of all aggregators that the pool must survive, in hours (%(default)s)",
        default=1.0,
        within=Interval(0, 168),
    )
    cluster_nodes: int = option(
        "number of Redis masters over which the reports of a crowd are spread (%(default)s)",
        default=1,
        within=Interval(1, 1000),
    )
    machine_cores: int = option(
        "cores of a machine (%(default)s)", default=4, within=Interval(1, 1024)
    )
    machine_gb: float = option(
        "memory of a machine, GB (%(default)s)", default=16.0, within=Interval(0.5, 100_000)
    )
    format: Literal["table", "json"] = option("format of the output (%(default)s)", default="table")


@command("plan capacity", text="show how many machines of which size are needed")
def _capacity(options: CapacityOptions) -> None:
    per_day, chosen = options.per_day, options.chosen
    if per_day is not None and chosen != MetricsOptions(metrics=()):
        raise BadParameter(
            "--per-day sets how often devices report, as a catalog and --metric do: leave one out"
        )
    supposed = per_day is None and not chosen.metrics and chosen.is_missing
    per_day = 1.0 if supposed else per_day
    if per_day is None:
        _, metrics = chosen.read()
        traffic = [traffic_of(metric, options.devices) for metric in metrics]
    else:
        a_day, seconds = options.devices * per_day, EPOCH_SECONDS[options.epoch]
        size = SEAL_BYTES[X25519] + 2  # of a payload of two bytes
        traffic = [Traffic(a_day=a_day, epoch_seconds=seconds, sealed_bytes=size, cells=128)]
    machine = Machine(options.machine_cores, options.machine_gb)
    all_needs = needs(
        traffic,
        machine,
        peak=options.peak,
        outage_seconds=3600 * options.outage_hours,
        door=options.door,
        per_visit=options.per_visit,
    )
    bottleneck = max(all_needs, key=lambda need: need.load)
    a_day = sum(kind.a_day for kind in traffic)
    aggregators = next(need.machines for need in all_needs if need.part == "aggregator")
    crowd = largest_crowd(traffic, machine, aggregators, options.cluster_nodes)
    if crowd is None and options.cluster_nodes > 1:
        raise BadParameter(
            "--cluster-nodes spreads the epochs of crowds, and no chosen metric has a "
            "crowd: leave it out, or name a catalog with one, without --per-day"
        )
    if options.format == "json":
        document = {
            "devices": options.devices,
            "reports_a_day": a_day,
            "peak_reports_a_second": all_needs[0].a_second,
            "costs": asdict(COSTS),
            "needs": [asdict(need) for need in all_needs],
            "machines": _all_machines(all_needs),
            "bottleneck": bottleneck.part,
            "why": bottleneck.why,
            "largest_crowd": None if crowd is None else asdict(crowd),
        }
        say_json(document)
    else:
        _show(options, a_day, all_needs, bottleneck)
        if crowd is not None:
            _show_crowd(crowd, options.machine_gb, options.cluster_nodes)
        if supposed:
            say(
                f"{chosen.catalog} does not exist here, so one report per device and day is "
                "assumed; name a catalog, or give --per-day"
            )


def _show(options: CapacityOptions, a_day: float, all_needs: list[Need], bottleneck: Need) -> None:
    listing(
        f"{options.devices:,.0f} devices, {a_day:,.0f} reports a day, {all_needs[0].a_second:,.0f} "
        "a second at the busiest hour",
        all_needs,
        {
            "part": "{part}",
            "cores": lambda need: _one_decimal(need.cores),
            "memory, GB": lambda need: _one_decimal(need.gigabytes),
            "machines": "{machines:,}",
            "decided by": "{why}",
        },
    )
    say(
        f"in all {_all_machines(all_needs):,} machines of {options.machine_cores} cores and "
        f"{options.machine_gb:g} GB, used to 60%: one more of each service than in the "
        "table, so that one can restart, and a replica for each Redis master"
    )
    if sum(need.load for need in all_needs) <= 1:
        say(
            "this load fits on one such machine; the others allow one to fail or restart, "
            "and separate the roles"
        )
    say(f"bottleneck: {bottleneck.part}, by its {bottleneck.why}")
    say(
        "devices connect by "
        + ("HTTP" if options.door == "http" else "gRPC")
        + f", with {options.per_visit:g} report{'' if options.per_visit == 1 else 's'} per fresh "
        f"TLS connection: {COSTS.door_us(options.door, options.per_visit):,.0f} us of the "
        "shuffler per report"
    )
    others = COSTS.aggregator_us + COSTS.pool_us + COSTS.totals_us
    say(
        f"then {COSTS.open_us:.0f} us of a processor to open it ({COSTS.x_wing_us:.0f} if "
        f"sealed by X-Wing; from benchmarks/RESULTS.md), {others:.0f} us for the rest, and "
        f"{COSTS.tag_bytes:.0f} bytes of the totals' Redis for three epochs and an hour"
    )


def _all_machines(all_needs: Sequence[Need]) -> int:
    """The number of machines: masters with replicas, and one spare of each service."""
    return sum(
        2 * need.machines if need.part.startswith("Redis") else need.machines + 1
        for need in all_needs
    )


def _one_decimal(number: float) -> str:
    """A number with one decimal, where less than 0.1 is not shown as 0."""
    return f"{number:,.1f}" if number >= 0.1 else "< 0.1"  # noqa: PLR2004


def _show_crowd(crowd: LargestCrowd, machine_gb: float, nodes: int) -> None:
    place = "the pool" if nodes == 1 else f"each of {nodes} nodes of the pool"
    say(
        f"the largest crowd has {crowd.reports:,.0f} reports: {place} holds "
        f"{crowd.gigabytes:,.1f} GB of it and the next crowd; cutting takes "
        f"{_minutes(crowd.cut_seconds)}, counting {_minutes(crowd.count_seconds)} more"
    )
    if not crowd.machine_fits:
        say(
            f"one Redis must hold it, and {machine_gb:g} GB, used to 60%, are too few: spread it "
            "(--cluster-nodes, and --shards of the shuffler), write a shorter epoch, lower "
            "sampling, or give that machine more memory"
        )


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:,.0f} min"  # noqa: PLR2004
