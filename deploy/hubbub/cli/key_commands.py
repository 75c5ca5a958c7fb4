"""`hubbub keys new` and `hubbub keys tls`."""

import argparse
import time
from pathlib import Path

from hubbub.catalog import EPOCH_SECONDS, write_new_keys
from hubbub.cli.certificates import write_certificates
from hubbub.cli.show import say
from hubbub.errors import BadParameter

__all__ = ["add", "make_keys"]

_DAY = EPOCH_SECONDS["day"]
_DEFAULT_DAYS = 28
_DEFAULT_PERIODS = 13
# Reports of the epochs just past are still on their way when keys are first made.
_BACK_DAYS = 14


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `keys` to the command line."""
    keys = commands.add_parser("keys", help="make keys and certificates")
    actions = keys.add_subparsers(required=True, metavar="ACTION")
    new = actions.add_parser("new", help="a signing key, and opening keys for the epochs to come")
    new.add_argument("folder", type=Path)
    new.add_argument("--days", type=int, default=_DEFAULT_DAYS, help="of one key (%(default)s)")
    new.add_argument("--periods", type=int, default=_DEFAULT_PERIODS, help="keys (%(default)s)")
    new.set_defaults(run=_new)
    tls = actions.add_parser("tls", help="an authority, and a certificate per role")
    tls.add_argument("folder", type=Path)
    tls.add_argument(
        "--host",
        action="append",
        default=[],
        help="name or address the services are dialled by, beside localhost (repeat)",
    )
    tls.set_defaults(run=_tls)


def make_keys(folder: Path, days: int = _DEFAULT_DAYS, periods: int = _DEFAULT_PERIODS) -> None:
    """New keys in a folder: `periods` opening keys of `days` days, from two weeks ago on.

    Raises:
        BadParameter: a number is out of range.
        KeysUnusable: the folder holds keys already, or cannot be written.
    """
    if not 1 <= days <= 3660:  # noqa: PLR2004 ten years
        raise BadParameter(f"--days {days} is outside [1, 3660]")
    if not 1 <= periods <= 1000:  # noqa: PLR2004 a bundle carries them all
        raise BadParameter(f"--periods {periods} is outside [1, 1000]")
    today = int(time.time()) // _DAY
    start = (today - _BACK_DAYS) * _DAY
    write_new_keys(folder, start=start, period_seconds=days * _DAY, periods=periods)


def _new(given: argparse.Namespace) -> int:
    make_keys(given.folder, given.days, given.periods)
    say(f"{given.folder}/operator.key: signs bundles; keep it offline")
    say(f"{given.folder}/operator.pub: its public half; apps pin it")
    say(f"{given.folder}/opening.keys.json: opens reports; for the aggregator alone")
    say(f"{given.folder}/opening.pub.json: goes into bundles")
    return 0


def _tls(given: argparse.Namespace) -> int:
    write_certificates(given.folder, given.host)
    say(f"{given.folder}: ca.pem, and certificates for shuffler, aggregator and analyst")
    return 0
