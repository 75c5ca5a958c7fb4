"""What stands before an answer, on every face: what a reader would otherwise take for better."""

from math import sqrt

from hubbub.catalog import Metric
from hubbub.catalog.crowds.device_dummies import made_each, reports_variance
from hubbub.catalog.crowds.hidden_counts import count_noise, count_variance
from hubbub.errors.places import notice


def notice_of(metric: Metric, *told: tuple[int, int]) -> str:
    """Of development that it protects nobody; of reports of a metric that they are estimated.

    told: each number of reports that the answer tells, and of how many epochs. "" where there is
    nothing to say.
    """
    said = notice(development=metric.development)
    each, noise = made_each(metric), count_noise(metric)
    if noise and not any(of for _, of in told):
        said = f"{metric.name}: nothing has left the shuffler, which tells nobody how much waits."
    elif each or noise:
        errors = " and ".join(f"{n:,} ± {reports_stderr(metric, n, of):,.1f}" for n, of in told)
        why = (
            "the shuffler adds a number of dummies to an epoch that it tells nobody."
            if noise
            else f"beside each a device sends {each:g} dummies on average, which nobody can tell."
        )
        said = (
            f"{metric.name}: the number of reports is an estimate, {errors} (standard error): {why}"
        )
    return said


def reports_stderr(metric: Metric, reports: int, epochs: int) -> float:
    """The standard error of a metric's number of reports; 0 where they are counted."""
    return sqrt(reports_variance(reports, made_each(metric)) + epochs * count_variance(metric))
