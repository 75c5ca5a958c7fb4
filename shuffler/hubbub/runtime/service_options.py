"""Options that services share, and the file of limits that may change while one runs."""

import os
from collections.abc import Collection
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Final

from hubbub.errors import BadParameter
from hubbub.errors.addresses import check_address
from hubbub.fields.rules import Interval
from hubbub.programs.options import Exclusive, intervals_of, option, options
from hubbub.programs.text_files import parse_toml, read_text
from hubbub.runtime.monitoring.logs import FORMATS
from hubbub.runtime.tls import TlsFolder

VARIABLES: Final = {
    "HUBBUB_REDIS_URL": "the service's own Redis, as redis://HOST:PORT/0 or rediss://, with the "
    "user and the password (needed)",
    "HUBBUB_DEV": "1 is what `--dev` is; `hubbub init --dev` writes it",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "where batches are traced to, if anywhere; so does "
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
}
"""What a service reads of its environment; its command line says the rest."""
SECURITY: Final = Exclusive(required=True)
"""Certificates, or none on loopback: one of both is needed."""


def tls_option(text: str, role: str = "", **more: Any) -> Any:
    """A folder of certificates. role: whose files of it are read."""

    def read(_: str, folder: Path) -> TlsFolder:
        return TlsFolder(folder, role)

    return option(text, default=None, parse=Path, read=read, **more)


def insecure_option() -> Any:
    """The alternative to certificates."""
    return option(
        "serve without TLS, on a loopback address only", default=False, exclusive=SECURITY
    )


def address_option(text: str, default: str, **more: Any) -> Any:
    """HOST:PORT."""

    def read(name: str, address: str) -> str:
        check_address(name, address)
        return address

    return option(text, default=default, read=read, **more)


def networks_option(text: str, **more: Any) -> Any:
    """Addresses, or networks of several, each of an option that is repeated."""

    def read(name: str, networks: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(read_network(name, network) for network in networks)

    return option(text, default=(), metavar="ADDRESS", read=read, **more)


def proxies_option(name: str, **more: Any) -> Any:
    """Proxies that a service believes."""
    return networks_option(
        "address or network of a proxy whose X-Forwarded-For is believed (repeat)",
        name=name,
        **more,
    )


def log_format_option() -> Any:
    """How the log is written."""
    return option("format of the log (%(default)s)", default=FORMATS[0], choices=FORMATS)


@options
class Common:
    """Settings that every service has.

    tls: its certificates, or None for plain text. redis_url: of its own Redis; "" for none.
    development: its numbers protect nobody.
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
        """For a service of this role, with its environment.

        Raises:
            BadParameter: HUBBUB_REDIS_URL is not set, or HUBBUB_DEV is unclear.
        """
        return replace(
            self,
            tls=replace(self.tls, role=role) if self.tls else None,
            redis_url=redis_url(),
            development=self.development or _is_development(),
        )


def _is_development() -> bool:
    """What the environment says, which goes with the keys of `hubbub init --dev`."""
    value = os.environ.get("HUBBUB_DEV", "")
    if value not in {"", "0", "1"}:
        raise BadParameter("HUBBUB_DEV is neither 1 nor 0; set it to 1, or leave it out")
    return value == "1"


def redis_url(setting: str = "HUBBUB_REDIS_URL") -> str:
    """Where our Redis is: from the environment, since it may hold a password.

    Raises:
        BadParameter: it is not set.
    """
    url = os.environ.get(setting)
    if not url:
        raise BadParameter(f"{setting} is not set; set it to redis://HOST:PORT/0")
    return url


def read_network(option: str, text: str) -> str:
    """An address or a network of several. Raises BadParameter."""
    try:
        return str(ip_network(text))
    except ValueError:
        raise BadParameter(
            f"{option} {text!a} is no address; write 10.0.0.5, or a network as 10.0.0.0/24"
        ) from None


def read_limits(path: Path, names: Collection[str], *sections: type) -> dict[str, Any]:
    """The limits of a TOML file, by name; those that it does not have stay as they are.

    names: of the options that it may have, without dashes. sections: where they are declared.

    Raises:
        BadParameter: it cannot be read, or has what is no limit, or is out of range.
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
            raise BadParameter(f"--limits {path}: {name!a} is no limit; there are {listing}")
        number, interval = declared[name]
        if type(value) not in {int, number} or value not in interval:
            kind = "whole number" if number is int else "number"
            raise BadParameter(f"--limits {path}: {name} is no {kind}{interval}")
    return toml
