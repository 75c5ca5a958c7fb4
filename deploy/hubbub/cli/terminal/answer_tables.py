"""Answers as tables for people: with bars and whiskers on a terminal, plain in a pipe."""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import takewhile
from shutil import get_terminal_size
from typing import Any, Final

from hubbub.answers import Column, Question, Row, cell, columns_of, is_of_means, rows, title
from hubbub.cli.terminal.bars import bars
from hubbub.cli.terminal.output import say, table

__all__ = [
    "show_changes",
    "show_estimates",
    "show_metrics",
    "show_pipeline",
    "show_top",
    "show_trend",
]

Answer = Mapping[str, Any]
Intervals = Sequence[tuple[float, float, float]]

# More rows than this are for a file, not for eyes; the rest is in json, csv and parquet.
_ROWS: Final = 50
_PICTURE: Final = " "
_TEXTS: Final = ("text", "time")
_DOUBT: Final = 1e-3
_TWINS: Final = 5
_NARROWEST: Final = 12
_WIDEST: Final = 44
_SPARKS: Final = "▁▂▃▄▅▆▇█"
_SHOWN_EPOCHS: Final = 30


def show_metrics(found: Answer) -> None:
    """The metrics there are, each with its last epochs as a line of blocks."""
    sparks = [
        _spark([epoch["reports"] for epoch in metric["epochs"][-_SHOWN_EPOCHS:]])
        for metric in found["metrics"]
    ]
    _show("metrics", found, f"{len(found['metrics'])} metrics", sparks=sparks)


def show_pipeline(found: Answer) -> None:
    """Every window's terms and their sum; what the shuffler did not tell is a question mark."""
    total = {**found["total"], "stream": "all", "epoch": ""}
    _show(
        "status",
        found,
        "acknowledged = pooled + in flight + counted + duplicate + rejected + withheld",
        [*rows("status", found), total],
    )
    if not found["complete"]:
        say(
            "the shuffler's terms are not known, so the law cannot be checked: start the "
            "aggregator with --shuffler-status, and the shuffler"
        )


def show_estimates(found: Answer) -> None:
    """Estimates as a table, with what makes them more or less to be trusted."""
    values = rows("estimates", found)
    if found["kind"] == "values":
        values = sorted(values, key=lambda value: value["rank"])
    shown = values[:_ROWS]
    _show(
        "estimates",
        found,
        f"{found['metric']}: {found['reports']:,} reports, {found['mechanism']}, "
        f"epsilon {found['epsilon']:.3f} per report, epochs {_spans(found['epochs'])}",
        shown,
        None if found["kind"] == "mean" else _intervals(shown, "estimate"),
    )
    _say_whose(found)
    _say_trust(found)
    _say_more(len(values))


def _say_trust(found: Answer) -> None:
    """What makes estimates more or less to be trusted."""
    if found["mean"]:
        mean_of = found["mean"]
        say(f"mean {mean_of['estimate']:,.5g}, {mean_of['low']:,.5g} to {mean_of['high']:,.5g}")
    if found["others"]:
        others = found["others"]
        say(
            f"other strings {others['estimate']:,.0f}, {others['low']:,.0f} to "
            f"{others['high']:,.0f} reports"
        )
    if found["fit_p_value"] is not None and found["fit_p_value"] < _DOUBT:
        say(f"the strings asked for do not explain the totals (p = {found['fit_p_value']:.0e})")
    for one in found["twins"][:_TWINS]:
        say(f"not to be told apart, each with the figures of all together: {_names(one['values'])}")
    if len(found["twins"]) > _TWINS:
        say(f"and {len(found['twins']) - _TWINS:,} more such groups")
    if found["shuffled"]:
        shuffled = found["shuffled"]
        say(
            f"shuffled: a report says epsilon {shuffled['epsilon']:.3g} at delta "
            f"{shuffled['delta']:g}, among {shuffled['reports']:,} in its batch at least, "
            f"{shuffled['assumption']}"
        )
    if not found["final"]:
        waiting = found["waiting"]
        more = "" if waiting is None else f"; {waiting:,} reports wait at the shuffler"
        say(f"not final: reports of these epochs are still taken{more}")
    for finding in found["findings"]:
        say(f"NOT FROM HONEST REPORTS ALONE (p <= {found['honest_p_value']:.0e}): {finding}")


def show_top(found: Answer) -> None:
    """The most frequent values, and how sure their order is."""
    values = rows("top", found)
    heading = f"{found['metric']}: the most frequent of {found['reports']:,} reports"
    _show("top", found, heading, values, _intervals(values, "estimate"))
    say(
        f"these are the most frequent with a confidence of {found['set_confidence']:.1%} at least, "
        f"in this order with {found['order_confidence']:.1%}"
    )
    _say_whose(found)


def show_changes(found: Answer) -> None:
    """What differs between two ranges, the surest first."""
    changes = sorted(rows("compare", found), key=lambda change: change["p_value"])
    _show(
        "compare",
        found,
        f"{found['metric']}: {found['before_reports']:,} reports of epochs "
        f"{_spans(found['before_epochs'])}, then {found['after_reports']:,} of "
        f"{_spans(found['after_epochs'])}",
        changes[:_ROWS],
    )
    _say_whose(found)
    _say_more(len(changes))


def show_trend(found: Answer) -> None:
    """Every series as a table of epochs."""
    points = rows("trend", found)
    for place, one in enumerate(found["series"]):
        begin = sum(len(before["points"]) for before in found["series"][:place])
        own = points[begin : begin + len(one["points"])][-_ROWS:]
        heading = f"{found['metric']}: {one['value']}"
        _show("trend", found, heading, own, _intervals(own, "share"), without="value")
    _say_whose(found)
    small = sum(epoch["reports"] < found["min_batch"] for epoch in found["epochs"])
    if small:
        say(f"{small} epochs hold fewer than the minimum batch of {found['min_batch']:,}")


def _names(strings: Sequence[str]) -> str:
    rest = f" and {len(strings) - _TWINS:,} more" if len(strings) > _TWINS else ""
    return ", ".join(f'"{string[:80]}"' for string in strings[:_TWINS]) + rest


def _say_whose(found: Answer) -> None:
    if found["whose"] == "population":
        say("of the population that reports are from: intervals hold who happened to report too")
    else:
        say("of those who reported: intervals hold what was randomized, not who happened to report")


def _show(
    question: Question,
    found: Answer,
    heading: str,
    shown: Sequence[Row] | None = None,
    drawn: Intervals | None = None,
    *,
    without: str = "",
    sparks: Sequence[str] = (),
) -> None:
    """The columns of an answer, and on a terminal a picture of its intervals beside them.

    shown: some of the rows; without, all. without: a column that the heading has told.
    sparks: a picture per row that is shown everywhere.
    """
    shown = rows(question, found) if shown is None else shown
    of_means = is_of_means(question, found)
    columns = {
        column: [cell(column, row, of_means=of_means) for row in shown]
        for column in columns_of(question, found)
        if column.field != without
    }
    name = partial(title, question=question, answer=found)
    pictures = list(sparks)
    if drawn is not None and sys.stdout.isatty():
        columns, pictures = _with_room(columns, name, drawn)
    cells = [*columns.values(), *([pictures] if pictures else [])]
    table(
        heading,
        [*map(name, columns), *([_PICTURE] if pictures else [])],
        list(zip(*cells, strict=True)),
        text_columns=sum(1 for _ in takewhile(lambda column: column.unit in _TEXTS, columns)),
        pictures=bool(pictures),
    )


def _with_room(
    columns: Mapping[Column, list[str]], name: Callable[[Column], str], drawn: Intervals
) -> tuple[dict[Column, list[str]], list[str]]:
    """The columns that leave room for bars, and the bars; in a tiny terminal all, and none."""
    spares = sorted({column.spare for column in columns} | {0})
    for spare in spares:
        kept = {column: own for column, own in columns.items() if not 0 < column.spare <= spare}
        # A column has a space on either side, and one between it and the next.
        taken = sum(3 + max(map(len, (name(column), *own))) for column, own in kept.items())
        left = get_terminal_size().columns - taken - 4
        if left >= _NARROWEST:
            return kept, bars(drawn, min(left, _WIDEST))
    return dict(columns), []


def _intervals(shown: Sequence[Row], middle: str) -> Intervals:
    return [(row[middle], row["low"], row["high"]) for row in shown]


def _spark(numbers: list[int]) -> str:
    """A line of blocks, the highest for the largest."""
    most = max(numbers, default=0) or 1
    return "".join(_SPARKS[(len(_SPARKS) - 1) * number // most] for number in numbers)


def _say_more(number: int) -> None:
    if number > _ROWS:
        say(f"... and {number - _ROWS:,} more values: --format csv shows them all")


def _spans(epochs: Sequence[int]) -> str:
    """1-3, 5 for 1, 2, 3, 5."""
    spans: list[list[int]] = []
    for epoch in epochs:
        if spans and epoch == spans[-1][-1] + 1:
            spans[-1][1:] = [epoch]
        else:
            spans.append([epoch])
    return ", ".join("-".join(map(str, span)) for span in spans)
