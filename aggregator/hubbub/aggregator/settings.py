"""The aggregator's settings: from its command line, and the Redis URL from the environment."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hubbub.errors import BadParameter
from hubbub.serving import TlsFolder, add_security, redis_url, tls_folder

__all__ = ["Settings", "parse"]


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything the aggregator is told."""

    bundle: Path
    keys: Path
    listen: str
    query_listen: str
    redis_url: str
    tls: TlsFolder | None
    processes: int


def parse(arguments: Sequence[str] | None = None) -> Settings:
    """The settings on a command line. Exits with a message if it is wrong.

    Raises:
        BadParameter: HUBBUB_REDIS_URL is not set, or a number is out of range.
    """
    parser = argparse.ArgumentParser(
        prog="hubbub aggregator",
        description="Open shuffled batches, add them up exactly once, answer queries.",
        epilog="The Redis URL, which may hold a password, comes from HUBBUB_REDIS_URL.",
    )
    parser.add_argument("--bundle", type=Path, required=True, help="the bundle that apps ship")
    parser.add_argument("--keys", type=Path, required=True, help="opening.keys.json")
    parser.add_argument("--listen", default="127.0.0.1:7071", help="for the shuffler (%(default)s)")
    parser.add_argument(
        "--query-listen", default="127.0.0.1:7072", help="for queries and status (%(default)s)"
    )
    add_security(parser)
    parser.add_argument(
        "--processes",
        type=int,
        default=os.cpu_count() or 1,
        help="processes that open reports (%(default)s)",
    )
    given = parser.parse_args(arguments)
    if not 1 <= given.processes <= 256:  # noqa: PLR2004 beyond any machine this runs on
        raise BadParameter(f"--processes {given.processes} is outside [1, 256]")
    return Settings(
        bundle=given.bundle,
        keys=given.keys,
        listen=given.listen,
        query_listen=given.query_listen,
        redis_url=redis_url(),
        tls=tls_folder(given, "aggregator"),
        processes=given.processes,
    )
