"""The issuer's settings: from its command line, and the Redis URL from the environment."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hubbub.errors import BadParameter
from hubbub.errors.addresses import url_parts
from hubbub.programs.command_line import Parser
from hubbub.runtime import Common, add_common, check_addresses, common, read_network
from hubbub.runtime.http.public_door import add_callers, check_callers
from hubbub.runtime.tls import is_loopback


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything the issuer is told.

    accounts: None: there are no keys. provider: of OpenID Connect, its address; "": none is asked.
    audiences: whom its tokens must be for. provider_roots: authorities in PEM that its certificate
        chains to; None for the system's.
    peer_rate, peer_burst: tokens that one address, or a backend for one account, asks for, a
        second and at once; 0 for no limit.
    """

    streams: Path
    token_key: Path
    accounts: Path | None
    provider: str
    audiences: tuple[str, ...]
    provider_roots: Path | None
    listen: str
    proxies: tuple[str, ...]
    peer_rate: float
    peer_burst: int
    common: Common


def parse(arguments: Sequence[str] | None = None) -> Settings:
    """The settings on a command line. Exits with a message if it is wrong.

    Raises:
        BadParameter: HUBBUB_REDIS_URL is not set, a number is out of range, or nobody would be an
            account.
    """
    namespace = parser().parse_args(arguments)
    check_callers(namespace)
    check_addresses(namespace, "listen")
    _check_accounts(namespace)
    return Settings(
        streams=namespace.streams,
        token_key=namespace.token_key,
        accounts=namespace.accounts,
        provider=namespace.oidc,
        audiences=tuple(filter(None, namespace.oidc_audience)),
        provider_roots=namespace.oidc_roots,
        listen=namespace.listen,
        proxies=tuple(read_network("--proxy", proxy) for proxy in namespace.proxy),
        peer_rate=namespace.peer_rate,
        peer_burst=namespace.peer_burst,
        common=common(namespace, "issuer"),
    )


def parser() -> argparse.ArgumentParser:
    """Knows every setting of the command line."""
    options = Parser(
        prog="hubbub issuer",
        description="Give accounts tokens, without which the shuffler takes no report. What an "
        "account asks for is blinded: nobody can tell whose token a report goes with (RFC 9497).",
        epilog="HUBBUB_REDIS_URL is the Redis that remembers what accounts had.",
    )
    add = options.add_argument
    add("--streams", type=Path, required=True, help="stream table made by hubbub catalog build")
    add("--token-key", type=Path, required=True, help="key made by hubbub keys issuer")
    add("--accounts", type=Path, help="file of accounts made by hubbub keys account")
    add(
        "--oidc",
        default="",
        metavar="URL",
        help="issuer URL of an OpenID Connect provider: the subject of its token is an account",
    )
    add(
        "--oidc-audience",
        action="append",
        default=[],
        metavar="NAME",
        help='whom such a token must be for, its "aud": the app as the provider calls it, for ID '
        "tokens, or the issuer, for access tokens (repeat)",
    )
    add(
        "--oidc-roots",
        type=Path,
        metavar="FILE",
        help="certificate authorities of the provider, if not those of the system",
    )
    add("--listen", default="0.0.0.0:7090", help="address for devices and backends (%(default)s)")
    of = "tokens per second for one address, or for one account of a backend"
    add_callers(options, rate=200.0, of=of, burst=20_000)
    add_common(options, metrics_listen="127.0.0.1:7094")
    return options


def _check_accounts(namespace: argparse.Namespace) -> None:
    if not namespace.accounts and not namespace.oidc:
        raise BadParameter("nobody is an account; give --accounts FILE, --oidc URL, or both")
    if not namespace.oidc:
        if any(namespace.oidc_audience) or namespace.oidc_roots:
            raise BadParameter("--oidc-audience and --oidc-roots are of a provider: say --oidc URL")
        return
    parts = url_parts(namespace.oidc)
    if (
        parts is None
        or " " in namespace.oidc
        or not (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.netloc)))
    ):
        raise BadParameter(
            f"--oidc {namespace.oidc!a} is no address of a provider; write https://HOST"
        )
    if not any(namespace.oidc_audience):
        raise BadParameter(
            "--oidc without --oidc-audience would take tokens for whomever they are made; name "
            "the app as the provider calls it"
        )
