"""The shuffler's settings: from its command line, and the Redis URL from the environment."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hubbub.errors import BadParameter
from hubbub.serving import TlsFolder, add_security, redis_url, tls_folder

__all__ = ["Settings", "parse"]


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything the shuffler is told."""

    streams: Path
    listen: str
    operator_listen: str
    aggregator: str
    redis_url: str
    tls: TlsFolder | None
    reserve: float
    max_batch: int


def parse(arguments: Sequence[str] | None = None) -> Settings:
    """The settings on a command line. Exits with a message if it is wrong.

    Raises:
        BadParameter: HUBBUB_REDIS_URL is not set, or a number is out of range.
    """
    parser = argparse.ArgumentParser(
        prog="hubbub shuffler",
        description="Take sealed reports from devices, mix them, pass batches to the aggregator.",
        epilog="The Redis URL, which may hold a password, comes from HUBBUB_REDIS_URL.",
    )
    parser.add_argument("--streams", type=Path, required=True, help="stream table of the catalog")
    parser.add_argument("--listen", default="0.0.0.0:7070", help="for devices (%(default)s)")
    parser.add_argument(
        "--operator-listen", default="127.0.0.1:7073", help="for status (%(default)s)"
    )
    parser.add_argument("--aggregator", default="127.0.0.1:7071", help="its Ingest (%(default)s)")
    add_security(parser)
    parser.add_argument(
        "--reserve",
        type=float,
        default=1.0,
        help="what stays in an open pool, in minimum batches (%(default)s)",
    )
    parser.add_argument(
        "--max-batch", type=int, default=5000, help="most reports in a batch (%(default)s)"
    )
    given = parser.parse_args(arguments)
    if not 0 <= given.reserve <= 100:  # noqa: PLR2004 past that nothing ever leaves
        raise BadParameter(f"--reserve {given.reserve} is outside [0, 100]")
    if not given.max_batch >= 1:
        raise BadParameter(f"--max-batch {given.max_batch} is below 1")
    return Settings(
        streams=given.streams,
        listen=given.listen,
        operator_listen=given.operator_listen,
        aggregator=given.aggregator,
        redis_url=redis_url(),
        tls=tls_folder(given, "shuffler"),
        reserve=given.reserve,
        max_batch=given.max_batch,
    )
