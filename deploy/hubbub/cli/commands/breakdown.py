"""`hubbub breakdown`: a metric by what is public of devices, each part beside all others."""

from collections.abc import Mapping
from typing import Any, Final

from hubbub.cli.terminal.answer_tables import say_final, show_table
from hubbub.cli.terminal.output import explain
from hubbub.cli.terminal.query_options import QuestionOptions
from hubbub.errors.grammar import several
from hubbub.notebook import Connection
from hubbub.programs.command_line import command
from hubbub.programs.options import option, options
from hubbub.query_results.rows import rows
from hubbub.query_results.sentences import percentile_sentences

Answer = Mapping[str, Any]

# Larger tables belong in a file.
_ROWS: Final = 60
_NEVER: Final = 2.0


@options
class BreakdownOptions:
    question: QuestionOptions
    by: str = option(
        "public field to split by (the first of the metric)", default="", metavar="FIELD"
    )


@command(
    "breakdown",
    description="For a metric with a breakdown: for each value of a public field the shares "
    "among its reports, and how they differ from the shares among all other "
    "reports. A value with fewer reports than the minimum batch has no answer.",
)
def _breakdown(options: BreakdownOptions) -> None:
    options.question.ask(Connection.breakdown, show_breakdown, by=options.by)


def show_breakdown(answer: Answer) -> None:
    """Shows the shares of every part with intervals, and parts without an answer."""
    all_rows = rows("breakdown", answer)
    table_rows = all_rows
    if len(all_rows) > _ROWS:
        table_rows = sorted(
            all_rows, key=lambda row: _NEVER if row["p_value"] is None else row["p_value"]
        )
    for part in answer["parts"]:
        for sentence in percentile_sentences({**answer, "percentiles": part["percentiles"]}):
            explain(f"{part['part']}: {sentence}")
    show_table(
        "breakdown",
        answer,
        f"{answer['metric']} by {answer['by']}: {several(answer['reports'], 'report')}, "
        f"{answer['dates']}",
        table_rows[:_ROWS],
    )
    if len(all_rows) > _ROWS:
        explain(
            f"largest differences first; {len(all_rows) - _ROWS:,} more: --format csv shows all"
        )
    for part in answer["parts"]:
        if not part["answered"] and (part["part"] != "unlisted" or part["reports"]):
            withheld = f", {part['withheld']:,} withheld" if part["withheld"] else ""
            explain(
                f"{part['part']}: {several(part['reports'], 'report')}{withheld}; below the "
                f"minimum batch of {answer['min_batch']:,}, so there is no answer"
            )
    for note in answer["notes"]:
        explain(note)
    explain("differences refer to the population, shares to those who reported")
    say_final(answer)
