"""`hubbub export`: a metric as a file, estimates or a trend, for spreadsheets and notebooks."""

from dataclasses import replace
from typing import Final

from hubbub.cli.terminal.answer_tables import show_estimates, show_trend
from hubbub.cli.terminal.query_options import QuestionOptions
from hubbub.errors import BadParameter
from hubbub.notebook import Connection
from hubbub.programs.command_line import command
from hubbub.programs.options import option, options

_MAX_SERIES: Final = 50


@options
class ExportOptions:
    question: QuestionOptions
    by_epoch: bool = option("a row per epoch and value")


@command(
    "export", description="The format follows from the name of the file, unless --format names it."
)
def _export(options: ExportOptions) -> None:
    question, output = options.question, options.question.answer.output
    if output.format == "table":
        raise BadParameter(
            "--format table is for a screen: give csv, json or parquet, or use hubbub query"
        )
    if not output.format and not output.out:
        output = replace(output, format="csv")
        question = replace(question, answer=replace(question.answer, output=output))
    if options.by_epoch:
        question.ask(Connection.trend, show_trend, number=_MAX_SERIES)
    else:
        question.ask(Connection.estimates, show_estimates)
