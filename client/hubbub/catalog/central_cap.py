"""The yearly cap on what all crowds together reveal about one person to observers of whole epochs.

Catalogs are checked by the rule that devices apply: the sum of every crowd's mu squared, which
needs only the standard library. It exceeds the exact figure (on the card) by about a quarter; for
two values by more.
"""

from math import sqrt
from typing import Final

from hubbub.catalog.crowds.gaussian import LEFT_OUT, epsilon_of_mu, mu_within
from hubbub.catalog.metric import Metric
from hubbub.catalog.policy import Caps

# Share of delta for the Gaussian part; the rest covers each crowd's own delta.
_OF_GAUSSIANS: Final = 0.9


def room_of(caps: Caps) -> float | None:
    """The sum of mu squared allowed for one person's crowds in any 366 days; None without a cap."""
    if caps.central_epsilon_per_year is None:
        return None
    delta = _OF_GAUSSIANS * caps.central_delta_per_year
    return mu_within(caps.central_epsilon_per_year, delta) ** 2


def crowd_cost(metric: Metric) -> float:
    """The part of that sum that one report costs; 0 for a metric without a crowd.

    It is at least so large that the sum of left-out deltas stays within delta.
    """
    mu = metric.caps.central_mu.get(metric.base_name)
    if mu is None or (room := room_of(metric.caps)) is None:
        return 0.0
    left_out = (1 - _OF_GAUSSIANS) * metric.caps.central_delta_per_year
    return max(mu * mu, room * LEFT_OUT / left_out)


def spent_of(caps: Caps, cost: float) -> float:
    """The epsilon of a part of that sum, in nats at the cap's delta."""
    return epsilon_of_mu(sqrt(cost), _OF_GAUSSIANS * caps.central_delta_per_year) if cost else 0.0
