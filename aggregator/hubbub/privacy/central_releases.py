"""Central releases: noise on totals, for published numbers.

Totals are already sums of randomized reports. Numbers that are published again and again, to people
who may join them with others, get additional noise from a budget of their own. Two collections are
neighbours if one person answered differently in all of their reports in the queried epochs; the
number of reports is public.

    count       of one value, or part of a range      sensitivity 1 for a report
    histogram   of all values                         the most that one report can change
    mean        of a number                           the most that one report can move the sum
    mode        the most common value                 1, for the largest of all scores

Noise is on whole numbers, drawn exactly by OpenDP: discrete Laplace of scale sensitivity / epsilon,
discrete Gaussian of the least sigma whose zCDP gives (epsilon, delta); the mode by noisy max with
exponential noise of scale 2 sensitivity / epsilon. Estimating from it is post-processing.

Reports that left the shuffler as a crowd, under a central promise, are published without noise:
their estimates are post-processing of data that already keep the promise.

Sources: Dwork, McSherry, Nissim, Smith (TCC 2006); Canonne, Kamath, Steinke (NeurIPS 2020);
McKenna, Sheldon (NeurIPS 2020) for the noisy max, at least as good as the exponential mechanism.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Final, Literal, get_args

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.families import family_for
from hubbub.analysis.families.listed_values import spreads
from hubbub.analysis.families.tiers_and_rows import merged_tiers, tier_scales
from hubbub.analysis.uncertainty.intervals import reach_of
from hubbub.analysis.value_estimates import ValueEstimates
from hubbub.catalog import Metric, Release
from hubbub.errors import BadParameter, MissingDependency
from hubbub.errors.message_words import install_with, needs
from hubbub.mechanisms import AnyMechanism, Totals

ReleaseKind = Literal["count", "histogram", "mean", "mode"]
QUERIES: Final[tuple[ReleaseKind, ...]] = get_args(ReleaseKind)
CONFIDENCE: Final = 0.95
AS_IT_IS: Final = "as it is"
"""In the place of a mechanism of release, of what keeps a central promise already."""
# A record of it is kept for ever.
_MAX_VALUES: Final = 4096
_LAPLACE_KURTOSIS: Final = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """One published number: in reports; a mean in the metric's own unit.

    For the query mode, `value` is the most common value, and all numbers are None. `stderr` is of
    randomization and release noise together, `noise` what the release alone added.
    """

    value: str
    estimate: float | None
    stderr: float | None
    noise: float | None
    low: float | None
    high: float | None


def release(
    tiers: Sequence[tuple[AnyMechanism, Totals]],
    values: Sequence[str] | None,
    query: ReleaseKind,
    value: str,
    *,
    policy: Release,
    reports_each: int,
) -> list[Released]:
    """Draws the noise and answers; every call draws anew.

    `tiers` are the mechanisms and totals of the metric and its tiers; `values` are the listed
    values; `value` is the counted one, "" for other queries; `reports_each` is the largest number
    of one person's reports in these totals. Raises BadParameter if the metric or its release
    mechanism cannot answer the query.
    """
    mechanism = tiers[0][0]
    labels = _labels(mechanism, values, query, value)
    if (policy.mechanism == "exponential") != (query == "mode") and policy.mechanism != "laplace":
        raise BadParameter(
            f"the catalog releases this metric by {policy.mechanism}, which cannot answer {query}; "
            "laplace answers all queries, gaussian all except mode, exponential only mode"
        )
    if query == "mode":
        if len(tiers) > 1:
            raise BadParameter("a metric with tiers has no mode to release: request the histogram")
        numbers = family_for(mechanism).statistic(*tiers[0]).numbers
        largest: int = _noise().largest(list(map(int, numbers)), 2 * reports_each / policy.epsilon)
        return [_name_alone(labels[largest])]
    place = labels.index(value) if query == "count" else None
    noisy_tiers = [
        _add_noise(*tier, place, policy, reports_each) for tier in tiers if tier[1].reports
    ]
    reports = [totals.reports for _, totals in tiers if totals.reports]
    figures, noise_variances = noisy_tiers[0]
    if len(noisy_tiers) > 1:
        scales = tier_scales([float((tier.stderrs**2).mean()) for tier, _ in noisy_tiers], reports)
        figures = merged_tiers([tier for tier, _ in noisy_tiers], reports, scales)
        noise_variances = scales**2 @ np.array([noise for _, noise in noisy_tiers])
    reach = np.full_like(noise_variances, reach_of(CONFIDENCE))
    if policy.mechanism == "laplace":
        # Its fourth cumulant, in squares of its variance: the next term of Cornish and Fisher.
        reach += (
            _LAPLACE_KURTOSIS
            * (noise_variances / figures.stderrs**2) ** 2
            * (reach**3 - 3 * reach)
            / 24
        )
    ends = family_for(mechanism).ends(mechanism) if query == "mean" else None
    names = [value] if query == "count" else labels
    return _released_rows(names, figures, noise_variances, sum(reports), reach=reach, ends=ends)


def _released_rows(
    names: Sequence[str],
    figures: ValueEstimates,
    noise_variances: Floats,
    reports: int,
    *,
    reach: Floats | float,
    ends: tuple[float, float] | None,
) -> list[Released]:
    """A row for each name; `reach`: standard errors to an end; `ends`: the range of a mean."""
    # If the number of reports is hidden, there may be more than expected.
    law = replace(figures, of_counts=ends is None)
    low, high = law.between(reports + figures.unsure, down=reach, up=reach)
    start, scale = (ends[0], (ends[1] - ends[0]) / reports) if ends else (0.0, 1.0)
    noise = np.sqrt(noise_variances)
    return [
        Released(
            value=name,
            estimate=float(start + scale * figures.estimates[place]),
            stderr=float(scale * figures.stderrs[place]),
            noise=float(scale * noise[place]),
            low=float(start + scale * low[place]),
            high=float(start + scale * high[place]),
        )
        for place, name in enumerate(names)
    ]


def _name_alone(value: str) -> Released:
    """The most common value, without any published number."""
    return Released(value=value, estimate=None, stderr=None, noise=None, low=None, high=None)


def release_without_noise(
    mechanism: AnyMechanism,
    totals: Totals,
    values: Sequence[str] | None,
    query: ReleaseKind,
    value: str,
) -> list[Released]:
    """Estimates of totals that left as crowds, without noise. Raises BadParameter as `release`."""
    labels = _labels(mechanism, values, query, value)
    family = family_for(mechanism)
    figures = family.figures_of([(mechanism, totals)])
    if query == "mode":
        return [_name_alone(labels[int(np.argmax(figures.estimates))])]
    if query == "mean":
        figures = figures.place or figures
    none = np.zeros_like(figures.estimates)
    ends = family.ends(mechanism) if query == "mean" else None
    reach = reach_of(CONFIDENCE)
    rows = _released_rows(labels, figures, none, totals.reports, reach=reach, ends=ends)
    return [row for row in rows if query != "count" or row.value == value]


def _labels(
    mechanism: AnyMechanism, values: Sequence[str] | None, query: ReleaseKind, value: str
) -> Sequence[str]:
    """Names of the released numbers; refuses queries that do not fit."""
    family = family_for(mechanism)
    labels = family.labels(mechanism, values)
    if (family.KIND == "mean") != (query == "mean"):
        raise BadParameter(f"{mechanism.NAME} does not answer {query}")
    if family.KIND == "ranges" and query == "mode":
        raise BadParameter(f"{mechanism.NAME} has no mode to release: request the histogram")
    if len(labels) > _MAX_VALUES:
        raise BadParameter(f"{len(labels):,} values are too many to release; at most 4,096")
    if (query == "count") != bool(value):
        raise BadParameter("the query count needs a value, and other queries need none")
    if query == "count" and value not in labels:
        raise BadParameter("the value to count is not one of the metric's")
    return labels


def _add_noise(
    mechanism: AnyMechanism, totals: Totals, place: int | None, policy: Release, reports_each: int
) -> tuple[ValueEstimates, Floats]:
    """Estimates with both noises, and the release noise's variance: of all values, or of one."""
    totals.check(mechanism.layout)
    family = family_for(mechanism)
    statistic = family.statistic(mechanism, totals)
    numbers, l1, l2 = statistic.numbers, statistic.l1, statistic.l2
    unit, base = statistic.unit, statistic.base
    if place is not None and isinstance(unit, float):
        numbers, l1, l2 = numbers[place : place + 1], 1, 1.0
    noise, variance = _noise().draw(len(numbers), l1 * reports_each, l2 * reports_each, policy)
    if isinstance(unit, float):
        estimates = unit * (numbers + noise) + base
        noises = np.full(len(numbers), unit**2 * variance)
    else:
        estimates = unit @ (numbers + noise) + base
        noises = (unit**2).sum(axis=1) * variance
    # The local variance is taken at the noisy estimate: what is published depends on that alone.
    reports = totals.reports
    local = family.local(mechanism, numbers + noise, reports)
    if local is None:
        # Lies that one device repeats add up, as in a query.
        true_spread, other = spreads(mechanism, reports_each)
        absent, growth = reports * other + noises, np.full_like(estimates, true_spread - other)
    else:
        absent, growth = local + noises, np.zeros_like(estimates)
    stderrs = np.sqrt(absent + growth * np.clip(estimates, 0, reports))
    selected = slice(place, place + 1) if place is not None and len(estimates) > 1 else slice(None)
    figures = ValueEstimates(
        estimates=estimates[selected],
        stderrs=stderrs[selected],
        absent=np.sqrt(absent)[selected],
        growth=growth[selected],
        step=unit if isinstance(unit, float) else 0.0,
    )
    return figures, noises[selected]


def check_noise(metrics: Iterable[Metric]) -> None:
    """Raises MissingDependency if a metric is released and the noise library is not installed."""
    released = [metric.name for metric in metrics if metric.release is not None]
    if released and find_spec("opendp") is None:
        raise MissingDependency(
            f'metric "{released[0]}" is released, but the library for its noise is not installed '
            f"here: {install_with('releases')}"
        )


def _noise() -> ModuleType:
    """The noise module, loaded with the first release: OpenDP is larger than the aggregator."""
    with needs("noise of releases needs OpenDP", "releases"):
        return import_module("hubbub.privacy.release_noise")
