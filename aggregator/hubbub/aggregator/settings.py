"""The aggregator's settings: from its command line, and the Redis URL from the environment."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hubbub.serving import Common, add_common, check_range, common

__all__ = ["Settings", "parse"]


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything the aggregator is told."""

    bundle: Path
    keys: Path
    listen: str
    query_listen: str
    http_listen: str
    common: Common
    processes: int
    shards: int


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
    parser.add_argument(
        "--http-listen",
        default="",
        help="for releases over HTTP, on this machine alone; off without it",
    )
    add_common(parser, metrics_listen="127.0.0.1:7075")
    parser.add_argument(
        "--processes",
        type=int,
        default=os.cpu_count() or 1,
        help="processes that open reports (%(default)s)",
    )
    parser.add_argument(
        "--shards",
        type=int,
        default=1,
        help="parts that the totals of a stream's epoch are kept in, to spread a hot stream over "
        "the nodes of a Redis Cluster; decided when an epoch begins (%(default)s)",
    )
    given = parser.parse_args(arguments)
    check_range(given, "processes", 1, 256)  # beyond any machine this runs on
    check_range(given, "shards", 1, 256)  # a tag's first byte chooses
    return Settings(
        bundle=given.bundle,
        keys=given.keys,
        listen=given.listen,
        query_listen=given.query_listen,
        http_listen=given.http_listen,
        common=common(given, "aggregator"),
        processes=given.processes,
        shards=given.shards,
    )
