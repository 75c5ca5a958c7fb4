"""Rows of an answer: interval, share, rank and detection of each value."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from hubbub.analysis.answer import Answer, ValueAnswer
from hubbub.analysis.arrays import Floats, Mask
from hubbub.analysis.estimators.consistency import within_ends
from hubbub.analysis.uncertainty.intervals import ranked
from hubbub.analysis.value_estimates import ValueEstimates

Columns = tuple[Floats, Floats, Floats, Floats, Mask]
"""Estimates, standard errors, lows, highs, and what stands out."""


def values_answer(
    figures: ValueEstimates,
    names: Sequence[str],
    reports: int,
    confidence: float,
    repeats: int,
    *,
    picture: Callable[[Columns], Floats],
    correlation: float = 1.0,
) -> Answer:
    """Answer with a row for each name; `picture` computes `consistent` from the columns."""
    judged = columns(figures, reports, confidence)
    values = rows(names, reports, judged, picture(judged))
    if figures.number_variance:
        own = columns(figures.of_shares(reports), reports, confidence)
        ends = (own[2] / max(reports, 1)).tolist(), (own[3] / max(reports, 1)).tolist()
        values = tuple(
            replace(row, share_low=low, share_high=high)
            for row, low, high in zip(values, *ends, strict=True)
        )
    return Answer(
        kind="values",
        reports=reports,
        confidence=confidence,
        values=values,
        correlation=correlation,
        repeats=repeats,
        figures=figures,
    )


def rows(
    names: Sequence[str], reports: int, judged: Columns, consistent: Floats
) -> tuple[ValueAnswer, ...]:
    """A row for each name, with rank and share."""
    estimates = judged[0]
    ranks = np.empty(len(estimates), dtype=np.int64)
    ranks[np.argsort(-estimates, kind="stable")] = np.arange(1, len(estimates) + 1)
    shares, low, high = (column / max(reports, 1) for column in (estimates, *judged[2:4]))
    columns = {
        "estimate": estimates,
        "stderr": judged[1],
        "low": judged[2],
        "high": judged[3],
        "share": shares,
        "rank": ranks,
        "detected": judged[4],
        "consistent": consistent,
        "share_low": low,
        "share_high": np.minimum(high, 1.0),
    }
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return tuple(
        ValueAnswer(value=name, **dict(zip(columns, row, strict=True)))
        for name, row in zip(names, rows, strict=True)
    )


def columns(figures: ValueEstimates, reports: int, confidence: float) -> Columns:
    """Estimates, standard errors, interval ends and detections, valid for the top of the list."""
    absent = np.maximum(figures.absent, 1e-9)
    low, high, detected = ranked(
        figures.estimates,
        absent,
        figures.growth,
        reports + figures.unsure,
        confidence,
        bend=figures.bend,
        step=figures.step,
        tail=figures.tail,
    )
    # The true counts sum to the reports, so no lower end may exceed them.
    return figures.estimates, figures.stderrs, np.minimum(low, reports), high, detected


def nearest(judged: Columns, absent: Floats, reports: int, *, others: bool = False) -> Floats:
    """The histogram nearest to the estimates and inside their intervals.

    With `others`, the rest belongs to other strings. All values have the weight of absent ones:
    with their own errors, frequent values would give up most, since some mechanisms estimate them
    less precisely than rare ones.
    """
    estimates, _, low, high, _ = judged
    variances = np.maximum(absent, 1e-9) ** 2
    if others:
        estimates = np.append(estimates, reports - estimates.sum())
        variances = np.append(variances, variances.sum())
        low, high = np.append(low, 0.0), np.append(high, float(reports))
    return within_ends(estimates, variances, (low, high), reports)[: len(absent)]
