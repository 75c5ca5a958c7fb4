"""Options that services share, and a file of limits that may change while a service runs."""

import os
from collections.abc import Collection
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Final

from hubbub.errors import BadParameter
from hubbub.errors.address_checks import check_address
from hubbub.fields.rules import Interval
from hubbub.programs.option_parsing import Exclusive, intervals_of, option, options
from hubbub.programs.text_files import parse_toml, read_text
from hubbub.runtime.monitoring.logs import FORMATS
from hubbub.runtime.tls import TlsFolder

VARIABLES: Final = {
    "HUBBUB_REDIS_URL": "the service's own Redis, as redis://HOST:PORT/0 or rediss://, with the "
    "user and the password (needed)",
    "HUBBUB_DEV": "1 has the effect of `--dev`; `hubbub init --dev` writes it",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "address that receives traces of batches; "
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT has the same effect",
}
"""What a service reads of its environment; its command line says the rest."""
SECURITY: Final = Exclusive(required=True)
"""Certificates, or none on loopback: one of both is needed."""


def tls_option(text: str, role: str = "", **declaration: Any) -> Any:
    """An option for a folder of certificates; `role` selects the files in it."""

    def read(_: str, folder: Path) -> TlsFolder:
        return TlsFolder(folder, role)

    return option(text, default=None, parse=Path, read=read, **declaration)


def insecure_option() -> Any:
    """The option to serve without certificates."""
    return option(
        "serve without TLS, on a loopback address only", default=False, exclusive=SECURITY
    )


def address_option(text: str, default: str, *, first: int = 0, **declaration: Any) -> Any:
    """An option for HOST:PORT; `first` is the lowest port, 0 for a listener."""

    def read(name: str, address: str) -> str:
        check_address(name, address, first=first)
        return address

    return option(text, default=default, read=read, **declaration)


def networks_option(text: str, **declaration: Any) -> Any:
    """A repeated option for an address or network."""

    def read(name: str, networks: tuple[str, ...]) -> tuple[str, ...]:
        addresses = []
        for network in networks:
            try:
                addresses.append(str(ip_network(network)))
            except ValueError:
                raise BadParameter(
                    f"{name} {network!a} is not an address; write 10.0.0.5, or a network as "
                    "10.0.0.0/24"
                ) from None
        return tuple(addresses)

    return option(text, default=(), metavar="ADDRESS", read=read, **declaration)


def proxies_option(name: str, **declaration: Any) -> Any:
    """A repeated option for proxies whose X-Forwarded-For is believed."""
    return networks_option(
        "address or network of a proxy whose X-Forwarded-For is trusted (repeatable)",
        name=name,
        **declaration,
    )


def rate_option(what: str, default: float, **declaration: Any) -> Any:
    """The option for how much of `what` one caller may send on average, in a second."""
    text = f"average number of {what}; 0: no limit (%(default)s)"
    return option(text, default=default, within=Interval(0, 10**9), **declaration)


def burst_option(what: str, default: int, **declaration: Any) -> Any:
    """The option for how much of `what` one caller may send at once."""
    text = f"largest number of {what} (%(default)s)"
    return option(text, default=default, within=Interval(1, 10**9), **declaration)


def log_format_option() -> Any:
    """The option for the format of the log."""
    return option("format of the log (%(default)s)", default=FORMATS[0], choices=FORMATS)


@options
class Common:
    """Settings that every service has.

    `tls` is None for plain text; `redis_url` is "" for a service without Redis; `development` marks
    an installation whose privacy settings protect nobody.
    """

    tls: TlsFolder | None = tls_option(
        "folder of certificates made by hubbub keys tls", exclusive=SECURITY
    )
    insecure: bool = insecure_option()
    redis_replicas: int = option(
        "number of Redis replicas that must have a write before it counts (%(default)s)",
        default=0,
        within=Interval(0, 10),
    )
    log_format: str = log_format_option()
    development: bool = option(
        "development installation: the privacy settings protect nobody, and files of "
        "production are refused; also set by HUBBUB_DEV=1",
        name="--dev",
    )
    redis_url: str = ""

    def of(self, role: str) -> "Common":
        """These settings for a role, completed from the environment.

        Raises BadParameter if HUBBUB_REDIS_URL is not set, or HUBBUB_DEV is neither 0 nor 1.
        """
        development = os.environ.get("HUBBUB_DEV", "")
        if development not in {"", "0", "1"}:
            raise BadParameter("HUBBUB_DEV is neither 1 nor 0; set it to 1, or leave it out")
        return replace(
            self,
            tls=replace(self.tls, role=role) if self.tls else None,
            redis_url=redis_url(),
            development=self.development or development == "1",
        )


def redis_url(setting: str = "HUBBUB_REDIS_URL") -> str:
    """The Redis URL from the environment, where it is set since it may hold a password.

    Raises BadParameter if the variable is not set.
    """
    url = os.environ.get(setting)
    if not url:
        raise BadParameter(f"{setting} is not set; set it to redis://HOST:PORT/0")
    return url


def read_limits(path: Path, names: Collection[str], *sections: type) -> dict[str, Any]:
    """Reads the limits in a TOML file, by name; absent ones are left out.

    `names` are the allowed options, without dashes; `sections` are the classes that declare them.
    Raises BadParameter if the file cannot be read, names an unknown limit, or a limit is out of
    range.
    """
    try:
        text = read_text(path)
    except ValueError as error:
        raise BadParameter(f"--limits {error}") from error
    try:
        toml = parse_toml(text)
    except ValueError as error:
        raise BadParameter(f"--limits {path}: cannot be read as TOML: {error}") from error
    declared = {name: kind for section in sections for name, kind in intervals_of(section).items()}
    for name, value in toml.items():
        if name not in names:
            listing = ", ".join(names)
            raise BadParameter(f"--limits {path}: {name!a} is not a limit; there are {listing}")
        number, interval = declared[name]
        if type(value) not in {int, number} or value not in interval:
            kind = "whole number" if number is int else "number"
            raise BadParameter(f"--limits {path}: {name} is not a {kind}{interval}")
    return toml
