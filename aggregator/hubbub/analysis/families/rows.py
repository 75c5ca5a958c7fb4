"""Rows of an answer: interval, share, rank and detection of each value."""

from collections.abc import Sequence

import numpy as np

from hubbub.analysis.answer import ValueAnswer
from hubbub.analysis.arrays import Floats, Mask
from hubbub.analysis.estimators.consistency import within_ends
from hubbub.analysis.uncertainty.intervals import ranked
from hubbub.analysis.value_estimates import ValueEstimates

Columns = tuple[Floats, Floats, Floats, Floats, Mask]
"""Estimates, standard errors, lows, highs, and what stands out."""


def rows(
    names: Sequence[str], reports: int, judged: Columns, consistent: Floats
) -> tuple[ValueAnswer, ...]:
    """A row for each name, with rank and share."""
    estimates = judged[0]
    shares, low, high = (column / max(reports, 1) for column in (estimates, *judged[2:4]))
    columns = {
        "estimate": estimates,
        "stderr": judged[1],
        "low": judged[2],
        "high": judged[3],
        "share": shares,
        "rank": np.argsort(np.argsort(-estimates, kind="stable")) + 1,
        "detected": judged[4],
        "consistent": consistent,
        "share_low": low,
        "share_high": np.minimum(high, 1.0),
    }
    rows = zip(names, *(column.tolist() for column in columns.values()), strict=True)
    return tuple(ValueAnswer(**dict(zip(("value", *columns), row, strict=True))) for row in rows)


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
        count_law=figures.count_law,
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
