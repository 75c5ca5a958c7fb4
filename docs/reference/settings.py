"""The reference of settings: the flags of both services, and the variables of everything."""

import math
from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import Any, Final

import griffe

from docs.reference.command_line import options, shared_entries
from docs.reference.tables import cell
from hubbub.aggregator.settings import parser as of_aggregator
from hubbub.client import Settings
from hubbub.issuer.settings import parser as of_issuer
from hubbub.relay.settings import parser as of_relay
from hubbub.runtime.service_options import VARIABLES
from hubbub.shuffler.settings import parser as of_shuffler

_HEAD = """# Settings

Made by `make reference` from the code that reads them; change it there.

The arguments and environment variables of the SDK and of the services, with their defaults in parentheses. An option takes a value unless it is a `(switch)`.

"""
_SDK = """## The SDK

An argument of `Client.from_bundle()` or `hubbub.client.init()` overrides its environment variable, which overrides the bundle.

"""
_SERVICES = """## All services

A service takes its settings from the command line: `hubbub shuffler --streams streams.json`, and so on.
It reads these from the environment, because they may contain a password:

"""
_SHARED = """These options mean the same in every service that lists them as shared:

"""
_FEWEST_SERVICES: Final = 3  # An option that so many services describe alike is shared.
_PARSERS: Final = {
    "shuffler": of_shuffler,
    "aggregator": of_aggregator,
    "relay": of_relay,
    "issuer": of_issuer,
}
_DEPLOY = """## Files of deploy/

- `HUBBUB_SHUFFLER_REDIS_URL`, `HUBBUB_AGGREGATOR_REDIS_URL`: `hubbub backup` and `hubbub restore --redis`: both Redis, with the user `operator`
- `HUBBUB_ARGUMENTS`: systemd units: further options for the service
- `HUBBUB_USER`: compose file, in `.env`: the user that containers run as
- `HUBBUB_GATEWAY`: compose file of a relay: the shuffler that it forwards to
- `HUBBUB_PEER`: compose files of two parties, in `.env`: address of the other party's service
- `HUBBUB_TOTALS`, `HUBBUB_REDIS_DAYS`, `HUBBUB_ESTIMATES`, `HUBBUB_OTLP`: compose files, in `.env`: \
the aggregator's options of these names
- `HUBBUB_AGGREGATOR`: compose file, in `.env`: lock of the aggregator's image; these options need \
`aggregator-all`
- `HUBBUB_OIDC`, `HUBBUB_OIDC_AUDIENCE`: compose file of an issuer, in `.env`: its `--oidc` and `--oidc-audience`

## Commands that query a service

- `HUBBUB_TOKEN`: the analyst's token, if the service requires one
- `HUBBUB_CA`: certificate file of the authority that signed the service's certificate, if the system does not trust it
"""


def page() -> str:
    """The whole page, as Markdown."""
    services = [(f"`{name}`", cell(meaning)) for name, meaning in VARIABLES.items()]
    parsers = {name: make_parser() for name, make_parser in _PARSERS.items()}
    shared = shared_entries(parsers.values(), _FEWEST_SERVICES)
    parts = [
        _HEAD,
        _SDK,
        "".join(f"- {entry}\n" for entry in _sdk()),
        "\n",
        _SERVICES,
        "".join(f"- {name}: {meaning}\n" for name, meaning in services),
        "\n",
        _SHARED,
        "".join(f"- {entry}\n" for entry in shared),
        "\n",
    ]
    for name, parser in parsers.items():
        parts.append(f"## The {name}\n\n{options(parser, shared)}")
    parts.append(_DEPLOY)
    return "".join(parts).rstrip() + "\n"


def _sdk() -> Iterator[str]:
    """Argument, variable, default and meaning of each setting of the SDK."""
    meanings = {
        attribute.name: attribute.description
        for section in griffe.Docstring(Settings.__doc__ or "").parse("google")
        if isinstance(section, griffe.DocstringSectionAttributes)
        for attribute in section.value
    }
    for field in fields(Settings):
        name = "path" if field.name == "bundle" else field.name
        default = _default(field.default)
        variable = f"`HUBBUB_{field.name.upper()}`" + (f" ({default})" if default else "")
        yield f"`{name}`, {variable}: {cell(meanings[field.name])}"


def _default(value: Any) -> str:
    if value is None or value is MISSING or value is False or value == math.inf:
        return ""
    return f"`{value}`"
