"""Draws totals for `hubbub plan`: for --simulate, and for the errors of percentiles, in rank."""

from collections.abc import Callable, Sequence
from functools import cache
from math import ceil, inf, isfinite, sqrt
from typing import Any, Final

import numpy as np

from hubbub.analysis.answering import answer
from hubbub.analysis.families import draw, family_for
from hubbub.analysis.percentiles import check_percentiles, share_end
from hubbub.analysis.ranks import ranks_of
from hubbub.analysis.uncertainty.intervals import reach_of
from hubbub.errors import BadParameter
from hubbub.mechanisms import build
from hubbub.privacy.metric_draft import MEANS, MetricDraft
from hubbub.privacy.planner import Row, Target
from hubbub.simulation.truth import true_values

_MAX_REPORTS: Final = 10**12
# The least and the most: two fits differ in width by up to a fifth; one of 256 parts takes long.
_DRAWINGS: Final = (2, 16)
_MAX_DRAWN: Final = 1e8
# Of an interval's end, as a share: errors differ by more from drawing to drawing.
_PRECISION: Final = 1e-5


def simulate(
    question: MetricDraft, plan_row: Row, seed: int, names: Sequence[str] | None
) -> dict[str, Any]:
    """Draws once: value i + 1 is held in proportion to 1 / (i + 1), Zipf's law.

    `names` are those of a metric's values, None for placeholders. Raises BadParameter if there are
    too many reports or values to draw.
    """
    if not plan_row.reports <= _MAX_REPORTS:
        raise BadParameter(f"{plan_row.reports:,.0f} reports are too many to draw")
    mechanism = build(plan_row.mechanism, **plan_row.parameters)
    values: list[Any] = list(question.values())
    weights = 1 / np.arange(1.0, len(values) + 1)
    # Rounded so that the sum is the requested number of reports, even over very many values.
    cumulative = np.rint(np.cumsum(weights) / weights.sum() * plan_row.reports)
    counts = np.diff(cumulative, prepend=0.0).astype(np.int64)
    totals = draw(mechanism, values, counts.tolist(), np.random.default_rng(seed))
    strings = values if question.kind == "strings" else []
    result = answer(mechanism, totals, names or _names(question), strings)
    reports = max(totals.reports, 1)
    width = question.high - question.low
    truths = true_values(mechanism, [value.value for value in result.values], values, counts)
    if question.kind in MEANS:
        truths = (truths - question.low) / width
    else:
        truths /= reports
    predicted = family_for(mechanism).expected(mechanism, values, counts / reports, reports)
    unit = width if question.kind in MEANS else reports
    triples = zip(result.values, result.places.tolist(), truths.tolist(), strict=True)
    table_rows: list[dict[str, Any]] = [
        {"value": row.value, "true": truth, "estimated": place, "stderr": row.stderr / unit}
        for row, place, truth in triples
    ]
    squares = [(row["estimated"] - row["true"]) ** 2 for row in table_rows]
    return {
        "mechanism": plan_row.mechanism,
        "reports": reports,
        "seed": seed,
        "rms": float(np.sqrt(np.mean(squares))),
        "predicted": float(np.sqrt((predicted.stderrs**2).mean())),
        "values": table_rows,
    }


def _names(question: MetricDraft) -> list[str] | None:
    """Placeholder names for listed values and parts; None for other kinds."""
    match question.kind:
        case "parts":
            sizes = enumerate(question.parts, start=1)
            return [f"part {part}={value}" for part, size in sizes for value in range(size)]
        case "values" | "sets":
            return [str(place) for place in range(question.size)]
        case _:
            return None


def rank_error(question: MetricDraft, plan_row: Row, percentiles: Sequence[float]) -> float:
    """Half the width, in rank (share of people), of the percentiles' 95% intervals.

    It is the root mean square, of numbers that are spread evenly. Errors of shares differ from edge
    to edge, for `haar` by a factor of two. The interval extends to the outermost edge that may be
    the percentile's: the larger errors at either side decide. It ends at edges: on average half a
    part further.
    """
    share_error = share_errors(question, plan_row)

    def half_width(percentile: float) -> float:
        near = share_error(percentile)
        below, above = (
            max(near, *(share_error(percentile + side * near) for side in sides))
            for sides in ((-100, -50), (50, 100))
        )
        return (below + above) / 2 + 1 / (2 * question.size)

    return float(np.sqrt(np.mean([half_width(each) ** 2 for each in percentiles])))


def error_drawn_once(question: MetricDraft, percentiles: Sequence[float]) -> Target:
    """The `rank_error` of a row, which is drawn once for each row, since that takes seconds."""
    errors: dict[tuple[object, ...], float] = {}

    def error_in_rank(plan_row: Row) -> float:
        key = plan_row.mechanism, plan_row.reports, *sorted(plan_row.parameters.items())
        if key not in errors:
            errors[key] = rank_error(question, plan_row, percentiles)
        return errors[key]

    return error_in_rank


def share_errors(question: MetricDraft, plan_row: Row) -> Callable[[float], float]:
    """Half the width of the 95% interval of the share below the edge nearest to a percentile.

    Numbers are spread evenly over the parts. Infinite if no number of reports suffices.
    """
    if not isfinite(plan_row.reports):
        return lambda _: inf
    mechanism, parts = build(plan_row.mechanism, **plan_row.parameters), question.size
    drawn_reports = min(plan_row.reports, _MAX_DRAWN)
    people_below = np.rint(np.linspace(0, round(drawn_reports), parts + 1)).astype(np.int64)
    people_by_part = np.diff(people_below).tolist()
    drawings = int(np.clip(256 // parts, *_DRAWINGS))
    drawn_ranks = [
        ranks_of(
            [(mechanism, draw(mechanism, question.values(), people_by_part, chance))],
            range(parts + 1),
            population=True,
        )
        for chance in map(np.random.default_rng, range(drawings))
    ]

    @cache
    def error_at(edge: int) -> float:
        ends = [
            share_end(ranks, edge, reach_of(0.95), end, _PRECISION) if ranks else end
            for ranks in drawn_ranks
            for end in (0.0, 1.0)
        ]
        width = (sum(ends[1::2]) - sum(ends[::2])) / drawings
        return width / 2 * sqrt(drawn_reports / plan_row.reports)

    # An answer about very many parts has fewer edges.
    edges = next((ranks.edges for ranks in drawn_ranks if ranks), np.arange(parts + 1.0))
    shares_below = (edges[1:-1] - edges[0]) / (edges[-1] - edges[0])
    return lambda percentile: error_at(int(np.argmin(np.abs(shares_below - percentile / 100))) + 1)


def check_rank_goal(percentile: float, within: float | None, parts: int | None) -> None:
    """Raises BadParameter for an invalid percentile or an error that no reports reach.

    `percentile` is in (0, 100), `within` half the width of its interval, or an effect, in rank;
    `parts` is the number of parts, whose edges end the interval, None for an effect.
    """
    check_percentiles([percentile])
    # An effect moves a percentile to one side, an interval extends to both.
    room = (max if parts is None else min)(percentile, 100 - percentile) / 100
    if within is not None and not 0 < within < room:
        option = "effect" if parts is None else "within"
        raise BadParameter(
            f"--{option} {within:g} is outside (0, {room:g}): p{percentile:g} or its interval "
            "would reach the end of the range"
        )
    if within is None or parts is None:
        return
    if within <= 1 / (2 * parts):
        raise BadParameter(
            f"--within {within:g} is too small for {parts} buckets: an interval ends at their "
            f"edges, so --within must be above {1 / (2 * parts):.2g}; use {ceil(2 / within)} "
            "buckets"
        )
