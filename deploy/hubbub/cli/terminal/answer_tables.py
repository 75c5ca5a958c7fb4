"""Shows answers and models as tables: with bars and intervals on a terminal, plain in a pipe."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import chain, islice, takewhile
from shutil import get_terminal_size
from typing import Any, Final

from hubbub.cli.terminal.output import explain, listing, say, table
from hubbub.errors.message_words import at_most, several
from hubbub.query_results.answer_table import (
    Column,
    QueryName,
    Row,
    cell,
    columns_of,
    is_folded,
    is_of_means,
    rows,
    title,
)
from hubbub.query_results.sentences import percentile_sentences, sentences_below

Answer = Mapping[str, Any]
Intervals = Sequence[tuple[float, float, float]]

# Larger tables belong in a file; json, csv and parquet have all rows.
_ROWS: Final = 50
_PICTURE: Final = " "
_ABOVE_SPARKS: Final = "by epoch"
_NARROWEST: Final = 12
_WIDEST: Final = 44
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_SPARKS: Final = "▁▂▃▄▅▆▇█"
_SHOWN_EPOCHS: Final = 30
_TEXTS: Final = ("text", "time")


def show_metrics(answer: Answer) -> None:
    """Shows the metrics, each with its last epochs as a sparkline up to the largest."""
    sparks = []
    for metric in answer["metrics"]:
        numbers = [epoch["reports"] for epoch in metric["epochs"][-_SHOWN_EPOCHS:]]
        highest = max(numbers, default=0) or 1
        sparks.append("".join(_SPARKS[(len(_SPARKS) - 1) * n // highest] for n in numbers))
    show_table("metrics", answer, several(len(answer["metrics"]), "metric"), sparks=sparks)
    waiting: dict[str, list[str]] = {}
    for metric in answer["metrics"]:
        waiting.setdefault(metric["until_first_batch"], []).append(metric["name"])
    for sentence in filter(None, waiting):
        explain(f"{', '.join(waiting[sentence])}: {sentence}")
    say_expired(answer)


def say_expired(metrics: Answer) -> None:
    """Names the metrics that have expired, in the answer that lists all metrics."""
    for metric in metrics["metrics"]:
        day = date.fromisoformat(metric["expires"])
        if day < datetime.now(UTC).date():
            explain(expired_sentence(metric["name"], day))


def expired_sentence(name: str, day: date) -> str:
    """A sentence that a metric has expired on a day."""
    return f"{name}: expired on {day}, so devices do not report it"


def show_estimates(answer: Answer) -> None:
    """Shows percentiles, estimates as a table, and notes on how far to trust them."""
    values = rows("estimates", answer)
    has_ranges = answer["kind"] in {"values", "ranges"} and answer["lowest"] is not None
    # Ranges, steps and weeks have an order of their own.
    if answer["kind"] == "values" and not (has_ranges or answer.get("figures")):
        values = sorted(values, key=lambda value: value["rank"])
    table_rows = values
    if is_folded(values, of_numbers=has_ranges):
        table_rows = [value for value in values if value["low"] > 0]
    left_out, table_rows = len(values) - len(table_rows), table_rows[:_ROWS]
    show_table(
        "estimates",
        answer,
        _heading(answer),
        table_rows,
        None if is_of_means("estimates", answer) else _intervals(table_rows, "estimate"),
        below=percentile_sentences(answer),
    )
    say_below("estimates", answer, table_rows)
    say_left_out(left_out, "whose intervals reach 0")
    _say_hidden_rows(len(values) - left_out)


def show_percentiles(answer: Answer) -> None:
    """Shows percentiles and shares below a number as a table."""
    show_table("percentiles", answer, _heading(answer))
    say_below("percentiles", answer)


def _heading(answer: Answer) -> str:
    """The heading of estimates: metric, number of reports, mechanism, epsilon, dates.

    Of a single epoch that is longer than a day, the dates are its first and its last day.
    """
    dates, first_day = answer["dates"], date.fromisoformat(answer["since"][:10])
    last_day = date.fromisoformat(answer["until"][:10]) - timedelta(days=1)
    if len(answer["epochs"]) == 1 and first_day < last_day:
        dates = f"{first_day} to {last_day}"
    return (
        f"{answer['metric']}: {several(answer['reports'], 'report')}, {answer['mechanism']}, "
        f"epsilon {at_most(answer['epsilon'], '.3f')} per report, {dates}"
    )


def say_notice(*answers: Answer) -> None:
    """Prints the notices of answers, each once."""
    for notice in filter(None, dict.fromkeys(answer["notice"] for answer in answers)):
        explain(notice)


def say_below(question: QueryName, answer: Answer, table_rows: Sequence[Row] = ()) -> None:
    """Prints what an answer's table, of these rows, does not show."""
    for sentence in sentences_below(question, answer, table_rows):
        explain(sentence)


def say_left_out(count: int, why: str) -> None:
    """Prints how many ranges a table leaves out, and why; nothing for none."""
    if count:
        explain(f"left out: {several(count, 'range')} {why}; --format csv shows them all")


def show_top(answer: Answer) -> None:
    """Shows the most frequent values, and the confidence in their order."""
    values = rows("top", answer)
    heading = f"{answer['metric']}: the most frequent of {several(answer['reports'], 'report')}"
    show_table("top", answer, heading, values, _intervals(values, "estimate"))
    say_below("top", answer, values)


def show_changes(answer: Answer) -> None:
    """Shows the changes between two ranges, the most significant first."""
    changes = sorted(rows("compare", answer), key=lambda change: change["p_value"])
    left_out = 0
    if is_folded(changes, of_numbers=bool(answer["percentiles"])):
        changed = [change for change in changes if change["changed"]]
        left_out, changes = len(changes) - len(changed), changed
    show_table(
        "compare",
        answer,
        f"{answer['metric']}: {several(answer['before_reports'], 'report')} of "
        f"{answer['before_dates']}, then {answer['after_reports']:,} of {answer['after_dates']}",
        changes[:_ROWS],
        below=percentile_sentences(answer),
    )
    say_below("compare", answer)
    say_left_out(left_out, "that did not change beyond chance")
    _say_hidden_rows(len(changes))


def show_figures(answer: Answer) -> None:
    """The figures of a metric, in their order."""
    figures = rows("figures", answer)
    table_rows = figures[:_ROWS]
    drawn = []
    for row in table_rows:
        low, high = row["low"], row["low"] if row["high"] is None else row["high"]
        drawn.append((row["estimate"] or low, low, high))
    columns = _columns_without("note", "figures", answer)  # notes stand below the table
    heading = f"{answer['metric']}: {answer['kind']}, {several(answer['reports'], 'report')}"
    heading += f", {answer['dates']}"
    show_table("figures", answer, heading, table_rows, drawn, columns=columns)
    say_below("figures", answer, table_rows)
    _say_hidden_rows(len(figures))


def show_trend(answer: Answer) -> None:
    """Shows every series as a table of epochs, all on one scale."""
    say_notice(answer)
    points = iter(rows("trend", answer))
    series_rows = [[*islice(points, len(series["points"]))][-_ROWS:] for series in answer["series"]]
    every = [*chain.from_iterable(series_rows)]
    drawn = _intervals(every, "share")
    columns_of_series = _columns_without("value", "trend", answer)
    columns, pictures = _add_pictures("trend", answer, every, drawn, columns_of_series)
    end = 0
    for series, shown_rows in zip(answer["series"], series_rows, strict=True):
        begin, end = end, end + len(shown_rows)
        _table(
            "trend",
            {**answer, "series": [series]},
            f"{answer['metric']}: {series['value']}",
            {c: cells[begin:end] for c, cells in columns.items() if any(cells[begin:end])},
            pictures[begin:end],
        )
    say_below("trend", answer)


def show_table(
    question: QueryName,
    answer: Answer,
    heading: str,
    table_rows: Sequence[Row] | None = None,
    intervals: Intervals | None = None,
    *,
    columns: Sequence[Column] | None = None,
    sparks: Sequence[str] = (),
    below: Sequence[str] = (),
) -> None:
    """Prints an answer's notice and table, and on a terminal a picture of its intervals.

    `table_rows` and `columns` None take all; `sparks` has a picture per row, shown everywhere;
    `below` are sentences below the heading.
    """
    say_notice(*(answer["metrics"] if question == "metrics" else [answer]))
    table_rows = rows(question, answer) if table_rows is None else table_rows
    cells, pictures = _add_pictures(question, answer, table_rows, intervals, columns)
    above = _ABOVE_SPARKS if sparks else _PICTURE
    _table(question, answer, heading, cells, sparks or pictures, above=above, below=below)


def _columns_without(field: str, question: QueryName, answer: Answer) -> list[Column]:
    return [column for column in columns_of(question, answer) if column.field != field]


def _add_pictures(
    question: QueryName,
    answer: Answer,
    table_rows: Sequence[Row],
    intervals: Intervals | None,
    columns: Sequence[Column] | None = None,
) -> tuple[dict[Column, list[str]], list[str]]:
    """The cells of some rows and columns, and on a terminal their bars.

    Columns are left out where that leaves room for bars; if there is no room, all columns stay.
    """
    of_means = is_of_means(question, answer)
    cells = {
        column: [cell(column, row, of_means=of_means) for row in table_rows]
        for column in columns or columns_of(question, answer)
    }
    if intervals is None or not sys.stdout.isatty():
        return cells, []
    for spare in sorted({column.spare for column in cells} | {0}):
        fitting = {c: texts for c, texts in cells.items() if not 0 < c.spare <= spare}
        # A column has a space on either side, and one between it and the next.
        width = sum(
            3 + max(map(len, (title(c, question, answer), *texts))) for c, texts in fitting.items()
        )
        room = get_terminal_size().columns - width - 4
        if room >= _NARROWEST:
            return fitting, bars(intervals, min(room, _WIDEST))
    return cells, []


def _table(
    question: QueryName,
    answer: Answer,
    heading: str,
    columns: Mapping[Column, list[str]],
    pictures: Sequence[str],
    *,
    above: str = _PICTURE,
    below: Sequence[str] = (),
) -> None:
    cells: list[Sequence[str]] = [*columns.values()]
    heads = [title(column, question, answer) for column in columns]
    spare = [column.spare for column in columns]
    if pictures:
        cells, heads, spare = [*cells, pictures], [*heads, above], [*spare, 1]
    table(
        heading,
        heads,
        list(zip(*cells, strict=True)),
        text_columns=sum(1 for _ in takewhile(lambda column: column.unit in _TEXTS, columns)),
        pictures=bool(pictures),
        spare=spare,
        below=below,
    )


def _intervals(table_rows: Sequence[Row], middle: str) -> Intervals:
    return [(row[middle], row["low"], row["high"]) for row in table_rows]


def _say_hidden_rows(number: int) -> None:
    if number > _ROWS:
        explain(f"... and {number - _ROWS:,} more values: --format csv shows them all")


def bars(rows: Intervals, width: int = 32) -> list[str]:
    """One bar per row, all on one scale that contains zero and every interval.

    `rows` are estimate, lower and upper end of the interval.
    """
    if not rows:
        return []
    lowest = min(0.0, *(row[1] for row in rows))
    highest = max(0.0, *(row[2] for row in rows))
    step = (highest - lowest) / width or 1.0
    return [_bar(row, lowest, step, width) for row in rows]


def _bar(row: tuple[float, float, float], lowest: float, step: float, width: int) -> str:
    estimate, low, high = ((number - lowest) / step for number in row)
    zero = -lowest / step
    begin, end = sorted((zero, estimate))
    cells = []
    for place in range(width):
        covered = min(end, place + 1) - max(begin, place)
        if covered >= 1 - 1e-9:
            cells.append("█")
        elif covered > 0 and place < zero <= place + 1 and estimate < zero:
            cells.append("▐")  # what lies below zero begins at its right end
        else:
            cells.append(_EIGHTHS[max(0, int(8 * covered))])
    start, stop = (min(max(int(place), 0), width - 1) for place in (low, high))
    if start < stop:
        cells[start], cells[stop] = "├", "┤"
        cells[start + 1 : stop] = "─" * (stop - start - 1)
    middle = min(max(int(estimate), 0), width - 1)
    cells[middle] = "┼" if start < stop else "│"
    return "".join(cells).rstrip()


_MAX_ROWS: Final = 20


def show_coefficients(
    title: str,
    coefficients: Sequence[Mapping[str, Any]],
    columns: Mapping[str, str],
    *,
    by_class: bool,
    option: str,
) -> None:
    """Prints the largest coefficients.

    `columns` are further columns, as for `listing`; `option` is the option that prints all.
    """
    rows = sorted(coefficients, key=lambda row: -abs(row["coefficient"]))
    listing(
        title,
        rows[:_MAX_ROWS],
        {
            **({"class": "{of_class}"} if by_class else {}),
            "column": "{name}",
            "coefficient": "{coefficient:,.4g}",
            **columns,
        },
        text_columns=1 + by_class,
    )
    if len(rows) > _MAX_ROWS:
        say(f"and {len(rows) - _MAX_ROWS:,} more: {option} has them all")


def show_calibration(
    title: str, level: str, bins: Iterable[tuple[float, float, float, float, float, float]]
) -> None:
    """Prints a row per bin: the model's predictions, their share of people, and the truth.

    Bins that are empty as far as reports can tell have no truth.
    """
    table(
        title,
        ("predicted", "people", "true", f"{level} interval"),
        [
            (
                f"{lowest:.4g} to {highest:.4g}",
                f"{100 * min(max(people, 0.0), 1.0):.1f}%",
                *((f"{true:.4g}", f"{low:.4g} to {high:.4g}") if people > 0 else ("nobody", "")),
            )
            for lowest, highest, people, true, low, high in bins
        ],
    )
