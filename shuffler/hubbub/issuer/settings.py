"""The issuer's settings: from its command line, and the Redis URL from the environment."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hubbub.runtime import Common, add_common, common, read_network
from hubbub.runtime.http.public_door import add_callers, check_callers


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything the issuer is told.

    peer_rate, peer_burst: tokens that one address, or a backend for one account, asks for, a
        second and at once; 0 for no limit.
    """

    streams: Path
    token_key: Path
    accounts: Path
    listen: str
    proxies: tuple[str, ...]
    peer_rate: float
    peer_burst: int
    common: Common


def parse(arguments: Sequence[str] | None = None) -> Settings:
    """The settings on a command line. Exits with a message if it is wrong.

    Raises:
        BadParameter: HUBBUB_REDIS_URL is not set, or a number is out of range.
    """
    given = parser().parse_args(arguments)
    check_callers(given)
    return Settings(
        streams=given.streams,
        token_key=given.token_key,
        accounts=given.accounts,
        listen=given.listen,
        proxies=tuple(read_network("--proxy", proxy) for proxy in given.proxy),
        peer_rate=given.peer_rate,
        peer_burst=given.peer_burst,
        common=common(given, "issuer"),
    )


def parser() -> argparse.ArgumentParser:
    """Knows every setting of the command line."""
    known = argparse.ArgumentParser(
        prog="hubbub issuer",
        description="Give accounts tokens, without which the shuffler takes no report. What an "
        "account asks for is blinded: nobody can tell whose token a report goes with (RFC 9497).",
        epilog="HUBBUB_REDIS_URL is the Redis that remembers what accounts had.",
    )
    add = known.add_argument
    add("--streams", type=Path, required=True, help="made by: hubbub catalog build")
    add("--token-key", type=Path, required=True, help="made by: hubbub keys issuer")
    add("--accounts", type=Path, required=True, help="keys of accounts: hubbub keys account")
    add("--listen", default="0.0.0.0:7090", help="for devices and backends (%(default)s)")
    of = "tokens a second asked for from one address, or by a backend for one account"
    add_callers(known, rate=200.0, of=of, burst=20_000)
    add_common(known, metrics_listen="127.0.0.1:7094")
    return known
