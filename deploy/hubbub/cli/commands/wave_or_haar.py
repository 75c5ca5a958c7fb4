"""`hubbub catalog new --percentile`: `wave` or `haar`, by drawn reports; needs the planner."""

from hubbub.privacy.metric_draft import MetricDraft
from hubbub.privacy.planner import ranked, row
from hubbub.query_results.rows import percentile_name
from hubbub.simulation.totals_of_plan import percentile_width


def narrower(
    ends: tuple[float, float], buckets: int, percentile: float, epsilon: float, reports: int
) -> tuple[str, str]:
    """The mechanism with the narrower interval of a percentile, and a sentence about both."""
    low, high = ends
    question = MetricDraft(kind="ranges", size=buckets, low=low, high=high)
    suitable = question.suitable(epsilon)
    rows = [row(question, name, suitable[name], reports) for name in ("wave", "haar")]
    widths = {plan.mechanism: percentile_width(question, plan, percentile) for plan in rows}
    best, other = (plan.mechanism for plan in ranked(rows, lambda own: widths[own.mechanism] ** 2))
    return best, (
        f"{best}: with {reports:,} reports, the interval of {percentile_name(percentile)} is about "
        f"{(high - low) * widths[best]:.3g} wide; with {other}, {(high - low) * widths[other]:.3g}"
    )
