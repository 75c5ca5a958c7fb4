"""The aggregator's settings: from its command line, and the Redis URL from the environment."""

import argparse
import codecs
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from hubbub.errors import BadParameter
from hubbub.fields.rules import Interval
from hubbub.programs.command_line import Parser
from hubbub.programs.option_parsing import add_options, option, options, read_options
from hubbub.runtime.service_options import (
    Common,
    address_option,
    proxies_option,
    read_limits,
    tls_option,
)
from hubbub.runtime.tls import TlsFolder

# The options that --limits may change at run time.
_LIMITS: Final = ("http_rate", "max_window")
# Those that this process may use, which in a container may be fewer than the machine has.
_PROCESSORS: Final = (
    len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
)


def _gone(remedy: str) -> Callable[[str], str]:
    """Makes a reader that refuses an option of an earlier version."""

    def refuse(_text: str) -> str:
        raise argparse.ArgumentTypeError(f"no longer exists: {remedy}; remove it")

    return refuse


def _secret(name: str, path: Path) -> bytes:
    try:
        # A secret may contain any bytes; an editor's byte order mark is not part of it.
        return path.read_bytes().removeprefix(codecs.BOM_UTF8).strip()
    except OSError as error:
        raise BadParameter(f"{name} {path}: {error.strerror}") from error


@options
class HttpSettings:
    """Settings of analysts' HTTP access; with an empty `listen` there is none."""

    listen: str = address_option(
        "HTTP address for analysts: the web page, HTTP/JSON and exports; without it HTTP is off",
        "",
        name="--http-listen",
    )
    tokens: Path | None = option(
        "file of tokens made by hubbub keys token; without it and --http-access, everyone "
        "on this machine may query, but nobody else",
        name="--http-tokens",
        default=None,
    )
    access: Path | None = option(
        "TOML file of the rights of groups, and of the provider for logins (needs "
        "hubbub[oidc]; docs/operate/access.md)",
        name="--http-access",
        default=None,
        metavar="FILE",
    )
    audit: str = option(
        "file for a line of JSON per question over HTTP, with caller and question; - for the log "
        "of the service; without it no audit",
        name="--http-audit",
        default="",
        metavar="FILE",
    )
    tls: TlsFolder | None = tls_option(
        "folder of certificates for HTTPS; without it plain HTTP", "aggregator", name="--http-tls"
    )
    rate: float = option(
        "average number of requests per second from one caller; 0 for no limit (%(default)s)",
        name="--http-rate",
        default=50.0,
        within=Interval(0, 10**6),
    )
    origins: tuple[str, ...] = option(
        "further origin whose pages may query (CORS; repeat)",
        name="--http-origin",
        default=(),
        metavar="https://HOST",
    )
    proxies: tuple[str, ...] = proxies_option("--http-proxy")
    notice: str = option(
        "text at the top of every page", name="--http-notice", default="", metavar="TEXT"
    )


@options
class Outlets:
    """Destinations of closed epochs, for long-term storage and other programs."""

    totals: str = option(
        "folder, or address such as s3://BUCKET/PREFIX, for the totals of every epoch that has "
        "closed, as Parquet; answers from them need no Redis (needs hubbub[tables])",
        default="",
        metavar="PLACE",
    )
    redis_days: int = option(
        "drop the totals of a closed epoch from Redis this many days after its end, once their "
        "file was read back; 0 for never (%(default)s)",
        default=0,
        metavar="DAYS",
        within=Interval(0, 36_500),
        needs="totals",
    )
    estimates: str = option(
        "folder or address for the estimates of all metrics, as Parquet: one table, of a file per "
        "metric and closed epoch (needs hubbub[tables])",
        default="",
        metavar="PLACE",
    )
    otlp: str = option(
        "address of an OpenTelemetry collector that receives the estimates of every closed epoch "
        "as metrics, such as http://127.0.0.1:4318/v1/metrics (needs hubbub[tracing])",
        default="",
        metavar="URL",
    )


@options
class Settings:
    """All settings of the aggregator."""

    bundle: Path = option(
        "bundle of the operator (operator.hubbub), or the bundle of the apps, which "
        "contains no candidates and alerts"
    )
    keys: Path = option("file of the opening keys (opening.keys.json)")
    listen: str = address_option("address for the shuffler (%(default)s)", "127.0.0.1:7071")
    query_listen: str | None = option(
        argparse.SUPPRESS, parse=_gone("analysts query over HTTP, at --http-listen")
    )
    http_command: str | None = option(
        argparse.SUPPRESS, parse=_gone("the page shows commands with its own address")
    )
    shuffler_status: str = address_option(
        "HOST:PORT of the shuffler's status, for the number of waiting reports; without "
        "it the conservation law cannot be checked",
        "",
        first=1,
    )
    http: HttpSettings
    export_dir: Path | None = option(
        "folder for a JSON and a CSV file of every epoch that has closed"
    )
    outlets: Outlets
    kept_epochs: int = option(
        "keep the finished estimates of the newest N epochs of each metric, and of the "
        "usual ranges, in Redis, for all aggregators and other programs; 0 for none "
        "(%(default)s)",
        default=30,
        metavar="N",
        within=Interval(0, 10_000),
    )
    webhook: str = option("address that receives every closed epoch, as JSON", default="")
    webhook_secret: bytes = option(
        "file of the secret that signs these requests",
        default=b"",
        parse=Path,
        read=_secret,
    )
    metrics_listen: str = address_option("address for Prometheus (%(default)s)", "127.0.0.1:7075")
    common: Common
    processes: int = option(
        "number of processes that open reports (as many as the processors it may use)",
        default=_PROCESSORS,
        within=Interval(1, 256),  # more than any machine has
    )
    shards: int = option(
        "number of parts of the totals of a stream's epoch, to spread a busy stream over "
        "the nodes of a Redis Cluster; decided when an epoch begins (%(default)s)",
        default=1,
        within=Interval(1, 256),  # a tag's first byte chooses
    )
    max_window: int = option(
        "largest number of reports that an epoch of a stream may count; 0: its epochs may"
        " use twice the free maxmemory of Redis, at 20 bytes per report (%(default)s)",
        default=0,
        within=Interval(0, 10**12),
    )
    limits: Path | None = option(
        "TOML file of max_window and http_rate, which override the command line and are "
        "read again when the file changes",
        metavar="FILE",
    )


def parse(arguments: Sequence[str] | None = None) -> Settings:
    """The settings on a command line. Exits with a message if it is invalid.

    Raises BadParameter without HUBBUB_REDIS_URL, for a number out of range, or an invalid address.
    """
    settings = read_options(Settings, parser().parse_args(arguments))
    return replace(settings, common=settings.common.of("aggregator"))


def limited(settings: Settings) -> Settings:
    """The settings, updated from the limits file. Raises BadParameter."""
    if settings.limits is None:
        return settings
    limits = read_limits(settings.limits, _LIMITS, Settings, HttpSettings)
    http = replace(settings.http, rate=limits.pop("http_rate", settings.http.rate))
    return replace(settings, http=http, **limits)


def parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = Parser(
        prog="hubbub aggregator",
        description="Open shuffled batches, add them up exactly once, answer queries.",
        epilog="The Redis URL, which may contain a password, comes from HUBBUB_REDIS_URL.",
    )
    add_options(parser, Settings)
    return parser
