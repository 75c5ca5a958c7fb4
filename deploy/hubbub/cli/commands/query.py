"""Questions about a metric or an experiment, from `hubbub query` to `cross`."""

from collections.abc import Mapping, Sequence
from math import floor, log10
from shutil import get_terminal_size
from typing import Any, Final

from hubbub.cli.terminal.answer_tables import (
    say_below,
    say_left_out,
    say_notice,
    show_changes,
    show_estimates,
    show_figures,
    show_percentiles,
    show_table,
    show_top,
    show_trend,
)
from hubbub.cli.terminal.output import explain, table
from hubbub.cli.terminal.percentile_and_candidate_options import PercentileOptions, flatten, list_of
from hubbub.cli.terminal.query_options import (
    OR_PART,
    AnswerOptions,
    OutputOptions,
    QuestionOptions,
    ServiceOptions,
    confidence_option,
    metric_argument,
    parse_epochs,
    read_metric_name,
)
from hubbub.errors import BadParameter
from hubbub.errors.message_words import several, visible
from hubbub.fields.rules import Interval
from hubbub.notebook import Answer, Connection
from hubbub.programs.command_line import command, read_number
from hubbub.programs.option_parsing import Exclusive, argument, option
from hubbub.query_results.answer_table import MAX_SERIES, MAX_TOP, Row, rows
from hubbub.query_results.sentences import (
    association_sentence,
    percentile_sentences,
    slice_sentences,
    whose_sentence,
)

Document = Mapping[str, Any]

_AFTER: Final = Exclusive()
# Larger tables belong in a file.
_MAX_ROWS: Final = 60
_NEVER: Final = 2.0
_MAX_CELLS: Final = 50
_MARK: Final = "*"
_SHORTEST: Final = 1e-6
# Between two columns, and before the first.
_GAP: Final = 3


@command("query")
def _query(
    *,
    question: QuestionOptions,
    anytime: bool = option(
        "intervals that stay valid however often you look while the epochs fill"
    ),
    ranks: PercentileOptions,
    below: tuple[float, ...] = option(
        "share of reports below this number (metrics with buckets), such as 2 or 2,50",
        metavar="NUMBER,...",
        parse=list_of(read_number),
        read=flatten,
    ),
) -> None:
    if not (ranks.percentiles or below):
        question.ask(Connection.estimates, show_estimates, anytime=anytime)
        return
    if anytime:
        raise BadParameter(
            "--anytime: intervals of percentiles are valid for one look only; leave out "
            "--anytime, or --percentile and --below"
        )
    if question.candidates or question.lists:
        raise BadParameter("--candidates and --list are for strings, which have no percentiles")
    terms = {"percentiles": ranks.percentiles, "below": below}
    question.answer.ask(Connection.percentiles, show_percentiles, question.metric, **terms)


@command("top")
def _top(
    question: QuestionOptions,
    number: int = option(
        "number of values (%(default)s)", default=10, other_name="-n", within=Interval(1, MAX_TOP)
    ),
) -> None:
    question.ask(Connection.top, show_top, number=number)


@command(
    "compare",
    description="Compares two ranges of epochs. --last or --epochs name the earlier ones, --to or "
    "--to-last the later ones. Without them it compares the newest closed epoch with the epoch "
    "before; if devices report once a period, it compares whole periods.",
)
def _compare(
    *,
    question: QuestionOptions,
    to: str | None = option(
        "the later epochs, written as for --epochs (newest, if the earlier epochs are named)",
        metavar="EPOCHS",
        exclusive=_AFTER,
        parse=parse_epochs,
    ),
    to_last: str | None = option(
        "the later epochs, written as for --last", exclusive=_AFTER, parse=parse_epochs
    ),
    ranks: PercentileOptions,
) -> None:
    def compare(connection: Connection, metric: str, *, epochs: str, **terms: Any) -> Answer:
        later, look_back = to or "", to_last or ""
        return connection.compare(metric, epochs, later, to_last=look_back, **terms)

    question.ask(compare, show_changes, order="listed", percentiles=ranks.percentiles)


@command("trend")
def _trend(
    *,
    question: QuestionOptions,
    value: tuple[str, ...] = option("value to follow (repeatable)"),
    number: int | None = option(
        "number of the most frequent values, instead of --value (5)",
        other_name="-n",
        within=Interval(1, MAX_SERIES),
    ),
    ranks: PercentileOptions,
) -> None:
    question.ask(
        Connection.trend,
        show_trend,
        values=value,
        number=number,
        percentiles=ranks.percentiles,
    )


@command(
    "figures",
    description="Shows the figures of a metric whose values devices compute from their own past: "
    "conversions between the steps of a funnel, a rate, the active devices of days, weeks and 28 "
    "days, or the share of devices that came back in each week after the first. For activity "
    "and retention it uses all epochs unless you name some.",
)
def _figures(
    *,
    metric: str = metric_argument(OR_PART),
    by: str = option("public field to split the figures by", default="", metavar="FIELD"),
    cohorts: bool = option("for a retention: the shares of each first week separately"),
    answer: AnswerOptions,
) -> None:
    answer.ask(Connection.figures, show_figures, metric, by, cohorts=cohorts)


@command(
    "experiment",
    description=(
        "Shows the effect of each arm on the metrics of an experiment, over all epochs. You may "
        "look as often as you like: all intervals of all looks hold together."
    ),
)
def _experiment(
    *,
    experiment: str = argument("name of the experiment in the catalog", read=read_metric_name),
    confidence: float = confidence_option("all intervals of all looks together"),
    output: OutputOptions,
    service: ServiceOptions,
) -> None:
    with service.connection() as connection:
        output.write(connection.experiment(experiment, confidence=confidence), _show_experiment)


def _show_experiment(answer: Document) -> None:
    """Shows the effects with intervals, the sizes of the arms, and the verdict."""
    if answer["values"]:
        heading = f"{answer['experiment']}: effect against {answer['control']}, {answer['dates']}"
        show_table("experiment", answer, heading)
    else:
        say_notice(answer)
    explain(answer["sizes"])
    say_below("experiment", answer)
    explain(answer["verdict"])


@command(
    "breakdown",
    description="For each value of a public field, shows the shares among its reports, and how "
    "they differ from those among all other reports. A value with fewer reports than the minimum "
    "batch has no answer. The metric needs a breakdown.",
)
def _breakdown(
    question: QuestionOptions,
    by: str = option(
        "public field to split by (the first of the metric)", default="", metavar="FIELD"
    ),
) -> None:
    question.ask(Connection.breakdown, show_breakdown, by=by)


def show_breakdown(answer: Document) -> None:
    """Shows the shares of every part with intervals, and parts without an answer."""
    table_rows = all_rows = rows("breakdown", answer)
    if answer["folded"]:
        table_rows = [row for row in all_rows if row["stands_out"]]
    left_out, hidden = len(all_rows) - len(table_rows), len(table_rows) - _MAX_ROWS
    if hidden > 0:
        table_rows = sorted(
            table_rows, key=lambda row: _NEVER if row["p_value"] is None else row["p_value"]
        )
    show_table(
        "breakdown",
        answer,
        f"{answer['metric']} by {answer['by']}: {several(answer['reports'], 'report')}, "
        f"{answer['dates']}",
        table_rows[:_MAX_ROWS],
    )
    for part in answer["parts"]:
        for sentence in percentile_sentences({**answer, "percentiles": part["percentiles"]}):
            explain(f"{part['part']}: {sentence}")
    say_left_out(left_out, "that do not differ from all others beyond chance")
    if hidden > 0:
        explain(f"largest differences first; {hidden:,} more: --format csv shows all")
    say_below("breakdown", answer)


@command(
    "cross",
    description="Shows, for a metric with parts and each value of the first part, the share of "
    "each value of the second part, with intervals; and whether the two parts depend on "
    "each other. Name two parts if the metric has more; without names the first "
    "two are used. A third part has a table for each of its values, if devices "
    "report three parts together.",
)
def _cross(
    *,
    metric: str = metric_argument(),
    rows: str = argument("part whose values are the rows", default="", metavar="PART"),
    columns: str = argument("part whose values are the columns", default="", metavar="PART"),
    by: str = argument("part that has a table for each of its values", default="", metavar="PART"),
    answer: AnswerOptions,
) -> None:
    answer.ask(Connection.cross, show_cross, metric, rows, columns, by)


def show_cross(answer: Document) -> None:
    """Shows shares within rows with intervals, and the association of the parts.

    With a third part it shows a table for each of its values.
    """
    cells = rows("cross", answer)
    crossed = f"{answer['columns']} within {answer['rows']}"
    crossed += f" by {answer['by']}" if answer["by"] else ""
    heading = f"{answer['metric']}: {crossed}, {answer['reports']:,} reports, {answer['dates']}"
    split = [(part["value"], part["share"]) for part in answer["slices"]] or [("", 1.0)]
    slices = ([cell for cell in cells if cell["slice"] == name] for name, _ in split)
    grids = [_grid(answer, slice_cells) for slice_cells in slices]
    if all(grids):
        say_notice(answer)
        if answer["by"]:
            explain(heading)
        for (slice_name, share), grid in zip(split, grids, strict=True):
            part = f"{answer['by']}={visible(slice_name)}, {share:.1%} of the reports"
            table(part if answer["by"] else heading, *(grid or ()))
        level = f"{100 * answer['confidence']:.6g}%"
        explain(f"share of its row, with its {level} interval; {_MARK} is beyond chance")
    else:
        table_rows = sorted(cells, key=lambda row: -abs(row["score"]))[:_MAX_CELLS]
        show_table("cross", answer, heading, table_rows)
        explain("cells that differ most from independent parts come first")
        if rest_count := len(cells) - len(table_rows):
            explain(f"... and {rest_count:,} more cells: --format csv shows them all")
    explain(association_sentence(answer))
    for sentence in (*slice_sentences(answer), whose_sentence(answer)):
        explain(sentence)
    if len(answer["parts"]) > 2:  # noqa: PLR2004 a table has two
        argument = " PART" if answer["by"] else ""
        explain(
            f"other tables: hubbub cross {answer['metric']} PART PART{argument}; its parts are "
            f"{', '.join(map(visible, answer['parts']))}"
        )
    say_below("cross", answer)


def _grid(answer: Document, cells: Sequence[Row]) -> tuple[list[str], list[list[str]]] | None:
    """Heads and lines of the whole table; None if it is too wide for the terminal."""
    names = list(dict.fromkeys(cell["column"] for cell in cells))
    lines = [cells[start : start + len(names)] for start in range(0, len(cells), len(names) or 1)]
    head = [answer["rows"], *names]
    body = [[line[0]["row"], *map(_share, line)] for line in lines]
    columns = zip(head, *body, strict=True)
    widths = [max(len(visible(text)) for text in column) for column in columns]
    if sum(width + _GAP for width in widths) > get_terminal_size().columns:
        return None
    return head, body


def _share(row: Row) -> str:
    low, high = row["within_low"], row["within_high"]
    # Rounding must leave an interval, however many reports there are.
    digits = max(0, floor(-log10(max(high - low, _SHORTEST))) - 1)
    ends = f"{100 * low:.{digits}f}-{100 * high:.{digits}f}"
    return f"{row['within']:z.{digits}%} {ends}{_MARK if row['departs'] else ' '}"
