"""`hubbub query`, `top`, `compare` and `trend`: answers, each with its interval and its picture."""

from typing import Any, Final

from hubbub.cli.terminal.answer_tables import show_changes, show_estimates, show_top, show_trend
from hubbub.cli.terminal.query_options import QuestionOptions
from hubbub.notebook import Answer, Connection
from hubbub.programs.command_line import Command
from hubbub.programs.options import Exclusive, option, options

_AFTER: Final = Exclusive()


@options
class QueryOptions:
    """Options of `hubbub query`."""

    question: QuestionOptions
    anytime: bool = option(
        "intervals that hold simultaneously at every look while the epochs fill",
        default=False,
    )


@options
class TopOptions:
    """Options of `hubbub top`."""

    question: QuestionOptions
    number: int = option("number of values (%(default)s)", default=10, other_name="-n")


@options
class CompareOptions:
    """Options of `hubbub compare`."""

    question: QuestionOptions
    to: str = option(
        "the later epochs, written as for --epochs (newest, if the earlier epochs are named)",
        default="",
        metavar="EPOCHS",
        exclusive=_AFTER,
    )
    to_last: str = option("the later epochs, written as for --last", default="", exclusive=_AFTER)


@options
class TrendOptions:
    """Options of `hubbub trend`."""

    question: QuestionOptions
    value: tuple[str, ...] = option("value to follow (repeat)", default=())
    number: int = option(
        "number of values, instead of --value (%(default)s)", default=5, other_name="-n"
    )


def _query(options: QueryOptions) -> int:
    return options.question.ask(Connection.estimates, show_estimates, anytime=options.anytime)


def _top(options: TopOptions) -> int:
    return options.question.ask(Connection.top, show_top, number=options.number)


def _compare(options: CompareOptions) -> int:
    def compare(connection: Connection, metric: str, *, epochs: str, **terms: Any) -> Answer:
        return connection.compare(metric, epochs, options.to, to_last=options.to_last, **terms)

    return options.question.ask(compare, show_changes, order="listed")


def _trend(options: TrendOptions) -> int:
    return options.question.ask(
        Connection.trend, show_trend, values=options.value, number=options.number
    )


COMMANDS: Final = (
    Command(name="query", run=_query),
    Command(name="top", run=_top),
    Command(
        name="compare",
        run=_compare,
        description="--last or --epochs name the earlier epochs, --to or --to-last the later ones. "
        "Without them the newest closed epoch is compared with the epoch before it; if "
        "devices report once a period, whole periods are compared.",
    ),
    Command(name="trend", run=_trend),
)
