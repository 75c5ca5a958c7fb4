"""`hubbub load`: many devices at once, to see what an installation bears."""

import argparse
import json
import os
from pathlib import Path
from typing import Any, Final

from hubbub.catalog import Bundle, read_bundle
from hubbub.cli.terminal.output import say, table
from hubbub.cli.terminal.progress import progress
from hubbub.errors import BadParameter
from hubbub.errors.addresses import check_address
from hubbub.runtime.tls import is_loopback
from hubbub.simulation.load import Load, Seen, Times, drive

_EPILOG: Final = """
Every device is the SDK's own client with a secret of its own, and keeps to the limits of its
metrics; what it reports is drawn at random and counted like anything else: use an installation of
its own, or metrics made for it.

examples:
  hubbub load --devices 10000 --rate 1000 --seconds 30      beside `hubbub up`
  hubbub load --devices 10000 --http 127.0.0.1:7077 --dial
  hubbub load --bundle app.hubbub --metric theme --devices 50000 --rate 2000 --seconds 20 --dial
"""
_MAX: Final = {"devices": 200_000, "rate": 100_000.0, "seconds": 3600.0, "processes": 64}
_SHARES: Final = (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("longest", 1.0))


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `load` to the command line."""
    parser = commands.add_parser(
        "load",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=_EPILOG,
    )
    parser.add_argument("--home", type=Path, default=Path(".hubbub"), help="of hubbub up")
    parser.add_argument("--bundle", type=Path, help="bundle (app.hubbub of --home)")
    parser.add_argument(
        "--metric", action="append", default=[], help="that devices report (repeat; all)"
    )
    parser.add_argument("--devices", type=int, default=1000, help="how many (%(default)s)")
    parser.add_argument("--rate", type=float, default=500.0, help="reports a second (%(default)s)")
    parser.add_argument("--seconds", type=float, default=10.0, help="for so long (%(default)s)")
    parser.add_argument(
        "--processes",
        type=int,
        default=max(1, (os.cpu_count() or 2) // 2),
        help="that the devices are spread over (half the cores: %(default)s)",
    )
    parser.add_argument(
        "--dial", action="store_true", help="a connection for each device, not for each process"
    )
    parser.add_argument(
        "--http", metavar="HOST:PORT", help="over HTTP, to this door of the bundle's shuffler"
    )
    parser.add_argument(
        "--other-machine",
        action="store_true",
        help="the shuffler may be on another machine; it must be yours to load",
    )
    parser.add_argument(
        "--format", choices=("table", "json"), default="table", help="of the output (%(default)s)"
    )
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    for name, most in _MAX.items():
        if not 0 < getattr(arguments, name) <= most:
            raise BadParameter(f"--{name} {getattr(arguments, name):g} is outside (0, {most:,.0f}]")
    if arguments.http:
        check_address("--http", arguments.http)
    path = arguments.bundle or arguments.home / "app.hubbub"
    bundle = read_bundle(path)
    shuffler = f"https://{arguments.http}" if arguments.http else bundle.shuffler
    if not arguments.other_machine and not is_loopback(shuffler.removeprefix("https://")):
        raise BadParameter(
            f"the shuffler, {shuffler}, is not on this machine; if it is yours to "
            "load, say so with --other-machine"
        )
    metrics = tuple(arguments.metric or bundle.metrics)
    _check_limits(bundle, metrics, arguments)
    load = Load(
        bundle=path,
        metrics=metrics,
        devices=arguments.devices,
        wakes_a_second=arguments.rate / len(metrics),
        seconds=arguments.seconds,
        dial=arguments.dial,
        shuffler=shuffler,
        processes=arguments.processes,
    )
    with progress() as bar:
        task = bar.add_task("reports", total=round(arguments.rate * arguments.seconds))
        seen = drive(load, lambda so_far: bar.update(task, completed=so_far.acknowledged))
    found = _figures(seen, arguments)
    if arguments.format == "json":
        say(json.dumps(found, indent=1))
    else:
        _show(found)
    return 0 if found["acknowledged"] == found["asked"] else 1


def _check_limits(bundle: Bundle, metrics: tuple[str, ...], arguments: argparse.Namespace) -> None:
    """Devices keep to their ledgers: fewer of them than this could not report so much."""
    fewest = min(bundle.metric(name).limits.reports_per_epoch for name in metrics)
    needed = arguments.rate * arguments.seconds / len(metrics) / fewest
    if arguments.devices < needed:
        raise BadParameter(
            f"{arguments.devices:,} devices may not report so often in one epoch (limits of the "
            f"metrics): give --devices {-int(-needed // 1):,}, or less --rate or --seconds"
        )


def _figures(seen: Seen, arguments: argparse.Namespace) -> dict[str, Any]:
    metrics = seen.calls.counts.total()
    return {
        "asked": metrics,
        "acknowledged": seen.acknowledged,
        "not_sent": {reason: number for reason, number in seen.outcomes.items() if number},
        "reports_a_second": round(seen.acknowledged / max(seen.seconds, 1e-3), 1),
        "asked_a_second": arguments.rate,
        "devices": arguments.devices,
        "wakes": seen.wakes,
        "behind": seen.behind,
        "report_call_us": _shares(seen.calls, 1e6),
        "until_acknowledged_ms": _shares(seen.answers, 1e3),
    }


def _shares(times: Times, unit: float) -> dict[str, float]:
    return {name: round(unit * times.percentile(share), 1) for name, share in _SHARES}


def _show(found: dict[str, Any]) -> None:
    table(
        f"{found['acknowledged']:,} of {found['asked']:,} reports acknowledged, "
        f"{found['reports_a_second']:,.0f} a second ({found['asked_a_second']:,.0f} asked for)",
        ("", *(name for name, _ in _SHARES)),
        [
            ("report(), us", *(f"{x:,.1f}" for x in found["report_call_us"].values())),
            (
                "due to acknowledged, ms",
                *(f"{x:,.1f}" for x in found["until_acknowledged_ms"].values()),
            ),
        ],
    )
    devices, wakes = found["devices"], found["wakes"]
    idle = (
        f"; {devices - wakes:,} of {devices:,} had no turn in this time" if wakes < devices else ""
    )
    say(f"  devices woke {wakes:,} times, each time with a report of every metric{idle}")
    for reason, number in found["not_sent"].items():
        say(f"  {number:,} not acknowledged: {reason.replace('_', ' ')}")
    if found["behind"]:
        say(
            f"  {found['behind']:,} of {found['wakes']:,} devices woke over .1 s late: this "
            "machine has not the time to make so much load"
        )
