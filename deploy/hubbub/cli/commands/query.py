"""`hubbub query`, `top`, `compare`, `trend`, `figures`, `experiment` and `export`: answers."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from hubbub.cli.terminal.answer_tables import (
    say_final,
    say_notice,
    show_changes,
    show_estimates,
    show_figures,
    show_percentiles,
    show_table,
    show_top,
    show_trend,
)
from hubbub.cli.terminal.output import explain, say
from hubbub.cli.terminal.percentile_options import PercentileOptions, each, joined
from hubbub.cli.terminal.query_options import (
    AnswerOptions,
    OutputOptions,
    QuestionOptions,
    ServiceOptions,
    parse_epochs,
    read_confidence,
    read_metric_name,
)
from hubbub.errors import BadParameter
from hubbub.notebook import Answer, Connection
from hubbub.programs.command_line import command, read_number
from hubbub.programs.options import Exclusive, argument, option, options

_AFTER: Final = Exclusive()
_MAX_SERIES: Final = 50


@options
class QueryOptions:
    question: QuestionOptions
    anytime: bool = option("intervals that stay valid however often you look while the epochs fill")
    ranks: PercentileOptions
    below: tuple[float, ...] = option(
        "share of the numbers below this one, of a number with buckets, as 2 or 2,5",
        metavar="NUMBER,...",
        parse=each(read_number),
        read=joined,
    )


@options
class TopOptions:
    question: QuestionOptions
    number: int = option("number of values (%(default)s)", default=10, other_name="-n")


@options
class CompareOptions:
    question: QuestionOptions
    to: str | None = option(
        "the later epochs, written as for --epochs (newest, if the earlier epochs are named)",
        metavar="EPOCHS",
        exclusive=_AFTER,
        parse=parse_epochs,
    )
    to_last: str | None = option(
        "the later epochs, written as for --last", exclusive=_AFTER, parse=parse_epochs
    )
    ranks: PercentileOptions


@options
class TrendOptions:
    question: QuestionOptions
    value: tuple[str, ...] = option("value to follow (repeatable)")
    number: int = option(
        "number of values, instead of --value (%(default)s)", default=5, other_name="-n"
    )
    ranks: PercentileOptions


@command("query")
def _query(options: QueryOptions) -> None:
    if not (options.ranks.percentiles or options.below):
        options.question.ask(Connection.estimates, show_estimates, anytime=options.anytime)
        return
    if options.anytime:
        raise BadParameter(
            "--anytime: intervals of percentiles are valid for one look only; leave it out, or "
            "--percentile and --below"
        )
    if options.question.candidates or options.question.lists:
        raise BadParameter("--candidates and --list are for strings, which have no percentiles")
    terms = {"percentiles": options.ranks.percentiles, "below": options.below}
    options.question.answer.ask(
        Connection.percentiles, show_percentiles, options.question.metric, **terms
    )


@command("top")
def _top(options: TopOptions) -> None:
    options.question.ask(Connection.top, show_top, number=options.number)


@command(
    "compare",
    description="Compares two ranges of epochs. --last or --epochs name the earlier ones, --to or "
    "--to-last the later ones. Without them the newest closed epoch is compared with the epoch "
    "before it; if devices report once a period, whole periods are compared.",
)
def _compare(options: CompareOptions) -> None:
    def compare(connection: Connection, metric: str, *, epochs: str, **terms: Any) -> Answer:
        later, to_last = options.to or "", options.to_last or ""
        return connection.compare(metric, epochs, later, to_last=to_last, **terms)

    options.question.ask(
        compare, show_changes, order="listed", percentiles=options.ranks.percentiles
    )


@command("trend")
def _trend(options: TrendOptions) -> None:
    options.question.ask(
        Connection.trend,
        show_trend,
        values=options.value,
        number=options.number,
        percentiles=options.ranks.percentiles,
    )


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
)
def _figures(options: FiguresOptions) -> None:
    options.answer.ask(
        Connection.figures, show_figures, options.metric, options.by, cohorts=options.cohorts
    )


@options
class ExperimentOptions:
    experiment: str = argument("name of the experiment in the catalog", read=read_metric_name)
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
)
def _experiment(options: ExperimentOptions) -> None:
    with options.service.connection() as connection:
        answer = connection.experiment(options.experiment, confidence=options.confidence)
        options.output.write(answer, _show_experiment)


def _show_experiment(answer: Mapping[str, Any]) -> None:
    """Shows the effects with intervals, the sizes of the arms, and the verdict."""
    if answer["values"]:
        heading = f"{answer['experiment']}: effect against {answer['control']}, {answer['dates']}"
        show_table("experiment", answer, heading)
    else:
        say_notice(answer)
    explain(answer["sizes"])
    say_final(answer)
    say(answer["verdict"])


@options
class ExportOptions:
    question: QuestionOptions
    by_epoch: bool = option("a row per epoch and value")


@command(
    "export",
    description="Writes the estimates of a metric. The format follows from the name of the file, "
    "unless --format names it.",
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
