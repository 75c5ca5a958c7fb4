"""The crowd: which reports hide one, in a batch or a whole epoch, and what they give it."""

from dataclasses import replace
from math import floor, inf, sqrt
from pathlib import Path

from scipy.stats import binom

from hubbub.catalog import Catalog, CentralPromise, Metric, read_catalog
from hubbub.mechanisms import AnyMechanism, Memoized
from hubbub.privacy.amplification import DELTA, Amplified, amplified
from hubbub.privacy.histogram import Crowd, central_epsilon, keeps, largest_local

__all__ = [
    "ExactAccountant",
    "amplified_of",
    "central_of",
    "read_planned",
    "shuffled_of",
    "smallest_crowd",
]


def amplified_of(mechanism: AnyMechanism, reports: int, delta: float = DELTA) -> Amplified:
    """The central guarantee of one report of this mechanism in a batch of so many.

    What a device draws once for life and shows in every report (RAPPOR's cohort, which buckets are
    asked about) may be known of one person: then only reports that show the same hide theirs. How
    many those are is chance; half of `delta` is for fewer than are reckoned with.
    """
    if isinstance(mechanism, Memoized) and (groups := mechanism.permanent_groups) > 1:
        # Down: rounding may not promise one report too many.
        others = int(binom.ppf(delta / 2 * (1 - 1e-6), reports - 1, 1 / groups))
        found = amplified(mechanism.privacy_loss(), 1 + max(0, others), delta / 2)
        return replace(found, delta=delta, reports=reports)
    variation = float(mechanism.total_variation()) * (1 + 2**-50)
    return amplified(mechanism.privacy_loss(), reports, delta, min(variation, 1.0))


class ExactAccountant:
    """Keeps central promises by the exact account of a whole shuffled epoch."""

    def local_epsilon(self, promise: CentralPromise, categories: int) -> float:
        """The largest that keeps the promise, within .002 below it, in three digits.

        So the same catalog gives the same epsilon, whoever builds it with which numpy.
        """
        found = largest_local(
            promise.crowd,
            categories,
            promise.epsilon,
            promise.delta,
            honest=promise.honest,
            most=promise.max_local_epsilon,
        )
        return max(floor(found * 1000) / 1000, min(found, promise.epsilon))

    def crowd_needed(self, promise: CentralPromise, categories: int, epsilon: float) -> int | None:
        """The smallest crowd, to three digits and above, up to a thousand million."""

        def would(reports: int) -> bool:
            crowd = Crowd(reports, categories, epsilon, promise.honest)
            return keeps(crowd, promise.epsilon, promise.delta)

        low, high = promise.crowd, 10**9
        if not would(high):
            return None
        while high > low * 1.002 + 1:
            middle = round(sqrt(low * high))
            low, high = (low, middle) if would(middle) else (middle, high)
        return high


def central_of(metric: Metric, reports: int) -> Amplified | None:
    """What a whole epoch of so many reports says of one person; None without a central promise."""
    promise = metric.central
    if promise is None:
        return None
    # Fewer than the crowd never leave. Of more, three digits will do: an epoch that grows is not
    # worked out anew with every report.
    grain = 10 ** max(len(str(reports)) - 3, 0)
    reports = max(reports // grain * grain, promise.crowd)
    crowd = _crowd(metric, reports)
    return Amplified(
        central_epsilon(crowd, promise.delta),
        promise.delta,
        reports,
        metric.report_loss,
        float(metric.randomizer.total_variation()),
        "whole epoch",
        inf,
        "if the shuffler is honest, lets the crowd leave whole and does not collude with who "
        "looks, "
        f"and {promise.honest:.0%} of the reports are honest; if it does collude, a report says "
        f"epsilon {metric.report_loss:.3g}",
    )


def smallest_crowd(metric: Metric) -> Crowd | None:
    """The smallest that its reports ever leave in; None without a central promise."""
    return None if metric.crowd is None else _crowd(metric, metric.crowd)


def _crowd(metric: Metric, reports: int) -> Crowd:
    return Crowd(reports, len(metric.values or ()), metric.report_loss, metric.honest)


def shuffled_of(metric: Metric, reports: int | None = None, delta: float = DELTA) -> Amplified:
    """What is said of one person after the shuffler, of reports that left together.

    reports: how many, without at least as many as the catalog has ever leave together. delta: where
    the metric promises none of its own.
    """
    leaving = metric.min_batch if reports is None or metric.rolling else reports
    return central_of(metric, leaving) or amplified_of(metric.randomizer, leaving, delta)


def read_planned(path: Path) -> Catalog:
    """The catalog in a TOML file, with local epsilons that keep its central promises.

    Raises:
        CatalogInvalid: as read_catalog says.
    """
    return read_catalog(path, ExactAccountant())
