"""`hubbub figures`: conversions, rates, numbers of actives, and shares that come back."""

from hubbub.cli.terminal.answer_tables import show_figures
from hubbub.cli.terminal.query_options import AnswerOptions, read_metric_name
from hubbub.notebook import Connection
from hubbub.programs.command_line import command
from hubbub.programs.options import argument, option, options


@options
class FiguresOptions:
    metric: str = argument(
        "name of the metric; NAME/EPSILON for a single tier, NAME@os=linux for a part of the "
        "devices",
        read=read_metric_name,
    )
    by: str = option(
        "public field, for each value of which figures are shown", default="", metavar="FIELD"
    )
    cohorts: bool = option("for a retention: the shares of each first week separately")
    answer: AnswerOptions


@command(
    "figures",
    description="Shows the figures of a metric whose values devices compute from their own past: "
    "conversions between the steps of a funnel, a rate, the active devices of days, weeks "
    "and 28 days, or the share that came back in each week after the first. For activity "
    "and retention it uses all epochs unless you name some.",
    epilog="""
examples:
  hubbub figures checkout --last 7d          conversions between the steps of a funnel
  hubbub figures comeback --cohorts          shares that came back, by first week
  hubbub figures use --by os                 active devices by operating system
""",
)
def _figures(options: FiguresOptions) -> None:
    options.answer.ask(
        Connection.figures, show_figures, options.metric, options.by, cohorts=options.cohorts
    )
