"""The reference of settings: the flags of both services, and the variables of everything."""

import math
from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import Any

import griffe

from docs.reference.command_line import options
from docs.reference.tables import cell, table
from hubbub.aggregator.settings import parser as of_aggregator
from hubbub.client import Settings
from hubbub.issuer.settings import parser as of_issuer
from hubbub.relay.settings import parser as of_relay
from hubbub.runtime.process import VARIABLES
from hubbub.shuffler.settings import parser as of_shuffler

_HEAD = """# Settings

Made by `make reference` from the code that reads them; change it there.

What the SDK and the services are told, and what holds where nothing is said.

"""
_SDK = """## The SDK

An argument of `Client.from_bundle()` or `hubbub.client.init()` goes before its environment variable, and that before the bundle.
The bundle's file is the argument `path`.

"""
_SERVICES = """## Both services

Each is told by its command line, and reads these of its environment, since they may hold a password.

"""
_DEPLOY = """## Files of deploy/

| variable | meaning |
|---|---|
| `HUBBUB_SHUFFLER_REDIS_URL`, `HUBBUB_AGGREGATOR_REDIS_URL` | of `hubbub backup` and `hubbub restore --redis`: both Redis, with the user `operator` |
| `HUBBUB_ARGUMENTS` | of the systemd units: settings of the command line, beside those of the unit |
| `HUBBUB_USER` | of the compose file, in `.env`: the user that containers run as |
| `HUBBUB_GATEWAY` | of the compose file of a relay: which shuffler it passes on to |
| `HUBBUB_PEER` | of the compose files of two parties, in `.env`: where the other party's service is |
| `HUBBUB_OIDC`, `HUBBUB_OIDC_AUDIENCE` | of the compose file of an issuer, in `.env`: its `--oidc` and `--oidc-audience` |

## Commands that ask a service, and those that a page prints

| variable | meaning |
|---|---|
| `HUBBUB_TOKEN` | the analyst's token, where the service asks for one |
| `HUBBUB_CA` | the file of the authority that signed the service's certificate, if no system knows it |
"""


def page() -> str:
    """The whole page, as Markdown."""
    services = [(f"`{name}`", cell(meaning)) for name, meaning in VARIABLES.items()]
    return (
        "".join(
            [
                _HEAD,
                _SDK,
                table(("argument", "variable", "without it", "meaning"), _sdk()),
                _SERVICES,
                table(("variable", "meaning"), services),
                "## The shuffler\n\n    hubbub shuffler [OPTIONS]\n\n",
                options(of_shuffler()),
                "## The aggregator\n\n    hubbub aggregator [OPTIONS]\n\n",
                options(of_aggregator()),
                "## The relay\n\n    hubbub relay [OPTIONS]\n\n",
                options(of_relay()),
                "## The issuer\n\n    hubbub issuer [OPTIONS]\n\n",
                options(of_issuer()),
                _DEPLOY,
            ]
        ).rstrip()
        + "\n"
    )


def _sdk() -> Iterator[tuple[str, str, str, str]]:
    told = {
        one.name: one.description
        for section in griffe.Docstring(Settings.__doc__ or "").parse("google")
        if isinstance(section, griffe.DocstringSectionAttributes)
        for one in section.value
    }
    for field in fields(Settings):
        name = "path" if field.name == "bundle" else field.name
        yield (
            f"`{name}`",
            f"`HUBBUB_{field.name.upper()}`",
            _default(field.default),
            cell(told[field.name]),
        )


def _default(value: Any) -> str:
    if value is None or value is MISSING or value is False or value == math.inf:
        return ""
    return f"`{value}`"
