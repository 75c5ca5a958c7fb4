"""The relay's settings, all from its command line."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hubbub.errors import BadParameter
from hubbub.errors.address_checks import secure_parts
from hubbub.programs.command_line import Parser
from hubbub.programs.option_parsing import add_options, option, options, read_options
from hubbub.runtime import service_options
from hubbub.runtime.tls import TlsFolder

_GATEWAY_PATH: Final = "/.well-known/ohttp-gateway"  # RFC 9540, section 4


def _gateway(_: str, address: str) -> str:
    parts = secure_parts(address)
    if parts is None:
        raise BadParameter(f"--gateway {address!a} is not an address; write https://HOST:PORT")
    path = parts.path.rstrip("/") or _GATEWAY_PATH
    return f"{parts.scheme}://{parts.netloc}{path}"


@options
class Settings:
    """The relay's settings."""

    gateway: str = option(
        f"address of the shuffler's HTTP port, https://HOST:PORT; without a path, {_GATEWAY_PATH}",
        metavar="URL",
        read=_gateway,
    )
    roots: Path | None = option(
        "certificate authorities of the gateway, if not those of the system", metavar="FILE"
    )
    listen: str = service_options.address_option(
        "address for devices (%(default)s)", "0.0.0.0:7080"
    )
    tls: TlsFolder | None = service_options.tls_option(
        "folder of its certificate: relay.pem, relay.key",
        "relay",
        metavar="FOLDER",
        exclusive=service_options.SECURITY,
    )
    insecure: bool = service_options.insecure_option()
    proxies: tuple[str, ...] = service_options.proxies_option("--proxy")
    peer_rate: float = service_options.rate_option("requests per second from one address", 20.0)
    peer_burst: int = service_options.burst_option("requests at once from one address", 2000)
    metrics_listen: str = service_options.address_option(
        "address for Prometheus (%(default)s)", "127.0.0.1:7084"
    )
    log_format: str = service_options.log_format_option()

    @property
    def common(self) -> service_options.Common:
        """The settings that all services share; a relay has no Redis."""
        return service_options.Common(tls=self.tls, log_format=self.log_format, development=False)


def parse(arguments: Sequence[str] | None = None) -> Settings:
    """Reads the settings from a command line; exits, or raises BadParameter, if it is malformed."""
    return read_options(Settings, parser().parse_args(arguments))


def parser() -> argparse.ArgumentParser:
    """The parser of all settings on the command line."""
    parser = Parser(
        prog="hubbub relay",
        description="Forward sealed requests to a shuffler's gateway, which then sees no "
        "addresses; the relay cannot read the requests (Oblivious HTTP, RFC 9458).",
    )
    add_options(parser, Settings)
    return parser
