"""The shuffler's settings: from its command line, and the Redis URL from the environment."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hubbub.runtime import Common, add_common, check_range, common

__all__ = ["Settings", "parse", "parser"]

# A carrier has so many people behind one address, of whom few send in the same tenth of a second.
_PEER_CALLS = 64


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything the shuffler is told."""

    streams: Path
    listen: str
    operator_listen: str
    aggregators: tuple[str, ...]
    common: Common
    reserve: float
    reserve_spread: float
    delay: float
    max_batch: int
    max_pool: int
    max_memory: float
    peer_rate: float
    peer_burst: int
    peer_calls: int


def parse(arguments: Sequence[str] | None = None) -> Settings:
    """The settings on a command line. Exits with a message if it is wrong.

    Raises:
        BadParameter: HUBBUB_REDIS_URL is not set, or a number is out of range.
    """
    given = parser().parse_args(arguments)
    check_range(given, "reserve", 0, 100)  # past that nothing ever leaves
    check_range(given, "reserve_spread", 0, 100)
    check_range(given, "delay", 0, 86_400)
    check_range(given, "max_batch", 1, 1_000_000)
    check_range(given, "max_pool", 1, 10**12)
    check_range(given, "max_memory", 0.01, 1)
    check_range(given, "peer_rate", 0, 10**9)
    check_range(given, "peer_burst", 1, 10**9)
    if given.peer_calls is None:  # where addresses tell nobody apart, their calls do not either
        given.peer_calls = _PEER_CALLS if given.peer_rate else 0
    check_range(given, "peer_calls", 0, 10**6)
    return Settings(
        streams=given.streams,
        listen=given.listen,
        operator_listen=given.operator_listen,
        aggregators=tuple(given.aggregator or ["127.0.0.1:7071"]),
        common=common(given, "shuffler"),
        reserve=given.reserve,
        reserve_spread=given.reserve_spread,
        delay=given.delay,
        max_batch=given.max_batch,
        max_pool=given.max_pool,
        max_memory=given.max_memory,
        peer_rate=given.peer_rate,
        peer_burst=given.peer_burst,
        peer_calls=given.peer_calls,
    )


def parser() -> argparse.ArgumentParser:
    """Knows every setting of the command line."""
    known = argparse.ArgumentParser(
        prog="hubbub shuffler",
        description="Take sealed reports from devices, mix them, pass batches to the aggregator.",
        epilog="The Redis URL, which may hold a password, comes from HUBBUB_REDIS_URL.",
    )
    add = known.add_argument
    add("--streams", type=Path, required=True, help="stream table of the catalog")
    add("--listen", default="0.0.0.0:7070", help="for devices (%(default)s)")
    add("--operator-listen", default="127.0.0.1:7073", help="for status (%(default)s)")
    add(
        "--aggregator",
        action="append",
        help="its Ingest (127.0.0.1:7071); repeat for several that share one Redis",
    )
    add_common(known, metrics_listen="127.0.0.1:7074")
    mixing = known.add_argument_group(
        "mixing (what each does for anonymity: docs/operate/services.md)"
    )
    add = mixing.add_argument
    batches = "in minimum batches"
    add("--reserve", type=float, default=1.0, help=f"stays in an open pool, {batches} (1)")
    add(
        "--reserve-spread",
        type=float,
        default=0.0,
        help=f"up to so much more stays, {batches}, drawn anew after every batch (%(default)s)",
    )
    add(
        "--delay",
        type=float,
        default=0.0,
        help="seconds for which a full pool holds a batch back, on average (%(default)s)",
    )
    add("--max-batch", type=int, default=5000, help="most reports in a batch (%(default)s)")
    limits = known.add_argument_group("limits (past them devices are told when to come back)")
    add = limits.add_argument
    add("--max-pool", type=int, default=2_000_000, help="most reports held (%(default)s)")
    add(
        "--max-memory",
        type=float,
        default=0.8,
        help="largest part used of Redis' maxmemory, if it has one (%(default)s)",
    )
    add(
        "--peer-rate",
        type=float,
        default=200.0,
        help="reports a second from one address, on average; 0: no limit (%(default)s)",
    )
    add("--peer-burst", type=int, default=20_000, help="and at once (%(default)s)")
    add(
        "--peer-calls",
        type=int,
        help="calls open at once of one address; 0: no limit "
        f"({_PEER_CALLS}, or none with --peer-rate 0)",
    )
    return known
