"""Composition: what many reports, or many releases, reveal together.

Four methods, each an upper bound, the later ones mostly tighter:

    basic       epsilons and deltas add up
    advanced    sqrt(2 ln(1/delta') sum eps_i^2) + sum eps_i (exp(eps_i) - 1), with its own delta'
    rdp         Renyi divergences add up (moments accountant)
    pld         privacy loss distributions convolve: tight, except for rounding up on a grid

The last two are Google's dp-accounting. An epsilon-DP event reveals no more than randomized
response at that epsilon, or, in Renyi divergences, than zero-concentrated DP at epsilon^2/2.
Sources: Dwork, Rothblum, Vadhan (FOCS 2010), theorem III.3; Bun, Steinke (TCC 2016), proposition
1.4; Mironov (CSF 2017); Koskela et al. (AISTATS 2020); sampling: Balle, Barthe, Gaboardi (2018).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import expm1, inf, log, sqrt
from typing import TYPE_CHECKING, Final

from hubbub.errors import BadParameter
from hubbub.privacy.amplification import sampled
from hubbub.privacy.shuffled_epoch import POWER_ERROR

if TYPE_CHECKING:
    from dp_accounting import DpEvent

MAX_TIMES: Final = 10_000_000
# Parts of the smallest epsilon in the grid to which losses are rounded up.
_GRID: Final = 200
_GAUSSIAN_GRID: Final = 1e-4
# No more points than this in one distribution: a coarser grid beyond, which rounds up more.
_MAX_POINTS: Final = 20_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A report or release about a person, made `times` times, with valid numbers (BadParameter).

    Args:
        epsilon, delta: its guarantee in nats; or `sigma` instead of both.
        sigma: standard deviation of Gaussian noise, in sensitivities.
        sampling: probability that the person is in it at all (Poisson).
    """

    epsilon: float | None = None
    delta: float = 0.0
    sigma: float | None = None
    sampling: float = 1.0
    times: int = 1

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.sigma is None):
            raise BadParameter("an event needs either an epsilon or a sigma, and not both")
        if self.epsilon is not None and not 0 < self.epsilon <= 100:  # noqa: PLR2004 nothing is private there
            raise BadParameter(f"epsilon {self.epsilon} is outside (0, 100]")
        if self.sigma is not None and not 0 < self.sigma < inf:
            raise BadParameter(f"sigma {self.sigma} is not above 0")
        if not 0 <= self.delta < 1:
            raise BadParameter(f"delta {self.delta} is outside [0, 1)")
        if not 0 < self.sampling <= 1:
            raise BadParameter(f"sampling {self.sampling} is outside (0, 1]")
        if not (isinstance(self.times, int) and 1 <= self.times <= MAX_TIMES):
            raise BadParameter(f"times {self.times} is outside [1, {MAX_TIMES}]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """The epsilon of all events together at `delta`, in nats, by each method; None: no bound.

    `advanced_leading` is the first term of the advanced bound, as textbooks quote it; not a bound.
    """

    delta: float
    basic: float | None
    advanced: float | None
    advanced_leading: float | None
    rdp: float | None
    pld: float

    @property
    def best(self) -> float:
        """Smallest of the bounds."""
        bounds = (self.basic, self.advanced, self.rdp, self.pld)
        return min(bound for bound in bounds if bound is not None)


def compose(events: Sequence[Event], delta: float) -> Composed:
    """Composes events about one person, in any order, each chosen after the ones before.

    Raises BadParameter for no event, or a delta outside (0, 1).
    """
    if not events:
        raise BadParameter("nothing to compose: give at least one event")
    if not 0 < delta < 1:
        raise BadParameter(f"delta {delta} is outside (0, 1)")
    losses = [
        (sampled(event.epsilon, event.sampling), event.sampling * event.delta, event.times)
        for event in events
        if event.epsilon is not None
    ]
    spent_delta = sum(event_delta * times for _, event_delta, times in losses)
    basic: float | None = None
    leading: float | None = None
    advanced: float | None = None
    # A Gaussian has no epsilon of its own; a delta may already be gone.
    if len(losses) == len(events) and spent_delta <= delta:
        basic = sum(epsilon * times for epsilon, _, times in losses)
        if spent_delta < delta:
            squares = sum(epsilon**2 * times for epsilon, _, times in losses)
            leading = sqrt(2 * squares * log(1 / (delta - spent_delta)))
            advanced = leading + sum(e * expm1(e) * times for e, _, times in losses)
    return Composed(
        delta=delta,
        basic=basic,
        advanced=advanced,
        advanced_leading=leading,
        rdp=_rdp(events, delta),
        pld=_pld(events, delta),
    )


def _rdp(events: Sequence[Event], delta: float) -> float | None:
    if any(event.delta for event in events):
        return None  # Renyi divergences know no failure
    from dp_accounting import ZCDpEvent, rdp  # noqa: PLC0415 a second, and 50 MB

    accountant = rdp.RdpAccountant()
    for event in events:
        if event.sigma is not None:
            dp_event = _gaussian(event, event.sigma)
        else:
            dp_event = ZCDpEvent(sampled(event.epsilon or 0.0, event.sampling) ** 2 / 2)
        accountant.compose(dp_event, event.times)
    return float(accountant.get_epsilon(delta))


def _gaussian(event: Event, sigma: float) -> "DpEvent":
    """A Gaussian event of dp-accounting, for everybody or for a sample."""
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent  # noqa: PLC0415 as above

    dp_event = GaussianDpEvent(sigma)
    return dp_event if event.sampling == 1 else PoissonSampledDpEvent(event.sampling, dp_event)


def _pld(events: Sequence[Event], delta: float) -> float:
    from dp_accounting import pld  # noqa: PLC0415 as above
    from dp_accounting.pld import common, privacy_loss_distribution  # noqa: PLC0415 as above

    # Fine compared with the smallest epsilon, but coarse enough to compute.
    epsilons = [
        sampled(event.epsilon, event.sampling) for event in events if event.epsilon is not None
    ]
    if len(set(epsilons)) == 1 and len(epsilons) == len(events):
        grid = epsilons[0]  # one epsilon alone is on its own grid: nothing is rounded
    else:
        fine = min([_GAUSSIAN_GRID, *(epsilon / _GRID for epsilon in epsilons)])
        reach = sum(
            sqrt(event.times)
            * 20
            * (sampled(event.epsilon, 1.0) if event.epsilon else 1 / (event.sigma or 1))
            for event in events
        )
        grid = max(fine, reach / _MAX_POINTS)
    accountant = pld.PLDAccountant(value_discretization_interval=grid)
    composed = None
    for event in events:
        if event.sigma is not None:
            accountant.compose(_gaussian(event, event.sigma), event.times)
            continue
        parameters = common.DifferentialPrivacyParameters(
            sampled(event.epsilon or 0.0, event.sampling), event.sampling * event.delta
        )
        loss_law = privacy_loss_distribution.from_privacy_parameters(parameters, grid)
        loss_law = loss_law.self_compose(event.times) if event.times > 1 else loss_law
        composed = loss_law if composed is None else composed.compose(loss_law)
    delta = max(delta - sum(event.times for event in events) * POWER_ERROR, 0.0)
    if composed is None:
        return float(accountant.get_epsilon(delta))
    if any(event.sigma is not None for event in events):
        composed = composed.compose(accountant._pld)  # noqa: SLF001 it has no event for a given guarantee
    return float(composed.get_epsilon_for_delta(delta))
