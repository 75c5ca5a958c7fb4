"""`hubbub mark`: days on which something happened, shown on every trend."""

from typing import Final

from hubbub.cli.terminal.output import listing, say
from hubbub.cli.terminal.query_options import ServiceOptions
from hubbub.notebook.http_client import named_path
from hubbub.programs.command_line import command
from hubbub.programs.option_parsing import argument, option

_MARKS: Final = "/v1/marks"
DESCRIPTION: Final = (
    "A mark is a day on which something happened, such as a release or an incident. The trends of "
    "all metrics show it, or those of one."
)


@command("mark add", text="mark a day, with what happened on it")
def _add(
    *,
    name: str = argument("name of the mark, such as release-2; it replaces a mark of this name"),
    on: str = option("the day, as 2026-11-22", metavar="DATE"),
    text: str = option("what happened, in a sentence", default=""),
    metric: str = option("metric whose trend shows the mark; without it all metrics", default=""),
    service: ServiceOptions,
) -> None:
    mark = {"date": on, "text": text, "metric": metric}
    with service.connection() as connection:
        saved = connection.service.ask(named_path(_MARKS, name), body=mark, method="PUT")
        say(f"{saved['date']}: {saved['name']}, on {saved['metric'] or 'all metrics'}")


@command("mark list", text="show all marks, by date")
def _list(service: ServiceOptions) -> None:
    with service.connection() as connection:
        marks = connection.service.ask(_MARKS)["marks"]
        listing(
            "Marks" if marks else "No marks: hubbub mark add NAME --on DATE makes one",
            marks,
            {
                "date": "{date}",
                "name": "{name}",
                "metric": lambda mark: mark["metric"] or "all",
                "what happened": "{text}",
            },
            text_columns=4,
        )


@command("mark remove", text="delete a mark")
def _remove(
    *,
    name: str = argument("name of the mark"),
    metric: str = option("metric of the mark, if several marks have this name", default=""),
    service: ServiceOptions,
) -> None:
    with service.connection() as connection:
        connection.service.ask(named_path(_MARKS, name), {"metric": metric}, method="DELETE")
    say(f"{name}: removed")
