"""The issuer's settings: from its command line, and the Redis URL from the environment."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hubbub.errors import BadParameter
from hubbub.errors.address_checks import secure_parts
from hubbub.programs.command_line import Parser
from hubbub.programs.option_parsing import add_options, option, options, read_options
from hubbub.runtime.service_options import (
    Common,
    address_option,
    burst_option,
    proxies_option,
    rate_option,
)


def _provider(name: str, address: str) -> str:
    if " " in address or secure_parts(address) is None:
        raise BadParameter(
            f"{name} {address!a} is not an address of a provider; write https://HOST"
        )
    return address


@options
class Settings:
    """The issuer's settings.

    `peer_rate` and `peer_burst` limit the tokens that one address, or one account of a backend,
    asks for: per second, and at once. A rate of 0 is no limit.
    """

    streams: Path = option("stream table made by hubbub catalog build")
    token_key: Path = option("key made by hubbub keys issuer")
    accounts: Path | None = option("file of accounts made by hubbub keys account")
    provider: str = option(
        "issuer URL of an OpenID Connect provider: the subject of its token is an account",
        name="--oidc",
        default="",
        metavar="URL",
        read=_provider,
    )
    audiences: tuple[str, ...] = option(
        'required audience ("aud") of such a token: the app\'s name at the provider for ID '
        "tokens, or the issuer for access tokens (repeatable)",
        name="--oidc-audience",
        metavar="NAME",
        read=lambda _, names: tuple(filter(None, names)),
    )
    provider_roots: Path | None = option(
        "certificate authorities of the provider, if not those of the system",
        name="--oidc-roots",
        metavar="FILE",
    )
    listen: str = address_option("address for devices and backends (%(default)s)", "0.0.0.0:7090")
    proxies: tuple[str, ...] = proxies_option("--proxy")
    peer_rate: float = rate_option(
        "tokens per second for one address, or for one account of a backend", 200.0
    )
    peer_burst: int = burst_option("tokens at once, by address or account", 20_000)
    metrics_listen: str = address_option("address for Prometheus (%(default)s)", "127.0.0.1:7094")
    common: Common


def parse(arguments: Sequence[str] | None = None) -> Settings:
    """Reads the settings from a command line; exits with a message if it is malformed.

    Raises BadParameter if HUBBUB_REDIS_URL is not set, a number is out of range, or there is no
    source of accounts.
    """
    settings = read_options(Settings, parser().parse_args(arguments))
    if not settings.accounts and not settings.provider:
        raise BadParameter("there are no accounts; give --accounts FILE, --oidc URL, or both")
    if not settings.provider and (settings.audiences or settings.provider_roots):
        raise BadParameter("--oidc-audience and --oidc-roots need a provider: add --oidc URL")
    if settings.provider and not settings.audiences:
        raise BadParameter(
            "--oidc without --oidc-audience would accept tokens that the provider made for "
            "other apps; name the app as the provider calls it"
        )
    return replace(settings, common=settings.common.of("issuer"))


def parser() -> argparse.ArgumentParser:
    """The parser of all settings on the command line."""
    parser = Parser(
        prog="hubbub issuer",
        description="Issue tokens to accounts; the shuffler accepts no report without one. "
        "Requests are blinded: nobody can find out whose token a report has (RFC 9497).",
        epilog="HUBBUB_REDIS_URL is the Redis that stores which tokens accounts received.",
    )
    add_options(parser, Settings)
    return parser
