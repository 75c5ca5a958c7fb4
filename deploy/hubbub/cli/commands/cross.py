"""`hubbub cross`: two parts of a metric as a table, or by a third, and how they go together."""

from typing import Final

from hubbub.cli.terminal.cross_table import show_cross
from hubbub.cli.terminal.query_options import AnswerOptions, read_metric_name
from hubbub.notebook import Connection
from hubbub.programs.command_line import Command
from hubbub.programs.options import argument, options


@options
class CrossOptions:
    """Options of `hubbub cross`."""

    metric: str = argument(
        "name of the metric; NAME/EPSILON for a single tier", read=read_metric_name
    )
    rows: str = argument("part whose values are the rows", default="", metavar="PART")
    columns: str = argument("part whose values are the columns", default="", metavar="PART")
    by: str = argument("part that has a table for each of its values", default="", metavar="PART")
    answer: AnswerOptions


def _cross(options: CrossOptions) -> int:
    parts = options.rows, options.columns, options.by
    return options.answer.ask(Connection.cross, show_cross, options.metric, *parts)


COMMANDS: Final = (
    Command(
        name="cross",
        run=_cross,
        description="For a metric with parts: for each value of the first part, the share of each "
        "value of the second part, with intervals; and whether the two parts depend on "
        "each other. Name two parts if the metric has more; without names the first "
        "two are used. A third part has a table for each of its values, if devices "
        "report three parts together.",
        epilog="""
example:
  hubbub cross profile country theme --last 7d     of each country, who has which theme
  hubbub cross profile country theme version       the same for each version
""",
    ),
)
