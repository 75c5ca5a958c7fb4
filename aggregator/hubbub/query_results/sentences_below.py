"""The sentences below an answer's table: whose reports they are, and how far to trust them."""

from collections.abc import Iterator, Sequence
from typing import Final

from hubbub.errors.grammar import several
from hubbub.errors.printable import visible
from hubbub.query_results.cell_text import at_least, is_of_means
from hubbub.query_results.columns import QueryName
from hubbub.query_results.rows import Document, Row
from hubbub.query_results.sentences import final_sentence, percentile_sentences, trend_sentences
from hubbub.query_results.unit_text import number_text

_DOUBT: Final = 1e-3
# Below this confidence, as in the column "ahead", an order counts as unknown.
_TELLING: Final = 0.95
# The order of all values of a list.
_CLOSE: Final = 'too close to call; "ahead" compares a value only with the next'
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
        yield from _if_nothing_stands_out(rows)
    yield from _list_sentences(answer)
    yield whose_sentence(answer)
    if not of_means:
        yield "the intervals allow for the selection of the largest rows"
    if answer.get("anytime"):
        yield "at every look while the epochs fill: look as often as you like"
    yield from _trust_sentences(answer)


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
            "range: ask for more epochs"
        )
    yield from _report_sentences(answer)


def _top_sentences(answer: Document, rows: Sequence[Row]) -> Iterator[str]:
    these, order = answer["set_confidence"], answer["order_confidence"]
    if these < _TELLING:
        yield (
            "for all these values together: both the set of the most frequent and its order are "
            f"{_CLOSE}"
        )
    else:
        # Only the last of all values is ahead of no other.
        is_all = rows[-1]["ahead_confidence"] is None
        yield (
            "these are all values"
            if is_all
            else f"these are the most frequent with a confidence of {at_least(these)} at least"
        ) + (
            f", in this order with {at_least(order)}"
            if order >= _TELLING
            else f"; their whole order is {_CLOSE}"
        )
    yield from answer["notes"]
    yield final_sentence(answer)
    yield from _if_nothing_stands_out(rows)
    yield from _list_sentences(answer)
    yield whose_sentence(answer)


def _change_sentences(answer: Document) -> Iterator[str]:
    yield from percentile_sentences(answer)
    yield from answer["notes"]
    yield answer["chosen"]
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
        yield (
            f"shuffled, as on the privacy card: epsilon {promised['epsilon']:.3f} at delta "
            f"{promised['delta']:g}. {promised['rests_on']}"
        )
        shuffled = answer["shuffled"]
        if shuffled and f"{shuffled['epsilon']:.3f}" != f"{promised['epsilon']:.3f}":
            yield (
                f"in the batches of this answer: epsilon {shuffled['epsilon']:.3f}, among "
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
