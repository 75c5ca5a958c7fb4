"""`hubbub catalog check`, `hubbub catalog build` and `hubbub catalog schema`."""

import argparse
import json
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path

from hubbub.catalog import Catalog
from hubbub.catalog.encoding import read_text, to_text
from hubbub.catalog.schema import catalog_schema
from hubbub.cli.installation import build_bundle
from hubbub.cli.terminal.output import say, table
from hubbub.errors import BadParameter
from hubbub.privacy.crowd import read_planned, shuffled_of

__all__ = ["add"]


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `catalog` to the command line."""
    catalog = commands.add_parser(
        "catalog", help="check metrics.toml, build what is shipped, help editors"
    )
    actions = catalog.add_subparsers(required=True, metavar="ACTION")
    check = actions.add_parser("check", help="check a catalog, show what each metric reveals")
    check.add_argument(
        "catalog",
        type=Path,
        nargs="?",
        default=Path("metrics.toml"),
        help="the catalog (%(default)s)",
    )
    check.set_defaults(run=_check)
    build = actions.add_parser("build", help="sign the bundle that apps ship")
    build.add_argument(
        "catalog",
        type=Path,
        nargs="?",
        default=Path("metrics.toml"),
        help="the catalog (%(default)s)",
    )
    build.add_argument("--keys", type=Path, required=True, help="folder made by: hubbub keys new")
    build.add_argument(
        "--out", type=Path, default=Path("app.hubbub"), help="where the bundle goes (%(default)s)"
    )
    build.add_argument(
        "--streams", type=Path, default=Path("streams.json"), help="for the shuffler (%(default)s)"
    )
    build.add_argument(
        "--previous", type=Path, help="bundle to compare with (the one at --out, if there is one)"
    )
    build.add_argument("--roots", type=Path, help="PEM of the authority of the shuffler's TLS")
    build.set_defaults(run=_build)
    schema = actions.add_parser("schema", help="the JSON Schema of metrics.toml, for editors")
    schema.set_defaults(run=_schema)


def _check(arguments: argparse.Namespace) -> int:
    catalog = read_planned(arguments.catalog)
    rows = [
        (
            metric.name,
            metric.mechanism,
            metric.randomizer.VALUES if metric.values is None else str(len(metric.values)),
            f"{metric.report_loss:.3f}",
            f"{metric.lifetime_loss:.3f}" if isfinite(metric.lifetime_loss) else "",
            f"{metric.limits.lifetime_epsilon:g}",
            str(metric.randomizer.layout.payload_bytes),
            f"{metric.min_batch:,}",
        )
        for metric in catalog.metrics.values()
    ]
    header = (
        "metric",
        "mechanism",
        "values",
        "epsilon per report",
        "per unchanged value",
        "lifetime limit",
        "payload bytes",
        "min batch",
    )
    table(str(arguments.catalog), header, rows, text_columns=2)
    for metric in catalog.metrics.values():
        if metric.central:
            whole = shuffled_of(metric)
            say(
                f"{metric.name}: a whole epoch of {whole.reports:,} reports or more says epsilon "
                f"{whole.epsilon:.4g} at delta {whole.delta:g} of one person, {whole.assumption}"
            )
        if metric.choice:
            say(f"{metric.name}: {metric.choice}")
        if metric.tiers:
            tiers = ", ".join(f"{epsilon:g}" for epsilon in metric.tiers)
            say(f"{metric.name}: a person may ask for epsilon {tiers} instead")
    _say_expired(catalog)
    say(f"{arguments.catalog}: {len(rows)} metrics, no problem found")
    return 0


def _schema(_: argparse.Namespace) -> int:
    say(json.dumps(catalog_schema(), indent=1))
    return 0


def _say_expired(catalog: Catalog) -> None:
    """Name the metrics that no device reports any more: they stay for what is held of them."""
    today = datetime.now(UTC).date()
    for metric in catalog.metrics.values():
        if metric.expires < today:
            say(f"{metric.name}: expired on {metric.expires}, so devices do not report it")


def _build(arguments: argparse.Namespace) -> int:
    try:
        roots = read_text(arguments.roots) if arguments.roots else None
    except ValueError as error:
        raise BadParameter(f"--roots {error}; give the authority's ca.pem") from error
    catalog = read_planned(arguments.catalog)
    _say_expired(catalog)
    bundle = build_bundle(
        catalog,
        arguments.keys,
        out=arguments.out,
        streams=arguments.streams,
        previous=arguments.previous or arguments.out,
        roots=roots,
    )
    say(f"{arguments.out}: {len(bundle.metrics)} metrics, {len(bundle.keys)} keys, for the apps")
    over = f"; handed over so often: {len(bundle.handovers)}" if bundle.handovers else ""
    say(f"{arguments.out}: serial {bundle.serial}, signed by {to_text(bundle.operator)}{over}")
    say(f"{arguments.streams}: for the shuffler")
    return 0
