"""The yearly cap on what crowds say together about one person, to who sees whole epochs.

Catalogs are checked by the rule that devices keep: every crowd's mu squared adds up, which the
standard library can do, and is above the exact account (on the card) by about a quarter; of two
values by more.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import sqrt
from typing import Final

from hubbub.catalog.crowds.central_promise import Accountant
from hubbub.catalog.crowds.gaussian import LEFT_OUT, epsilon_of_mu, mu_within
from hubbub.catalog.exposure import crowds_within
from hubbub.catalog.metric import Metric
from hubbub.catalog.models.judging import judging
from hubbub.catalog.policy import SPANS, Caps
from hubbub.mechanisms import AnyMechanism, even_lies

# Of delta: what Gaussians have; the rest is for what each crowd may tell beyond its own.
_OF_GAUSSIANS: Final = 0.9


def with_gaussians(
    caps: Caps, metrics: Mapping[str, Metric], accountant: Accountant | None
) -> tuple[Caps, dict[str, Metric]]:
    """The caps with the mu of every metric that leaves in crowds, if they have a central one."""
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


def room_of(caps: Caps) -> float | None:
    """How much mu squared one person's crowds may cost in any 366 days; None without a cap."""
    if caps.central_epsilon_per_year is None:
        return None
    delta = _OF_GAUSSIANS * caps.central_delta_per_year
    return mu_within(caps.central_epsilon_per_year, delta) ** 2


def crowd_cost(metric: Metric) -> float:
    """What one report costs of that room; 0 of a metric that leaves in no crowd.

    At least so much that no room holds more reports than there is delta for what they leave out.
    """
    mu = metric.caps.central_mu.get(metric.base_name)
    if mu is None or (room := room_of(metric.caps)) is None:
        return 0.0
    left_out = (1 - _OF_GAUSSIANS) * metric.caps.central_delta_per_year
    return max(mu * mu, room * LEFT_OUT / left_out)


def spent_of(caps: Caps, cost: float) -> float:
    """What so much of that room says, in nats at the cap's delta."""
    return epsilon_of_mu(sqrt(cost), _OF_GAUSSIANS * caps.central_delta_per_year) if cost else 0.0


def over_central_cap(metrics: Iterable[Metric], caps: Caps) -> list[tuple[str, str]]:
    """What is wrong with the cap, and the remedy, if the metrics break it."""
    room = room_of(caps)
    year = SPANS["year"]
    costs = {metric.name: crowds_within(metric, year) * crowd_cost(metric) for metric in metrics}
    if room is None or sum(costs.values()) <= room:
        return []
    total = spent_of(caps, sum(costs.values()))
    largest = sorted(costs.items(), key=lambda cost: -cost[1])[:5]
    most = ", ".join(f"{name} {spent_of(caps, amount):.4g}" for name, amount in largest if amount)
    message = (
        f"all crowds together can say {total:.4g} nats about one person in a year at delta "
        f"{caps.central_delta_per_year:g}, above the cap of {caps.central_epsilon_per_year:g} "
        f"({most} by itself); lower central_epsilon or lifetime_central_epsilon, choose longer "
        "epochs, or raise the cap"
    )
    return [("central_epsilon_per_year", message)]
