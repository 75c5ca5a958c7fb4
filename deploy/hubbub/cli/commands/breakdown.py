"""`hubbub breakdown`: a metric by what is public of devices, each part beside all others."""

from typing import Final

from hubbub.cli.terminal.breakdown_table import show_breakdown
from hubbub.cli.terminal.query_options import QuestionOptions
from hubbub.notebook import Connection
from hubbub.programs.command_line import Command
from hubbub.programs.options import option, options


@options
class BreakdownOptions:
    """Options of `hubbub breakdown`."""

    question: QuestionOptions
    by: str = option("public field (the first)", default="", metavar="FIELD")


def _breakdown(options: BreakdownOptions) -> int:
    return options.question.ask(Connection.breakdown, show_breakdown, by=options.by)


COMMANDS: Final = (
    Command(
        name="breakdown",
        run=_breakdown,
        description="For a metric with a breakdown: for each value of a public field the shares "
        "among its reports, and how they differ from the shares among all other "
        "reports. A value with fewer reports than the minimum batch has no answer.",
        epilog="""
examples:
  hubbub breakdown crashed --by version --last 7d     of each version, how many crashed
  hubbub query crashed@version=2.1+2.2                one answer of two of them together
""",
    ),
)
