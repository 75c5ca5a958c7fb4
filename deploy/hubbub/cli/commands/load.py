"""`hubbub load`: simulates many devices, to measure the load that an installation sustains."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

from hubbub.bundles import Bundle, read_bundle
from hubbub.catalog.values.event_history_kinds import PastKind
from hubbub.cli.terminal.output import say, say_json, table
from hubbub.cli.terminal.progress import progress
from hubbub.client import transport_to
from hubbub.client.transport.contract import NotSent
from hubbub.errors import BadParameter, ServiceUnavailable
from hubbub.errors.address_checks import check_address, is_loopback
from hubbub.fields.rules import Interval
from hubbub.installation.running_endpoints import HOME
from hubbub.programs.command_line import command
from hubbub.programs.option_parsing import option, options
from hubbub.simulation.load_devices import Load, Seen, Times, drive

_EPILOG: Final = """
Every device is a client of the SDK with its own secret, and keeps to the limits of its metrics. The
services count its random values like all others: use a separate installation, or metrics that are
made for this purpose.
"""
# As long as the devices wait for an answer: a busy shuffler is no missing one.
_PROBE_SECONDS: Final = 10.0
_SHARES: Final = (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("longest", 1.0))


@options
class LoadOptions:
    home: Path = option("folder of `hubbub up` (%(default)s)", default=HOME)
    bundle: Path | None = option("bundle that devices have (app.hubbub of --home)")
    metrics: tuple[str, ...] = option(
        "metric that devices report (repeatable; without it all but those that count events)",
        name="--metric",
        metavar="METRIC",
    )
    devices: int = option(
        "number of devices (%(default)s)", default=1000, within=Interval(0, 200_000, "(]")
    )
    rate: float = option(
        "average number of reports per second (%(default)s)",
        default=500.0,
        within=Interval(0, 100_000, "(]"),
    )
    seconds: float = option(
        "duration in seconds (%(default)s)", default=10.0, within=Interval(0, 3600, "(]")
    )
    processes: int = option(
        "number of processes that the devices are spread over (half the cores: %(default)s)",
        default=max(1, (os.cpu_count() or 2) // 2),
        within=Interval(0, 64, "(]"),
    )
    dial: bool = option("open a connection for each device instead of each process")
    http: str = option(
        "report over HTTP to this address of the bundle's shuffler", default="", metavar="HOST:PORT"
    )
    other_machine: bool = option(
        "the shuffler may be on another machine, which you must be allowed to load"
    )
    format: Literal["table", "json"] = option("format of the output (%(default)s)", default="table")


@command("load", epilog=_EPILOG)
def _run(options: LoadOptions) -> int:
    if options.http:
        check_address("--http", options.http)
    path = options.bundle or options.home / "app.hubbub"
    bundle = read_bundle(path)
    shuffler = f"https://{options.http}" if options.http else bundle.shuffler
    if not options.other_machine and not is_loopback(shuffler.removeprefix("https://")):
        raise BadParameter(
            f"the shuffler, {shuffler}, is not on this machine; if you are allowed to load it, "
            "add --other-machine"
        )
    metrics = _metrics(bundle, options.metrics)
    fewest = min(bundle.metric(name).limits.reports_per_epoch for name in metrics)
    needed_reports = options.rate * options.seconds / len(metrics) / fewest
    if options.devices < needed_reports:
        raise BadParameter(
            f"{options.devices:,} devices cannot report so often in one epoch (limits of the "
            f"metrics): give --devices {-int(-needed_reports // 1):,}, or less --rate or --seconds"
        )
    # An empty submission shows whether a report would reach the shuffler.
    transport = transport_to(shuffler, roots=bundle.roots)
    try:
        transport.submit((), _PROBE_SECONDS)
    except NotSent as error:
        raise ServiceUnavailable(
            f"the shuffler, {shuffler}, does not answer: {error.cause or error.reason}; start it "
            f"with hubbub up{' --dev' if bundle.development else ''}, or give the --home or "
            "--bundle of one that runs"
        ) from error
    finally:
        transport.close()
    load = Load(
        bundle=path,
        metrics=metrics,
        devices=options.devices,
        wakes_a_second=options.rate / len(metrics),
        seconds=options.seconds,
        dial=options.dial,
        shuffler=shuffler,
        processes=options.processes,
    )
    with progress() as bar:
        task = bar.add_task("reports", total=round(options.rate * options.seconds))
        measurements = drive(load, lambda so_far: bar.update(task, completed=so_far.acknowledged))
    figures = _figures(measurements, options)
    if options.format == "json":
        say_json(figures)
    else:
        _show(figures)
    return 0 if figures["acknowledged"] == figures["asked"] else 1


def _metrics(bundle: Bundle, names: Sequence[str]) -> tuple[str, ...]:
    """The named metrics, or all; refuses those whose reports a device computes from its past."""
    kinds = {name: entry.value_kind for name, entry in bundle.metrics.items()}
    from_past = [name for name, kind in kinds.items() if isinstance(kind, PastKind)]
    for name in names:
        if (metric := bundle.metric(name)).name in from_past:
            raise BadParameter(
                f'--metric {name}: a device reports kind = "{metric.kind}" once an epoch, from '
                "what it remembers, and not at each call; name a metric of another kind"
            )
    metrics = tuple(names or (name for name in bundle.metrics if name not in from_past))
    if not metrics:
        raise BadParameter(
            "the bundle has no metric that a device reports at each call: add one of another kind "
            "than funnel, rate, activity and retention"
        )
    return metrics


def _figures(measurements: Seen, options: LoadOptions) -> dict[str, Any]:
    def shares(times: Times, unit: float) -> dict[str, float]:
        return {name: round(unit * times.percentile(share), 1) for name, share in _SHARES}

    return {
        "asked": measurements.calls.counts.total(),
        "acknowledged": measurements.acknowledged,
        "not_sent": {reason: number for reason, number in measurements.outcomes.items() if number},
        "reports_a_second": round(measurements.acknowledged / max(measurements.seconds, 1e-3), 1),
        "asked_a_second": options.rate,
        "devices": options.devices,
        "wakes": measurements.wakes,
        "behind": measurements.behind,
        "shuffler_lost": measurements.is_lost,
        "report_call_us": shares(measurements.calls, 1e6),
        "until_acknowledged_ms": shares(measurements.answers, 1e3),
    }


def _show(figures: dict[str, Any]) -> None:
    acknowledged = figures["until_acknowledged_ms"]
    table(
        f"{figures['acknowledged']:,} of {figures['asked']:,} reports acknowledged, "
        f"{figures['reports_a_second']:,.0f} a second ({figures['asked_a_second']:,.0f} asked for)",
        ("", *(name for name, _ in _SHARES)),
        [
            ("report(), us", *(f"{x:,.1f}" for x in figures["report_call_us"].values())),
            ("due to acknowledged, ms", *(f"{x:,.1f}" for x in acknowledged.values())),
        ],
    )
    devices, wakes = figures["devices"], figures["wakes"]
    idle = f"; {devices - wakes:,} of {devices:,} devices sent nothing" if wakes < devices else ""
    say(f"  {wakes:,} times a device reported every metric{idle}")
    if figures["shuffler_lost"]:
        say(
            "  the shuffler took no report for ten seconds, so the run ended early: see hubbub "
            "status, start the shuffler again if it has ended, and repeat the run"
        )
    for reason, number in figures["not_sent"].items():
        say(f"  {number:,} not acknowledged: {reason.replace('_', ' ')}")
    if figures["behind"]:
        say(
            f"  {figures['behind']:,} of {wakes:,} times a device was over .1 s late: this machine "
            "is too slow for so much load"
        )
