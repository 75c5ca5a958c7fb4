"""Guarantees from the crowd: a batch, or a whole epoch, for the reports of one metric."""

from dataclasses import replace
from functools import lru_cache
from math import floor, inf, sqrt
from operator import attrgetter
from typing import Final

from hubbub.analysis.binomials import least
from hubbub.authoring.crowds.accountant import (
    devices_at_least,
    named_dummies,
    reports_at_least,
    sum_scale,
)
from hubbub.catalog import Crowd, Metric
from hubbub.catalog.crowds.crowd import DEVICES, NOISE
from hubbub.catalog.crowds.gaussian import LEFT_OUT, delta_of_mu, mu_of_pure
from hubbub.catalog.crowds.noise_dummies import can_seal, value_noise
from hubbub.catalog.epochs import days_at_most
from hubbub.catalog.models.held_out_reports import judging
from hubbub.catalog.models.model_metric import codes_of_round
from hubbub.errors import BadParameter
from hubbub.errors.grammar import several
from hubbub.mechanisms import AnyMechanism, Memoized
from hubbub.mechanisms.even_noise import even_lies
from hubbub.mechanisms.probability import MIN_EPSILON
from hubbub.privacy.amplification import DELTA, Amplified, amplified
from hubbub.privacy.many_epochs import composed_epsilon, largest_local_together
from hubbub.privacy.padding import best_dummies, best_noise, wins
from hubbub.privacy.shuffled_epoch import ShuffledEpoch
from hubbub.privacy.shuffled_histogram import central_epsilon, keeps, largest_local, profile


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
        others = least(delta / 2 * (1 - 1e-6), reports - 1, 1 / groups)
        guarantee = amplified(loss, 1 + max(0, others), delta / 2)
        return replace(guarantee, delta=delta, reports=reports)
    variation = float(mechanism.total_variation()) * (1 + 2**-50)
    return amplified(loss, reports, delta, min(variation, 1.0))


# Of a promise: what is told below it is not for the accountant's grain alone.
_KEPT_SHARE: Final = 0.98
# How much more a report might say and nothing is told of it: its epsilon is in three digits.
_GRAIN: Final = 2e-3
# Of a promise: a report that says no more by itself needs no crowd.
_ALONE: Final = 1.1


class ExactAccountant:
    """Keeps central promises by the exact account of a whole shuffled epoch."""

    def local_epsilon(self, promise: Crowd, categories: float, groups: int = 1) -> float:
        """The largest that keeps the promise, up to .002 less, in three digits.

        So the same catalog gives the same epsilon, on every machine and numpy version. Raises
        BadParameter if it is less than the smallest epsilon of a report.
        """
        epsilon = self.largest(promise, categories, groups)
        if epsilon < MIN_EPSILON:
            raise BadParameter(promise.unkept())
        return max(
            floor(epsilon * 1000) / 1000,
            min(epsilon, promise.epsilon / promise.epochs),
            MIN_EPSILON,
        )

    def largest(self, promise: Crowd, categories: float, groups: int = 1) -> float:
        """The largest local epsilon that keeps the promise, without rounding."""
        most = promise.max_local_epsilon
        if promise.noise and self.keeps(promise, categories, most, groups):
            return most
        crowd = crowd_of_promise(promise, categories, most, groups)
        if promise.epochs > 1:
            return largest_local_together(crowd, promise.epochs, promise.epsilon, promise.delta)
        return largest_local(crowd, promise.epsilon, promise.delta)

    def keeps(self, promise: Crowd, categories: float, epsilon: float, groups: int = 1) -> bool:
        """Whether this local epsilon keeps the promise in one epoch, or in several together."""
        crowd = crowd_of_promise(promise, categories, epsilon, groups)
        single = keeps(crowd, promise.epsilon, promise.delta)
        if promise.epochs == 1 or not single:  # several say no less, and take longer
            return single
        return _together(crowd, promise) <= promise.epsilon

    def padded(
        self,
        promise: Crowd,
        categories: int,
        dummies: str,
        *,
        noisy: bool = True,
        fixed_sum: bool = False,
    ) -> Crowd:
        """The promise with the fewest dummies whose variance is within 5% of the smallest."""
        lying = crowd_of_promise(promise, categories, promise.max_local_epsilon)
        if dummies == DEVICES:
            number = best_dummies(lying, promise.epsilon, promise.delta, by_devices=True)
            return replace(promise, dummies_each=float(f"{number / promise.reports:.3g}"))
        noisy_promise = promise
        if noisy or dummies == NOISE:
            # So that many epochs of a person compose, and the yearly cap counts them as Gaussians.
            try:
                scale, shift = best_noise(
                    lying,
                    promise.epsilon,
                    promise.delta,
                    promise.epochs,
                    ends=LEFT_OUT / 2,
                    fixed_sum=fixed_sum,
                )
            except BadParameter:
                if dummies == NOISE:
                    raise
            else:
                noisy_promise = replace(
                    promise,
                    dummies_scale=scale,
                    dummies_shift=shift,
                    dummies_sum_scale=sum_scale(scale, categories - 1) if fixed_sum else 0.0,
                )
        if dummies == NOISE:
            return noisy_promise
        even_promise = replace(promise, dummies=best_dummies(lying, promise.epsilon, promise.delta))
        other = crowd_of_promise(
            even_promise, categories, self.local_epsilon(even_promise, categories)
        )
        fits = can_seal(noisy_promise, categories)
        return (
            noisy_promise
            if fits and wins(replace(lying, noise_dummies=noisy_promise.noise), other)
            else even_promise
        )

    def gaussian(self, promise: Crowd, categories: float, epsilon: float, groups: int = 1) -> float:
        """The smallest mu, rounded up by at most two percent."""
        return gaussian_mu(crowd_of_promise(promise, categories, epsilon, groups))

    def crowd_needed(
        self, promise: Crowd, categories: float, epsilon: float, groups: int = 1
    ) -> int | None:
        """Rounded up in three digits, to 10^9; None for several epochs, which take minutes."""
        crowd = crowd_of_promise(promise, categories, epsilon, groups)

        def would(reports: int) -> bool:
            return keeps(replace(crowd, reports=reports), promise.epsilon, promise.delta)

        low, high = promise.reports, 10**9
        if promise.epochs > 1 or not would(high):
            return None
        while high > low * 1.002 + 1:
            middle = round(sqrt(low * high))
            low, high = (low, middle) if would(middle) else (middle, high)
        return high


def what_decides(
    promise: Crowd,
    local: float,
    total_epsilon: float,
    categories: float | None,
    groups: int = 1,
    *,
    coarse: bool = False,
) -> str:
    """Sentence about a limit, other than the promise, on how accurate reports are; "" if none.

    `local` is the epsilon of a report, and `total_epsilon` that of its smallest crowd, or of all
    epochs of the promise. If `categories` depends on the crowd, it is None, and no sufficient crowd
    is named. `coarse` means that only some epsilons are possible, as for a tree.
    """
    if total_epsilon < _KEPT_SHARE * promise.epsilon:
        text = f"devices randomize more than a central epsilon of {promise.epsilon:g} needs, since"
        if local > promise.max_local_epsilon - _GRAIN:
            return (
                f"{text} a report may reveal {local:.4g} at most; with a larger max_local_epsilon "
                "errors are smaller"
            )
        if not coarse and total_epsilon * (1 + _GRAIN / local) < _KEPT_SHARE * promise.epsilon:
            return f"{text} epsilon is {local:.4g}; with a larger one, or none, errors are smaller"
    if local > _ALONE * promise.epsilon / promise.epochs:
        return ""
    # From where on a report may say twice as much, or what is allowed.
    raised_epsilon = min(2 * promise.epsilon, promise.max_local_epsilon)
    needed = None
    if categories and raised_epsilon > _ALONE * promise.epsilon:
        needed = ExactAccountant().crowd_needed(promise, categories, raised_epsilon, groups)
    would = f"; {needed:,} reports would" if needed else ""
    return f"so small a crowd adds almost nothing to the protection of a single report{would}"


def crowd_of_promise(
    promise: Crowd, categories: float, epsilon: float, groups: int = 1
) -> ShuffledEpoch:
    """The smallest crowd of a promise, if its reports have this local epsilon, in nats."""
    return ShuffledEpoch(
        reports=promise.reports,
        categories=categories,
        epsilon_local=epsilon,
        honest=promise.honest,
        dummies=promise.dummies,
        groups=groups,
        each=promise.dummies_each,
        noise_dummies=promise.noise,
        sum_noise=promise.sum_noise,
    )


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
    named = named_dummies(metric)
    are_there = dummies is None or dummies >= named
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
        f"epsilon {metric.report_loss:.3g}",
    )


def kept_by(metric: Metric) -> float:
    """Epsilon of its smallest crowds: of one alone, or of all epochs in the promise together."""
    promise, crowd = metric.central, smallest_crowd(metric)
    if promise is None or crowd is None:
        return inf
    return _together(crowd, promise)


def _together(crowd: ShuffledEpoch, promise: Crowd) -> float:
    """Epsilon of a crowd in all epochs of a promise."""
    if promise.epochs == 1:
        return central_epsilon(crowd, promise.delta)
    return composed_epsilon([(crowd, promise.epochs)], promise.delta)


def all_epochs_sentence(metric: Metric) -> str:
    """Sentence about the promise for several epochs together; "" without one."""
    promise = metric.central
    if promise and metric.model and promise.epochs > 1:
        return (
            f" All {promise.epochs} rounds of a device together reveal epsilon {promise.epsilon:g} "
            f"at delta {promise.delta:g}, or {metric.limits.lifetime_epsilon:.3g} to an observer "
            "of each single report."
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
            f"{metric.report_loss:.3g}.{all_epochs_sentence(metric)} Estimates from it may be "
            "published as they are."
        )
    if guarantee.method == "none":
        return (
            f"For one report: mixing {several(guarantee.reports, 'report')} of "
            f"{metric.mechanism} proves nothing beyond the guarantee of the device itself."
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


# The grid of epsilons on which a crowd is compared with Gaussians, and how finely mu is found.
_STEP: Final = 0.01
_FINE: Final = 1e-3


@lru_cache(maxsize=1024)
def gaussian_mu(crowd: ShuffledEpoch) -> float:
    """The smallest mu whose Gaussian reveals at least as much as the crowd, up to two percent more.

    Between two epsilons of the grid, a crowd's delta is at most that at the lower one, and a
    Gaussian's at least that at the upper one; beyond the last, all of it is left out. If the local
    epsilon alone proves a smaller mu, that is returned.
    """
    pure, delta = mu_of_pure(crowd.epsilon_local), profile(crowd, LEFT_OUT)
    mus = [0.0]
    deltas = [delta(0.0)]
    while deltas[-1] > LEFT_OUT:
        if mus[-1] > crowd.epsilon_local:
            return pure
        mus.append(mus[-1] + max(_STEP, _STEP * 4 * mus[-1]))
        deltas.append(delta(mus[-1]))
    pairs = list(zip(mus[1:], deltas[:-1], strict=True))

    def holds(mu: float) -> bool:
        return all(
            most <= (1 - LEFT_OUT) * (1 - 1e-11) * delta_of_mu(mu, epsilon) + LEFT_OUT
            for epsilon, most in pairs
        )

    low, high = 0.0, pure
    if not holds(high):
        return pure
    while high - low > _FINE * high:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
