"""Answers as tables for people: with bars and whiskers on a terminal, plain in a pipe."""

import sys
from collections.abc import Sequence
from shutil import get_terminal_size
from typing import Any, Final

from hubbub.cli.terminal.bars import bars
from hubbub.cli.terminal.output import say, table

__all__ = ["Answer", "show_changes", "show_estimates", "show_top", "show_trend"]

Answer = dict[str, Any]
Columns = dict[str, list[str]]

# More rows than this are for a file, not for eyes; the rest is in json, csv and parquet.
_ROWS: Final = 50
_PICTURE: Final = " "
# Below this confidence an order is as good as unknown.
_TELLING: Final = 0.95
_DOUBT: Final = 1e-3
_TWINS: Final = 5
_NARROWEST: Final = 16
_WIDEST: Final = 44
_SPARE: Final = ("consistent", "std. error", "rank", "detected", "share")


def show_estimates(found: Answer) -> None:
    """Estimates as a table, with what makes them more or less to be trusted."""
    values = found["values"]
    if found["kind"] == "values":
        values = sorted(values, key=lambda value: value["rank"])
    shown = values[:_ROWS]
    mean = found["kind"] == "mean"
    digits = ",.5g" if mean else ",.0f"
    columns = {
        "value": [value["value"] for value in shown],
        "estimate": [f"{value['estimate']:{digits}}" for value in shown],
        "std. error": [f"{value['stderr']:{digits}}" for value in shown],
        f"{_level(found)} interval": [
            f"{value['low']:{digits}} to {value['high']:{digits}}" for value in shown
        ],
    }
    if not mean:
        columns["share"] = [f"{value['share']:.1%}" for value in shown]
        columns["detected"] = ["yes" if value["detected"] else "" for value in shown]
        columns["consistent"] = [f"{value['consistent']:{digits}}" for value in shown]
        _draw(columns, [(v["estimate"], v["low"], v["high"]) for v in shown])
    _columns(
        f"{found['metric']}: {found['reports']:,} reports, {found['mechanism']}, "
        f"epsilon {found['epsilon']:.3f} per report, epochs {_spans(found['epochs'])}",
        columns,
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
    values = [one["value"] for one in found["values"]]
    columns = {
        "value": [value["value"] for value in values],
        "rank": [f"{value['rank']}" for value in values],
        "share": [f"{value['share']:.1%}" for value in values],
        "estimate": [f"{value['estimate']:,.0f}" for value in values],
        f"{_level(found)} interval": [
            f"{value['low']:,.0f} to {value['high']:,.0f}" for value in values
        ],
        "ahead": [_ahead(one["ahead_confidence"]) for one in found["values"]],
    }
    _draw(columns, [(v["estimate"], v["low"], v["high"]) for v in values])
    _columns(f"{found['metric']}: the most frequent of {found['reports']:,} reports", columns)
    say(
        f"these are the most frequent with a confidence of {found['set_confidence']:.1%} at least, "
        f"in this order with {found['order_confidence']:.1%}"
    )
    _say_whose(found)


def show_changes(found: Answer) -> None:
    """What differs between two ranges, the surest first."""
    shown = sorted(found["values"], key=lambda change: change["p_value"])
    digits = ",.5g" if found["kind"] == "mean" else ".2%"
    table(
        f"{found['metric']}: {found['before_reports']:,} reports of epochs "
        f"{_spans(found['before_epochs'])}, then {found['after_reports']:,} of "
        f"{_spans(found['after_epochs'])}",
        (
            *("value", "before", "after", "difference"),
            *(f"{_level(found)} interval", "p-value", "changed"),
        ),
        [
            (
                one["value"],
                f"{one['before']:{digits}}",
                f"{one['after']:{digits}}",
                f"{one['difference']:+{digits}}",
                f"{one['low']:+{digits}} to {one['high']:+{digits}}",
                f"{one['p_value']:.2g}",
                "yes" if one["changed"] else "",
            )
            for one in shown[:_ROWS]
        ],
    )
    _say_whose(found)
    _say_more(len(shown))


def show_trend(found: Answer) -> None:
    """Every series as a table of epochs."""
    begins = {epoch["epoch"]: epoch for epoch in found["epochs"]}
    numbers = found["kind"] != "values"
    digits = ",.5g" if numbers else ".1%"
    for one in found["series"]:
        points = one["points"][-_ROWS:]
        own = [begins[point["epoch"]] for point in points]
        columns = {
            "epoch": [epoch["begins"].removesuffix("T00:00:00Z") for epoch in own],
            "reports": [f"{epoch['reports']:,}" for epoch in own],
            "mean" if numbers else "share": [f"{point['share']:{digits}}" for point in points],
            f"{_level(found)} interval": [
                f"{point['low']:{digits}} to {point['high']:{digits}}" for point in points
            ],
        }
        _draw(columns, [(p["share"], p["low"], p["high"]) for p in points])
        _columns(f"{found['metric']}: {one['value']}", columns)
    _say_whose(found)
    small = sum(epoch["reports"] < found["min_batch"] for epoch in found["epochs"])
    if small:
        say(f"{small} epochs hold fewer than the minimum batch of {found['min_batch']:,}")


def _ahead(confidence: float | None) -> str:
    """How sure that a value is ahead of the next one, where anything can be told."""
    if confidence is None:
        return ""
    return f"{confidence:.1%}" if confidence >= _TELLING else "too close to call"


def _names(strings: Sequence[str]) -> str:
    rest = f" and {len(strings) - _TWINS:,} more" if len(strings) > _TWINS else ""
    return ", ".join(f'"{string[:80]}"' for string in strings[:_TWINS]) + rest


def _say_whose(found: Answer) -> None:
    if found["whose"] == "population":
        say("of the population that reports are from: intervals hold who happened to report too")
    else:
        say("of those who reported: intervals hold what was randomized, not who happened to report")


def _level(found: Answer) -> str:
    """95%, or 99.9%."""
    return f"{100 * found['confidence']:.6g}%"


def _draw(columns: Columns, rows: Sequence[tuple[float, float, float]]) -> None:
    """Bars as a last column, on a terminal; in a narrow one in place of what can be spared."""
    if not sys.stdout.isatty():
        return
    room, kept = get_terminal_size().columns, dict(columns)
    for spare in (None, *_SPARE):
        kept.pop(spare or "", None)
        # A column has a space on either side, and one between it and the next.
        left = room - sum(3 + max(map(len, (name, *own))) for name, own in kept.items()) - 4
        if left >= _NARROWEST:
            columns.clear()
            columns.update(kept)
            columns[_PICTURE] = bars(rows, min(left, _WIDEST))
            return


def _columns(title: str, columns: Columns) -> None:
    rows = list(zip(*columns.values(), strict=True))
    table(title, list(columns), rows, pictures=_PICTURE in columns)


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
