"""What stands before an answer, on every face: what a reader would otherwise take for better."""

from math import sqrt

from hubbub.aggregator.query.totals import EpochSelection
from hubbub.catalog.crowds.device_dummies import reports_variance
from hubbub.catalog.crowds.hidden_counts import hides_number, number_variance
from hubbub.errors.places import notice


def notice_of(*selections: EpochSelection) -> str:
    """Of development that it protects nobody; of reports of a metric that they are estimated.

    selections: of one metric, each with a number of reports that the answer has. "" where there is
    nothing to say.
    """
    metric = selections[0].metric
    text = notice(development=metric.development)
    each, noise = metric.made_each, hides_number(metric)
    if noise and not any(selection.counted for selection in selections):
        text = f"{metric.name}: nothing has left the shuffler, which tells nobody how much waits."
    elif each or noise:
        errors = " and ".join(
            f"{selection.reports:,} ± {reports_stderr(selection):,.1f}" for selection in selections
        )
        why = (
            "the shuffler adds a number of dummies to an epoch that it tells nobody."
            if noise
            else f"beside each a device sends {each:g} dummies on average, which nobody can tell."
        )
        text = (
            f"{metric.name}: the number of reports is an estimate, {errors} (standard error): {why}"
        )
    return text


def reports_stderr(selection: EpochSelection) -> float:
    """The standard error of a number of reports; 0 where they are counted."""
    metric = selection.metric
    hidden = sum(number_variance(metric, count.reports) for count in selection.counted.values())
    return sqrt(reports_variance(selection.reports, metric.made_each) + hidden)
