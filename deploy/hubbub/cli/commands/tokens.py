"""`hubbub keys token`: who may ask over HTTP; `hubbub keys session`: what seals a login."""

import sys
import time
from pathlib import Path

from cryptography.fernet import Fernet

from hubbub.aggregator.access.rights import ROLES, Role
from hubbub.aggregator.access.tokens import add_token, read_tokens, remove_token
from hubbub.cli.terminal.output import day_of, listing, say
from hubbub.errors import BadParameter, KeysUnusable
from hubbub.fields.rules import Interval
from hubbub.programs.command_line import command
from hubbub.programs.options import argument, option, options
from hubbub.programs.text_files import read_text
from hubbub.programs.unwritable import replace_file


@options
class TokenOptions:
    file: Path = argument("file of tokens, for --http-tokens; it is created if missing")
    name: str | None = option("name of the owner, for the list of tokens")
    role: Role = option(
        "viewer reads estimates, publisher also makes releases, admin also sees who has "
        "tokens (%(default)s)",
        default=ROLES[0],
    )
    days: int = option("days until the token expires", default=365, within=Interval(1, 3660))
    groups: tuple[str, ...] = option(
        "group of --http-access whose metrics the token may read (repeat); without it all metrics",
        name="--group",
        metavar="NAME",
    )
    remove: bool = option("remove the token of this name")


@options
class SessionOptions:
    file: Path = argument("file of keys; it is created if missing")


@command(
    "keys token",
    text="add or remove a token for HTTP; without a name list the tokens",
    description="Prints the token once; the file, for --http-tokens, contains only its hash.",
)
def _token(options: TokenOptions) -> None:
    if options.name is None and (options.remove or options.groups):
        raise BadParameter("--remove and --group are for one token: name it with --name")
    if options.name is None:
        now = time.time()
        listing(
            f"{options.file}: tokens",
            read_tokens(options.file),
            {
                "name": "{name}",
                "role": "{role}",
                "sees": lambda token: ", ".join(token.groups) or "everything",
                "until": lambda token: (
                    f"{day_of(token.expires)}{' (expired)' if token.expires <= now else ''}"
                ),
            },
            text_columns=4,
        )
    elif options.remove:
        remove_token(options.file, options.name)
        say(f"{options.name}: removed")
    else:
        secret = add_token(
            options.file,
            options.name,
            options.role,
            options.days,
            time.time(),
            groups=options.groups,
        )
        say(secret)
        print(  # noqa: T201 beside the token, so that a pipe gets it alone
            f"for {options.name}, {options.role}, {options.days} days; shown this once. "
            "Send it as\n  Authorization: Bearer TOKEN",
            file=sys.stderr,
        )


@command(
    "keys session",
    text="make a key that encrypts sessions, for session_keys of --http-access",
    description="Adds a new key in front; the former key still opens existing sessions. All "
    "aggregators read the same file.",
)
def _session(options: SessionOptions) -> None:
    path = options.file
    try:
        text = read_text(path).split() if path.exists() else []
        lines = [Fernet.generate_key().decode(), *text[:1]]
        replace_file(path, ("\n".join(lines) + "\n").encode(), mode=0o600)
    except (OSError, ValueError) as error:
        raise KeysUnusable(f"{path}: cannot be read and written as a file of keys") from error
    former = "; the former one still opens" if text else ""
    say(f"{path}: a new key{former}")
