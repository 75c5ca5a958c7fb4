"""The aggregator's settings: from its command line, and the Redis URL from the environment."""

import argparse
import codecs
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from hubbub.errors import BadParameter
from hubbub.programs.command_line import Parser
from hubbub.runtime import (
    Common,
    Ranges,
    TlsFolder,
    add_common,
    check_addresses,
    check_range,
    common,
    read_limits,
    read_network,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything the aggregator is told."""

    bundle: Path
    keys: Path
    listen: str
    http_listen: str
    http_tokens: Path | None
    http_access: Path | None
    http_audit: str
    http_tls: TlsFolder | None
    http_rate: float
    http_origins: tuple[str, ...]
    http_proxies: tuple[str, ...]
    http_command: str
    http_notice: str
    shuffler_status: str
    export_dir: Path | None
    webhook: str
    webhook_secret: bytes
    common: Common
    processes: int
    shards: int
    max_window: int
    kept_epochs: int
    limits: Path | None


# What may be changed while it runs, by --limits.
_LIMITS: Final[Ranges] = {"http_rate": (0, 1e6), "max_window": (0, 10**12)}


def _processors() -> int:
    """How many this process may run on: fewer than there are, in a container bound to some."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def parse(arguments: Sequence[str] | None = None) -> Settings:
    """The settings on a command line. Exits with a message if it is wrong.

    Raises:
        BadParameter: HUBBUB_REDIS_URL is not set, a number is out of range, or an address is none.
    """
    namespace = parser().parse_args(arguments)
    check_range(namespace, "processes", 1, 256)  # beyond any machine this runs on
    for name in ("http_rate", "max_window"):
        check_range(namespace, name, *_LIMITS[name])
    check_range(namespace, "kept_epochs", 0, 10_000)
    check_range(namespace, "shards", 1, 256)  # a tag's first byte chooses
    given_too = [name for name in ("http_listen", "shuffler_status") if getattr(namespace, name)]
    check_addresses(namespace, "listen", *given_too)
    return Settings(
        bundle=namespace.bundle,
        keys=namespace.keys,
        listen=namespace.listen,
        http_listen=namespace.http_listen,
        http_tokens=namespace.http_tokens,
        http_access=namespace.http_access,
        http_audit=namespace.http_audit,
        http_tls=TlsFolder(namespace.http_tls, "aggregator") if namespace.http_tls else None,
        http_rate=namespace.http_rate,
        http_origins=tuple(namespace.http_origin),
        http_proxies=tuple(
            read_network("--http-proxy", network) for network in namespace.http_proxy
        ),
        http_command=_command(namespace.http_command),
        http_notice=namespace.http_notice,
        shuffler_status=namespace.shuffler_status,
        export_dir=namespace.export_dir,
        webhook=namespace.webhook,
        webhook_secret=_secret(namespace.webhook_secret),
        common=common(namespace, "aggregator"),
        processes=namespace.processes,
        shards=namespace.shards,
        max_window=namespace.max_window,
        kept_epochs=namespace.kept_epochs,
        limits=namespace.limits,
    )


def limited(settings: Settings) -> Settings:
    """The settings with what the file of limits says now. Raises BadParameter."""
    if settings.limits is None:
        return settings
    limits: dict[str, Any] = read_limits(settings.limits, _LIMITS, frozenset({"max_window"}))
    return replace(settings, **limits)


def parser() -> argparse.ArgumentParser:
    """Knows every setting of the command line."""
    options = Parser(
        prog="hubbub aggregator",
        description="Open shuffled batches, add them up exactly once, answer queries.",
        epilog="The Redis URL, which may hold a password, comes from HUBBUB_REDIS_URL.",
    )
    options.add_argument(
        "--bundle",
        type=Path,
        required=True,
        help="bundle of the operator (operator.hubbub), or the bundle of the apps, which contains "
        "no candidates and alerts",
    )
    options.add_argument(
        "--keys", type=Path, required=True, help="file of the opening keys (opening.keys.json)"
    )
    options.add_argument(
        "--listen", default="127.0.0.1:7071", help="address for the shuffler (%(default)s)"
    )
    options.add_argument(
        "--query-listen", type=_over_http_alone, help=argparse.SUPPRESS, default=argparse.SUPPRESS
    )
    options.add_argument(
        "--shuffler-status",
        default="",
        help="HOST:PORT of the shuffler's status, for the number of waiting reports; without it "
        "the conservation law cannot be checked",
    )
    _add_http(options)
    _add_outlets(options)
    add_common(options, metrics_listen="127.0.0.1:7075")
    options.add_argument(
        "--processes",
        type=int,
        default=_processors(),
        help="number of processes that open reports (as many as the processors it may use)",
    )
    options.add_argument(
        "--shards",
        type=int,
        default=1,
        help="number of parts of the totals of a stream's epoch, to spread a busy stream over the "
        "nodes of a Redis Cluster; decided when an epoch begins (%(default)s)",
    )
    options.add_argument(
        "--max-window",
        type=int,
        default=0,
        help="largest number of reports that an epoch of a stream may count; 0: its epochs may use "
        "twice the free maxmemory of Redis, at 20 bytes per report (%(default)s)",
    )
    options.add_argument(
        "--limits",
        type=Path,
        metavar="FILE",
        help="TOML file of max_window and http_rate, which override the command line and are read "
        "again when the file changes",
    )
    return options


def _add_http(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--http-listen",
        default="",
        help="HTTP address for analysts: the web page, HTTP/JSON and exports; without it HTTP is "
        "off",
    )
    parser.add_argument(
        "--http-tokens",
        type=Path,
        help="file of tokens made by hubbub keys token; without it and --http-access, everyone on "
        "this machine may ask, and nobody from elsewhere",
    )
    parser.add_argument(
        "--http-access",
        type=Path,
        metavar="FILE",
        help="TOML file of the rights of groups, and of the provider for logins (needs "
        "hubbub[oidc]; docs/operate/access.md)",
    )
    parser.add_argument(
        "--http-audit",
        default="",
        metavar="FILE",
        help="file that gets a line of JSON for every question over HTTP, with who asked and "
        "what; - for the log of the service; without it no line",
    )
    parser.add_argument(
        "--http-tls", type=Path, help="folder of certificates for HTTPS; without it plain HTTP"
    )
    parser.add_argument(
        "--http-rate",
        type=float,
        default=50.0,
        help="average number of requests per second from one caller; 0 for no limit (%(default)s)",
    )
    parser.add_argument(
        "--http-origin",
        action="append",
        default=[],
        metavar="https://HOST",
        help="origin whose pages may ask too (CORS; repeat); without it none",
    )
    parser.add_argument(
        "--http-proxy",
        action="append",
        default=[],
        metavar="ADDRESS",
        help="address or network of a proxy whose X-Forwarded-For is believed (repeat)",
    )
    parser.add_argument(
        "--http-command",
        default="",
        metavar="COMMAND",
        help="command that the page shows to analysts, as 'hubbub {} --url https://HOST:7076'; "
        "without it the page shows curl",
    )
    parser.add_argument(
        "--http-notice", default="", metavar="TEXT", help="text at the top of every page"
    )


def _over_http_alone(_address: str) -> str:
    raise argparse.ArgumentTypeError(
        "is gone: analysts ask over HTTP alone, at --http-listen; remove it"
    )


def _command(text: str) -> str:
    if text and "{}" not in text:
        raise BadParameter(
            "--http-command has no {} where the question goes; write it as "
            "'hubbub {} --url https://HOST:7076'"
        )
    if {"--query", "--tls"} & set(text.replace("=", " ").split()):
        raise BadParameter(
            "--http-command has --query or --tls, which are gone: analysts ask over HTTP; write it "
            "as 'hubbub {} --url https://HOST:7076'"
        )
    return text


def _add_outlets(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--export-dir",
        type=Path,
        help="folder for a JSON and a CSV file of every epoch that has closed",
    )
    parser.add_argument(
        "--kept-epochs",
        type=int,
        default=30,
        metavar="N",
        help="keep the finished estimates of the newest N epochs of each metric, and of the usual "
        "ranges, in Redis, for all aggregators and other programs; 0 for none (%(default)s)",
    )
    parser.add_argument(
        "--webhook", default="", help="address that receives every closed epoch, as JSON"
    )
    parser.add_argument(
        "--webhook-secret", type=Path, help="file of the secret that signs these requests"
    )


def _secret(path: Path | None) -> bytes:
    if path is None:
        return b""
    try:
        # A secret may be of any bytes; an editor's byte order mark is none of them.
        return path.read_bytes().removeprefix(codecs.BOM_UTF8).strip()
    except OSError as error:
        raise BadParameter(f"--webhook-secret {path}: {error.strerror}") from error
