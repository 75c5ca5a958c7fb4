"""`hubbub candidates`: named lists of strings to look for, saved at the aggregator."""

from pathlib import Path
from typing import Final

from hubbub.cli.terminal.output import day_of, listing, say
from hubbub.cli.terminal.percentile_and_candidate_options import read_candidates
from hubbub.cli.terminal.query_options import ServiceOptions
from hubbub.errors.message_words import several
from hubbub.notebook.http_client import named_path
from hubbub.programs.command_line import command
from hubbub.programs.option_parsing import argument

_LISTS: Final = "/v1/candidates"
_NAME: Final = "name of the list"
DESCRIPTION: Final = (
    "A list has a name and strings, and is kept by the aggregator for everybody. `query`, `top`, "
    "`compare` and `trend` look for its strings with --list NAME."
)


@command("candidates add", text="save the lines of a file as a list, or add them to one")
def _add(
    *,
    name: str = argument(_NAME),
    file: Path = argument("file with one string per line, plain or .gz"),
    service: ServiceOptions,
) -> None:
    strings = read_candidates(file, "FILE")
    with service.connection() as connection:
        path, body = named_path(_LISTS, name), {"candidates": strings}
        saved = connection.service.ask(path, {"add": "true"}, body, method="PUT")
        list_name, number = saved["name"], several(saved["total"], "string")
    say(f"{list_name}: {number}; look for them with --list {list_name}")


@command("candidates list", text="show the name and the size of every list")
def _list(service: ServiceOptions) -> None:
    with service.connection() as connection:
        lists = connection.service.ask(_LISTS)["lists"]
        listing(
            "Saved lists" if lists else "No lists: hubbub candidates add NAME FILE saves one",
            lists,
            {
                "name": "{name}",
                "saved on": lambda saved: f"{day_of(saved['saved'])}",
                "strings": "{total:,}",
            },
            text_columns=2,
        )


@command("candidates show", text="print the strings of a list, one per line")
def _show(*, name: str = argument(_NAME), service: ServiceOptions) -> None:
    with service.connection() as connection:
        for string in connection.service.ask(named_path(_LISTS, name))["candidates"]:
            say(string)


@command("candidates remove", text="delete a list")
def _remove(*, name: str = argument(_NAME), service: ServiceOptions) -> None:
    with service.connection() as connection:
        connection.service.ask(named_path(_LISTS, name), method="DELETE")
    say(f"{name}: removed")
