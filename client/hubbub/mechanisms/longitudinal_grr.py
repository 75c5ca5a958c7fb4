"""Longitudinal k-RR: one of many values, reported again and again, with a permanent lie beneath.

Idea: generalized randomized response twice: once and for all per device and value (permanent), and
    again for every report. An unchanged value can be reported every day without being averaged out.
Guarantee: one report: log(true / lie) <= epsilon, the chances of the true value and of another one
    after both steps; all reports of one value: log(keep (d-1) / (1-keep)) <= permanent_epsilon. A
    value that changes costs another permanent_epsilon.
Sends: an index, ceil(log2(d) / 8) bytes.
Estimator and variance: pure with p = true, q = lie. The second step keeps with the largest chance
    that the claim allows, over all d intermediate values; the published one drops d-2 of them and
    wastes up to half of epsilon (.22 for .5 at d = 12).
Source: L-GRR of Arcolezi, Couchot, Al Bouna, Xiao (2022); the exact second step is ours
    (docs/decisions/0212-mechanisms-and-families.md).
"""

from dataclasses import field
from fractions import Fraction
from typing import Final

from hubbub.errors import BadParameter
from hubbub.fields.frozen import frozen, set_derived
from hubbub.mechanisms import pure_protocols
from hubbub.mechanisms.mechanism import Memo, number
from hubbub.mechanisms.probability import (
    MAX_EPSILON,
    MIN_EPSILON,
    Probability,
    exp_at_most,
    log_at_least,
)
from hubbub.mechanisms.random_bits import BitSource

PERMANENT_EPSILON: Final = number(
    "Largest privacy loss of all reports of one unchanged value together, in nats, above "
    "`epsilon`.",
    MIN_EPSILON,
    MAX_EPSILON,
    example=3.0,
)


@frozen()
class LongitudinalGrr(pure_protocols.PermanentListed, pure_protocols.OneIndex):
    """Chained k-ary randomized response over [0, categories)."""

    epsilon: float
    permanent_epsilon: float = field(metadata=PERMANENT_EPSILON)
    categories: int
    permanent: Probability = field(init=False, repr=False)
    fresh: Probability = field(init=False, repr=False)
    channel: pure_protocols.Pure = field(init=False, repr=False)

    NAME = "long.grr"
    VERSION = 1
    SMALL = (
        {"epsilon": 0.1, "permanent_epsilon": 0.5, "categories": 2},
        {"epsilon": 0.5, "permanent_epsilon": 1.0, "categories": 12},
        {"epsilon": 2.0, "permanent_epsilon": 3.0, "categories": 5},
    )

    def __post_init__(self) -> None:
        pure_protocols.check_categories(self.categories)
        report, forever = odds(self.epsilon, self.permanent_epsilon)
        other_count = self.categories - 1
        # PRIVACY: down, to uniform.
        permanent = Probability.at_most(forever / (forever + other_count))
        keep_chance, lied = permanent.exact, permanent.complement.exact / other_count
        # The chances of the true value and of another one after both steps are linear in the chance
        # that the second one keeps; the latter is taken where their ratio is `report` exactly.
        truth_per_keep, truth = keep_chance - lied, lied
        lie_per_keep = (lied - keep_chance) / other_count
        lie = (keep_chance + (other_count - 1) * lied) / other_count
        # PRIVACY: down, to uniform.
        fresh = Probability.at_most(
            (report * lie - truth) / (truth_per_keep - report * lie_per_keep)
        )
        channel = pure_protocols.Pure(
            truth + fresh.exact * truth_per_keep, lie + fresh.exact * lie_per_keep
        )
        set_derived(self, permanent=permanent, fresh=fresh, channel=channel)

    def permanent_loss(self) -> float:
        other_count = self.categories - 1
        return log_at_least(self.permanent.exact * other_count / self.permanent.complement.exact)

    def randomize_again(self, value: int, memo: Memo, source: BitSource) -> bytes:
        return self.layout.encode(self.respond(value, memo, source))

    def respond(self, value: int, memo: Memo, source: BitSource) -> int:
        """The report of a value: its permanent response, randomized again."""
        # PRIVACY: one permanent value per value, for as long as the device keeps its secret.
        coins = memo.coins(b"permanent" + self.permanent_key(value, memo))
        permanent_value = self._response(value, self.permanent, coins)
        return self._response(permanent_value, self.fresh, source)

    def _response(self, value: int, keep: Probability, source: BitSource) -> int:
        if source.chance(keep):
            return value
        other_index = source.below(self.categories - 1)  # skip over the value itself
        return other_index + (other_index >= value)


def odds(epsilon: float, permanent_epsilon: float) -> tuple[Fraction, Fraction]:
    """Just below exp(epsilon) of one report, and of all reports of a value. Raises BadParameter."""
    report, forever = exp_at_most(epsilon), exp_at_most(permanent_epsilon)
    if not epsilon < permanent_epsilon:
        raise BadParameter(f"epsilon {epsilon} is not below permanent_epsilon {permanent_epsilon}")
    return report, forever
