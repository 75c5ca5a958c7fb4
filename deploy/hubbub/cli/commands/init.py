"""`hubbub init`: everything that an installation needs beside its programs, made in one folder."""

from pathlib import Path
from typing import Final

from hubbub.cli.terminal.catalog_reading import read_aloud
from hubbub.cli.terminal.output import say
from hubbub.errors import BadParameter
from hubbub.errors.message_words import PROTECTS_NOBODY
from hubbub.fields.rules import is_address
from hubbub.installation.certificate_authorities import PARTIES
from hubbub.installation.new_installation import BOTH, initialise
from hubbub.programs.command_line import command
from hubbub.programs.option_parsing import Group, argument, option, options

_CATALOG: Final = Path("metrics.toml")
_CREATED_FILES: Final = (
    ("app.hubbub", "for the apps"),
    ("operator.hubbub", "for the aggregator: app.hubbub, candidates and alerts"),
    ("keys/operator.key", "signs bundles: keep it offline, with a copy"),
    ("keys/opening.keys.json", "opens reports: only for the aggregator"),
    ("tls-authorities", "renews certificates: keep it offline, with a copy"),
    ("access/access.toml", "access rights, and logins at your provider"),
    ("passwords", "password of Grafana, tokens for the page and Prometheus"),
    ("keys/tokens.key", "makes tokens: for the issuer and the shuffler"),
    ("keys/tokens.pub", "its public half: for the builder of bundles"),
)
_PARTIES: Final = Group("one of several parties")


@options
class InitOptions:
    folder: Path = argument("folder for all the files")
    catalog: Path | None = option(f"the catalog to build ({_CATALOG})")
    host: tuple[str, ...] = option(
        "another host name of a role, or NAME alone for all roles (repeatable); the shuffler of "
        "the catalog and the names of the containers are included",
        metavar="ROLE=NAME",
    )
    dev: bool = option(
        "for development only: the privacy settings protect nobody; services of a production "
        "installation refuse its files"
    )
    tokens: Path | None = option(
        "public key of the token issuer, if the catalog names an issuer; whoever runs the "
        "issuer has it",
        metavar="TOKENS.PUB",
    )
    party: str = option(
        "the service that this party runs; only its keys, certificates and Redis are made",
        default="",
        choices=(*PARTIES, "issuer"),
        group=_PARTIES,
    )
    peer: str = option(
        "address of the other party: the aggregator, or the status port of the shuffler",
        default="",
        metavar="HOST:PORT",
        group=_PARTIES,
    )
    trust: Path | None = option(
        "certificate authorities of the other party; they can be added later with hubbub "
        "keys trust",
        metavar="CA.PEM",
        group=_PARTIES,
    )


@command(
    "init",
    description="""
Makes in FOLDER: keys, certificates, the bundle and the stream table of the catalog, settings and
users for Redis, random passwords and tokens, and folders for data. It overwrites nothing. Run as
root, it gives user 10001 the files that services read. The next steps are in
docs/operate/install.md. With --party it makes the files of one party: see
docs/operate/two-parties.md and tokens.md.
""",
)
def _run(options: InitOptions) -> None:
    folder, party = options.folder, options.party
    _check_party(options)
    is_builder = party in {"", "aggregator"}  # the other parties get the stream table
    initialise(
        folder,
        (party,) if party else BOTH,
        options.host,
        catalog=read_aloud(options.catalog or _CATALOG) if is_builder else None,
        tokens=options.tokens,
        development=options.dev,
        peer=options.peer,
        trust=options.trust,
    )
    if options.dev:
        say(f"{PROTECTS_NOBODY} HUBBUB_DEV=1 in the .env files of its services marks it.")
    say(f"{folder}: made, with")
    for name, meaning in _CREATED_FILES:
        if (folder / name).exists():
            say(f"  {folder}/{name:<23} {meaning}")
    if party == "issuer":
        say("next: a certificate, the stream table and accounts: see docs/operate/tokens.md")
    elif party:
        say(f"next: give {folder}/tls/ca.pem to the other party, and continue as")
        say("docs/operate/two-parties.md says")
    file = f"{party or 'compose'}.yaml"
    if (folder / file).exists():
        only = f" --file {folder}/{file}" if party else ""
        say(f"next: docker compose --project-directory {folder}{only} up --build --detach")


def _check_party(options: InitOptions) -> None:
    """Raises BadParameter if the options about two parties conflict."""
    party = options.party
    if party not in BOTH and (options.peer or options.trust):
        raise BadParameter("--peer and --trust need --party shuffler or --party aggregator")
    if party not in {"", "aggregator"}:
        if options.tokens:
            raise BadParameter(
                "--tokens is for the builder of bundles; this party needs keys/tokens.key"
            )
        if options.catalog:
            raise BadParameter(
                f"--catalog is for the builder of bundles, and the {party}'s party builds "
                "none: leave it out"
            )
        if options.dev:
            raise BadParameter("--dev cannot be combined with --party: its keys protect nobody")
    if party in BOTH and not is_address(options.peer):
        raise BadParameter("--party needs --peer HOST:PORT, the other party's service")
    if party == "aggregator" and options.trust is None:
        raise BadParameter(
            "--party aggregator needs --trust CA.PEM, so that devices trust the shuffler; "
            "the shuffler's party makes it first, with hubbub init --party shuffler"
        )
