"""The shuffler's settings: from its command line, and the Redis URL from the environment."""

import argparse
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final

from hubbub.errors import BadParameter
from hubbub.errors.address_checks import check_address
from hubbub.fields.rules import Interval
from hubbub.programs.command_line import Parser
from hubbub.programs.option_parsing import Group, add_options, option, options, read_options
from hubbub.runtime.service_options import (
    Common,
    address_option,
    burst_option,
    networks_option,
    proxies_option,
    rate_option,
    read_limits,
    tls_option,
)
from hubbub.runtime.tls import TlsFolder
from hubbub.shuffler.shards import MAX_SHARDS

_RESERVE: Final = 1.0
# PRIVACY: a batch that left at once would show the stream of the report that filled its pool.
_DELAY_SECONDS: Final = 30.0
# A carrier may have this many people behind one address; few send in the same tenth of a second.
_PEER_CALLS = 64
# The options that --limits may change at run time.
_LIMITS: Final = ("max_pool", "max_memory", "peer_rate", "peer_burst", "peer_calls")
_AGAIN: Final = "it is read again when it changes, and may be added later"
_BATCHES: Final = "in minimum batches"
_DOOR: Final = Group("HTTP (for devices without gRPC)")
_MIXING: Final = Group("mixing (its effect on anonymity: docs/operate/services.md)")
_PAST: Final = Group("limits (beyond them devices get a time to retry)")


def _addresses(name: str, addresses: tuple[str, ...]) -> tuple[str, ...]:
    for address in addresses:
        check_address(name, address)
    return addresses


@options
class HttpSettings:
    """The settings of the HTTP service. An empty `listen` turns it off.

    `relays` are addresses that are exempt from the limits of one address.
    """

    listen: str = address_option(
        "HTTP address for devices; without it HTTP is off",
        "",
        name="--http",
        metavar="HOST:PORT",
        group=_DOOR,
    )
    tls: TlsFolder | None = tls_option(
        "folder of certificates that browsers trust, as shuffler.pem and shuffler.key; "
        "without it those of --tls",
        "shuffler",
        name="--http-tls",
        metavar="FOLDER",
        group=_DOOR,
    )
    bundle: Path | None = option(
        "bundle for devices, served at /v1/bundle; it is read again when it changes",
        name="--http-bundle",
        metavar="FILE",
        group=_DOOR,
    )
    believed: tuple[str, ...] = proxies_option("--http-proxy", group=_DOOR)
    proxy_protocol: bool = option(
        "proxies send a PROXY header at the start of each connection (send-proxy-v2 in "
        "HAProxy); connections without it are refused, and X-Forwarded-For is ignored",
        name="--http-proxy-protocol",
        group=_DOOR,
    )
    shared: bool = option(
        "other shufflers on this machine may listen at the same HOST:PORT",
        name="--http-shared",
        group=_DOOR,
    )
    gateway_key: Path | None = option(
        "key made by hubbub keys gateway, which opens requests from relays (RFC 9458) at "
        "/.well-known/ohttp-gateway",
        metavar="FILE",
        group=_DOOR,
    )
    relays: tuple[str, ...] = networks_option(
        "address or network of a relay, which has its own limits instead of those of one address "
        "(repeatable)",
        name="--relay",
        group=_DOOR,
    )

    @property
    def proxies(self) -> tuple[str, ...]:
        """Proxies whose X-Forwarded-For is believed."""
        return () if self.proxy_protocol else self.believed

    @property
    def header_proxies(self) -> tuple[str, ...]:
        """Proxies that must send a PROXY header, which is believed."""
        return self.believed if self.proxy_protocol else ()

    def check(self) -> None:
        """Raises BadParameter if an option lacks another one that it needs."""
        for field in fields(self):
            if not self.listen and getattr(self, field.name):
                name = field.metadata["option"].name or "--gateway-key"
                raise BadParameter(f"{name} is for the HTTP door; open it with --http HOST:PORT")
        if self.proxy_protocol and not self.believed:
            raise BadParameter(
                "--http-proxy-protocol needs --http-proxy: the proxy whose header is read"
            )
        if self.relays and not self.gateway_key:
            raise BadParameter("--relay needs --gateway-key: the key that opens relayed requests")


@options
class Settings:
    """The shuffler's settings."""

    streams: Path = option("stream table made by hubbub catalog build")
    listen: str = address_option("address for devices (%(default)s)", "0.0.0.0:7070")
    operator_listen: str = address_option("address for the status (%(default)s)", "127.0.0.1:7073")
    aggregators: tuple[str, ...] = option(
        "address of the aggregator (127.0.0.1:7071); repeat for several that share one Redis",
        name="--aggregator",
        read=_addresses,
    )
    notice: Path | None = option(
        "notice signed by hubbub notice make, for all devices; also at /v1/notice; " + _AGAIN,
        metavar="FILE",
    )
    models: Path | None = option(
        "state of the models signed by hubbub model publish, for devices that request it; "
        "also at /v1/models; " + _AGAIN,
        metavar="FILE",
    )
    token_key: Path | None = option(
        "key made by hubbub keys issuer, which checks tokens; required if the catalog "
        "names an issuer",
        metavar="FILE",
    )
    metrics_listen: str = address_option("address for Prometheus (%(default)s)", "127.0.0.1:7074")
    common: Common
    http: HttpSettings
    reserve: float = option(
        f"reports that stay in an open pool, {_BATCHES} ({_RESERVE:g}; none with --dev)",
        default=None,
        within=Interval(0, 100),  # with more nothing ever leaves
        group=_MIXING,
    )
    reserve_spread: float = option(
        f"largest random addition to --reserve, {_BATCHES}, for each batch (%(default)s)",
        default=0.0,
        within=Interval(0, 100),
        group=_MIXING,
    )
    delay: float = option(
        "average time for which a full pool holds a batch back, in seconds "
        f"({_DELAY_SECONDS:g}; none with --dev)",
        default=None,
        within=Interval(0, 86_400),
        group=_MIXING,
    )
    max_batch: int = option(
        "largest number of reports in a batch (%(default)s)",
        default=5000,
        within=Interval(1, 1_000_000),
        group=_MIXING,
    )
    shards: int = option(
        "number of parts of the pool of an epoch that leaves whole, to spread it over the"
        " nodes of a Redis Cluster; it stays one crowd; decided when an epoch begins "
        "(%(default)s)",
        default=1,
        within=Interval(1, MAX_SHARDS),
        group=_MIXING,
    )
    max_pool: int = option(
        "largest number of reports in the pool (%(default)s)",
        default=2_000_000,
        within=Interval(1, 10**12),
        group=_PAST,
    )
    max_memory: float = option(
        "largest share of the maxmemory of Redis that is used, if it is set (%(default)s)",
        default=0.8,
        within=Interval(0.01, 1),
        group=_PAST,
    )
    peer_rate: float = rate_option("reports per second from one address", 200.0, group=_PAST)
    peer_burst: int = burst_option("reports at once from one address", 20_000, group=_PAST)
    peer_calls: int = option(
        "largest number of open calls of one address; 0: no limit "
        f"({_PEER_CALLS}, or none with --peer-rate 0)",
        default=None,
        within=Interval(0, 10**6),
        group=_PAST,
    )
    limits: Path | None = option(
        "TOML file of these limits, as in max_pool = 1000000, which override the command "
        "line and are read again when the file changes",
        metavar="FILE",
        group=_PAST,
    )


def parse(arguments: Sequence[str] | None = None) -> Settings:
    """Reads the settings from a command line; exits with a message if it is malformed.

    Raises BadParameter if HUBBUB_REDIS_URL is not set, a number is out of range, or an address is
    invalid.
    """
    settings = read_options(Settings, parser().parse_args(arguments))
    settings.http.check()
    common = settings.common.of("shuffler")
    values: dict[str, Any] = {
        # In development a single report leaves, and at once.
        "reserve": 0.0 if common.development else _RESERVE,
        "delay": 0.0 if common.development else _DELAY_SECONDS,
        # If addresses identify nobody, calls per address do not either.
        "peer_calls": _PEER_CALLS if settings.peer_rate else 0,
    }
    return replace(
        settings,
        common=common,
        http=replace(settings.http, tls=settings.http.tls or common.tls),
        aggregators=settings.aggregators or ("127.0.0.1:7071",),
        **{name: number for name, number in values.items() if getattr(settings, name) is None},
    )


def limited(settings: Settings) -> Settings:
    """The settings, overridden by the current file of limits. Raises BadParameter."""
    if settings.limits is None:
        return settings
    return replace(settings, **read_limits(settings.limits, _LIMITS, Settings))


def parser() -> argparse.ArgumentParser:
    """The parser of all settings on the command line."""
    parser = Parser(
        prog="hubbub shuffler",
        description="Take sealed reports from devices, mix them, pass batches to the aggregator.",
        epilog="The Redis URL, which may contain a password, comes from HUBBUB_REDIS_URL.",
    )
    add_options(parser, Settings)
    return parser
