"""Central releases: noise on totals, for numbers that leave the house.

Totals are of randomized reports already; whoever publishes numbers again and again, to people who
may join them with others, adds noise of a budget of its own. Two collections are neighbours if one
person answered otherwise, in all of their reports in the epochs asked; how many reported is known.

    count       of one value, or part of a range      sensitivity 1 for a report
    histogram   of all of them                        as many as one report can change
    mean        of a number                           as far as one report can move the sum
    mode        the most common value                 1, for the largest of all scores

Noise is on whole numbers, drawn exactly by OpenDP: discrete Laplace of scale sensitivity / epsilon,
discrete Gaussian of the least sigma whose zCDP gives (epsilon, delta); the mode by noisy max with
exponential noise of scale 2 sensitivity / epsilon. Estimating from it is post-processing.
What left the shuffler as a crowd, under a central promise, is published as it is: its estimates are
post-processing of what keeps the promise already, and noise on top would hide nobody better.
Sources: Dwork, McSherry, Nissim, Smith (TCC 2006); Canonne, Kamath, Steinke (NeurIPS 2020);
McKenna, Sheldon (NeurIPS 2020) for the noisy max, at least as good as the exponential mechanism.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Final, Literal, get_args

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.estimators.supports import supports
from hubbub.analysis.families import chosen_by, family_for, tier_scales
from hubbub.analysis.uncertainty.intervals import interval
from hubbub.analysis.uncertainty.memoized_variance import spreads
from hubbub.catalog import Metric, Release
from hubbub.errors import BadParameter, MissingDependency
from hubbub.errors.installing import install_with
from hubbub.mechanisms import AnyMechanism, Totals

ReleaseKind = Literal["count", "histogram", "mean", "mode"]
QUERIES: Final[tuple[ReleaseKind, ...]] = get_args(ReleaseKind)
CONFIDENCE: Final = 0.95
AS_IT_IS: Final = "as it is"
"""In the place of a mechanism of release, of what keeps a central promise already."""
# A record of it is kept for ever.
_MAX_VALUES: Final = 4096


@dataclass(frozen=True, slots=True)
class Released:
    """One published number: in reports; of a mean, in the metric's own unit.

    stderr: of both noises together. noise: the standard error that the release alone added. Of the
    most common value there is but its name, and the figures are None.
    """

    value: str
    estimate: float | None
    stderr: float | None
    noise: float | None
    low: float | None
    high: float | None


def release(
    parts: Sequence[tuple[AnyMechanism, Totals]],
    values: Sequence[str] | None,
    query: ReleaseKind,
    value: str,
    *,
    policy: Release,
    reports_each: int,
) -> list[Released]:
    """Draw the noise and answer; every call draws anew.

    parts: the metric's mechanism with its totals, and those of its tiers. values: what is listed.
    value: the one that is counted, "" for the other queries.
    reports_each: the most reports in these totals that one person made.

    Raises:
        BadParameter: a query that the metric or its mechanism of release has no answer to.
    """
    mechanism = parts[0][0]
    labels = _labels(mechanism, values, query, value)
    if (policy.mechanism == "exponential") != (query == "mode") and policy.mechanism != "laplace":
        raise BadParameter(
            f"the catalog releases this metric by {policy.mechanism}, which cannot answer {query}; "
            "laplace answers all queries, gaussian all but mode, exponential mode alone"
        )
    if query == "mode":
        return [Released(_most_common(parts, labels, policy, reports_each), *[None] * 5)]
    place = labels.index(value) if query == "count" else None
    figures = [_noisy(*part, place, policy, reports_each) for part in parts if part[1].reports]
    estimates, variances, noises = _together(figures, [t.reports for _, t in parts if t.reports])
    ends = family_for(mechanism).ends(mechanism)
    if query == "mean" and ends:
        reports = _reports(parts)
        wide = ends[1] - ends[0]
        estimates = ends[0] + wide * estimates / reports
        variances, noises = (each * (wide / reports) ** 2 for each in (variances, noises))
    stderrs = np.sqrt(variances + noises)
    low, high = interval(estimates, stderrs, CONFIDENCE)
    least, most = ends if query == "mean" and ends else (0.0, float(_reports(parts)))
    low, high = np.clip(low, least, most), np.clip(high, least, most)
    names = [value] if query == "count" else labels
    columns = (column.tolist() for column in (estimates, stderrs, np.sqrt(noises), low, high))
    return [Released(*row) for row in zip(names, *columns, strict=True)]


def _reports(parts: Sequence[tuple[AnyMechanism, Totals]]) -> int:
    return sum(totals.reports for _, totals in parts)


def as_it_is(
    mechanism: AnyMechanism,
    totals: Totals,
    values: Sequence[str] | None,
    query: ReleaseKind,
    value: str,
) -> list[Released]:
    """The estimates of totals that left as crowds: nothing is added, whoever asks how often.

    Raises:
        BadParameter: a query that the metric has no answer to.
    """
    labels = _labels(mechanism, values, query, value)
    found = mechanism.estimate(totals)
    if query == "mode":
        return [Released(labels[int(np.argmax(found.values))], *[None] * 5)]
    estimates, stderrs = np.array(found.values), np.sqrt(found.variances)
    low, high = interval(estimates, stderrs, CONFIDENCE)
    rows = zip(
        labels,
        estimates.tolist(),
        stderrs.tolist(),
        np.clip(low, 0, totals.reports).tolist(),
        np.clip(high, 0, totals.reports).tolist(),
        strict=True,
    )
    return [
        Released(label, estimate, stderr, 0.0, least, most)
        for label, estimate, stderr, least, most in rows
        if query != "count" or label == value
    ]


def _labels(
    mechanism: AnyMechanism, values: Sequence[str] | None, query: ReleaseKind, value: str
) -> Sequence[str]:
    """What the query is about; refuses what it is not for."""
    own = family_for(mechanism)
    labels = own.labels(mechanism, values)
    if (own.KIND == "mean") != (query == "mean"):
        raise BadParameter(f"{mechanism.NAME} does not answer {query}")
    if own.KIND == "ranges" and query == "mode":
        raise BadParameter(f"{mechanism.NAME} does not answer mode: take the histogram's")
    if len(labels) > _MAX_VALUES:
        raise BadParameter(f"{len(labels):,} values are too many to release; at most 4,096")
    if (query == "count") != bool(value):
        raise BadParameter("count takes the value to count, and no other query takes one")
    if query == "count" and value not in labels:
        raise BadParameter("the value to count is not one of the metric's")
    return labels


def _most_common(
    parts: Sequence[tuple[AnyMechanism, Totals]],
    labels: Sequence[str],
    policy: Release,
    reports_each: int,
) -> str:
    if len(parts) > 1:
        raise BadParameter("a metric with tiers does not answer mode: take the histogram's")
    whole = supports(*parts[0])
    place: int = _noise().largest(list(map(int, whole)), 2 * reports_each / policy.epsilon)
    return labels[place]


def _noisy(
    mechanism: AnyMechanism, totals: Totals, place: int | None, policy: Release, reports_each: int
) -> tuple[Floats, Floats, Floats]:
    """Estimates, their own variances, and the noise's, in reports: of all values, or of one."""
    totals.check(mechanism.layout)
    own = family_for(mechanism)
    found = own.statistic(mechanism, totals)
    whole, l1, l2, unit, base = found.numbers, found.l1, found.l2, found.unit, found.base
    if place is not None and isinstance(unit, float):
        whole, l1, l2 = whole[place : place + 1], 1, 1.0
    noise, variance = _noise().draw(len(whole), l1 * reports_each, l2 * reports_each, policy)
    if isinstance(unit, float):
        estimates = unit * (whole + noise) + base
        noises = np.full(len(whole), unit**2 * variance)
    else:
        estimates = unit @ (whole + noise) + base
        noises = (unit**2).sum(axis=1) * variance
    # The local variance is taken at the noisy estimate: what is published depends on that alone.
    reports = totals.reports
    inside = np.clip(estimates, 0, reports)
    local = own.local(mechanism, whole + noise, reports)
    if local is None:
        # Lies that one device repeats add up, as in a query.
        held, other = spreads(mechanism, reports_each)
        local = inside * held + (reports - inside) * other
    if place is not None and len(estimates) > 1:
        at = slice(place, place + 1)
        return estimates[at], local[at], noises[at]
    return estimates, local, noises


def check_noise(metrics: Iterable[Metric]) -> None:
    """See, without loading it, that what draws noise is installed, if any metric is released.

    Raises:
        MissingDependency: it is not.
    """
    released = [metric.name for metric in metrics if metric.release is not None]
    if released and find_spec("opendp") is None:
        raise MissingDependency(
            f'metric "{released[0]}" is released, and what draws the noise of releases is not '
            f"installed here: {install_with('releases')}"
        )


def _noise() -> ModuleType:
    """Loaded with the first release: OpenDP is larger than all the rest of an aggregator."""
    try:
        return import_module("hubbub.privacy.release_noise")
    except ModuleNotFoundError as error:
        raise MissingDependency(
            "noise of releases needs OpenDP, which is not installed here: "
            f"{install_with('releases')}"
        ) from error


def _together(
    figures: Sequence[tuple[Floats, Floats, Floats]], reports: Sequence[int]
) -> tuple[Floats, Floats, Floats]:
    """Of tiers, weighted by inverse variance, with who chose which tier, as answers are."""
    if len(figures) == 1:
        return figures[0]
    scales = tier_scales([(local + noise).mean() for _, local, noise in figures], reports)
    estimates = scales @ np.array([values for values, _, _ in figures])
    coins = scales**2 @ np.array([each for _, each, _ in figures])
    local = coins + chosen_by(scales, reports, estimates)
    return estimates, local, scales**2 @ np.array([noise for _, _, noise in figures])
