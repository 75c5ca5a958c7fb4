"""What one person's reports can reveal in a day, a month, a year, over all metrics; and caps on it.

A span of days is placed where it touches the most epochs, since reports may be made in any part of
an epoch. Nothing is revealed beyond a metric's lifetime limit, which the device's ledger enforces.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import floor
from typing import TYPE_CHECKING

from hubbub.authoring.crowds.accountant import Accountant
from hubbub.catalog.crowds.gaussian_privacy import crowd_cost, room_of, spent_of
from hubbub.catalog.epochs_and_periods import days_at_most, epochs_within, spans_within
from hubbub.catalog.limits_and_budgets import SPANS, Caps
from hubbub.catalog.metric import Metric
from hubbub.catalog.models.model_metric import judging
from hubbub.errors.message_words import at_most, nats
from hubbub.mechanisms.even_lies import even_lies

if TYPE_CHECKING:
    from hubbub.mechanisms import AnyMechanism


def reported_within(metric: Metric, days: int) -> int:
    """Largest number of epochs in this many days in which one person reports; one per period."""
    if not metric.report_on:
        return epochs_within(metric.epoch, days)
    if metric.period == "month":
        return epochs_within("month", days)
    return spans_within(days_at_most(metric.period), days)


def exposure(metric: Metric, days: int) -> float:
    """Most that one person's reports of a metric can reveal in this many days, in nats."""
    reports = reported_within(metric, days) * metric.limits.reports_per_epoch
    return min(reports * metric.report_loss, metric.limits.lifetime_epsilon)


def crowds_within(metric: Metric, days: int) -> int:
    """Largest number of crowds of one person in this many days: one per epoch, up to the limit.

    If several epochs share a promise, the first may spend it all, and the others cost nothing.
    """
    epochs, promise = reported_within(metric, days), metric.central
    most = metric.limits.lifetime_central_epsilon
    if most is None or promise is None:
        return epochs
    crowd_epsilon = min(promise.epsilon, metric.report_loss)
    periods = floor(most / promise.epsilon + 1e-6)
    remaining = floor(max(most - periods * promise.epsilon, 0.0) / crowd_epsilon + 1e-6)
    return min(
        epochs, max(periods * promise.epochs + remaining, floor(most / crowd_epsilon + 1e-6))
    )


def over_caps(metrics: Iterable[Metric], caps: Caps) -> Iterator[tuple[str, str]]:
    """Yields the field of each exceeded cap, and a message with the remedy."""
    for span, days in SPANS.items():
        cap = caps.of(span)
        parts = sorted(((exposure(metric, days), metric.name) for metric in metrics), reverse=True)
        total = sum(part for part, _ in parts)
        if cap is not None and not total <= cap:
            most = ", ".join(f"{name} {part:.4g}" for part, name in parts[:5])
            yield (
                f"epsilon_per_{span}",
                (
                    f"all metrics together can reveal {nats(total)} about one person in a "
                    f"{span}, above the cap of {cap:g} ({most}); lower epsilon, "
                    "reports_per_epoch or lifetime_epsilon, choose longer epochs, or raise the cap"
                ),
            )


def with_gaussians(
    caps: Caps, metrics: Mapping[str, Metric], accountant: Accountant | None
) -> tuple[Caps, dict[str, Metric]]:
    """Caps and metrics, with the mu of every metric with crowds if there is a central cap."""
    if caps.central_epsilon_per_year is None or accountant is None:
        return caps, dict(metrics)
    mu_values = {}
    for name, metric in metrics.items():
        if (promise := metric.central) is not None:
            mechanisms: list[AnyMechanism] = [metric.randomizer]
            if metric.model and metric.model.held_out:  # a device is in rounds, or judges
                mechanisms.append(judging(metric))
            lies = [even_lies(mechanism, metric.report_loss) for mechanism in mechanisms]
            mu_values[name] = max(
                accountant.gaussian(promise, lie.categories, lie.epsilon, lie.groups)
                for lie in lies
            )
    caps = replace(caps, central_mu=mu_values)
    return caps, {name: replace(metric, caps=caps) for name, metric in metrics.items()}


def over_central_cap(metrics: Iterable[Metric], caps: Caps) -> Iterator[tuple[str, str]]:
    """Yields the cap's field and a message with the remedy, if the metrics exceed it."""
    room = room_of(caps)
    year = SPANS["year"]
    costs = {metric.name: crowds_within(metric, year) * crowd_cost(metric) for metric in metrics}
    if room is None or sum(costs.values()) <= room:
        return
    total = spent_of(caps, sum(costs.values()))
    largest = sorted(costs.items(), key=lambda cost: -cost[1])[:5]
    most = ", ".join(
        f"{name} {at_most(spent_of(caps, amount), '.4g')}" for name, amount in largest if amount
    )
    yield (
        "central_epsilon_per_year",
        (
            f"all crowds together can reveal {nats(total)} about one person in a year at delta "
            f"{caps.central_delta_per_year:g}, above the cap of {caps.central_epsilon_per_year:g} "
            f"({most} by itself); lower central_epsilon or lifetime_central_epsilon, choose longer "
            "epochs, or raise the cap"
        ),
    )
