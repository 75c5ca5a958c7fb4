"""`hubbub keys`: keys that open, sign and issue, certificates, and who may ask."""

import argparse
import time
from datetime import UTC, date, datetime
from pathlib import Path

from cryptography import x509

from hubbub.catalog import EPOCH_SECONDS, WRITTEN_EPOCHS
from hubbub.catalog.encoding import to_text
from hubbub.catalog.keys.gateway import GATEWAY_KEY, make_gateway_key
from hubbub.catalog.keys.issuer import make_token_key
from hubbub.catalog.keys.operator import hand_over_to_new
from hubbub.catalog.keys.rotation import add_x_wing, rotate_keys
from hubbub.cli.certificate_authorities import (
    PARTIES,
    names_by_role,
    renew_certificates,
    trust_other,
    write_certificates,
)
from hubbub.cli.commands.tokens import add_action
from hubbub.cli.installation import (
    DEFAULT_DAYS,
    DEFAULT_PERIODS,
    MAX_DAYS,
    check_lifetimes,
    make_keys,
)
from hubbub.cli.terminal.day_argument import as_day
from hubbub.cli.terminal.output import say
from hubbub.cli.witnesses import WITNESS_KEY, make_witness
from hubbub.errors import BadParameter
from hubbub.issuer.accounts import add_account
from hubbub.tokens import TOKEN_KEY

_DAY = EPOCH_SECONDS["day"]


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `keys` to the command line."""
    keys = commands.add_parser("keys")
    actions = keys.add_subparsers(required=True, metavar="ACTION")
    _add_opening(actions)
    _add_tokens(actions)
    _add_signing(actions)
    add_action(actions)


def _add_opening(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the actions that are about opening keys."""
    new = actions.add_parser("new", help="a signing key, and opening keys for the epochs to come")
    new.add_argument("folder", type=Path, help="new folder for the keys")
    new.add_argument("--days", type=int, default=DEFAULT_DAYS, help="of one key (%(default)s)")
    new.add_argument("--periods", type=int, default=DEFAULT_PERIODS, help="keys (%(default)s)")
    new.add_argument(
        "--dev",
        action="store_true",
        help="for development: what is built with them is refused by services of production",
    )
    new.set_defaults(run=_new)
    rotate = actions.add_parser(
        "rotate", help="add keys for epochs to come; with --today delete those of epochs closed"
    )
    rotate.add_argument("folder", type=Path, help="folder made by: hubbub keys new")
    rotate.add_argument("--days", type=int, default=DEFAULT_DAYS, help="of one key (%(default)s)")
    rotate.add_argument("--periods", type=int, default=DEFAULT_PERIODS, help="keys (%(default)s)")
    rotate.add_argument(
        "--anew-from",
        type=as_day,
        metavar="YYYY-MM-DD",
        help="a key leaked: make those of epochs from this day on (today or later, UTC) anew; "
        "reports sealed to the old ones are refused from then on",
    )
    rotate.add_argument(
        "--today",
        type=as_day,
        metavar="YYYY-MM-DD",
        help="what day it is (UTC), by another clock than this machine's: deletes the keys that no "
        "epoch needs any more; without it they are kept",
    )
    rotate.add_argument(
        "--longest",
        choices=WRITTEN_EPOCHS,
        default="month",
        help="epoch of any metric: keys are deleted so much sooner if it is shorter (%(default)s)",
    )
    rotate.set_defaults(run=_rotate)
    hybrid = actions.add_parser(
        "x-wing",
        help='give keys of former versions the half that kem = "x-wing" seals to',
    )
    hybrid.add_argument("folder", type=Path, help="folder made by: hubbub keys new")
    hybrid.set_defaults(run=_add_x_wing)
    gateway = actions.add_parser(
        "gateway",
        help="a key that the shuffler opens with what comes through a relay; again for a new one",
    )
    gateway.add_argument(
        "folder", type=Path, help="made by: hubbub keys new, or of who runs the shuffler alone"
    )
    gateway.set_defaults(run=_make_gateway)


def _add_tokens(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the actions that are about tokens against fakes."""
    issuer = actions.add_parser(
        "issuer", help="the key of who issues tokens, which the shuffler checks them by"
    )
    issuer.add_argument(
        "folder", type=Path, help="made by: hubbub keys new, or of who runs the issuer alone"
    )
    issuer.set_defaults(run=_make_issuer)
    account = actions.add_parser(
        "account", help="a key by which an account, or an app's backend, asks for tokens"
    )
    account.add_argument("file", type=Path, help="of accounts, for hubbub issuer; made if none")
    account.add_argument("--name", required=True, help="of the account, or of the backend")
    account.add_argument(
        "--backend",
        action="store_true",
        help="of the app's own server, which names the account for whom it asks",
    )
    account.set_defaults(run=_add_account)


def _add_signing(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the actions that are about the operator's key, a witness's, and certificates."""
    handover = actions.add_parser(
        "handover", help="another signing key, which the old one hands over to"
    )
    handover.add_argument("folder", type=Path, help="folder made by: hubbub keys new")
    handover.set_defaults(run=_hand_over)
    witness = actions.add_parser(
        "witness", help="the key of who cosigns logs of others, and what audits know it by"
    )
    witness.add_argument("folder", type=Path, help="new folder for it, and for what was cosigned")
    witness.add_argument(
        "--name", required=True, help="the witness's: a host's, or a path on one, without https://"
    )
    witness.set_defaults(run=_make_witness)
    tls = actions.add_parser("tls", help="an authority and a certificate for each role")
    tls.add_argument("folder", type=Path, help="new folder for the certificates")
    tls.add_argument(
        "--host",
        action="append",
        default=[],
        metavar="ROLE=NAME",
        help="name or address that a role is dialled by, beside localhost: shuffler, aggregator or "
        "redis; NAME alone for all of them, on one machine (repeat)",
    )
    tls.add_argument(
        "--authorities",
        type=Path,
        metavar="FOLDER",
        help="where the keys of the authorities are kept, which renew certificates (the folder of "
        "the certificates, with -authorities after its name); keep it offline",
    )
    tls.add_argument(
        "--party",
        choices=tuple(PARTIES),
        help="of two parties the one that runs this service: certificates for it, its Redis and "
        "its people alone; then exchange ca.pem, and: hubbub keys trust",
    )
    tls.add_argument(
        "--renew",
        action="store_true",
        help="new certificates in the folder, by the kept authorities, with the names that they "
        "have and those of --host besides; what trusted them goes on doing so",
    )
    tls.set_defaults(run=_tls)
    trust = actions.add_parser(
        "trust", help="of two parties: trust the other's service, and nothing else of it"
    )
    trust.add_argument("folder", type=Path, help="made by: hubbub keys tls FOLDER --party ROLE")
    trust.add_argument("other", type=Path, help="the other party's ca.pem")
    trust.set_defaults(run=_trust)


def _rotate(arguments: argparse.Namespace) -> int:
    check_lifetimes(arguments.days, arguments.periods)
    now = time.time()
    anew = None if arguments.anew_from is None else _first_second(arguments.anew_from)
    if anew is not None and anew < now // _DAY * _DAY:
        raise BadParameter(
            f"--anew-from {arguments.anew_from} is past: what is counted stays counted; name a "
            "day from today (UTC) on"
        )
    if arguments.today is not None and abs(_first_second(arguments.today) + _DAY / 2 - now) > _DAY:
        raise BadParameter(
            f"--today {arguments.today} is not what this machine's clock says, {_day(int(now))}; "
            "set the one that is wrong right"
        )
    if anew is not None and anew > now + MAX_DAYS * _DAY:
        raise BadParameter(f"--anew-from {arguments.anew_from} is more than {MAX_DAYS} days ahead")
    added, deleted = rotate_keys(
        arguments.folder,
        now=now,
        period_seconds=arguments.days * _DAY,
        periods=arguments.periods,
        anew_from=anew,
        sure=arguments.today is not None,
        longest=arguments.longest,
    )
    for word, keys in (("added", added), ("deleted", deleted)):
        for key in keys:
            say(f"{word} key {key.id}: epochs from {_day(key.start)} to before {_day(key.end)}")
    say("now: hubbub catalog build; start aggregators, then shufflers with it; ship the bundle")
    return 0


def _add_x_wing(arguments: argparse.Namespace) -> int:
    added = add_x_wing(arguments.folder)
    if not added:
        say(f"{arguments.folder}: every key has its X-Wing half")
        return 0
    say(f"X-Wing halves made: of keys {', '.join(str(key.id) for key in added)}")
    say("now: give aggregators the new opening.keys.json, then: hubbub catalog build")
    return 0


def _make_issuer(arguments: argparse.Namespace) -> int:
    folder = arguments.folder
    make_token_key(folder)
    say(f"{folder}/{TOKEN_KEY}: for the issuer and the shuffler, --token-key")
    say(f"{folder}/tokens.pub: its public half, which catalog build signs")
    return 0


def _add_account(arguments: argparse.Namespace) -> int:
    key = add_account(arguments.file, arguments.name, vouches=arguments.backend)
    say(f"{arguments.file}: has {arguments.name}, and of its key the hash; the key is")
    say(key)
    return 0


def _make_gateway(arguments: argparse.Namespace) -> int:
    folder: Path = arguments.folder
    keys = make_gateway_key(folder)
    say(f"{folder}/{GATEWAY_KEY}: for the shuffler alone, --gateway-key; keys in it: {keys}")
    say(f"{folder}/gateway.pub: the newest one's public half, which catalog build signs")
    say("now: restart shufflers with it, then: hubbub catalog build; ship the bundle")
    return 0


def _hand_over(arguments: argparse.Namespace) -> int:
    kept, public = hand_over_to_new(arguments.folder)
    say(f"{arguments.folder}/operator.key: signs bundles from now on; its public half is")
    say(f"  {to_text(public)}")
    say(f"{arguments.folder}/handovers.json: the old key's word for it; goes into bundles")
    say(f"{kept}: the old key; destroy it once apps with the new bundle are out")
    say("now: hubbub catalog build; ship the bundle. Devices that took it refuse the old key")
    return 0


def _make_witness(arguments: argparse.Namespace) -> int:
    folder: Path = arguments.folder
    made = make_witness(folder, arguments.name)
    say(f"{folder}/{WITNESS_KEY}: cosigns logs, with: hubbub log cosign; keep it, and the folder")
    say("who audits names its public half as --witness:")
    say(str(made))
    return 0


def _first_second(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())


def _day(seconds: int) -> date:
    return datetime.fromtimestamp(seconds, UTC).date()


def _new(arguments: argparse.Namespace) -> int:
    make_keys(arguments.folder, arguments.days, arguments.periods, development=arguments.dev)
    say(f"{arguments.folder}/operator.key: signs bundles; keep it offline")
    say(f"{arguments.folder}/operator.pub: its public half; apps pin it")
    say(f"{arguments.folder}/opening.keys.json: opens reports; for the aggregator alone")
    say(f"{arguments.folder}/opening.pub.json: goes into bundles")
    return 0


def _tls(arguments: argparse.Namespace) -> int:
    folder: Path = arguments.folder
    authorities = arguments.authorities or folder.with_name(f"{folder.name}-authorities")
    names = names_by_role(arguments.host)
    if arguments.renew:
        until = renew_certificates(folder, authorities, names)
        for role, day in until.items():
            say(f"{folder}/{role}.pem: new, until {day}")
        say("running services take them within seconds; Redis with: CONFIG SET tls-cert-file FILE")
        return 0
    if arguments.party:
        roles = PARTIES[arguments.party]
        write_certificates(folder, names, authorities, roles)
        say(f"{folder}: certificates for {', '.join(roles)}, each by an authority of its own")
        say(f"{authorities}: the authorities' keys: keep it offline")
        say(f"next: give {folder}/ca.pem to the other party, and: hubbub keys trust {folder} ITS")
        return 0
    write_certificates(folder, names, authorities)
    say(
        f"{folder}: ca.pem with an authority for each role, until "
        f"{_first_end(folder / 'ca.pem')}, and certificates for shuffler, aggregator, redis and "
        f"analyst, until {_first_end(folder / 'analyst.pem')}"
    )
    say(f"{authorities}: the authorities' keys; who has them can pose as any role: keep it offline")
    return 0


def _trust(arguments: argparse.Namespace) -> int:
    role = trust_other(arguments.folder, arguments.other)
    say(f"{arguments.folder}/ca.pem: trusts the other party's {role}, and nothing else of it")
    return 0


def _first_end(path: Path) -> date:
    held = x509.load_pem_x509_certificates(path.read_bytes())
    return min(one.not_valid_after_utc for one in held).date()
