"""The conservation law as a table: what fits a screen, or every window."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from hubbub.cli.terminal.answer_rows import show_rows
from hubbub.cli.terminal.output import explain, several
from hubbub.conservation import TERMS
from hubbub.query_results import Column, Row, cell, columns_of, rows

# More streams than this do not fit a screen; those that ask for a look come first.
_STREAMS: Final = 12
_UNSURE: Final = ("pooled", "in_flight", "rejected", "withheld")


def show_pipeline(answer: Mapping[str, Any], *, whole: bool = False) -> None:
    """The law of all reports, and a line per stream over its epochs; what is not known is "?".

    whole: a line per window, and every term.
    """
    if answer["notice"]:
        explain(answer["notice"])
    windows = rows("status", answer)
    total = {**answer["total"], "stream": "all", "date": ""}
    if whole:
        come = "acknowledged + dummies" if total["dummies"] else "acknowledged"
        show_rows(
            "status",
            answer,
            f"{come} = {' + '.join(name.replace('_', ' ') for name in _where(total))}",
            columns_of("status", answer),
            [*windows, total],
        )
    else:
        _show_streams(answer, _by_stream(windows), total)
    if deleted := answer["total"]["deleted"]:
        explain(
            f"of those counted, {several(deleted, 'report')} {'is' if deleted == 1 else 'are'} of "
            "epochs whose totals were deleted since (keep of the catalog, or hubbub forget): no "
            "answer has them"
        )
    if not answer["complete"]:
        explain(
            "the shuffler's terms are not known, so the law cannot be checked: start the "
            "aggregator with --shuffler-status, and the shuffler"
        )


def _show_streams(answer: Mapping[str, Any], streams: Sequence[Row], total: Row) -> None:
    """As many streams as fit, those in which something waits or is lost first."""
    table_rows = sorted(streams, key=_urgency)[:_STREAMS]
    columns = columns_of("status", answer)
    visible_columns = [
        column for column in columns if column.field not in TERMS or any(_tells(column, streams))
    ]
    left_out = [column.title for column in columns if column not in visible_columns]
    drawn = [*table_rows, total] if len(streams) > 1 else table_rows
    show_rows("status", answer, _equation(answer, total), visible_columns, drawn)
    more = len(streams) - len(table_rows)
    if more:
        explain(f"and {several(more, 'stream')} more, in which no more waits or was refused")
    if left_out:
        explain(f"0 in all of them: {', '.join(left_out)}")
    if answer["windows"]:
        explain("every epoch by itself: hubbub status --all")


def _equation(answer: Mapping[str, Any], total: Row) -> str:
    """The law in figures, and whether it holds."""
    numbers = {
        column.field: f"{cell(column, total, of_means=False)} {column.title}"
        for column in columns_of("status", answer)
        if column.field in TERMS
    }
    come = numbers["acknowledged"]
    if total["dummies"]:
        come += f" + {numbers['dummies']}"
    where = " + ".join(numbers[term] for term in _where(total))
    if not answer["complete"]:
        return f"{come} = {where}"
    verdict = "The law balances." if answer["balanced"] else "THE LAW DOES NOT BALANCE."
    return f"{come} = {where}. {verdict}"


def _where(total: Row) -> list[str]:
    """Where what came is; fillers where there are some."""
    return [term for term in TERMS[2:] if term != "fillers" or total["fillers"]]


def _by_stream(windows: Iterable[Row]) -> list[Row]:
    """The terms of each stream over all its epochs; of what is not known, None."""
    streams: dict[str, list[Row]] = {}
    for window in windows:
        streams.setdefault(window["stream"], []).append(window)
    return [_together(name, own) for name, own in streams.items()]


def _together(name: str, windows: Sequence[Row]) -> Row:
    terms = {term: _sum(window[term] for window in windows) for term in TERMS}
    verdicts = {window["balanced"] for window in windows}
    balanced = False if False in verdicts else None if None in verdicts else True
    date = windows[0]["date"] if len(windows) == 1 else several(len(windows), "epoch")
    return {"stream": name, "date": date, **terms, "balanced": balanced}


def _sum(numbers: Iterable[int | None]) -> int | None:
    values = list(numbers)
    return None if None in values else sum(filter(None, values))


def _urgency(stream: Row) -> tuple[bool, int]:
    """Streams that are out of balance first, then those of which most waits or was refused."""
    return stream["balanced"] is not False, -sum(stream[term] or 0 for term in _UNSURE)


def _tells(column: Column, streams: Iterable[Row]) -> Iterable[bool]:
    """Where a term is anything but 0."""
    return (stream[column.field] != 0 for stream in streams)
