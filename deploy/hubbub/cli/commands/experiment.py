"""`hubbub experiment`: what the arms of an experiment change, at every look."""

from collections.abc import Mapping
from typing import Any

from hubbub.cli.terminal.answer_tables import say_final, say_notice, show_rows
from hubbub.cli.terminal.output import explain, say
from hubbub.cli.terminal.query_options import (
    OutputOptions,
    ServiceOptions,
    read_confidence,
    read_metric_name,
)
from hubbub.programs.command_line import command
from hubbub.programs.options import argument, option, options
from hubbub.query_results import columns_of, rows


@options
class ExperimentOptions:
    experiment: str = argument("its name in the catalog", read=read_metric_name)
    confidence: float = option(
        "confidence of all intervals of all looks together (%(default)s)",
        default=0.95,
        read=read_confidence,
    )
    output: OutputOptions
    service: ServiceOptions


@command(
    "experiment",
    description=(
        "Shows the effect of each arm on the metrics of an experiment, over all epochs. You may "
        "look as often as you like: all intervals of all looks hold together."
    ),
    epilog="""
examples:
  hubbub experiment new_menu                the effect, the sizes of the arms, a verdict
  hubbub notice make --stop new_menu.control     end this arm: devices get the others
""",
)
def _experiment(options: ExperimentOptions) -> None:
    with options.service.connection() as connection:
        answer = connection.experiment(options.experiment, confidence=options.confidence)
        options.output.write(answer, show_experiment)


def show_experiment(answer: Mapping[str, Any]) -> None:
    """Shows the effects with intervals, the sizes of the arms, and the verdict."""
    say_notice(answer)
    if answer["values"]:
        heading = f"{answer['experiment']}: effect against {answer['control']}, {answer['dates']}"
        columns = columns_of("experiment", answer)
        show_rows("experiment", answer, heading, columns, rows("experiment", answer))
    explain(answer["sizes"])
    say_final(answer)
    say(answer["verdict"])
