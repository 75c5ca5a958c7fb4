"""The shuffler's settings: from its command line, and the Redis URL from the environment."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from hubbub.errors import BadParameter
from hubbub.errors.addresses import check_address
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
from hubbub.shuffler.shards import MAX_SHARDS

_RESERVE: Final = 1.0
# PRIVACY: a batch that left at once would show the stream of the report that filled its pool.
_DELAY_SECONDS: Final = 30.0
# A carrier has so many people behind one address, of whom few send in the same tenth of a second.
_PEER_CALLS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """What the HTTP door is told. listen: empty for no such door.

    proxies: believed in X-Forwarded-For. header_proxies: in their PROXY header, which they must
    send; none of them is among the others. gateway_key: of what relays pass on; None to take
    nothing from any. relays: of these addresses one may send as much as all its people.
    """

    listen: str
    tls: TlsFolder | None
    bundle: Path | None
    proxies: tuple[str, ...]
    header_proxies: tuple[str, ...]
    shared: bool
    gateway_key: Path | None
    relays: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything the shuffler is told."""

    streams: Path
    token_key: Path | None
    listen: str
    operator_listen: str
    http: HttpSettings
    aggregators: tuple[str, ...]
    common: Common
    reserve: float
    reserve_spread: float
    delay: float
    max_batch: int
    shards: int
    max_pool: int
    max_memory: float
    peer_rate: float
    peer_burst: int
    peer_calls: int
    limits: Path | None
    notice: Path | None
    models: Path | None


# What may be changed while it runs, by --limits.
_LIMITS: Final[Ranges] = {
    "max_pool": (1, 10**12),
    "max_memory": (0.01, 1),
    "peer_rate": (0, 10**9),
    "peer_burst": (1, 10**9),
    "peer_calls": (0, 10**6),
}
_SIGNED: Final = {
    "notice": "notice signed by hubbub notice make, for all devices; also at /v1/notice",
    "models": "state of the models signed by hubbub model publish, for devices that request it; "
    "also at /v1/models",
}
_WHOLE: Final = frozenset({"max_pool", "peer_burst", "peer_calls"})


def parse(arguments: Sequence[str] | None = None) -> Settings:
    """The settings on a command line. Exits with a message if it is wrong.

    Raises:
        BadParameter: HUBBUB_REDIS_URL is not set, a number is out of range, or an address is none.
    """
    namespace = parser().parse_args(arguments)
    if namespace.reserve is not None:
        check_range(namespace, "reserve", 0, 100)  # past that nothing ever leaves
    check_range(namespace, "reserve_spread", 0, 100)
    if namespace.delay is not None:
        check_range(namespace, "delay", 0, 86_400)
    check_range(namespace, "max_batch", 1, 1_000_000)
    check_range(namespace, "shards", 1, MAX_SHARDS)
    for name in ("max_pool", "max_memory", "peer_rate", "peer_burst"):
        check_range(namespace, name, *_LIMITS[name])
    if namespace.peer_calls is None:  # where addresses tell nobody apart, their calls do not either
        namespace.peer_calls = _PEER_CALLS if namespace.peer_rate else 0
    check_range(namespace, "peer_calls", *_LIMITS["peer_calls"])
    common_settings = common(namespace, "shuffler")
    check_addresses(namespace, "listen", "operator_listen")
    aggregators = tuple(namespace.aggregator or ["127.0.0.1:7071"])
    for aggregator in aggregators:
        check_address("--aggregator", aggregator)
    if namespace.reserve is None:  # in development a single report leaves
        namespace.reserve = 0.0 if common_settings.development else _RESERVE
    if namespace.delay is None:  # and at once
        namespace.delay = 0.0 if common_settings.development else _DELAY_SECONDS
    return Settings(
        streams=namespace.streams,
        token_key=namespace.token_key,
        listen=namespace.listen,
        operator_listen=namespace.operator_listen,
        http=_http(namespace, common_settings),
        aggregators=aggregators,
        common=common_settings,
        reserve=namespace.reserve,
        reserve_spread=namespace.reserve_spread,
        delay=namespace.delay,
        max_batch=namespace.max_batch,
        shards=namespace.shards,
        max_pool=namespace.max_pool,
        max_memory=namespace.max_memory,
        peer_rate=namespace.peer_rate,
        peer_burst=namespace.peer_burst,
        peer_calls=namespace.peer_calls,
        limits=namespace.limits,
        notice=namespace.notice,
        models=namespace.models,
    )


def _http(namespace: argparse.Namespace, common_settings: Common) -> HttpSettings:
    if not namespace.http:
        for name in (
            "http_tls",
            "http_bundle",
            "http_shared",
            "http_proxy",
            "http_proxy_protocol",
            "gateway_key",
            "relay",
        ):
            if getattr(namespace, name):
                option = "--" + name.replace("_", "-")
                raise BadParameter(f"{option} is for the HTTP door; open it with --http HOST:PORT")
    else:
        check_addresses(namespace, "http")
    if namespace.http_proxy_protocol and not namespace.http_proxy:
        raise BadParameter("--http-proxy-protocol: say whose header to read with --http-proxy")
    if namespace.relay and not namespace.gateway_key:
        raise BadParameter("--relay: say what opens what it passes on with --gateway-key")
    proxies = tuple(read_network("--http-proxy", proxy) for proxy in namespace.http_proxy)
    return HttpSettings(
        listen=namespace.http,
        tls=TlsFolder(namespace.http_tls, "shuffler")
        if namespace.http_tls
        else common_settings.tls,
        bundle=namespace.http_bundle,
        proxies=() if namespace.http_proxy_protocol else proxies,
        header_proxies=proxies if namespace.http_proxy_protocol else (),
        shared=namespace.http_shared,
        gateway_key=namespace.gateway_key,
        relays=tuple(read_network("--relay", relay) for relay in namespace.relay),
    )


def limited(settings: Settings) -> Settings:
    """The settings with what the file of limits says now. Raises BadParameter."""
    if settings.limits is None:
        return settings
    limits: dict[str, Any] = read_limits(settings.limits, _LIMITS, _WHOLE)
    return replace(settings, **limits)


def parser() -> argparse.ArgumentParser:
    """Knows every setting of the command line."""
    options = Parser(
        prog="hubbub shuffler",
        description="Take sealed reports from devices, mix them, pass batches to the aggregator.",
        epilog="The Redis URL, which may hold a password, comes from HUBBUB_REDIS_URL.",
    )
    add = options.add_argument
    add("--streams", type=Path, required=True, help="stream table made by hubbub catalog build")
    add("--listen", default="0.0.0.0:7070", help="address for devices (%(default)s)")
    add("--operator-listen", default="127.0.0.1:7073", help="address for the status (%(default)s)")
    add(
        "--aggregator",
        action="append",
        help="address of the aggregator (127.0.0.1:7071); repeat for several that share one Redis",
    )
    for what, meaning in _SIGNED.items():
        help_ = f"{meaning}; it is read again when it changes, and may be added later"
        add(f"--{what}", type=Path, metavar="FILE", help=help_)
    add(
        "--token-key",
        type=Path,
        metavar="FILE",
        help="key made by hubbub keys issuer, which checks tokens; required if the catalog names "
        "an issuer",
    )
    add_common(options, metrics_listen="127.0.0.1:7074")
    _add_http(options)
    _add_mixing(options)
    _add_limits(options)
    return options


def _add_mixing(parser: argparse.ArgumentParser) -> None:
    mixing = parser.add_argument_group(
        "mixing (what each does for anonymity: docs/operate/services.md)"
    )
    add = mixing.add_argument
    batches = "in minimum batches"
    add(
        "--reserve",
        type=float,
        help=f"reports that stay in an open pool, {batches} ({_RESERVE:g}; none with --dev)",
    )
    add(
        "--reserve-spread",
        type=float,
        default=0.0,
        help=f"largest random addition to --reserve, {batches}, for each batch (%(default)s)",
    )
    add(
        "--delay",
        type=float,
        help="average time for which a full pool holds a batch back, in seconds "
        f"({_DELAY_SECONDS:g}; none with --dev)",
    )
    add(
        "--max-batch",
        type=int,
        default=5000,
        help="largest number of reports in a batch (%(default)s)",
    )
    add(
        "--shards",
        type=int,
        default=1,
        help="number of parts of the pool of an epoch that leaves whole, to spread it over the "
        "nodes of a Redis Cluster; it stays one crowd; decided when an epoch begins "
        "(%(default)s)",
    )


def _add_http(parser: argparse.ArgumentParser) -> None:
    door = parser.add_argument_group("HTTP (for devices that do not speak gRPC)")
    add = door.add_argument
    add(
        "--http",
        default="",
        metavar="HOST:PORT",
        help="HTTP address for devices; without it HTTP is off",
    )
    add(
        "--http-tls",
        type=Path,
        metavar="FOLDER",
        help="folder of certificates that browsers trust, as shuffler.pem and "
        "shuffler.key; without it those of --tls",
    )
    add(
        "--http-bundle",
        type=Path,
        metavar="FILE",
        help="bundle for devices, served at /v1/bundle; it is read again when it changes",
    )
    add(
        "--http-proxy",
        action="append",
        default=[],
        metavar="ADDRESS",
        help="address or network of a proxy whose X-Forwarded-For is believed (repeat)",
    )
    add(
        "--http-proxy-protocol",
        action="store_true",
        help="proxies send a PROXY header at the start of each connection (send-proxy-v2 in "
        "HAProxy); connections without it are refused, and X-Forwarded-For is ignored",
    )
    add(
        "--http-shared",
        action="store_true",
        help="other shufflers on this machine may listen at the same HOST:PORT",
    )
    add(
        "--gateway-key",
        type=Path,
        metavar="FILE",
        help="key made by hubbub keys gateway, which opens requests from relays (RFC 9458) at "
        "/.well-known/ohttp-gateway",
    )
    add(
        "--relay",
        action="append",
        default=[],
        metavar="ADDRESS",
        help="address or network of a relay, which the limits of one address do not bind "
        "(repeat); it has limits of its own",
    )


def _add_limits(parser: argparse.ArgumentParser) -> None:
    limits = parser.add_argument_group("limits (past them devices are told when to come back)")
    add = limits.add_argument
    add(
        "--max-pool",
        type=int,
        default=2_000_000,
        help="largest number of reports in the pool (%(default)s)",
    )
    add(
        "--max-memory",
        type=float,
        default=0.8,
        help="largest share of the maxmemory of Redis that is used, if it is set (%(default)s)",
    )
    add(
        "--peer-rate",
        type=float,
        default=200.0,
        help="average number of reports per second from one address; 0: no limit (%(default)s)",
    )
    add("--peer-burst", type=int, default=20_000, help="largest number at once (%(default)s)")
    add(
        "--peer-calls",
        type=int,
        help=f"largest number of open calls of one address; 0: no limit ({_PEER_CALLS}, or none "
        "with --peer-rate 0)",
    )
    add(
        "--limits",
        type=Path,
        metavar="FILE",
        help="TOML file of these limits, as in max_pool = 1000000, which override the command "
        "line and are read again when the file changes",
    )
