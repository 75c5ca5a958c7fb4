"""Draws the totals of a plan, for `hubbub plan --simulate`, and estimates them."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from hubbub.analysis.answering import answer
from hubbub.analysis.families import draw, family_for
from hubbub.errors import BadParameter
from hubbub.mechanisms import build
from hubbub.privacy.metric_draft import MEANS, MetricDraft
from hubbub.privacy.planner import Row
from hubbub.simulation.truth import true_values

_MAX_REPORTS: Final = 10**12


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
    chance = np.random.default_rng(seed)
    totals = draw(mechanism, values, counts.tolist(), chance)
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
