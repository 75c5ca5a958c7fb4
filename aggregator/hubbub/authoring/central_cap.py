"""Checks a catalog against its yearly cap on crowds."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from hubbub.authoring.crowds.accountant import Accountant
from hubbub.authoring.exposure import crowds_within
from hubbub.catalog.central_cap import crowd_cost, room_of, spent_of
from hubbub.catalog.metric import Metric
from hubbub.catalog.models.judging import judging
from hubbub.catalog.policy import SPANS, Caps
from hubbub.mechanisms.even_noise import even_lies

if TYPE_CHECKING:
    from hubbub.mechanisms import AnyMechanism


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


def over_central_cap(metrics: Iterable[Metric], caps: Caps) -> list[tuple[str, str]]:
    """The cap's field and a message with the remedy, if the metrics exceed it."""
    room = room_of(caps)
    year = SPANS["year"]
    costs = {metric.name: crowds_within(metric, year) * crowd_cost(metric) for metric in metrics}
    if room is None or sum(costs.values()) <= room:
        return []
    total = spent_of(caps, sum(costs.values()))
    largest = sorted(costs.items(), key=lambda cost: -cost[1])[:5]
    most = ", ".join(f"{name} {spent_of(caps, amount):.4g}" for name, amount in largest if amount)
    message = (
        f"all crowds together can reveal {total:.4g} nats about one person in a year at delta "
        f"{caps.central_delta_per_year:g}, above the cap of {caps.central_epsilon_per_year:g} "
        f"({most} by itself); lower central_epsilon or lifetime_central_epsilon, choose longer "
        "epochs, or raise the cap"
    )
    return [("central_epsilon_per_year", message)]
