"""`hubbub query`, `top`, `compare` and `trend`: answers, each with its interval and its picture."""

from itertools import chain
from typing import Any, Final

from hubbub.cli.terminal.answer_tables import (
    show_changes,
    show_estimates,
    show_percentiles,
    show_top,
    show_trend,
)
from hubbub.cli.terminal.percentile_text import read_percentile
from hubbub.cli.terminal.query_options import QuestionOptions
from hubbub.errors import BadParameter
from hubbub.notebook import Answer, Connection
from hubbub.programs.command_line import command, read_number
from hubbub.programs.options import Exclusive, option, options

_AFTER: Final = Exclusive()


def _numbers(text: str) -> tuple[float, ...]:
    """Reads the numbers of one argument: 50,90,99.9."""
    return tuple(read_number(number) for number in text.split(","))


def _percentiles(text: str) -> tuple[float, ...]:
    """Reads the percentiles of one argument: 50,p90,99.9."""
    return tuple(read_percentile(percentile) for percentile in text.split(","))


def _joined(_: str, percentiles: tuple[tuple[float, ...], ...]) -> tuple[float, ...]:
    """The percentiles of all arguments, since the option may be repeated."""
    return tuple(chain.from_iterable(percentiles))


@options
class PercentileOptions:
    """The option for percentiles of a number in parts."""

    percentiles: tuple[float, ...] = option(
        "percentiles of a number with parts, as 50 or 50,90,99.9",
        name="--percentile",
        metavar="P,...",
        parse=_percentiles,
        read=_joined,
    )


@options
class QueryOptions:
    question: QuestionOptions
    anytime: bool = option("intervals that hold simultaneously at every look while the epochs fill")
    ranks: PercentileOptions
    below: tuple[float, ...] = option(
        "share of the numbers below this one, of a number with parts, as 2 or 2,5",
        metavar="NUMBER,...",
        parse=_numbers,
        read=_joined,
    )


@options
class TopOptions:
    question: QuestionOptions
    number: int = option("number of values (%(default)s)", default=10, other_name="-n")


@options
class CompareOptions:
    question: QuestionOptions
    to: str = option(
        "the later epochs, written as for --epochs (newest, if the earlier epochs are named)",
        default="",
        metavar="EPOCHS",
        exclusive=_AFTER,
    )
    to_last: str = option("the later epochs, written as for --last", default="", exclusive=_AFTER)
    ranks: PercentileOptions


@options
class TrendOptions:
    question: QuestionOptions
    value: tuple[str, ...] = option("value to follow (repeat)")
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
    description="--last or --epochs name the earlier epochs, --to or --to-last the later ones. "
    "Without them the newest closed epoch is compared with the epoch before it; if "
    "devices report once a period, whole periods are compared.",
)
def _compare(options: CompareOptions) -> None:
    def compare(connection: Connection, metric: str, *, epochs: str, **terms: Any) -> Answer:
        return connection.compare(metric, epochs, options.to, to_last=options.to_last, **terms)

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
