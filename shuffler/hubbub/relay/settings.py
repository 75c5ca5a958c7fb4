"""The relay's settings: all from its command line."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hubbub.errors import BadParameter
from hubbub.errors.addresses import url_parts
from hubbub.programs.command_line import Parser
from hubbub.runtime import Common, TlsFolder, check_addresses, read_network
from hubbub.runtime.http.public_door import add_callers, check_callers
from hubbub.runtime.monitoring.logs import FORMATS

_HERE: Final = ("127.0.0.1", "localhost", "::1")
_GATEWAY_PATH: Final = "/.well-known/ohttp-gateway"  # RFC 9540, section 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything the relay is told.

    gateway: the URL that it passes on to. roots: authorities in PEM that the gateway's certificate
    chains to; None for the system's. peer_rate, peer_burst: requests of one address, a second and
    at once; 0 for no limit.
    """

    gateway: str
    roots: Path | None
    listen: str
    proxies: tuple[str, ...]
    peer_rate: float
    peer_burst: int
    common: Common


def parse(arguments: Sequence[str] | None = None) -> Settings:
    """The settings on a command line. Exits with a message if it is wrong.

    Raises:
        BadParameter: a number is out of range, or an address is none.
    """
    namespace = parser().parse_args(arguments)
    check_callers(namespace)
    check_addresses(namespace, "listen", "metrics_listen")
    return Settings(
        gateway=_gateway(namespace.gateway),
        roots=namespace.roots,
        listen=namespace.listen,
        proxies=tuple(read_network("--proxy", proxy) for proxy in namespace.proxy),
        peer_rate=namespace.peer_rate,
        peer_burst=namespace.peer_burst,
        common=Common(
            tls=TlsFolder(namespace.tls, "relay") if namespace.tls else None,
            redis_url="",
            redis_replicas=0,
            metrics_listen=namespace.metrics_listen,
            log_format=namespace.log_format,
        ),
    )


def parser() -> argparse.ArgumentParser:
    """Knows every setting of the command line."""
    options = Parser(
        prog="hubbub relay",
        description="Pass sealed requests on to a shuffler's gateway, which then sees no address; "
        "what is in them the relay cannot read (Oblivious HTTP, RFC 9458).",
    )
    add = options.add_argument
    add(
        "--gateway",
        required=True,
        metavar="URL",
        help=f"of the shuffler's HTTP door, https://HOST:PORT; without a path {_GATEWAY_PATH}",
    )
    add(
        "--roots",
        type=Path,
        metavar="FILE",
        help="certificate authorities of the gateway, if not those of the system",
    )
    add("--listen", default="0.0.0.0:7080", help="address for devices (%(default)s)")
    security = options.add_mutually_exclusive_group(required=True)
    security.add_argument(
        "--tls",
        type=Path,
        metavar="FOLDER",
        help="folder of folder of folder of its certificate: relay.pem, relay.key",
    )
    security.add_argument(
        "--insecure", action="store_true", help="serve without TLS, on a loopback address only"
    )
    add_callers(options, rate=20.0, of="requests per second from one address", burst=2000)
    add("--metrics-listen", default="127.0.0.1:7084", help="address for Prometheus (%(default)s)")
    add("--log-format", choices=FORMATS, default=FORMATS[0], help="format of the log (%(default)s)")
    return options


def _gateway(address: str) -> str:
    parts = url_parts(address)
    if parts is None or not (
        parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _HERE)
    ):
        raise BadParameter(f"--gateway {address!a} is no address of one; write https://HOST:PORT")
    path = parts.path.rstrip("/") or _GATEWAY_PATH
    return f"{parts.scheme}://{parts.netloc}{path}"
