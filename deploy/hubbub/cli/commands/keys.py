"""`hubbub keys`: keys that open, sign and issue, certificates, and who may ask."""

import sys
import time
from datetime import date
from pathlib import Path
from typing import Final

from cryptography.fernet import Fernet

from hubbub.aggregator.access.tokens import ROLES, Role, add_token, read_tokens, remove_token
from hubbub.bundles.encoding import to_text
from hubbub.catalog import EPOCH_SECONDS, WRITTEN_EPOCHS
from hubbub.cli.commands.doctor import first_end
from hubbub.cli.terminal.output import day_of, first_second, listing, say
from hubbub.errors import BadParameter, KeysUnusable
from hubbub.fields.rules import Interval
from hubbub.installation import certificate_authorities
from hubbub.installation.keys_and_bundles import DEFAULT_DAYS, DEFAULT_PERIODS, make_keys
from hubbub.issuer.accounts import add_account
from hubbub.keys.issuer_and_gateway_keys import GATEWAY_KEY, make_gateway_key, make_token_key
from hubbub.keys.opening_key_files import add_x_wing, rotate_keys
from hubbub.keys.operator_key import hand_over_to_new
from hubbub.programs.atomic_write import locked, refuse_unwritable, replace_file
from hubbub.programs.command_line import command
from hubbub.programs.issuer_key_file import TOKEN_KEY
from hubbub.programs.option_parsing import argument, option, options, read_named_path
from hubbub.programs.text_files import read_text
from hubbub.signing.log.witnesses import WITNESS_KEY, make_witness

_MAX_DAYS: Final = 36_600  # a hundred years
_DAY: Final = EPOCH_SECONDS["day"]
_FOLDER: Final = "folder made by hubbub keys new, or the folder of a party that runs one service"


@options
class LifetimeOptions:
    """Options for the number of opening keys, and the days of each."""

    # Ten years, since a bundle contains all keys.
    days: int = option(
        "days for which one key is used (%(default)s)",
        default=DEFAULT_DAYS,
        within=Interval(1, 3660),
    )
    periods: int = option(
        "number of opening keys (%(default)s)", default=DEFAULT_PERIODS, within=Interval(1, 1000)
    )

    def __post_init__(self) -> None:
        days = self.days * self.periods
        if not days <= _MAX_DAYS:
            raise BadParameter(f"--days times --periods is {days}, above {_MAX_DAYS}; lower one")


@command("keys new", text="make a signing key, and opening keys for future epochs")
def _make_keys(
    *,
    folder: Path = argument("new folder for the keys"),
    lifetime: LifetimeOptions,
    dev: bool = option(
        "for development only: services of a production installation refuse bundles built "
        "with these keys"
    ),
) -> None:
    make_keys(folder, lifetime.days, lifetime.periods, development=dev)
    say(f"{folder}/operator.key: signs bundles; keep it offline")
    say(f"{folder}/operator.pub: its public half; apps pin it")
    say(f"{folder}/opening.keys.json: opens reports; only for the aggregator")
    say(f"{folder}/opening.pub.json: goes into bundles")


@command(
    "keys rotate", text="add keys for future epochs; with --today delete the keys of closed epochs"
)
def _rotate(
    *,
    folder: Path = argument("folder made by hubbub keys new"),
    lifetime: LifetimeOptions,
    anew_from: date | None = option(
        "after a leak: replace the keys of epochs from this day on (today or later, UTC); "
        "reports sealed to the old keys are then refused"
    ),
    today: date | None = option(
        "today's date (UTC), read from a clock other than this machine's: delete the keys that no "
        "epoch needs any more; without this option all keys are kept"
    ),
    longest: str = option(
        "longest epoch of any metric: with shorter epochs, keys are deleted sooner (%(default)s)",
        default="month",
        choices=WRITTEN_EPOCHS,
    ),
) -> None:
    now = time.time()
    new_start = first_second(anew_from) if anew_from else None
    if new_start is not None and new_start < now // _DAY * _DAY:
        raise BadParameter(
            f"--anew-from {anew_from} is in the past, and reports that were counted stay "
            "counted; name today (UTC) or a later day"
        )
    if today and abs(first_second(today) + _DAY / 2 - now) > _DAY:
        raise BadParameter(
            f"--today {today} differs from this machine's clock, "
            f"{day_of(int(now))}; correct the wrong one"
        )
    if new_start is not None and new_start > now + _MAX_DAYS * _DAY:
        raise BadParameter(f"--anew-from {anew_from} is more than {_MAX_DAYS} days ahead")
    added, deleted = rotate_keys(
        folder,
        now=now,
        period_seconds=lifetime.days * _DAY,
        periods=lifetime.periods,
        anew_from=new_start,
        sure=today is not None,
        longest=longest,
    )
    for word, keys in (("added", added), ("deleted", deleted)):
        for key in keys:
            say(f"{word} key {key.id}: epochs from {day_of(key.start)} to before {day_of(key.end)}")
    say("now: hubbub catalog build; start aggregators, then shufflers with it; ship the bundle")


@command("keys x-wing", text='add the half for kem = "x-wing" to keys of earlier versions')
def _add_x_wing(folder: Path = argument(_FOLDER)) -> None:
    added = add_x_wing(folder)
    if not added:
        say(f"{folder}: every key has its X-Wing half")
        return
    say(f"X-Wing halves made for keys {', '.join(str(key.id) for key in added)}")
    say("now: give aggregators the new opening.keys.json, then: hubbub catalog build")


@command(
    "keys gateway",
    text="make a key with which the shuffler opens requests from relays; run it again to add one",
)
def _make_gateway(folder: Path = argument(_FOLDER)) -> None:
    keys = make_gateway_key(folder)
    say(f"{folder}/{GATEWAY_KEY}: only for the shuffler, --gateway-key; keys in it: {keys}")
    say(f"{folder}/gateway.pub: the newest one's public half, which catalog build signs")
    say("now: restart shufflers with it, then: hubbub catalog build; ship the bundle")


@command(
    "keys issuer", text="make the key of a token issuer, with which the shuffler checks tokens"
)
def _make_issuer(folder: Path = argument(_FOLDER)) -> None:
    make_token_key(folder)
    say(f"{folder}/{TOKEN_KEY}: for the issuer and the shuffler, --token-key")
    say(f"{folder}/tokens.pub: its public half, which catalog build signs")


@command(
    "keys account",
    text="make a key with which an account, or the backend of an app, requests tokens",
)
def _add_account(
    *,
    file: Path = argument("file of accounts, for hubbub issuer; it is created if missing"),
    name: str = option("name of the account or of the backend"),
    backend: bool = option(
        "the key is for the server of the app, which names the account for which it requests tokens"
    ),
) -> None:
    key = add_account(file, name, vouches=backend)
    say(f"{file}: has {name} and the hash of its key; the key is")
    say(key)


@command("keys handover", text="make another signing key, to which the old key hands over")
def _hand_over(folder: Path = argument(_FOLDER)) -> None:
    old_key, public = hand_over_to_new(folder)
    say(f"{folder}/operator.key: signs bundles from now on; its public half is")
    say(f"  {to_text(public)}")
    say(f"{folder}/handovers.json: the old key's signature for it; goes into bundles")
    say(f"{old_key}: the old key; destroy it once apps with the new bundle are out")
    say("now: hubbub catalog build; ship the bundle. Devices that have it refuse the old key")


@command(
    "keys witness",
    text="make the key of a witness, which cosigns the logs of others, and its public name",
)
def _make_witness(
    folder: Path = argument("new folder for the key and for cosigned checkpoints"),
    name: str = option("name of the witness: a host, or a path on a host, without https://"),
) -> None:
    witness = make_witness(folder, name)
    say(f"{folder}/{WITNESS_KEY}: cosigns logs, with: hubbub log cosign; keep it, and the folder")
    say("auditors give its public half as --witness:")
    say(str(witness))


@command("keys tls", text="make an authority and a certificate for each role")
def _tls(
    *,
    folder: Path = argument("new folder for the certificates", read=read_named_path),
    host: tuple[str, ...] = option(
        "host name or address of a role (shuffler, aggregator or redis), besides localhost; "
        "NAME alone if all roles are on one machine (repeatable)",
        metavar="ROLE=NAME",
    ),
    authorities: Path | None = option(
        "folder for the keys of the authorities, which renew certificates "
        "(FOLDER-authorities); keep it offline",
        metavar="FOLDER",
    ),
    party: str = option(
        "with two parties: make certificates only for the party that runs this service; then "
        "exchange ca.pem and run hubbub keys trust",
        default="",
        choices=tuple(certificate_authorities.PARTIES),
    ),
    renew: bool = option(
        "renew the certificates in the folder with the existing authorities, and add the names of "
        "--host; whoever trusted the old certificates trusts the new ones"
    ),
) -> None:
    offline = authorities or folder.with_name(f"{folder.name}-authorities")
    names = certificate_authorities.names_by_role(host)
    if renew:
        for role, day in certificate_authorities.renew_certificates(folder, offline, names).items():
            say(f"{folder}/{role}.pem: new, until {day}")
        say("running services take them within seconds; Redis with: CONFIG SET tls-cert-file FILE")
        return
    if party:
        roles = certificate_authorities.PARTIES[party]
        certificate_authorities.write_certificates(folder, names, offline, roles)
        say(f"{folder}: certificates for {', '.join(roles)}, each by an authority of its own")
        say(f"{offline}: the authorities' keys: keep it offline")
        say(f"next: give {folder}/ca.pem to the other party, and: hubbub keys trust {folder} ITS")
        return
    certificate_authorities.write_certificates(folder, names, offline)
    authorities_end, end = (first_end(folder / name).date() for name in ("ca.pem", "analyst.pem"))
    say(
        f"{folder}: ca.pem with an authority for each role, until {authorities_end}, and "
        f"certificates for shuffler, aggregator, redis and analyst, until {end}"
    )
    say(f"{offline}: the authorities' keys; they can pose as any role: keep it offline")


@command(
    "keys trust",
    text="with two parties: trust one service of the other party, and no other",
)
def _trust(
    folder: Path = argument("folder made by hubbub keys tls FOLDER --party ROLE"),
    other: Path = argument("ca.pem of the other party"),
) -> None:
    role = certificate_authorities.trust_other(folder, other)
    say(f"{folder}/ca.pem: trusts the other party's {role}, and none of its other services")


@command(
    "keys token",
    text="add or remove a token for HTTP; without a name list the tokens",
    description="Prints a new token once; the file, for --http-tokens, contains only its hash.",
)
def _token(
    *,
    file: Path = argument("file of tokens, for --http-tokens; it is created if missing"),
    name: str | None = option("name of the owner, for the list of tokens"),
    role: Role = option(
        "viewer reads estimates, publisher also makes releases, admin also sees who has "
        "tokens (%(default)s)",
        default=ROLES[0],
    ),
    days: int = option("days until the token expires", default=365, within=Interval(1, 3660)),
    groups: tuple[str, ...] = option(
        "group of --http-access whose metrics the token may read (repeatable); without it all "
        "metrics",
        name="--group",
        metavar="NAME",
    ),
    remove: bool = option("remove the token of this name"),
) -> None:
    now = time.time()
    if name is None and (remove or groups):
        raise BadParameter("--remove and --group are for one token: name it with --name")
    if name is None:
        listing(
            f"{file}: tokens",
            read_tokens(file),
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
    elif remove:
        remove_token(file, name)
        say(f"{name}: removed")
    else:
        say(add_token(file, name, role, days, now, groups=groups))
        print(  # noqa: T201 beside the token, so that a pipe gets it alone
            f"for {name}, {role}, {days} days; shown this once. "
            "Send it as\n  Authorization: Bearer TOKEN",
            file=sys.stderr,
        )


@command(
    "keys session",
    text="make a key that encrypts sessions, for session_keys of --http-access",
    description="Adds a new key for new login sessions; the former key still opens existing ones. "
    "All aggregators read the same file.",
)
def _session(file: Path = argument("file of keys; it is created if missing")) -> None:
    with refuse_unwritable(file, KeysUnusable), locked(file):
        try:
            text = read_text(file).split() if file.exists() else []
            lines = [Fernet.generate_key().decode(), *text[:1]]
        except ValueError as error:
            raise KeysUnusable(f"{error}; give another file, or delete it") from error
        replace_file(file, ("\n".join(lines) + "\n").encode(), mode=0o600)
    former = "; the former one still opens" if text else ""
    say(f"{file}: a new key{former}")
