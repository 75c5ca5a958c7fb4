"""The issuer's settings: from its command line, and the Redis URL from the environment."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hubbub.errors import BadParameter
from hubbub.errors.addresses import url_parts
from hubbub.fields.command_line import Parser
from hubbub.runtime import Common, add_common, check_addresses, common, read_network
from hubbub.runtime.http.public_door import add_callers, check_callers
from hubbub.runtime.tls import is_loopback


@dataclass(frozen=True, slots=True)
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
    given = parser().parse_args(arguments)
    check_callers(given)
    check_addresses(given, "listen")
    _check_accounts(given)
    return Settings(
        streams=given.streams,
        token_key=given.token_key,
        accounts=given.accounts,
        provider=given.oidc,
        audiences=tuple(filter(None, given.oidc_audience)),
        provider_roots=given.oidc_roots,
        listen=given.listen,
        proxies=tuple(read_network("--proxy", proxy) for proxy in given.proxy),
        peer_rate=given.peer_rate,
        peer_burst=given.peer_burst,
        common=common(given, "issuer"),
    )


def parser() -> argparse.ArgumentParser:
    """Knows every setting of the command line."""
    known = Parser(
        prog="hubbub issuer",
        description="Give accounts tokens, without which the shuffler takes no report. What an "
        "account asks for is blinded: nobody can tell whose token a report goes with (RFC 9497).",
        epilog="HUBBUB_REDIS_URL is the Redis that remembers what accounts had.",
    )
    add = known.add_argument
    add("--streams", type=Path, required=True, help="made by: hubbub catalog build")
    add("--token-key", type=Path, required=True, help="made by: hubbub keys issuer")
    add("--accounts", type=Path, help="keys of accounts: hubbub keys account")
    add(
        "--oidc",
        default="",
        metavar="URL",
        help="an OpenID Connect provider, as it calls itself: who a token of its is about is an "
        "account",
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
        help="the provider's authorities, if not the system's",
    )
    add("--listen", default="0.0.0.0:7090", help="for devices and backends (%(default)s)")
    of = "tokens a second asked for from one address, or by a backend for one account"
    add_callers(known, rate=200.0, of=of, burst=20_000)
    add_common(known, metrics_listen="127.0.0.1:7094")
    return known


def _check_accounts(given: argparse.Namespace) -> None:
    if not given.accounts and not given.oidc:
        raise BadParameter("nobody is an account; give --accounts FILE, --oidc URL, or both")
    if not given.oidc:
        if any(given.oidc_audience) or given.oidc_roots:
            raise BadParameter("--oidc-audience and --oidc-roots are of a provider: say --oidc URL")
        return
    found = url_parts(given.oidc)
    if (
        found is None
        or " " in given.oidc
        or not (found.scheme == "https" or (found.scheme == "http" and is_loopback(found.netloc)))
    ):
        raise BadParameter(f"--oidc {given.oidc!a} is no address of a provider; write https://HOST")
    if not any(given.oidc_audience):
        raise BadParameter(
            "--oidc without --oidc-audience would take tokens for whomever they are made; name "
            "the app as the provider calls it"
        )
