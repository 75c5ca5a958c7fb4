"""What stands before an answer, on every face: what a reader would otherwise take for better."""

from math import sqrt

from hubbub.catalog import Metric
from hubbub.catalog.crowds.device_dummies import made_each, reports_variance
from hubbub.errors.places import notice


def notice_of(metric: Metric, *reports: int) -> str:
    """Of development that it protects nobody; of reports of a metric that they are estimated.

    reports: the numbers of reports that the answer tells. "" where there is nothing to say.
    """
    said = notice(development=metric.development)
    if each := made_each(metric):
        errors = " and ".join(f"{n:,} ± {reports_stderr(metric, n):,.1f}" for n in reports)
        said = (
            f"{metric.name}: the number of reports is an estimate, {errors} (standard error): "
            f"beside each a device sends {each:g} dummies on average, which nobody can tell."
        )
    return said


def reports_stderr(metric: Metric, reports: int) -> float:
    """The standard error of a metric's number of reports; 0 where they are counted."""
    return sqrt(reports_variance(reports, made_each(metric)))
