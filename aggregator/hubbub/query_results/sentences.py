"""Describes in sentences what an answer's table does not show: whose reports, how far to trust."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hubbub.errors.message_words import at_most, several, visible
from hubbub.query_results.answer_table import (
    TELLING,
    Document,
    QueryName,
    Row,
    error_of,
    is_of_means,
    number_text,
    percentile_name,
    rounded_down,
)

_NAMES: Final = {"auc": "AUC", "accuracy": "accuracy"}
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
# Fewer chances than this are none that a p-value can be read as.
_LEAST = 1e-12


def final_sentence(document: Document) -> str:
    """Says that epochs of an answer still accept reports; "" if it is final or has no epochs."""
    return "" if document.get("final", True) else "not final: these epochs still accept reports"


def judged_sentences(document: Document, level: str) -> list[str]:
    """Sentences with AUC or accuracy and its interval; empty until the model is judged."""
    return [
        f"{label} {document[name]:.3f}, {level} interval {document[f'{name}_low']:.3f} to "
        f"{document[f'{name}_high']:.3f}"
        for name, label in _NAMES.items()
        if document.get(name) is not None
    ]


def percentile_sentences(answer: Document) -> list[str]:
    """A sentence per percentile with number and interval; in a comparison with its change."""
    unit = f" {answer['unit']}" if answer.get("unit") else ""
    level = f"{100 * answer.get('confidence', 0):.6g}%"
    head = f"percentiles{unit and f' in{unit}'}, {level} intervals: "
    percentiles = answer.get("percentiles") or []
    if percentiles and "difference" in percentiles[0]:
        return [head + "; ".join(map(_shift_text, percentiles))]
    texts = [
        f"{_name_list(row)} {_figure(row, 'estimate')} ({_interval(row)})" for row in percentiles
    ]
    sentences = [head + ", ".join(texts)] if texts else []
    sentences += [
        f"below {number_text(row['below'])}{unit}: {row['share']:.1%} ({row['low']:.1%} to "
        f"{row['high']:.1%})"
        for row in answer.get("below", ())
    ]
    return sentences + _range_end_sentences(
        [_name_list(row) for row in percentiles if row["reaches"]]
    )


def _name_list(row: Mapping[str, Any]) -> str:
    return percentile_name(row["percentile"])


def _interval(row: Mapping[str, Any]) -> str:
    """The interval in words; an end of the range does not bound the true value."""
    low, high = number_text(row["low"], end="low"), number_text(row["high"], end="high")
    open_ends = {"low": f"up to {high}", "high": f"{low} or more", "both": "not known"}
    return open_ends.get(row["reaches"], f"{low} to {high}")


def _shift_text(row: Mapping[str, Any]) -> str:
    error = error_of(row["low"], row["high"])
    return (
        f"{_name_list(row)} from {_figure(row, 'before')} to {_figure(row, 'after')}, "
        f"{_figure(row, 'difference', '+')} "
        f"({number_text(row['low'], error, sign='+', end='low')} to "
        f"{number_text(row['high'], error, sign='+', end='high')})"
        + (", moved" if row["moved"] else "")
    )


def _range_end_sentences(names: Sequence[str]) -> list[str]:
    """Says which intervals are bounded by the range instead of by reports."""
    sentence = (
        f"{', '.join(names)}: the interval reaches the end of the range, and the true value may be "
        "outside it; collect more reports, or choose finer buckets or a wider range"
    )
    return [sentence] if names else []


def _figure(row: Mapping[str, Any], part: str, sign: str = "") -> str:
    return number_text(row[part], error_of(row["low"], row["high"]), sign=sign)


def trend_sentences(answer: Mapping[str, Any]) -> list[str]:
    """Whose reports are included; steps with interval and date; weekdays; and what is unbounded."""
    series, sentences, reaching = answer.get("series", ()), [], []
    if answer.get("joined"):
        sentences.append(f"with the reports of former metrics: {', '.join(answer['joined'])}")
        sentences += [
            f"{line['value'][:80]}: not asked in {line['not_asked']}"
            for line in series
            if line.get("not_asked")
        ]
    for line in series:
        name = line["value"][:80]
        for step in line.get("shifts", ()):
            error = error_of(step["low"], step["high"])
            figures = [_change(answer, step[part], error) for part in ("difference", "low", "high")]
            when = "" if step["within"] == step["date"] else f" (within {step['within']})"
            sentences.append(
                f"{name}: a step of {figures[0]}, {figures[1]} to {figures[2]}, on "
                f"{step['date']}{when}"
            )
        if effects := line.get("weekdays"):
            days = zip(_DAYS, effects, strict=True)
            each = ", ".join(f"{day} {_change(answer, effect)}" for day, effect in days)
            sentences.append(f"{name}: weekdays differ: {each}")
        points = line.get("points", ())
        if count := sum(1 for point in points if point.get("reaches")):
            reaching.append(f"{line['value']} in {count} of {len(points)} epochs")
    if any(line.get("shifts") for line in series):
        sentences.append(f"at most {answer['false_alarm']:.0%} of lines without a step show a step")
    return sentences + _range_end_sentences(reaching)


def _change(answer: Mapping[str, Any], difference: float, error: float = 0.0) -> str:
    """A change as comparisons write it: shares in percentage points, means in their unit."""
    if answer.get("kind") == "values":
        return f"{100 * difference:+z.2f} points"
    unit = f" {answer['unit']}" if answer.get("unit") else ""
    return number_text(difference, error, sign="+") + unit


def association_sentence(document: Document) -> str:
    """A sentence with the test of independence, and Cramer's V with its interval."""
    parts = f"{document['rows']} and {document['columns']}"
    if document["by"]:
        return _test_text(f"{parts}, within {document['by']},", document["association"], document)
    return _sentence(parts, document["association"], document)


def slice_sentences(document: Document) -> list[str]:
    """The same for each value of a third part; empty if there are two parts."""
    return [
        f"{document['by']}={row['value']}: "
        + (
            _sentence("the two", row["association"], document)
            if row["association"]
            else "too rare to judge"
        )
        for row in document["slices"]
    ]


def _test_text(parts: str, association: Document, document: Document) -> str:
    p_value = association["p_value"]
    p = f"p < {_LEAST:.0e}" if p_value < _LEAST else f"p = {p_value:.2g}"
    is_joint = p_value <= 1 - document["confidence"]
    return f"{parts} go together ({p})" if is_joint else f"no sign that {parts} go together ({p})"


def _sentence(parts: str, association: Document, document: Document) -> str:
    sentence = _test_text(parts, association, document)
    if association["cramers_v"] is None:
        return f"{sentence}; there are too few reports to tell how strongly"
    low, high = (f"{association[end]:.2f}" for end in ("low", "high"))
    sentence += f"; Cramer's V {association['cramers_v']:.2f}, {low} to {high}"
    rare = [*association["rare_rows"], *association["rare_columns"]]
    return sentence + (f" ({len(rare):,} rare values count as one)" if len(rare) > 1 else "")


SHARE_OUTSIDE: Final = "A share below 0 or above 100%"
_DOUBT: Final = 1e-3
# The order of all values of a list.
_CLOSE: Final = 'uncertain; "ahead" compares a value only with the next'
_TWINS: Final = 5
_LIKELY: Final = 50


def sentences_below(
    question: QueryName, answer: Document, rows: Sequence[Row] = ()
) -> Iterator[str]:
    """Yields the sentences below the table of an answer; `rows` are those of the table."""
    match question:
        case "estimates":
            sentences = _estimate_sentences(answer, rows)
        case "percentiles":
            sentences = _percentile_sentences(answer)
        case "top":
            sentences = _top_sentences(answer, rows)
        case "compare":
            sentences = _change_sentences(answer)
        case "figures":
            sentences = _figure_sentences(answer, rows)
        case "trend":
            sentences = _trend_sentences(answer)
        case "breakdown":
            sentences = _breakdown_sentences(answer)
        case "status":
            sentences = _status_sentences(answer)
        case _:
            sentences = iter([final_sentence(answer)])
    return filter(None, sentences)


def whose_sentence(answer: Document) -> str:
    """A sentence about what the intervals of an answer cover."""
    return (
        "for the population: the intervals cover the randomization noise and the choice of who "
        "reported"
        if answer["whose"] == "population"
        else "the intervals cover the randomization noise, not the choice of who reported"
    )


def _estimate_sentences(answer: Document, rows: Sequence[Row]) -> Iterator[str]:
    of_means = is_of_means("estimates", answer)
    if not of_means:
        yield from _if_nothing_stands_out(answer["values"])
    yield from _list_sentences(answer)
    yield whose_sentence(answer)
    if rows and not of_means:
        yield "the intervals allow for the selection of the largest rows"
    if answer.get("anytime"):
        yield "the intervals hold at every look: look as often as you like"
    notes = answer["notes"]
    if all(0 <= row["estimate"] <= answer["reports"] for row in rows):
        notes = [note for note in notes if not note.startswith(SHARE_OUTSIDE)]
    yield from _trust_sentences({**answer, "notes": notes})


def _percentile_sentences(answer: Document) -> Iterator[str]:
    yield whose_sentence(answer)
    if answer["percentiles"]:
        yield (
            "a percentile's interval ends at edges of the metric's buckets: reports contain "
            "nothing finer"
        )
    if any(row["reaches"] for row in answer["percentiles"]):
        yield (
            "where an interval reaches the end of the range, the true value may be outside the "
            "range: request more epochs"
        )
    yield from _report_sentences(answer)


def _top_sentences(answer: Document, rows: Sequence[Row]) -> Iterator[str]:
    these, order = answer["set_confidence"], answer["order_confidence"]
    if these < TELLING:
        yield (
            "for all these values together: both the set of the most frequent and its order are "
            f"{_CLOSE}"
        )
    else:
        # Only the last of all values is ahead of no other.
        is_all = rows[-1]["ahead_confidence"] is None
        yield (
            "these are all values of the answer"
            if is_all
            else f"these are the most frequent with a confidence of {rounded_down(these)} or more"
        ) + (
            f", in this order with {rounded_down(order)}"
            if order >= TELLING
            else f"; their whole order is {_CLOSE}"
        )
    yield from answer["notes"]
    yield final_sentence(answer)
    yield from _if_nothing_stands_out(rows)
    yield from _list_sentences(answer)
    yield whose_sentence(answer)


def _change_sentences(answer: Document) -> Iterator[str]:
    changed = sum(row["changed"] for row in answer["values"])
    # Percentiles may have moved nevertheless.
    nothing = "no range changed" if answer["percentiles"] else "no change"
    verdict = f"{changed:,} of {answer['total']:,} changed," if changed else nothing
    yield f"{verdict} beyond chance"
    yield from answer["notes"]
    yield answer["chosen"] and f"compared: {answer['chosen']}"
    yield final_sentence(answer)
    yield from _list_sentences(answer)
    yield whose_sentence(answer)
    yield "p is for a single row; intervals and marks account for the selection of the surest rows"


def _figure_sentences(answer: Document, rows: Sequence[Row]) -> Iterator[str]:
    yield from answer["notes"]
    names_by_note: dict[str, dict[str, None]] = {}
    for row in rows:
        if row["note"]:
            names_by_note.setdefault(row["note"], {})[f"{row['part']} {row['figure']}".strip()] = (
                None
            )
    for note, names in names_by_note.items():
        yield f"{', '.join(map(visible, names))}: {note}"
    yield final_sentence(answer)
    yield whose_sentence(answer)


def _trend_sentences(answer: Document) -> Iterator[str]:
    yield from trend_sentences(answer)
    yield from answer["notes"]
    yield final_sentence(answer)
    yield from _list_sentences(answer)
    yield whose_sentence(answer)
    small = sum(epoch["reports"] < answer["min_batch"] for epoch in answer["epochs"])
    if small:
        yield (
            f"{several(small, 'epoch')} with fewer reports than the minimum batch of "
            f"{answer['min_batch']:,}"
        )


def _breakdown_sentences(answer: Document) -> Iterator[str]:
    for part in answer["parts"]:
        if not part["answered"] and (part["part"] != "unlisted" or part["reports"]):
            withheld = f", {part['withheld']:,} withheld" if part["withheld"] else ""
            yield (
                f"{part['part']}: {several(part['reports'], 'report')}{withheld}; below the "
                f"minimum batch of {answer['min_batch']:,}, so there is no answer"
            )
    yield from answer["notes"]
    yield "differences refer to the population, shares to those who reported"
    yield final_sentence(answer)


def _status_sentences(answer: Document) -> Iterator[str]:
    if deleted := answer["total"]["deleted"]:
        yield (
            f"of those counted, {several(deleted, 'report')} "
            f"{'is' if deleted == 1 else 'are'} of epochs whose totals were deleted (keep "
            "of the catalog, or hubbub forget): no answer contains them"
        )
    yield answer["waiting"]
    if not answer["complete"]:
        yield (
            "the shuffler's terms are missing, so the law cannot be checked: start the "
            "shuffler, and the aggregator with --shuffler-status"
        )


def _if_nothing_stands_out(values: Sequence[Row]) -> list[str]:
    """Says so if no value is detected: order and positive estimates then mean nothing."""
    if not values or any(value["low"] > 0 for value in values):
        return []
    return ["no value is detected: select more epochs, or wait for more reports"]


def _list_sentences(answer: Document) -> Iterator[str]:
    """Yields from which lists the strings looked for are."""
    if answer["lists"]:
        named = {"catalog": "the catalog's list", "given": "the candidates given"}
        sources = " and ".join(
            named.get(list_name, f'the list "{list_name}"') for list_name in answer["lists"]
        )
        count = several(answer["total"], "string") if "total" in answer else "the strings"
        yield f"looked for: {count} of {sources}"


def _trust_sentences(answer: Document) -> Iterator[str]:
    """Yields mean, notes, and doubts about estimates."""
    if mean_of := answer["mean"]:
        unit = f" {answer['unit']}" if answer["unit"] else ""
        estimate = number_text(mean_of["estimate"], mean_of["stderr"])
        low = number_text(mean_of["low"], mean_of["stderr"], end="low")
        high = number_text(mean_of["high"], mean_of["stderr"], end="high")
        yield f"mean {estimate}{unit}, {low} to {high}"
    yield from answer["notes"]
    if others := answer["others"]:
        estimate = f"{others['estimate']:,.0f}, " if others["estimate"] >= 0 else ""
        yield f"other strings {estimate}{others['low']:,.0f} to {others['high']:,.0f} reports"
    if answer["fit_p_value"] is not None and answer["fit_p_value"] < _DOUBT:
        yield f"the requested strings do not explain the totals (p = {answer['fit_p_value']:.0e})"
    if answer["beginnings"]:
        yield f"only the beginning of longer strings: {_names(answer['beginnings'])}"
    if likely := answer["likely"]:
        yield (
            f"also likely, the surest first, but {likely[-1]['doubt']:.0%} of these "
            f"{several(len(likely), 'string')} may be held by nobody: "
            + _names([row["value"] for row in likely], _LIKELY)
        )
    for twin_group in answer["twins"][:_TWINS]:
        yield (
            "indistinguishable strings, each with the figures of all together: "
            f"{_names(twin_group['values'])}"
        )
    if len(answer["twins"]) > _TWINS:
        yield f"and {len(answer['twins']) - _TWINS:,} more such groups"
    yield from _report_sentences(answer)


def _report_sentences(answer: Document) -> Iterator[str]:
    """Yields privacy, on the card and in this answer's batches; completeness; signs of forgery."""
    if promised := answer["promised"]:
        epsilon = at_most(promised["epsilon"], ".3f")
        yield (
            f"shuffled, in the smallest permitted batch: epsilon {epsilon} at delta "
            f"{promised['delta']:g}. {promised['rests_on']}"
        )
        shuffled = answer["shuffled"]
        if shuffled and (of_batches := at_most(shuffled["epsilon"], ".3f")) != epsilon:
            yield (
                f"in the batches of this answer: epsilon {of_batches}, among "
                f"{shuffled['reports']:,} at least"
            )
    if sentence := final_sentence(answer):
        waiting = answer["waiting"]
        waits = "waits" if waiting == 1 else "wait"
        yield sentence + (
            "" if waiting is None else f"; {several(waiting, 'report')} {waits} at the shuffler"
        )
    for finding in answer["findings"]:
        yield f"NOT ONLY FROM HONEST REPORTS (p <= {answer['honest_p_value']:.0e}): {finding}"


def _names(strings: Sequence[str], most: int = _TWINS) -> str:
    more_text = f" and {len(strings) - most:,} more" if len(strings) > most else ""
    return ", ".join(f'"{visible(string[:80])}"' for string in strings[:most]) + more_text
