"""Guarantees from the crowd: a batch, or a whole epoch, for the reports of one metric."""

from dataclasses import replace
from math import inf
from operator import attrgetter

from hubbub.analysis.binomials import binomial_quantile
from hubbub.authoring.crowds.accountant import devices_at_least, named_dummies, reports_at_least
from hubbub.catalog import Crowd, Metric
from hubbub.catalog.crowds.noise_dummies import value_noise
from hubbub.catalog.epochs_and_periods import days_at_most
from hubbub.catalog.models.model_metric import codes_of_round, judging
from hubbub.errors.message_words import at_most
from hubbub.mechanisms import AnyMechanism, Memoized
from hubbub.mechanisms.even_lies import even_lies
from hubbub.privacy.amplification import DELTA, Amplified, amplified
from hubbub.privacy.exact_accountant import epsilon_together
from hubbub.privacy.shuffled_epoch import ShuffledEpoch
from hubbub.privacy.shuffled_histogram import central_epsilon


def amplified_of(
    mechanism: AnyMechanism, reports: int, delta: float = DELTA, loss: float | None = None
) -> Amplified:
    """The central guarantee of one report of this mechanism in a batch of this size.

    `loss` is the mechanism's own privacy loss, where it is known.

    A device draws some things once for life and shows them in every report (RAPPOR's cohort, which
    buckets it answers about). An observer may know them for one person: then only reports that show
    the same hide theirs. Their number is random; half of `delta` covers an unusually small one.
    """
    loss = mechanism.privacy_loss() if loss is None else loss
    if isinstance(mechanism, Memoized) and (groups := mechanism.permanent_groups) > 1:
        # Down: rounding may not promise one report too many.
        others = binomial_quantile(delta / 2 * (1 - 1e-6), reports - 1, 1 / groups)
        guarantee = amplified(loss, 1 + max(0, others), delta / 2)
        return replace(guarantee, delta=delta, reports=reports)
    variation = float(mechanism.total_variation()) * (1 + 2**-50)
    return amplified(loss, reports, delta, min(variation, 1.0))


def central_of(metric: Metric, reports: int, dummies: int | None = None) -> Amplified:
    """Guarantee of one person in a whole epoch of this size, of a metric with a central promise.

    `dummies` is a lower bound on the epoch's dummies; None means the metric's own number.
    """
    promise = metric.central
    assert promise is not None  # noqa: S101 the caller has asked
    # Fewer than the crowd never leave. Of more, three digits will do: an epoch that grows is not
    # worked out anew with every report.
    reports = devices_at_least(reports_at_least(metric, reports), promise.dummies_each)
    grain = 10 ** max(len(str(reports)) - 3, 0)
    reports = max(reports // grain * grain, promise.reports)
    are_there = dummies is None or dummies >= named_dummies(metric)
    dummies = promise.dummies if dummies is None else min(dummies, promise.dummies)
    crowd = _crowd(metric, promise, reports, dummies)
    crowd = crowd if are_there else replace(crowd, noise_dummies=None)
    crowds = [crowd, *_judges_crowd(metric, promise, reports)]
    return Amplified(
        epsilon=max(central_epsilon(crowd, promise.delta) for crowd in crowds),
        delta=promise.delta,
        reports=reports,
        epsilon_local=metric.report_loss,
        total_variation=float(metric.randomizer.total_variation()),
        method="whole epoch",
        closed_form=inf,
        assumption=f"if {_device_dummies(metric)}the shuffler is honest, releases the crowd "
        f"whole{_along(metric, dummies)} and does not collude with the observer, and "
        f"{promise.honest:.0%} of the reports are honest; if it does collude, a report reveals "
        f"epsilon {at_most(metric.report_loss, '.3g')}",
    )


def promise_epsilon_of(metric: Metric) -> float:
    """Epsilon of its smallest crowds: of one alone, or of all epochs in the promise together."""
    promise, crowd = metric.central, smallest_crowd(metric)
    if promise is None or crowd is None:
        return inf
    return epsilon_together(crowd, promise)


def all_epochs_sentence(metric: Metric) -> str:
    """Sentence about the promise for several epochs together; "" without one."""
    promise = metric.central
    if promise and metric.model and promise.epochs > 1:
        return (
            f" All {promise.epochs} rounds of a device together reveal epsilon {promise.epsilon:g} "
            f"at delta {promise.delta:g}, or {at_most(metric.limits.lifetime_epsilon, '.3g')} to "
            "an observer of each single report."
        )
    if promise is None or not promise.period:
        return ""
    days = days_at_most(promise.period)
    return (
        f" All epochs of any {days} days, {promise.epochs:,} at most, together reveal epsilon "
        f"{promise.epsilon:g} at delta {promise.delta:g}."
    )


def rests_on(metric: Metric, guarantee: Amplified) -> str:
    """Short sentence about what a metric's central figure refers to, and what it requires."""
    if (promise := metric.central) is not None:
        added = _along(metric, promise.dummies)
        return (
            f"For one person in a whole epoch of {guarantee.reports:,} reports, computed exactly "
            f"for {metric.mechanism}, if {_device_dummies(metric)}the shuffler is honest{added} "
            f"and {promise.honest:.0%} of the reports come from honest devices; if the shuffler "
            "colludes with the aggregator, a report reveals epsilon "
            f"{at_most(metric.report_loss, '.3g')}.{all_epochs_sentence(metric)} Estimates from it "
            "may be published as they are."
        )
    if guarantee.method == "none":
        return (
            f"For one report: a batch of {guarantee.reports:,} of {metric.mechanism} proves "
            "nothing beyond the guarantee of the device itself."
        )
    mechanism, whom = metric.randomizer, "all"
    if isinstance(mechanism, Memoized) and mechanism.permanent_groups > 1:
        whom = "those that show the same cohort or ask the same"
    return (
        f"For one report among {guarantee.reports:,} of {metric.mechanism} that leave together "
        f"({whom} hide it), if the shuffler is honest."
    )


def smallest_crowd(metric: Metric) -> ShuffledEpoch | None:
    """The smallest crowd in which its reports ever leave; None without a central promise."""
    promise = metric.crowd
    return _crowd(metric, promise, promise.reports, promise.dummies) if promise else None


def crowds_of(metric: Metric, times: int) -> list[tuple[ShuffledEpoch, int]]:
    """Smallest crowds of `times` reports of one person, each with its number; or an upper bound.

    In an evaluated model a device takes part in rounds or as a judge: both are counted.
    """
    smallest, promise = smallest_crowd(metric), metric.crowd
    if smallest is None or promise is None:
        return []
    return [(smallest, times), *((crowd, 1) for crowd in _judges_crowd(metric, promise))]


def _judges_crowd(
    metric: Metric, promise: Crowd, reports: int | None = None
) -> list[ShuffledEpoch]:
    """The crowd of those who evaluate a model; empty without an evaluation."""
    if not (metric.model and metric.model.held_out):
        return []
    crowd = ShuffledEpoch(
        reports=reports or promise.reports,
        categories=judging(metric).categories,
        epsilon_local=metric.report_loss,
        honest=promise.honest,
    )
    return [crowd]


def _crowd(metric: Metric, promise: Crowd, reports: int, dummies: int) -> ShuffledEpoch:
    lies, noise = even_lies(metric.randomizer, metric.report_loss), value_noise(metric)
    return ShuffledEpoch(
        reports=reports,
        categories=lies.categories,
        epsilon_local=lies.epsilon,
        honest=promise.honest,
        dummies=dummies,
        groups=lies.groups,
        each=promise.dummies_each,
        noise_dummies=noise.each if noise else None,
        sum_noise=noise.of_sum if noise else None,
    )


def _along(metric: Metric, dummies: int) -> str:
    """A phrase on the dummies that the shuffler adds; "" without any."""
    if value_noise(metric):
        return ", adds a secret number of dummies to each value"
    return f", adds {dummies:,} dummies to it" if dummies and not metric.made_each else ""


def _device_dummies(metric: Metric) -> str:
    """A phrase on the dummies that devices add, before the shuffler's part; "" without any."""
    dummies_each = metric.made_each
    return f"devices add {dummies_each:g} dummies each to the crowd, " if dummies_each else ""


def shuffled_of(
    metric: Metric,
    reports: int | None = None,
    delta: float = DELTA,
    dummies: int | None = None,
) -> Amplified:
    """Guarantee of one person after the shuffler, for reports that left together.

    `reports` is their number; None means the smallest that the catalog allows. `delta` applies if
    the metric has no central promise. `dummies` is a lower bound on the dummies among them; None
    means the metric's own number.
    """
    rolling = metric.crowd and metric.crowd.rolling
    leaving = metric.fewest if reports is None or rolling else reports
    if metric.filled and reports is None:
        leaving = 1  # PRIVACY: all others of a batch may be fillers, which hide no value
    if metric.central:
        return central_of(metric, leaving, dummies)
    guarantee = amplified_of(metric.randomizer, leaving, delta, metric.randomizer_loss)
    if not metric.model:
        return guarantee
    # PRIVACY: values of one round may lie further apart than of another
    guarantees = [guarantee, amplified_of(codes_of_round(metric, 0), leaving, delta)]
    if metric.model.held_out:
        guarantees.append(amplified_of(judging(metric), leaving, delta))
    return max(guarantees, key=attrgetter("epsilon"))
