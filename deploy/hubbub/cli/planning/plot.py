"""`hubbub plan --plot`: the error of every mechanism against the number of reports."""

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Final

from hubbub.errors import BadParameter
from hubbub.errors.installing import install_with
from hubbub.privacy.metric_draft import MEANS, MetricDraft
from hubbub.privacy.planner import Row, row
from hubbub.programs.unwritable import refuse_unwritable

_POINTS: Final = 25


def plot(question: MetricDraft, rows: Sequence[Row], path: Path) -> None:
    """Draw the smallest detectable share, or of a mean its interval, over a range of reports.

    Raises:
        BadParameter: matplotlib is missing, another kind of file, or it cannot be written.
    """
    if path.suffix not in {".png", ".svg"}:
        raise BadParameter(f"--plot {path}: draws .png and .svg; name the file so")
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 an extra, and slow to load
    except ImportError as error:
        raise BadParameter(f"--plot needs matplotlib: {install_with('plots')}") from error
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    counts = [row.reports for row in rows if isfinite(row.reports)]
    low, high = min(counts, default=1e4) / 30, max(counts, default=1e6) * 30
    steps = [low * (high / low) ** (i / (_POINTS - 1)) for i in range(_POINTS)]
    for plan_row in rows:
        line = [
            row(question, plan_row.mechanism, plan_row.parameters, reports) for reports in steps
        ]
        shares = [min(each.detectable, 1.0) for each in line]
        (drawn,) = axes.plot(
            steps, shares, label=f"{plan_row.mechanism}, epsilon {plan_row.epsilon:.2f}"
        )
        if isfinite(plan_row.reports) and plan_row.detectable <= 1:
            axes.plot([plan_row.reports], [plan_row.detectable], "o", color=drawn.get_color())
    axes.set(xscale="log", yscale="log", xlabel="reports")
    mean = question.kind in MEANS
    axes.set_ylabel("half width of the 95% interval" if mean else "smallest share detected (95%)")
    axes.yaxis.set_major_formatter(lambda share, _place: f"{share:.2%}")
    axes.grid(visible=True, which="both", alpha=0.25)
    axes.legend(fontsize="small")
    with refuse_unwritable(f"--plot {path}", BadParameter):
        figure.savefig(path, dpi=150)
