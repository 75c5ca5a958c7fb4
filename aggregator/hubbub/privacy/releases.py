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
Sources: Dwork, McSherry, Nissim, Smith (TCC 2006); Canonne, Kamath, Steinke (NeurIPS 2020);
McKenna, Sheldon (NeurIPS 2020) for the noisy max, at least as good as the exponential mechanism.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp, log, sqrt
from typing import Final, Literal, get_args

import numpy as np
import opendp.prelude as dp

from hubbub.analysis.arrays import Floats
from hubbub.analysis.estimators.supports import supports
from hubbub.analysis.families import chosen_by, family_for, tier_scales
from hubbub.analysis.uncertainty.intervals import interval
from hubbub.analysis.uncertainty.repeated import spreads
from hubbub.catalog import Release
from hubbub.errors import BadParameter
from hubbub.mechanisms import AnyMechanism, Totals

__all__ = ["CONFIDENCE", "QUERIES", "ReleaseKind", "Released", "release"]

dp.enable_features("contrib")  # discrete noise and noisy max are in it

ReleaseKind = Literal["count", "histogram", "mean", "mode"]
QUERIES: Final[tuple[ReleaseKind, ...]] = get_args(ReleaseKind)
CONFIDENCE: Final = 0.95
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
    labels = _labels(mechanism, values, query)
    if (query == "count") != bool(value):
        raise BadParameter("count takes the value to count, and no other query takes one")
    if query == "count" and value not in labels:
        raise BadParameter("the value to count is not one of the metric's")
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


def _labels(
    mechanism: AnyMechanism, values: Sequence[str] | None, query: ReleaseKind
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
    select = dp.m.make_noisy_max(
        dp.vector_domain(dp.atom_domain(T=int)),
        dp.linf_distance(T=int),
        dp.max_divergence(),
        scale=2 * reports_each / policy.epsilon,
    )
    place: int = select([int(number) for number in whole])
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
    noise, variance = _draw(len(whole), l1 * reports_each, l2 * reports_each, policy)
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


def _draw(size: int, l1: int, l2: float, policy: Release) -> tuple[Floats, float]:
    """Noise for so many whole numbers of this sensitivity, and its variance."""
    zeros = [0] * size
    domain = dp.vector_domain(dp.atom_domain(T=int), size=size)
    if policy.mechanism == "gaussian":
        sigma = _sigma(l2, policy.epsilon, policy.delta)
        measure = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=sigma)
        return np.array(measure(zeros), dtype=np.float64), sigma**2
    scale = l1 / policy.epsilon
    measure = dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=scale)
    # OpenDP's own reckoning of what this costs; a hair above for its rounding.
    cost: float = measure.map(l1)  # type: ignore[no-untyped-call]
    if not cost <= policy.epsilon * (1 + 1e-9):
        raise AssertionError("the noise costs more than the policy allows")
    alpha = exp(-1 / scale)
    return np.array(measure(zeros), dtype=np.float64), 2 * alpha / (1 - alpha) ** 2


@lru_cache(maxsize=256)
def _sigma(l2: float, epsilon: float, delta: float) -> float:
    """The least of a discrete Gaussian that keeps epsilon and delta, by its zCDP."""
    space = dp.vector_domain(dp.atom_domain(T=int), size=1), dp.l2_distance(T=float)

    def gaussian(scale: float) -> dp.Measurement:
        measured = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=scale))
        return dp.c.make_fix_delta(measured, delta)

    # The textbook's conversion of zCDP (Bun, Steinke 2016, proposition 1.3) gives one that is
    # enough; OpenDP's own reckoning finds a smaller one below it.
    tail = log(1 / delta)
    enough = l2 / (sqrt(2) * (sqrt(tail + epsilon) - sqrt(tail))) * (1 + 1e-9)
    sigma: float = dp.binary_search_param(
        gaussian, d_in=l2, d_out=(epsilon, delta), bounds=(enough / 8, enough)
    )
    return sigma


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
