"""`hubbub keys token`: who may ask over HTTP; `hubbub keys session`: what seals a login."""

import argparse
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from cryptography.fernet import Fernet

from hubbub.aggregator.access.rights import ROLES
from hubbub.aggregator.access.tokens import add_token, read_tokens, remove_token
from hubbub.cli.terminal.output import say, table
from hubbub.errors import BadParameter, KeysUnusable
from hubbub.errors.text_files import read_text
from hubbub.runtime import replace_file

_DEFAULT_DAYS = 365


def add_action(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `token` to the actions of `keys`."""
    token = actions.add_parser(
        "token",
        help="let somebody ask over HTTP, or take it back; without a name: who may",
        description="The token is printed once; the file, for --http-tokens, keeps its hash.",
    )
    token.add_argument(
        "file", type=Path, help="file of tokens, for --http-tokens; made if there is none"
    )
    token.add_argument("--name", help="whose it is, for the list")
    token.add_argument(
        "--role",
        choices=ROLES,
        default=ROLES[0],
        help="viewer reads estimates, publisher also makes releases, admin also sees who has "
        "tokens (%(default)s)",
    )
    token.add_argument("--days", type=int, default=_DEFAULT_DAYS, help="until it expires")
    token.add_argument(
        "--group",
        action="append",
        default=[],
        metavar="NAME",
        help="one of --http-access whose metrics it sees (repeat); all metrics without",
    )
    token.add_argument("--remove", action="store_true", help="take the token of this name back")
    token.set_defaults(run=_token)
    session = actions.add_parser(
        "session",
        help="a key that seals who logged in, for session_keys of --http-access",
        description="Adds a new key on top; the former one still opens what it sealed. Every "
        "aggregator reads the same file.",
    )
    session.add_argument("file", type=Path, help="file of keys; made if there is none")
    session.set_defaults(run=_session)


def _token(arguments: argparse.Namespace) -> int:
    if not 1 <= arguments.days <= 3660:  # noqa: PLR2004 ten years
        raise BadParameter(f"--days {arguments.days} is outside [1, 3660]")
    if arguments.name is None and (arguments.remove or arguments.group):
        raise BadParameter("--remove and --group are of one token: say which, with --name")
    if arguments.remove:
        remove_token(arguments.file, arguments.name)
        say(f"{arguments.name}: taken back")
    elif arguments.name is not None:
        secret = add_token(
            *(arguments.file, arguments.name, arguments.role, arguments.days, time.time()),
            groups=arguments.group,
        )
        say(secret)
        print(  # noqa: T201 beside the token, so that a pipe gets it alone
            f"for {arguments.name}, {arguments.role}, {arguments.days} days; shown this once. "
            "Send it as\n  Authorization: Bearer TOKEN",
            file=sys.stderr,
        )
    else:
        now = time.time()
        table(
            f"{arguments.file}: who may ask",
            ("name", "role", "sees", "until"),
            [
                (
                    one.name,
                    one.role,
                    ", ".join(one.groups) or "everything",
                    f"{datetime.fromtimestamp(one.expires, UTC):%Y-%m-%d}"
                    + (" (expired)" if one.expires <= now else ""),
                )
                for one in read_tokens(arguments.file)
            ],
            text_columns=4,
        )
    return 0


def _session(arguments: argparse.Namespace) -> int:
    path: Path = arguments.file
    try:
        held = read_text(path).split() if path.exists() else []
        lines = [Fernet.generate_key().decode(), *held[:1]]
        replace_file(path, ("\n".join(lines) + "\n").encode(), mode=0o600)
    except (OSError, ValueError) as error:
        raise KeysUnusable(f"{path}: cannot be read and written as a file of keys") from error
    former = "; the former one still opens" if held else ""
    say(f"{path}: a new key{former}")
    return 0
